/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * See media.h.
 */
#include "vessel/gate/media/media.h"

#include "common/attr.h"
#include "common/utf8.h"
#include "vessel/gate/media/media_priv.h"

const uint8_t *walk_take(struct walk *w, size_t n)
{
	const uint8_t *s = w->at;

	if (n > w->left)
		return NULL;
	w->at += n;
	w->left -= n;
	return s;
}

/* Bytes of the character at s; 0: it is none of a text. Where chance makes most of them, only
 * ASCII is one. */
static size_t letter(const uint8_t *s, size_t len, size_t min)
{
	uint32_t c;

	if (*s < 0x80)
		return (*s >= ' ' && *s < 0x7f) || *s == '\t' || *s == '\n' || *s == '\r';
	return min == TEXT_AMONG_NAMES ? utf8_get(s, len, &c) : 0;
}

static bool is_latin1(uint8_t c)
{
	return c >= 0xa0 || (c >= ' ' && c < 0x7f) || c == '\t' || c == '\n' || c == '\r';
}

/* UTF-16, either end first, which EXIF and ID3 are written in: letters with a NUL between each and
 * the next. On which side the last one has its own does not matter. */
static void walk_wide_text(struct walk *w, const uint8_t *s, size_t len, size_t min)
{
	for (size_t i = 0, n; i < len; i += n >= min ? 2 * n : 1) {
		for (n = 0; i + 2 * n < len && is_latin1(s[i + 2 * n]) &&
			    (n == 0 || s[i + 2 * n - 1] == 0);)
			n++;
		if (n < min)
			continue;
		for (size_t k = 0; k < n; k++) {
			char out[4];

			buf_add(w->text, out, utf8_put(s[i + 2 * k], out));
		}
		buf_addc(w->text, '\n');
	}
}

void walk_text(struct walk *w, const uint8_t *s, size_t len, size_t min)
{
	size_t from = 0;

	for (size_t i = 0; w->text && i <= len;) {
		size_t n = i < len ? letter(s + i, len - i, min) : 0;

		if (n) {
			i += n;
			continue;
		}
		if (i - from >= min) {
			buf_add(w->text, s + from, i - from);
			buf_addc(w->text, '\n');
		}
		from = ++i;
	}
	if (w->text)
		walk_wide_text(w, s, len, min);
}

bool walk_is_at_end(const struct walk *w)
{
	for (size_t i = 0; i < w->left; i++)
		if (w->at[i] != 0)
			return false;
	return w->left <= PADDING_MAX_BYTES;
}

enum media_state media_walk(const void *data, size_t len, struct buf *text,
			    struct media *ret)
{
	static const struct {
		enum media_state (*walk)(struct walk w);
		struct media media;
	} kinds[] = {
		{media_png, {"png", GATE_PICTURE}}, {media_jpeg, {"jpeg", GATE_PICTURE}},
		{media_gif, {"gif", GATE_PICTURE}}, {media_webp, {"webp", GATE_PICTURE}},
		{media_wav, {"wav", GATE_SOUND}},   {media_mp3, {"mp3", GATE_SOUND}},
		{media_pdf, {"pdf", GATE_PDF}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct walk w = {.at = data, .left = len, .text = text};
		enum media_state state = kinds[i].walk(w);

		if (state == MEDIA_NONE)
			continue;
		*ret = kinds[i].media;
		return text && !buf_ok(text) ? MEDIA_NONE : state;
	}
	return MEDIA_NONE;
}
