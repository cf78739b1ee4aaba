/* SPDX-License-Identifier: Apache-2.0 */
/* How a secret may be written: over lines, in few letters, among other runs. */
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "tests/support/gate_texts.h"
#include "vessel/gate/gate.h"
#include "vessel/gate/private.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define TOKEN "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"
#define TERM "Projekt Morgenstern 4711"

TestSuite(gate_written, .init = begin, .fini = end, .timeout = 120);

static double score(const struct buf *b)
{
	return score_of(buf_str(b), b->len);
}

/* A small generator of numbers. */
static uint32_t draw(uint32_t *s, uint32_t n)
{
	*s = *s * 1664525u + 1013904223u;
	return (*s >> 8) % n;
}

static void add_noise(struct buf *b, uint32_t *seed, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char c = (char)draw(seed, 256);

		buf_add(b, &c, 1);
	}
}

/* between: what stands between two bytes. */
static void add16(struct buf *out, const void *data, size_t len, size_t width,
		  const char *between)
{
	const uint8_t *u = data;

	for (size_t i = 0; i < len; i++) {
		char two[3];

		(void)snprintf(two, sizeof(two), "%02x", u[i]);
		if (i)
			buf_adds(out, width && i % width == 0 ? "\n" : between);
		buf_adds(out, two);
	}
}

Test(gate_written, in_short_lines)
{
	static const size_t widths[] = {8, 12, 20, 36, 41, 60, 75, 76};
	uint32_t seed = 7;

	add_term(TERM);
	for (unsigned round = 0; round < 400; round++) {
		size_t width = widths[draw(&seed, ARRAY_SIZE(widths))];
		cleanup_buf struct buf text = new_buf(), b64 = new_buf(), b16 = new_buf();

		for (uint32_t i = draw(&seed, 60); i > 0; i--)
			buf_adds(&text, i % 7 ? "x" : " ");
		buf_adds(&text, " " TERM " and so on");
		add64(&b64, text.data, text.len, width);
		cr_expect_eq(score(&b64), 1.0, "%zu:\n%s", width, buf_str(&b64));
		add16(&b16, text.data, text.len, width / 2, "");
		cr_expect_eq(score(&b16), 1.0, "%zu:\n%s", width, buf_str(&b16));
		b16.len = 0;
		add16(&b16, text.data, text.len, 16, " ");
		cr_expect_eq(score(&b16), 1.0, "\n%s", buf_str(&b16));
	}
}

/* What programs and people put between the pairs of a dump. */
Test(gate_written, in_a_list_of_pairs)
{
	static const char *const between[] = {"-",   ",",    "_",	".",	  "/",
					      "\n",  ", ",   ";\n",	", 0x",	  ",0x",
					      " 0x", "\r\n", ",\n\t0x", "\", \"", " | "};

	add_term(TERM);
	for (size_t i = 0; i < ARRAY_SIZE(between); i++)
		for (size_t width = 0; width <= 12; width += 6) {
			cleanup_buf struct buf b = new_buf();
			const char *x = strchr(between[i], 'x') ? "0x" : "";

			buf_addf(&b, "static const char a[] = {%s", x);
			for (size_t k = 0; k < strlen(TERM); k++)
				buf_addf(&b, "%s%s%02x", k ? between[i] : "",
					 k && width && k % width == 0 ? "\n    " : "",
					 (unsigned)(unsigned char)TERM[k]);
			buf_adds(&b, "};\n");
			/* a line's end between the two signs of 0x is none of a list */
			if (*x && width)
				continue;
			cr_expect_eq(score(&b), 1.0, "\n%s", buf_str(&b));
		}
}

/* Numbers that are no bytes of a text. */
Test(gate_written, numbers_in_a_list)
{
	cleanup_buf struct buf b = new_buf();

	for (unsigned i = 0; i < 2000; i++)
		buf_addf(&b, "%02u%s", i * 37 % 100, i % 20 == 19 ? ",\n" : ", ");
	for (unsigned i = 0; i < 256; i++)
		buf_addf(&b, "0x%02x%s", i * 167 % 256, i % 8 == 7 ? ",\n\t" : ", ");
	cr_expect_lt(score(&b), 0.4, "%s: %s", r.finding[0].rule, buf_str(&b));
}

Test(gate_written, with_blanks_of_a_form)
{
	static const char *const forms[] = {
		"q=Projekt+Morgenstern+4711&x=1",
		"q=projekt%20morgenstern+4711",
		"{\"a\": \"Projekt\\nMorgenstern\\t4711\"}",
		"Projekt \\n  Morgenstern\\r\\n4711",
	};

	add_term(TERM);
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		cleanup_buf struct buf b = new_buf();

		buf_adds(&b, forms[i]);
		cr_expect_eq(score(&b), 1.0, "%s", forms[i]);
	}
}

Test(gate_written, a_short_term_in_base64_and_hex)
{
	static const char *const short_terms[] = {"k9Qm",    "zT4xW",	 "hU7rpq",
						  "W9x2Kf3", "Zk81vQpR", "m\xc3\xbcll7"};

	for (size_t i = 0; i < ARRAY_SIZE(short_terms); i++) {
		const char *t = short_terms[i];
		cleanup_buf struct buf once = new_buf(), twice = new_buf(),
				       hex = new_buf(), wide = new_buf(), in = new_buf(),
				       path = new_buf();

		add64(&once, t, strlen(t), 0);
		cr_expect_lt(score(&once), 0.4, "%s is not registered yet", t);
		add_term(t);
		cr_expect_eq(score(&once), 1.0, "%s: %s", t, buf_str(&once));
		add64(&twice, once.data, once.len, 0);
		cr_expect_eq(score(&twice), 1.0, "%s: %s", t, buf_str(&twice));
		add16(&hex, t, strlen(t), 0, "");
		cr_expect_eq(score(&hex), 1.0, "%s: %s", t, buf_str(&hex));
		buf_addf(&in, "my value is %s=, thanks", buf_str(&once));
		cr_expect_eq(score(&in), 1.0, "%s", buf_str(&in));
		buf_addf(&path, "GET /v1/%s/x?y=1", buf_str(&once));
		cr_expect_eq(score(&path), 1.0, "%s", buf_str(&path));
		for (size_t k = 0; k < strlen(t); k++)
			buf_add(&wide, (char[]){t[k], 0}, 2);
		if (i != ARRAY_SIZE(short_terms) -
				 1) /* else no letter has a byte of its own */
			cr_expect_eq(score(&wide), 1.0, "%s in UTF-16", t);
	}
}

/* A run that is long enough has something that looks like text, by chance. */
Test(gate_written, what_is_opaque_is_seen_at_any_length)
{
	uint32_t seed = 99;

	for (size_t n = 200; n < 20000; n += n / 3) {
		for (unsigned round = 0; round < 8; round++) {
			cleanup_buf struct buf noise = new_buf(), b64 = new_buf(),
					       b16 = new_buf();

			add_noise(&noise, &seed, n);
			add64(&b64, noise.data, n, 0);
			cr_expect_geq(score(&b64), 0.4, "base64 of %zu bytes", n);
			add16(&b16, noise.data, n, 0, "");
			cr_expect_geq(score(&b16), 0.4, "hex of %zu bytes", n);
			b16.len = 0;
			add16(&b16, noise.data, n, 16, " ");
			cr_expect_geq(score(&b16), 0.4, "hex of %zu bytes, od", n);
		}
	}
}

Test(gate_written, a_compressors_first_bytes_excuse_nothing)
{
	static const char head[] = "\x1f\x8b\x08\0\0\0\0\0\0\3";
	uint32_t seed = 3;
	cleanup_buf struct buf noise = new_buf(), b64 = new_buf();

	buf_add(&noise, head, sizeof(head) - 1);
	add_noise(&noise, &seed, 3000);
	add64(&b64, noise.data, noise.len, 0);
	cr_expect_geq(score(&b64), 0.4, "%f", r.score);
}

/* What stands before and behind lines of it in mails, comments and lists. */
Test(gate_written, in_lines_that_are_quoted)
{
	static const struct {
		const char *before, *behind;
	} quotes[] = {
		{"> ", ""}, {"# ", ""}, {"  * ", ""}, {"\t\"", "\","}, {"| ", " |"}};
	static const size_t widths[] = {8, 20, 64, 76};

	add_term(TERM);
	for (size_t q = 0; q < ARRAY_SIZE(quotes) * ARRAY_SIZE(widths); q++) {
		cleanup_buf struct buf text = new_buf(), run = new_buf(), b = new_buf();
		char *line, *state = NULL;

		buf_adds(&text,
			 "a text that is somewhat longer: " TERM " and more of it");
		add64(&run, text.data, text.len, widths[q % ARRAY_SIZE(widths)]);
		for (line = strtok_r(run.data, "\n", &state); line;
		     line = strtok_r(NULL, "\n", &state))
			buf_addf(&b, "%s%s%s\n", quotes[q / ARRAY_SIZE(widths)].before,
				 line, quotes[q / ARRAY_SIZE(widths)].behind);
		cr_expect_eq(score(&b), 1.0, "%s", buf_str(&b));
	}
}

/* The last line may hold a single byte. */
Test(gate_written, a_last_line_of_one_byte)
{
	static const size_t widths[] = {8, 12, 24, 60};

	add_term(TERM);
	for (size_t i = 0; i < 31 * ARRAY_SIZE(widths); i++) {
		size_t width = widths[i % ARRAY_SIZE(widths)];
		cleanup_buf struct buf text = new_buf(), b64 = new_buf(), hex = new_buf();

		buf_adds(&text,
			 "a page of ordinary words, which somebody wrote down, and ");
		for (size_t k = 0; k < i / ARRAY_SIZE(widths); k++)
			buf_addc(&text, 'e');
		buf_adds(&text, " " TERM);
		add64(&b64, text.data, text.len, width);
		buf_addc(&b64, '\n');
		add16(&hex, text.data, text.len, width / 2, "");
		buf_addc(&hex, '\n');
		cr_expect_eq(score(&b64), 1.0, "%s", buf_str(&b64));
		cr_expect_eq(score(&hex), 1.0, "%s", buf_str(&hex));
	}
}

/* A text in escapes, in a JSON string, and that once more. */
Test(gate_written, escapes_in_escapes)
{
	static const char text[] = "it is called " TERM " by those who know of it";
	static const char *const before[] = {"\\", "\\\\", "\\\\\\\\"};

	add_term(TERM);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(before); i++) {
		cleanup_buf struct buf b = new_buf();

		buf_adds(&b, "{\"a\": \"");
		for (const char *c = text; *c; c++)
			buf_addf(&b, "%s%s%02x", before[i / 2], i % 2 ? "u00" : "x",
				 (unsigned)*c);
		buf_adds(&b, "\"}");
		cr_expect_eq(score(&b), 1.0, "%s", buf_str(&b));
	}
}

/* Lines of hex and base64 in a JSON string. */
Test(gate_written, lines_in_a_string)
{
	static const char *const ends[] = {"\\n", "\\r\\n"};
	static const size_t widths[] = {24, 60, 76};

	add_term(TERM);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(widths) * ARRAY_SIZE(ends); i++) {
		cleanup_buf struct buf text = new_buf(), run = new_buf(), b = new_buf();
		size_t width = widths[i / 2 % ARRAY_SIZE(widths)];
		char *state = NULL;

		buf_adds(&text,
			 "a text that is longer: " TERM ", and then some more of it");
		if (i % 2)
			add64(&run, text.data, text.len, width);
		else
			add16(&run, text.data, text.len, width / 2, "");
		buf_adds(&b, "{\"content\": \"");
		for (char *line = strtok_r(run.data, "\n", &state); line;
		     line = strtok_r(NULL, "\n", &state))
			buf_addf(&b, "%s%s", line, ends[i / 2 / ARRAY_SIZE(widths)]);
		buf_adds(&b, "\", \"n\": 3}");
		cr_expect_eq(score(&b), 1.0, "%s", buf_str(&b));
	}
}

/* The bytes of a compressed stream as a form writes them. */
Test(gate_written, compressed_in_percent_signs)
{
	static const char text[] = "it is called " TERM " by those who know of it";

	add_term(TERM);
	for (int gzip = 0; gzip < 2; gzip++) {
		cleanup_buf struct buf b = new_buf();
		uint8_t packed[256];
		z_stream z = {.next_in = (Bytef *)(uintptr_t)text,
			      .avail_in = sizeof(text) - 1,
			      .next_out = packed,
			      .avail_out = sizeof(packed)};

		cr_assert_eq(deflateInit2(&z, 9, Z_DEFLATED, gzip ? 31 : 15, 8,
					  Z_DEFAULT_STRATEGY),
			     Z_OK);
		cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
		buf_adds(&b, "data=");
		for (size_t i = 0; i < z.total_out; i++)
			buf_addf(&b, "%%%02x", packed[i]);
		(void)deflateEnd(&z);
		cr_expect_eq(score(&b), 1.0, "%s", buf_str(&b));
	}
}

static void add_chunk(struct buf *out, const char *type, const void *data, size_t len)
{
	const uint8_t size[4] = {(uint8_t)(len >> 24), (uint8_t)(len >> 16),
				 (uint8_t)(len >> 8), (uint8_t)len};

	buf_add(out, size, 4);
	buf_adds(out, type);
	buf_add(out, data, len);
	buf_adds(out, "sum.");
}

/* A picture is a finding as a picture, whatever its points are. */
Test(gate_written, a_picture_is_not_read)
{
	cleanup_buf struct buf points = new_buf(), png = new_buf(), b = new_buf();
	char *packed = malloc(1 << 20);
	uLongf n = 1 << 20;
	uint32_t seed = 11;

	for (unsigned i = 0; i < 40; i++) /* of few colours */
		for (unsigned k = 0; k < 5000; k++)
			buf_add(&points, (char[]){(char)(128 + draw(&seed, 3) * i)}, 1);
	cr_assert_eq(
		compress((Bytef *)packed, &n, (const Bytef *)points.data, points.len),
		Z_OK);
	buf_add(&png, "\x89PNG\r\n\x1a\n", 8);
	add_chunk(&png, "IHDR", "\0\0\0\1\0\0\0\1\x08\2\0\0\0", 13);
	add_chunk(&png, "IDAT", packed, n);
	free(packed);
	cr_expect_lt(score(&png), 0.4, "raw: %f", r.score);
	buf_adds(&b, "{\"image_url\": \"data:image/png;base64,");
	add64(&b, png.data, png.len, 0);
	buf_adds(&b, "\"}");
	cr_expect_lt(score(&b), 0.4, "in base64: %f", r.score);
	cr_expect_eq(r.n, 1);
	cr_expect_eq(r.finding[0].family, GATE_MEDIA);
	/* what is written beside it is */
	buf_adds(&b, " " TOKEN);
	cr_expect_eq(score(&b), 1.0);
}

Test(gate_written, certificates_and_logs_are_let_go)
{
	static const uint8_t head[] = {0x30, 0x82, 3, 0xfc, 0x30, 0x82, 2, 0x60};
	cleanup_buf struct buf der = new_buf(), b = new_buf(), log = new_buf();
	uint32_t seed = 5;

	buf_add(&der, head, sizeof(head));
	add_noise(&der, &seed, 1024 - sizeof(head));
	buf_adds(&b, "-----BEGIN CERTIFICATE-----\n");
	add64(&b, der.data, der.len, 64);
	buf_adds(&b, "\n-----END CERTIFICATE-----\n");
	cr_expect_lt(score(&b), 0.4, "%f", r.score);
	/* one that is longer than it says is none */
	add_noise(&der, &seed, 64);
	b.len = 0;
	add64(&b, der.data, der.len, 64);
	cr_expect_geq(score(&b), 0.4, "%f", r.score);
	for (unsigned i = 0; i < 100; i++)
		buf_addf(&log,
			 "127.0.0.1 - - [10/Oct/2024:13:%02u:%02u +0200] \"GET / "
			 "HTTP/1.1\" 200 12\n",
			 i / 60, i % 60);
	cr_expect_lt(score(&log), 0.4, "%f", r.score);
}

/* One of base64 that is read, or of noise, or a line of something else, for each seed. */
static void add_run(struct buf *out, uint32_t *seed)
{
	static const char *const said[] = {
		"AKIAQZ3RLMT5WXV7BNC2",
		TOKEN,
		TERM,
		"4111 1111 1111 1111",
		"the quick brown fox jumps over the lazy dog and then some more",
	};
	static const size_t widths[] = {0, 0, 76, 76, 20, 12};
	cleanup_buf struct buf text = new_buf(), run = new_buf(), twice = new_buf();
	uint32_t what = draw(seed, ARRAY_SIZE(said) + 2);

	if (what > ARRAY_SIZE(said)) {
		buf_adds(out, draw(seed, 2) ? "hello\n" : "beefcafe\n");
		return;
	}
	if (what == ARRAY_SIZE(said))
		add_noise(&text, seed, 200 + draw(seed, 900));
	for (uint32_t i = 0; what < ARRAY_SIZE(said) && i <= draw(seed, 3); i++)
		buf_addf(&text, "%s ", said[what]);
	add64(&run, text.data, text.len, widths[draw(seed, ARRAY_SIZE(widths))]);
	if (what < ARRAY_SIZE(said) && draw(seed, 3) == 0) {
		add64(&twice, run.data, run.len, draw(seed, 2) ? 76 : 0);
		buf_add(out, twice.data, twice.len);
	} else { /* the end of it may be cut at any letter */
		buf_add(out, run.data, run.len > 60 ? run.len - draw(seed, 5) : run.len);
	}
	buf_adds(out, draw(seed, 4) ? "\n" : "\r\n");
}

Test(gate_written, a_line_before_another_lowers_nothing)
{
	uint32_t seed = 4228;

	add_term(TERM);
	for (unsigned round = 0; round < 1500; round++) {
		cleanup_buf struct buf a = new_buf(), b = new_buf(), both = new_buf();
		double sa, sb;

		add_run(&a, &seed);
		add_run(&b, &seed);
		buf_add(&both, a.data, a.len);
		buf_add(&both, b.data, b.len);
		sa = score(&a);
		sb = score(&b);
		cr_expect_geq(score(&both), (sa > sb ? sa : sb) - 1e-9,
			      "round %u: %f %f -> %f\n%s", round, sa, sb, r.score,
			      buf_str(&both));
	}
}

/* A text is read whole, however large: there is no border between two of its pieces that a token
 * could lie across. */
Test(gate_written, a_token_anywhere_in_a_large_text)
{
	static const char token[] = "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";
	cleanup_buf struct buf b = new_buf();
	unsigned found = 0;

	for (unsigned k = 1; k <= 64; k++) {
		size_t at = k * (size_t)16384 - k % sizeof(token);

		while (b.len + 30 < at)
			buf_adds(&b, "a line like any other, no more\n");
		while (b.len + 1 < at)
			buf_adds(&b, ".");
		buf_adds(&b, "\n");
		buf_adds(&b, token);
		buf_adds(&b, "\n");
	}
	cr_expect_eq(score(&b), 1.0);
	for (size_t i = 0; i < r.n; i++)
		found += r.finding[i].family == GATE_TOKEN;
	cr_expect_eq(found, 64);
}
