/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures, sound and PDF: what is one, what only says so, what may be in one, and who decides. */
#include "common/attr.h"
#include "common/base64.h"
#include "tests/support/gate_texts.h"
#include "vessel/gate/scan.h"

#include <zlib.h>

TestSuite(gate_media, .init = begin, .fini = end, .timeout = 60);

#define TOKEN "AKIAQZ3RLMT5WXV7BNC2"
#define POINTS 3000

static uint32_t seed;

static uint8_t noise_byte(void)
{
	seed = seed * 1664525 + 1013904223;
	return (uint8_t)(seed >> 24);
}

static void add_noise(struct buf *out, size_t n)
{
	for (; n; n--)
		buf_addc(out, (char)noise_byte());
}

static void add_be32(struct buf *out, uint32_t v)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		buf_addc(out, (char)(v >> shift));
}

static void add_le32(struct buf *out, uint32_t v)
{
	for (int shift = 0; shift < 32; shift += 8)
		buf_addc(out, (char)(v >> shift));
}

/* ---- PNG ----------------------------------------------------------------------------- */

static void add_chunk(struct buf *out, const char *type, const void *data, size_t len)
{
	size_t at = out->len + 4;

	add_be32(out, (uint32_t)len);
	buf_adds(out, type);
	buf_add(out, data, len);
	add_be32(out, (uint32_t)crc32(0, (const Bytef *)out->data + at, (uInt)len + 4));
}

static void add_packed(struct buf *out, const void *data, size_t len)
{
	uLongf n = compressBound((uLong)len);
	Bytef *packed = malloc(n);

	cr_assert_eq(compress(packed, &n, data, (uLong)len), Z_OK);
	buf_add(out, packed, n);
	free(packed);
}

/* extra: a chunk of that type with that text; NULL: none. points: NULL for noise. */
static void png(struct buf *out, const char *type, const char *text, const char *points)
{
	cleanup_buf struct buf raw = new_buf(), packed = new_buf();

	buf_add(out, "\x89PNG\r\n\x1a\n", 8);
	add_chunk(out, "IHDR", "\0\0\0\x20\0\0\0\x20\x08\2\0\0\0", 13);
	if (type)
		add_chunk(out, type, text, strlen(text));
	add_noise(&raw, POINTS);
	add_packed(&packed, raw.data, raw.len);
	if (points)
		buf_adds(&packed, points);
	add_chunk(out, "IDAT", packed.data, packed.len);
	add_chunk(out, "IEND", "", 0);
}

/* ---- the others ---------------------------------------------------------------------- */

static void segment(struct buf *out, uint8_t marker, const void *data, size_t len)
{
	buf_addc(out, '\xff');
	buf_addc(out, (char)marker);
	buf_addc(out, (char)((len + 2) >> 8));
	buf_addc(out, (char)(len + 2));
	buf_add(out, data, len);
}

static void jpeg(struct buf *out, const char *comment)
{
	cleanup_buf struct buf tables = new_buf();

	buf_add(out, "\xff\xd8", 2);
	segment(out, 0xe0, "JFIF\0\1\1\0\0\1\0\1\0\0", 14);
	if (comment)
		segment(out, 0xfe, comment, strlen(comment));
	add_noise(&tables, 65);
	segment(out, 0xdb, tables.data, tables.len);
	segment(out, 0xc0, "\x08\0\x20\0\x20\3\1\x22\0\2\x11\1\3\x11\1", 15);
	segment(out, 0xda, "\3\1\0\2\x11\3\x11\0\x3f\0", 10);
	for (unsigned i = 0; i < POINTS; i++) {
		uint8_t b = noise_byte();

		buf_addc(out, (char)b);
		if (b == 0xff)
			buf_addc(out, '\0');
	}
	buf_add(out, "\xff\xd9", 2);
}

static void add_blocks(struct buf *out, const char *s, size_t len, size_t each)
{
	for (size_t i = 0; i < len; i += each) {
		size_t n = len - i < each ? len - i : each;

		buf_addc(out, (char)n);
		buf_add(out, s + i, n);
	}
	buf_addc(out, '\0');
}

static void gif(struct buf *out, const char *comment)
{
	cleanup_buf struct buf points = new_buf();

	buf_add(out, "GIF89a\x20\0\x20\0\x80\0\0\1\2\3\4\5\6", 19);
	if (comment) {
		buf_add(out, "!\xfe", 2);
		add_blocks(out, comment, strlen(comment), 7);
	}
	buf_add(out, ",\0\0\0\0\x20\0\x20\0\0\x08", 11);
	add_noise(&points, POINTS);
	add_blocks(out, points.data, points.len, 255);
	buf_addc(out, ';');
}

static void riff(struct buf *out, const char *form, const char *first, const char *points,
		 const char *text_id, const char *text)
{
	cleanup_buf struct buf in = new_buf();

	buf_adds(&in, form);
	if (first) {
		buf_adds(&in, first);
		add_le32(&in, 16);
		buf_add(&in, "\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0", 16);
	}
	buf_adds(&in, points);
	add_le32(&in, POINTS);
	add_noise(&in, POINTS);
	if (text) {
		buf_adds(&in, text_id);
		add_le32(&in, (uint32_t)strlen(text));
		buf_adds(&in, text);
		if (strlen(text) % 2)
			buf_addc(&in, '\0');
	}
	buf_adds(out, "RIFF");
	add_le32(out, (uint32_t)in.len);
	buf_add(out, in.data, in.len);
}

static void webp(struct buf *out, const char *text)
{
	riff(out, "WEBP", NULL, "VP8 ", "EXIF", text);
}

static void wav(struct buf *out, const char *text)
{
	riff(out, "WAVE", "fmt ", "data", "LIST", text);
}

static void mp3(struct buf *out, const char *text)
{
	if (text) {
		buf_add(out, "ID3\3\0\0\0\0", 8);
		buf_addc(out, (char)(strlen(text) >> 7));
		buf_addc(out, (char)(strlen(text) & 127));
		buf_adds(out, text);
	}
	for (unsigned i = 0; i < 8; i++) { /* 128 kbit/s, 44.1 kHz: 417 bytes */
		buf_add(out, "\xff\xfb\x90\0", 4);
		add_noise(out, 413);
	}
}

static void pdf(struct buf *out, const char *text)
{
	buf_adds(out, "%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<</Length 3000>>stream\n");
	add_noise(out, POINTS);
	buf_addf(out, "\nendstream\nendobj\n%s\ntrailer<</Root 1 0 R>>\n",
		 text ? text : "");
	buf_adds(out, "startxref\n9\n%%EOF\n");
}

static void plain_png(struct buf *out, const char *text)
{
	png(out, text ? "tEXt" : NULL, text, NULL);
}

static const struct kind {
	const char *name, *type;
	enum gate_medium medium;
	void (*make)(struct buf *out, const char *text);
} kinds[] = {
	{"png", "image/png", GATE_PICTURE, plain_png},
	{"jpeg", "image/jpeg", GATE_PICTURE, jpeg},
	{"gif", "image/gif", GATE_PICTURE, gif},
	{"webp", "image/webp", GATE_PICTURE, webp},
	{"wav", "audio/wav", GATE_SOUND, wav},
	{"mp3", "audio/mpeg", GATE_SOUND, mp3},
	{"pdf", "application/pdf", GATE_PDF, pdf},
};

/* ---- how it is sent ------------------------------------------------------------------ */

static double score_raw(const struct buf *b)
{
	return score_of(b->data, b->len);
}

static double score_bare(const struct buf *b)
{
	cleanup_buf struct buf text = new_buf();

	base64_add(&text, b->data, b->len);
	return score_of(text.data, text.len);
}

static double score_url(const struct buf *b, const char *type, const char *before,
			const char *behind)
{
	cleanup_buf struct buf text = new_buf();

	buf_addf(&text, "%sdata:%s;base64,", before, type);
	base64_add(&text, b->data, b->len);
	buf_adds(&text, behind);
	return score_of(text.data, text.len);
}

static bool has_rule(const char *rule)
{
	for (size_t i = 0; i < r.n; i++)
		if (strcmp(r.finding[i].rule, rule) == 0)
			return true;
	return false;
}

/* ---- refusals ------------------------------------------------------------------------ */

/* What is behind the end is not the picture's, in any of the formats. */
Test(gate_media, what_goes_on_behind_its_end_is_none)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		cleanup_buf struct buf b = new_buf(), text = new_buf();

		kinds[i].make(&b, NULL);
		add_noise(&b, 600);
		cr_expect_geq(score_bare(&b), 0.4, "%s: %f", kinds[i].name, r.score);
		cr_expect_geq(score_raw(&b), 0.4, "%s, raw: %f", kinds[i].name, r.score);
		kinds[i].make(&text, NULL);
		buf_adds(&text, "\nand " TOKEN "\n");
		cr_expect_eq(score_bare(&text), 1.0, "%s: %f", kinds[i].name, r.score);
		cr_expect_eq(score_url(&text, kinds[i].type, "", ""), 1.0);
	}
}

/* Some writers fill a file up with zeros; more of them than fill a page are something else. */
Test(gate_media, zeros_behind_its_end_are_of_it)
{
	static const char zeros[8192];

	for (size_t i = 1; i < 3; i++) {
		cleanup_buf struct buf b = new_buf();

		kinds[i].make(&b, NULL);
		buf_add(&b, zeros, 8);
		cr_expect_eq(score_bare(&b), 0, "%s: %f", kinds[i].name, r.score);
		cr_expect_eq(score_raw(&b), 0, "%s, raw: %f", kinds[i].name, r.score);
		buf_add(&b, "1", 1);
		cr_expect_geq(score_bare(&b), 0.3, "%s, not only: %f", kinds[i].name,
			      r.score);
		b.len--;
		buf_add(&b, zeros, sizeof(zeros));
		cr_expect_geq(score_bare(&b), 0.3, "%s, many: %f", kinds[i].name,
			      r.score);
	}
}

Test(gate_media, a_type_and_first_bytes_make_no_picture)
{
	static const char *const heads[] = {
		"\x89PNG\r\n\x1a\n", "\xff\xd8\xff\xe0", "GIF89a",
		"RIFF0000WEBP",	     "RIFF0000WAVE",	 "ID3\3",
		"\xff\xfb\x90"};

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		cleanup_buf struct buf text = new_buf(), b = new_buf();

		buf_addf(&text, "%s it says, and then: %s, as anybody can read", heads[i],
			 TOKEN);
		cr_expect_eq(score_url(&text, "image/png", "", ""), 1.0, "%zu: %f", i,
			     r.score);
		buf_adds(&b, heads[i]);
		add_noise(&b, 2000);
		/* what is noise behind a length may be a file that was cut: 0.3 */
		cr_expect_gt(score_url(&b, "image/png", "", ""),
			     i == 0 || i == 2 ? 0.4 : 0, "%zu: %f", i, r.score);
	}
	{
		cleanup_buf struct buf zip = new_buf();

		buf_add(&zip, "PK\3\4\x14\0\0\0\x08\0", 10);
		add_noise(&zip, 2000);
		cr_expect_geq(score_url(&zip, "image/png", "", ""), 0.85);
	}
}

Test(gate_media, its_sums_and_its_stream_must_be_right)
{
	cleanup_buf struct buf b = new_buf(), c = new_buf();

	png(&b, NULL, NULL, NULL);
	b.data[b.len - 20] ^= 1; /* the last byte but a few of its points */
	cr_expect_geq(score_bare(&b), 0.4, "%f", r.score);
	buf_add(&c, "\x89PNG\r\n\x1a\n", 8);
	add_chunk(&c, "IHDR", "\0\0\0\x20\0\0\0\x20\x08\2\0\0\0", 13);
	add_chunk(&c, "IDAT", "these are no points, but " TOKEN, 45);
	add_chunk(&c, "IEND", "", 0);
	cr_expect_eq(score_bare(&c), 1.0, "%f", r.score);
}

Test(gate_media, unknown_parts_are_short)
{
	cleanup_buf struct buf b = new_buf(), extra = new_buf();

	add_noise(&extra, 6000);
	buf_add(&b, "\x89PNG\r\n\x1a\n", 8);
	add_chunk(&b, "IHDR", "\0\0\0\x20\0\0\0\x20\x08\2\0\0\0", 13);
	add_chunk(&b, "zipP", extra.data, extra.len);
	add_chunk(&b, "IDAT", "\x78\x9c points", 9);
	add_chunk(&b, "IEND", "", 0);
	cr_expect_geq(score_bare(&b), 0.4, "%f", r.score);
}

/* Comments, EXIF, ID3 and the like are text, and nobody can put a placeholder there. */
Test(gate_media, what_can_be_read_in_one_is_read)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		cleanup_buf struct buf b = new_buf();

		g->cfg.refuses[GATE_PDF] = false;
		kinds[i].make(&b, "Comment: the key is " TOKEN " for now");
		cr_expect_eq(score_url(&b, kinds[i].type, "", ""), 1.0, "%s: %f",
			     kinds[i].name, r.score);
		cr_assert(r.n > 0 && r.finding[0].is_split, "%s", kinds[i].name);
		cr_expect(has_rule("aws_key_id"), "%s", kinds[i].name);
		cr_expect_eq(score_raw(&b), 1.0, "%s, raw: %f", kinds[i].name, r.score);
	}
}

Test(gate_media, packed_texts_and_readable_points_are_read_too)
{
	cleanup_buf struct buf chunk = new_buf(), b = new_buf(), c = new_buf(),
			       d = new_buf();

	buf_add(&chunk, "Comment\0\0", 9);
	add_packed(&chunk, "it is " TOKEN, sizeof("it is " TOKEN) - 1);
	buf_add(&b, "\x89PNG\r\n\x1a\n", 8);
	add_chunk(&b, "IHDR", "\0\0\0\x20\0\0\0\x20\x08\2\0\0\0", 13);
	add_chunk(&b, "zTXt", chunk.data, chunk.len);
	add_chunk(&b, "IDAT", "\x78\x9c points", 9);
	add_chunk(&b, "IEND", "", 0);
	cr_expect_eq(score_bare(&b), 1.0, "packed: %f", r.score);
	png(&c, NULL, NULL, " " TOKEN " ");
	cr_expect_eq(score_bare(&c), 1.0, "points: %f", r.score);
	add_term("project bluebird");
	png(&d, "tEXt", "Title: Project Bluebird", NULL);
	cr_expect_eq(score_bare(&d), 1.0, "a term: %f", r.score);
}

static void add_wide(struct buf *out, const char *s, bool high_first)
{
	for (; *s; s++) {
		if (high_first)
			buf_addc(out, '\0');
		buf_addc(out, *s);
		if (!high_first)
			buf_addc(out, '\0');
	}
}

/* As EXIF's comments and ID3's frames are written. */
Test(gate_media, texts_in_utf16_are_read_too)
{
	for (int high_first = 0; high_first < 2; high_first++) {
		cleanup_buf struct buf chunk = new_buf(), picture = new_buf(),
				       sound = new_buf();

		buf_adds(&chunk, "UNICODE");
		buf_addc(&chunk, '\0');
		add_wide(&chunk, "it is " TOKEN " now", high_first);
		buf_add(&picture, "\x89PNG\r\n\x1a\n", 8);
		add_chunk(&picture, "IHDR", "\0\0\0\x20\0\0\0\x20\x08\2\0\0\0", 13);
		add_chunk(&picture, "eXIf", chunk.data, chunk.len);
		add_chunk(&picture, "IDAT", "\x78\x9c points", 9);
		add_chunk(&picture, "IEND", "", 0);
		cr_expect_eq(score_bare(&picture), 1.0, "a picture: %f", r.score);
		cr_expect(has_rule("aws_key_id"));
		buf_add(&sound, "ID3\3\0\0\0\0\0", 9);
		buf_addc(&sound, (char)chunk.len);
		buf_add(&sound, chunk.data, chunk.len);
		mp3(&sound, NULL);
		cr_expect_eq(score_bare(&sound), 1.0, "a sound: %f", r.score);
		cr_expect(has_rule("aws_key_id"));
	}
}

static void add_escaped(struct buf *out, const struct buf *text, bool is_octal)
{
	for (size_t i = 0; i < text->len; i++) {
		unsigned c = (unsigned char)text->data[i];

		if (is_octal)
			buf_addf(out, "\\%03o", c);
		else
			buf_addf(out, "%02X", c);
	}
}

/* As LibreOffice (hexadecimal), TeX (octal) and others (raw) write titles, with a string that is left
 * open in packed bytes before it. */
Test(gate_media, strings_of_a_pdf_are_read_however_written)
{
	static const char *const texts[] = {"Project Bluebird", "Проект Синица"};
	static const char wide[] =
		"\xfe\xff\x04\x1f\x04\x40\x04\x3e\x04\x35\x04\x3a\x04\x42\0 "
		"\x04\x21\x04\x38\x04\x3d\x04\x38\x04\x46\x04\x30";

	g->cfg.refuses[GATE_PDF] = false;
	add_term("project bluebird");
	add_term("проект синица");
	for (unsigned form = 0; form < 7; form++) {
		cleanup_buf struct buf raw = new_buf(), string = new_buf(), b = new_buf();
		bool is_cyrillic = form % 2;

		if (is_cyrillic) {
			buf_add(&raw, wide, sizeof(wide) - 1);
		} else if (form < 6) {
			buf_add(&raw, "\xfe\xff", 2);
			add_wide(&raw, texts[0], true);
		} else {
			buf_adds(&raw, texts[0]);
		}
		buf_adds(&string, "(Ti\\(tle (x) <</Title");
		buf_addc(&string, form < 4 ? '(' : '<');
		if (form < 2)
			buf_add(&string, raw.data, raw.len);
		else
			add_escaped(&string, &raw, form < 4);
		buf_adds(&string, form < 4 ? ")>>" : ">>>");
		buf_adds(&b, "%PDF-1.4\n1 0 obj\n<</Length 9>>stream\n(\\((\nendstream\n"
			     "endobj\n2 0 obj\n");
		buf_add(&b, string.data, string.len);
		buf_adds(&b, "\nendobj\ntrailer<</Root 1 0 R>>\nstartxref\n9\n%%EOF\n");
		cr_expect_eq(score_url(&b, "application/pdf", "", ""), 1.0, "%u: %f",
			     form, r.score);
		cr_expect(has_rule("private"), "%u", form);
	}
}

Test(gate_media, one_that_may_not_go_out_is_refused)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		cleanup_buf struct buf b = new_buf();

		memset(g->cfg.refuses, 0, sizeof(g->cfg.refuses));
		g->cfg.refuses[kinds[i].medium] = true;
		kinds[i].make(&b, NULL);
		cr_expect_eq(score_bare(&b), 1.0, "%s: %f", kinds[i].name, r.score);
		cr_expect(has_rule(kinds[i].name));
		cr_expect_eq(score_raw(&b), 1.0, "%s, raw: %f", kinds[i].name, r.score);
		cr_expect_eq(score_url(&b, kinds[i].type, "look: \"", "\""), 1.0,
			     "%s: %f", kinds[i].name, r.score);
	}
}

Test(gate_media, the_text_around_one_is_read_as_ever)
{
	cleanup_buf struct buf b = new_buf();

	png(&b, NULL, NULL, NULL);
	cr_expect_eq(
		score_url(&b, "image/png", "the key " TOKEN " and <img src=\"", "\">"),
		1.0);
	cr_expect_eq(r.finding[0].offset, 8);
	cr_expect_eq(r.finding[0].len, strlen(TOKEN));
	cr_expect_not(r.finding[0].is_split);
	cr_expect_eq(score_url(&b, "image/png", "<img src=\"", "\"> and " TOKEN), 1.0);
	cr_expect_not(r.finding[0].is_split);
	cr_expect_eq(r.finding[0].len, strlen(TOKEN));
	/* and a name before it is of no value behind it */
	cr_expect_lt(score_url(&b, "image/png", "password: ", " Xk29fQz71mRtYp"), 0.4);
}

/* ---- and what goes on ---------------------------------------------------------------- */

Test(gate_media, none_of_four_hundred_is_a_finding)
{
	for (unsigned i = 0; i < 400; i++) {
		const struct kind *k = &kinds[i % 6];
		cleanup_buf struct buf b = new_buf();

		seed = 77 * i;
		k->make(&b,
			i % 5 ? NULL : "Software: a painter, 2026-11-29 mail@firma.de");
		cr_expect_eq(score_url(&b, k->type, "", ""), 0, "%s %u: %f", k->name, i,
			     r.score);
		cr_expect_eq(score_bare(&b), 0, "%s %u: %f", k->name, i, r.score);
		cr_expect_eq(score_raw(&b), 0, "%s %u, raw: %f", k->name, i, r.score);
		cr_expect_eq(score_url(&b, k->type, "a page: <img src=\"", "\"/> and on"),
			     0, "%s %u, in a text: %f", k->name, i, r.score);
	}
}

Test(gate_media, many_in_one_request_do_not_add_up)
{
	struct buf text[40];
	struct gate_part parts[40];
	const struct gate_input in = {.parts = parts, .n_parts = 40};

	for (unsigned i = 0; i < 40; i++) {
		cleanup_buf struct buf b = new_buf();

		text[i] = new_buf();
		kinds[i % 6].make(&b, NULL);
		buf_adds(&text[i], "data:image/png;base64,");
		base64_add(&text[i], b.data, b.len);
		parts[i] = (struct gate_part){
			.data = text[i].data, .len = text[i].len, .tag = 9};
	}
	gate_scan(g, &in, &r);
	cr_expect_eq(r.score, 0, "%f %s", r.score, r.n ? r.finding[0].rule : "");
	for (unsigned i = 0; i < 40; i++)
		buf_done(&text[i]);
}

/* A camera's file has its previews behind the picture. */
Test(gate_media, several_of_one_camera_are_one)
{
	cleanup_buf struct buf b = new_buf();

	jpeg(&b, NULL);
	jpeg(&b, NULL);
	cr_expect_eq(score_bare(&b), 0, "%f", r.score);
}

/* What is cut is a finding, as it always was: nobody can say what is behind. */
Test(gate_media, one_that_is_cut_is_not_whole)
{
	cleanup_buf struct buf b = new_buf();

	png(&b, NULL, NULL, NULL);
	for (size_t n = 100; n < b.len; n += 371) {
		const double score = score_of(b.data, n);

		cr_expect_gt(score, 0, "%zu", n);
	}
}
