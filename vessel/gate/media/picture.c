/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * JPEG (ITU T.81) and GIF (89a): segments and blocks that say their own lengths.
 */
#include "common/attr.h"
#include "vessel/gate/media/media_priv.h"

#include <string.h>

#define EXTENSION_MAX_BYTES ((size_t)1 << 20)
#define PICTURES_MAX 8 /* of one camera's file: the picture, its previews, its depths */

/* ---- JPEG ---------------------------------------------------------------------------- */

enum {
	JPEG_SOI = 0xd8,
	JPEG_EOI = 0xd9,
	JPEG_SOS = 0xda,
	JPEG_APP0 = 0xe0,
	JPEG_COM = 0xfe,
};

/* A frame: any coding of points but the three that are something else. */
static bool is_frame(uint8_t m)
{
	return m >= 0xc0 && m <= 0xcf && m != 0xc4 && m != 0xc8 && m != 0xcc;
}

static bool has_text(uint8_t m)
{
	return (m >= JPEG_APP0 && m <= 0xef) || m == JPEG_COM;
}

/* Points, up to the next marker. */
static void skip_points(struct walk *w)
{
	const uint8_t *from = w->at;

	while (w->left > 0) {
		const uint8_t *ff = memchr(w->at, 0xff, w->left);

		if (!ff || (size_t)(ff - w->at) + 1 >= w->left) {
			(void)walk_take(w, w->left);
			break;
		}
		(void)walk_take(w, (size_t)(ff - w->at));
		if (ff[1] != 0 && !(ff[1] >= 0xd0 && ff[1] <= 0xd7))
			break;
		(void)walk_take(w, 2);
	}
	walk_text(w, from, (size_t)(w->at - from), TEXT_AMONG_POINTS);
}

/* A segment of tables, names or a head. */
static enum media_state take_segment(struct walk *w, uint8_t marker)
{
	const uint8_t *s = walk_take(w, 2), *data;
	size_t len;

	if (!s)
		return MEDIA_CUT;
	len = (size_t)(s[0] << 8 | s[1]);
	if (len < 2 || marker < 0xc0 || (marker >= 0xd0 && marker <= JPEG_SOI))
		return MEDIA_NONE;
	data = walk_take(w, len - 2);
	if (!data)
		return MEDIA_CUT;
	walk_text(w, data, len - 2,
		  has_text(marker) ? TEXT_AMONG_NAMES : TEXT_AMONG_POINTS);
	return MEDIA_WHOLE;
}

/* From behind SOI to EOI. */
static enum media_state one_jpeg(struct walk *w)
{
	bool has_frame = false, has_points = false;
	const uint8_t *s;

	while ((s = walk_take(w, 1)) != NULL) {
		enum media_state state;
		uint8_t marker;

		if (*s != 0xff)
			return MEDIA_NONE;
		do
			s = walk_take(w, 1);
		while (s && *s == 0xff);
		if (!s)
			break;
		marker = *s;
		if (marker == JPEG_EOI)
			return has_frame && has_points ? MEDIA_WHOLE : MEDIA_NONE;
		state = take_segment(w, marker);
		if (state != MEDIA_WHOLE)
			return state;
		has_frame |= is_frame(marker);
		if (marker != JPEG_SOS)
			continue;
		if (!has_frame)
			return MEDIA_NONE;
		has_points = true;
		skip_points(w);
	}
	return MEDIA_CUT;
}

enum media_state media_jpeg(struct walk w)
{
	/* cameras put further pictures behind the first one (CIPA DC-007) */
	for (unsigned n = 0; n < PICTURES_MAX; n++) {
		const uint8_t *s = walk_take(&w, 2);
		enum media_state state;

		if (!s || s[0] != 0xff || s[1] != JPEG_SOI || w.left == 0 ||
		    *w.at != 0xff)
			return MEDIA_NONE;
		state = one_jpeg(&w);
		if (state != MEDIA_WHOLE || walk_is_at_end(&w))
			return state;
	}
	return MEDIA_NONE;
}

/* ---- GIF ----------------------------------------------------------------------------- */

/* Blocks of up to 255 bytes, up to an empty one. MEDIA_WHOLE: it was there. */
static enum media_state take_blocks(struct walk *w, bool is_extension)
{
	cleanup_buf struct buf joined = {.max = EXTENSION_MAX_BYTES};
	const uint8_t *n, *data;

	while ((n = walk_take(w, 1)) != NULL) {
		if (*n == 0) {
			if (is_extension && joined.len)
				walk_text(w, (const uint8_t *)joined.data, joined.len,
					  TEXT_AMONG_NAMES);
			return buf_ok(&joined) ? MEDIA_WHOLE : MEDIA_NONE;
		}
		data = walk_take(w, *n);
		if (!data)
			break;
		if (is_extension && w->text)
			buf_add(&joined, data, *n);
		else
			walk_text(w, data, *n, TEXT_AMONG_POINTS);
	}
	return MEDIA_CUT;
}

static size_t colours(uint8_t flags)
{
	return flags & 0x80 ? (size_t)3 << ((flags & 7) + 1) : 0;
}

static enum media_state take_frame(struct walk *w)
{
	const uint8_t *s = walk_take(w, 9);

	if (!s || !walk_take(w, colours(s[8])) || !(s = walk_take(w, 1)))
		return MEDIA_CUT;
	return *s < 2 || *s > 8 ? MEDIA_NONE : take_blocks(w, false);
}

enum media_state media_gif(struct walk w)
{
	const uint8_t *s = walk_take(&w, 6);
	bool has_frame = false;

	if (!s || (memcmp(s, "GIF87a", 6) != 0 && memcmp(s, "GIF89a", 6) != 0))
		return MEDIA_NONE;
	s = walk_take(&w, 7);
	if (!s || !walk_take(&w, colours(s[4])))
		return MEDIA_CUT;
	while ((s = walk_take(&w, 1)) != NULL) {
		enum media_state state;

		if (*s == ';')
			return walk_is_at_end(&w) && has_frame ? MEDIA_WHOLE : MEDIA_NONE;
		if (*s != ',' && *s != '!')
			return MEDIA_NONE;
		has_frame |= *s == ',';
		if (*s == '!' && !walk_take(&w, 1))
			return MEDIA_CUT;
		state = *s == ',' ? take_frame(&w) : take_blocks(&w, true);
		if (state != MEDIA_WHOLE)
			return state;
	}
	return MEDIA_CUT;
}
