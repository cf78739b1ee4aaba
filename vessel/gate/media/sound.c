/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * RIFF (WAV, and WebP, RFC 9649), and MP3 (frames of MPEG audio between tags).
 */
#include "vessel/gate/media/media_priv.h"

#include <string.h>

#define MP3_FRAMES_MIN 3 /* two bytes of a frame's head are soon found in anything */
#define ID3V1_BYTES 128

/* ---- RIFF ---------------------------------------------------------------------------- */

/* Four letters each; the first `needed` of points, one of which has to be there. */
struct riff {
	const char *form;
	const char *points, *known;
};

static bool is_in(const char *list, const uint8_t *id)
{
	for (; *list; list += 4)
		if (memcmp(list, id, 4) == 0)
			return true;
	return false;
}

static enum media_state walk_riff(struct walk w, const struct riff *r)
{
	const uint8_t *s = walk_take(&w, 12);
	bool has_points = false, is_cut;

	if (!s || memcmp(s, "RIFF", 4) != 0 || memcmp(s + 8, r->form, 4) != 0 ||
	    le32(s + 4) < 4)
		return MEDIA_NONE;
	is_cut = w.left < le32(s + 4) - 4;
	if (!is_cut && w.left > le32(s + 4) - 4)
		return MEDIA_NONE;
	while ((s = walk_take(&w, 8)) != NULL) {
		size_t len = le32(s + 4);
		const uint8_t *data = walk_take(&w, len);
		bool is_points = is_in(r->points, s);

		has_points |= is_points;
		if (!data)
			return is_cut ? MEDIA_CUT : MEDIA_NONE;
		if (!is_points && !is_in(r->known, s) && len > UNKNOWN_MAX_BYTES)
			return MEDIA_NONE;
		walk_text(&w, data, len,
			  is_points ? TEXT_AMONG_POINTS : TEXT_AMONG_NAMES);
		if (len % 2 && w.left && *walk_take(&w, 1) != 0)
			return MEDIA_NONE;
	}
	if (is_cut)
		return MEDIA_CUT;
	return w.left == 0 && has_points ? MEDIA_WHOLE : MEDIA_NONE;
}

enum media_state media_webp(struct walk w)
{
	static const struct riff webp = {"WEBP", "VP8 VP8LANMFALPH",
					 "VP8XANIMICCPEXIFXMP "};

	return walk_riff(w, &webp);
}

enum media_state media_wav(struct walk w)
{
	static const struct riff wav = {"WAVE", "data", "fmt factLISTbextJUNKid3 "};

	return walk_riff(w, &wav);
}

/* ---- MP3 ----------------------------------------------------------------------------- */

/* Bytes of the frame that begins with that head; 0: it is none. Layer III of MPEG 1, 2 and 2.5. */
static size_t frame_bytes(const uint8_t *s)
{
	static const uint16_t rate1[] = {0,   32,  40,	48,  56,  64,  80, 96,
					 112, 128, 160, 192, 224, 256, 320},
			      rate2[] = {0,  8,	 16, 24,  32,  40,  48, 56,
					 64, 80, 96, 112, 128, 144, 160},
			      hertz1[] = {44100, 48000, 32000};
	unsigned version = s[1] >> 3 & 3, rate = s[2] >> 4, hertz = s[2] >> 2 & 3;
	bool is_one = version == 3;

	if (s[0] != 0xff || (s[1] & 0xe0) != 0xe0 || version == 1 ||
	    (s[1] >> 1 & 3) != 1 || rate == 0 || rate == 15 || hertz == 3)
		return 0;
	return (is_one ? 144u * rate1[rate] : 72u * rate2[rate]) * 1000u /
		       ((unsigned)hertz1[hertz] >> (is_one	   ? 0
						    : version == 2 ? 1
								   : 2)) +
	       (s[2] >> 1 & 1);
}

/* The tag in front, if there is one. False: it is longer than all. */
static bool take_id3(struct walk *w)
{
	const uint8_t *s = w->at;
	size_t len;

	if (w->left < 10 || memcmp(s, "ID3", 3) != 0)
		return true;
	len = (size_t)(s[6] & 127) << 21 | (size_t)(s[7] & 127) << 14 |
	      (size_t)(s[8] & 127) << 7 | (s[9] & 127);
	(void)walk_take(w, 10);
	s = walk_take(w, len);
	if (s)
		walk_text(w, s, len, TEXT_AMONG_NAMES);
	return s != NULL;
}

enum media_state media_mp3(struct walk w)
{
	bool has_tag = w.left >= 10 && memcmp(w.at, "ID3", 3) == 0 && w.at[3] < 5;
	unsigned frames = 0;

	if (has_tag && !take_id3(&w))
		return MEDIA_CUT;
	while (w.left >= 4) {
		size_t n = frame_bytes(w.at);
		const uint8_t *s;

		if (w.left == ID3V1_BYTES && memcmp(w.at, "TAG", 3) == 0) {
			s = walk_take(&w, ID3V1_BYTES);
			walk_text(&w, s, ID3V1_BYTES, TEXT_AMONG_NAMES);
			break;
		}
		if (n < 4)
			return MEDIA_NONE;
		frames++;
		n = n < w.left ? n : w.left; /* the last may be cut */
		s = walk_take(&w, n);
		walk_text(&w, s, n, TEXT_AMONG_POINTS);
	}
	if (frames < MP3_FRAMES_MIN)
		return has_tag ? MEDIA_CUT : MEDIA_NONE;
	return w.left == 0 ? MEDIA_WHOLE : MEDIA_NONE;
}
