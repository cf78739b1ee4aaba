/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * See kind.h.
 */
#include "vessel/gate/decode/kind.h"
#include "common/attr.h"
#include "common/str.h"
#include "vessel/gate/decode/public.h"
#include "vessel/gate/media/media.h"
#include "vessel/gate/text/runs.h"
#include <string.h>

#define WINDOW 64

#define MAGIC(text) text, sizeof(text) - 1
static const struct {
	size_t at;
	const char *magic;
	size_t len;
	struct gate_kind kind;
} kinds[] = {
	{0, MAGIC("SQLite format 3\0"), {"sqlite", GATE_FILE, 0.9}},
	{0, MAGIC("%PDF-"), {"pdf", GATE_FILE, 0.85}},
	{0, MAGIC("PK\3\4"), {"zip", GATE_FILE, 0.85}}, /* docx, xlsx, odt, jar */
	{0, MAGIC("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), {"office", GATE_FILE, 0.85}},
	{0, MAGIC("\x03\xd9\xa2\x9a"), {"keepass", GATE_FILE, 1.0}},
	{0, MAGIC("7z\xbc\xaf\x27\x1c"), {"7z", GATE_FILE, 0.85}},
	{0, MAGIC("Rar!\x1a\x07"), {"rar", GATE_FILE, 0.85}},
	{0,
	 MAGIC("\xfd"
	       "7zXZ"),
	 {"xz", GATE_FILE, 0.85}},
	{0, MAGIC("BZh9"), {"bzip2", GATE_FILE, 0.85}},
	{0, MAGIC("\x28\xb5\x2f\xfd"), {"zstd", GATE_FILE, 0.85}},
	{257, MAGIC("ustar"), {"tar", GATE_FILE, 0.85}},
	{0, MAGIC("\177ELF"), {"elf", GATE_FILE, 0.85}},
	{0, MAGIC("\x89PNG\r\n\x1a\n"), {"png", GATE_MEDIA, 0.3}},
	{0, MAGIC("\xff\xd8\xff"), {"jpeg", GATE_MEDIA, 0.3}},
	{0, MAGIC("GIF8"), {"gif", GATE_MEDIA, 0.3}},
	{8, MAGIC("WEBP"), {"webp", GATE_MEDIA, 0.3}},
	{8, MAGIC("WAVE"), {"wav", GATE_MEDIA, 0.3}},
	{0, MAGIC("OggS"), {"ogg", GATE_MEDIA, 0.3}},
	{0, MAGIC("ID3"), {"mp3", GATE_MEDIA, 0.3}},
	{4, MAGIC("ftyp"), {"mp4", GATE_MEDIA, 0.3}},
};

/* "GIF8" and "ID3" begin sentences too: it is one as long as it reads as one. A last
 * character may be cut. */
static bool is_sentence(const char *s, size_t len)
{
	size_t n = len < WINDOW ? len : WINDOW;

	return gate_readable(s, n) + 3 >= n;
}

/* A sequence that begins with a sequence, each of 256 bytes or more, and not longer than it says: in
 * DER that is a certificate, a request or a list of revoked ones. A private key begins with a
 * number, an encrypted one with a short sequence. */
static bool begins_certificate(const char *s, size_t len)
{
	const unsigned char *u = (const unsigned char *)s;

	return len > 256 && u[0] == 0x30 && u[1] == 0x82 && u[4] == 0x30 &&
	       u[5] == 0x82 && (size_t)(u[2] << 8 | u[3]) + 4 >= len &&
	       (u[6] << 8 | u[7]) + 4 < (u[2] << 8 | u[3]);
}

const struct gate_kind *gate_kind_of(const char *s, size_t len)
{
	static const struct gate_kind certificate = {"certificate", GATE_MEDIA, 0.1};
	static const struct gate_kind public = {"public", GATE_MEDIA, 0};

	if (gate_is_public(s, len))
		return &public;
	if (begins_certificate(s, len))
		return &certificate;
	for (size_t i = 0; len >= 16 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (len >= kinds[i].at + kinds[i].len &&
		    s[kinds[i].at] == kinds[i].magic[0] &&
		    memcmp(s + kinds[i].at, kinds[i].magic, kinds[i].len) == 0 &&
		    (kinds[i].kind.family == GATE_FILE || !is_sentence(s, len)))
			return &kinds[i].kind;
	return NULL;
}

bool gate_is_media(const char *s, size_t len)
{
	/* of the others only the first bytes are known */
	static const char *const walked[] = {"png", "jpeg", "gif", "webp", "wav", "mp3"};
	const struct gate_kind *k = gate_kind_of(s, len);
	struct media m;

	if (!k || k->family != GATE_MEDIA)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(walked); i++)
		if (str_eq(walked[i], k->name))
			return media_walk(s, len, NULL, &m) != MEDIA_NONE;
	return true;
}

static size_t utf8_length(const unsigned char *u, size_t len)
{
	size_t n = u[0] < 0xc2	 ? 0
		   : u[0] < 0xe0 ? 2
		   : u[0] < 0xf0 ? 3
		   : u[0] < 0xf5 ? 4
				 : 0;

	if (n == 0 || n > len)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((u[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

/* 1: a character of text; 2: the first byte of one of UTF-8. */
static const uint8_t of_text[256] = {
	['\b' ... '\r'] = 1,
	[033] = 1,
	[' ' ... '~'] = 1,
	[0xc2 ... 0xf4] = 2,
};

/* Bytes of a character of text at s; 0: it is none. */
static size_t text_at(const char *s, size_t len)
{
	const unsigned char *u = (const unsigned char *)s;

	if (of_text[u[0]] < 2)
		return of_text[u[0]];
	return len > 1 && (u[1] & 0xc0) == 0x80 ? utf8_length(u, len) : 0;
}

/* Control characters, and all that is no ASCII: most of text has none. */
static const struct gate_stops strange = {
	.below = '\b',
	.from = '\r' + 1,
	.n = ' ' - '\r' - 1,
	.above = '~',
};

size_t gate_readable(const char *s, size_t len)
{
	size_t i = 0;

	while (i < len) {
		size_t n = text_at(s + i, len - i);

		if (n == 0)
			break;
		i += n;
	}
	return i;
}

bool gate_has_readable(const char *s, size_t len, size_t min)
{
	size_t n = 0;

	for (size_t i = 0; i < len && len - i + n >= min;) {
		size_t step = text_at(s + i, len - i);

		n = step ? n + step : 0;
		if (n >= min)
			return true;
		i += step ? step : 1;
	}
	return false;
}

bool gate_find_binary(const char *s, size_t len, size_t *ret_at)
{
	/* The places of the last strange bytes: enough of them close together. */
	size_t place[GATE_STRANGE_MIN] = {0}, n = 0;

	for (size_t i = 0; (i = gate_next_stop(&strange, s, len, i)) < len;) {
		size_t step = text_at(s + i, len - i);

		if (step) {
			i += step;
			continue;
		}
		/* before it is replaced: the place of GATE_STRANGE_MIN strange bytes ago */
		if (n >= GATE_STRANGE_MIN && i - place[n % GATE_STRANGE_MIN] < WINDOW) {
			*ret_at = place[n % GATE_STRANGE_MIN];
			return true;
		}
		place[n++ % GATE_STRANGE_MIN] = i++;
	}
	return false;
}
