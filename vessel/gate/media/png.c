/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * PNG, and APNG (W3C, PNG third edition): a signature, and chunks with checksums up to IEND.
 */
#include "common/cleanup.h"
#include "common/mem.h"
#include "vessel/gate/media/media_priv.h"

#include <string.h>
#include <zlib.h>

#define PACKED_TEXT_MAX ((size_t)256 << 10) /* of one chunk, unpacked */

static bool is_in(const char *list, const uint8_t *type)
{
	for (; *list; list += 4)
		if (memcmp(list, type, 4) == 0)
			return true;
	return false;
}

/* Where a stream of zlib begins, behind a keyword and some bytes. */
static size_t find_packed(const uint8_t *s, size_t len)
{
	for (size_t i = 1; i + 1 < len; i++)
		if (s[i] == 0x78 && (s[i] << 8 | s[i + 1]) % 31 == 0)
			return i;
	return len;
}

/* What a packed text holds, read as far as it goes. False: more than may be. */
static bool packed_text(struct walk *w, const uint8_t *s, size_t len)
{
	size_t at = find_packed(s, len);
	z_stream z = {.next_in = (Bytef *)(uintptr_t)(s + at),
		      .avail_in = (uInt)(len - at)};
	cleanup_free uint8_t *out = NULL;
	int r;

	if (at == len || !w->text)
		return true;
	if (inflateInit(&z) != Z_OK)
		return false;
	out = xmalloc(PACKED_TEXT_MAX);
	z.next_out = out;
	z.avail_out = PACKED_TEXT_MAX;
	r = inflate(&z, Z_FINISH);
	walk_text(w, out, PACKED_TEXT_MAX - z.avail_out, TEXT_AMONG_NAMES);
	(void)inflateEnd(&z);
	return r == Z_STREAM_END || z.avail_out > 0;
}

static bool take_chunk(struct walk *w, const uint8_t *type, const uint8_t *s, size_t len)
{
	static const char
		points[] = "IDATPLTEtRNSfdAThIST",
		packed[] = "zTXtiTXtiCCP",
		known[] = "IHDRIENDtEXteXIfcHRMgAMAsBITsRGBbKGDpHYssPLTtIMEacTLfcTL"
			  "cICPmDCvcLLioFFspCALsCALsTERiDOTvpAgcaNvorNT";
	bool has_text = is_in(packed, type);

	if (is_in(points, type)) {
		walk_text(w, s, len, TEXT_AMONG_POINTS);
		return true;
	}
	walk_text(w, s, len, TEXT_AMONG_NAMES);
	return (has_text || is_in(known, type) || len <= UNKNOWN_MAX_BYTES) &&
	       (!has_text || packed_text(w, s, len));
}

static bool is_type(const uint8_t *t)
{
	for (unsigned i = 0; i < 4; i++)
		if (!((t[i] | 0x20) >= 'a' && (t[i] | 0x20) <= 'z'))
			return false;
	return true;
}

static bool begins_zlib(const uint8_t *s, size_t len)
{
	return len >= 2 && (s[0] & 15) == 8 && (s[0] << 8 | s[1]) % 31 == 0;
}

enum media_state media_png(struct walk w)
{
	const uint8_t *s = walk_take(&w, 8);
	bool has_points = false, is_first = true, is_sound = true;

	if (!s || memcmp(s, "\x89PNG\r\n\x1a\n", 8) != 0)
		return MEDIA_NONE;
	while ((s = walk_take(&w, 8)) != NULL) {
		size_t len = be32(s);
		const uint8_t *type = s + 4, *data = walk_take(&w, len);
		const uint8_t *sum = data ? walk_take(&w, 4) : NULL;

		if (len > INT32_MAX || !is_type(type) ||
		    is_first != (memcmp(type, "IHDR", 4) == 0) || (is_first && len != 13))
			return MEDIA_NONE;
		is_first = false;
		if (!sum)
			return MEDIA_CUT;
		if (memcmp(type, "IDAT", 4) == 0 && !has_points) {
			has_points = true;
			if (!begins_zlib(data, len))
				return MEDIA_NONE;
		}
		if (!take_chunk(&w, type, data, len))
			return MEDIA_NONE;
		/* a sum that is wrong is an accident, unless there is more to it */
		is_sound = is_sound && be32(sum) == crc32(0, type, (uInt)len + 4);
		if (memcmp(type, "IEND", 4) == 0)
			return w.left == 0 && len == 0 && has_points && is_sound
				       ? MEDIA_WHOLE
				       : MEDIA_NONE;
	}
	return MEDIA_CUT;
}
