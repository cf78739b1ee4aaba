/* SPDX-License-Identifier: Apache-2.0 */
/* Characters that show nothing: what is written in them, and what they are strewn into. */
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "tests/support/gate_texts.h"
#include "vessel/gate/gate.h"
#include <criterion/criterion.h>

#define TOKEN "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"
#define ENGLAND                                                                          \
	"\xf0\x9f\x8f\xb4\xf3\xa0\x81\xa7\xf3\xa0\x81\xa2\xf3\xa0\x81\xa5\xf3\xa0\x81"   \
	"\xae\xf3\xa0\x81\xa7\xf3\xa0\x81\xbf"
#define SCOTLAND                                                                         \
	"\xf0\x9f\x8f\xb4\xf3\xa0\x81\xa7\xf3\xa0\x81\xa2\xf3\xa0\x81\xb3\xf3\xa0\x81"   \
	"\xa3\xf3\xa0\x81\xb4\xf3\xa0\x81\xbf"
#define WALES                                                                            \
	"\xf0\x9f\x8f\xb4\xf3\xa0\x81\xa7\xf3\xa0\x81\xa2\xf3\xa0\x81\xb7\xf3\xa0\x81"   \
	"\xac\xf3\xa0\x81\xb3\xf3\xa0\x81\xbf"
#define HEART "\xe2\x9d\xa4\xef\xb8\x8f"

TestSuite(gate_unseen, .init = begin, .fini = end, .timeout = 60);

enum way { IN_TAGS, IN_SELECTORS, WAY_MAX_ };

static const char *const way_name[] = {"tags", "selectors"};

static uint32_t character(enum way way, unsigned char byte)
{
	if (way == IN_TAGS)
		return 0xe0000U + byte;
	return byte < 16 ? 0xfe00U + byte : 0xe0100U + byte - 16;
}

static void put(struct buf *b, uint32_t c)
{
	char utf8[4];

	buf_add(b, utf8, utf8_put(c, utf8));
}

/* Each byte of data as a character of `way`; of `between`, which is read over and over, one
 * byte behind each. */
static struct buf hidden(enum way way, const void *data, size_t len, const char *between)
{
	struct buf out = new_buf();
	const unsigned char *u = data;

	for (size_t i = 0; i < len; i++) {
		put(&out, character(way, u[i]));
		if (*between)
			buf_addc(&out, between[i % strlen(between)]);
	}
	return out;
}

static double score_hidden(enum way way, const char *text, const char *between)
{
	cleanup_buf struct buf b = hidden(way, text, strlen(text), between);

	return score_of(b.data, b.len);
}

Test(gate_unseen, a_token_written_in_them_is_refused)
{
	for (enum way w = 0; w < WAY_MAX_; w++) {
		cleanup_buf struct buf b = new_buf(),
				       h = hidden(w, TOKEN, strlen(TOKEN), "");

		size_t at, end;

		cr_expect_eq(score_of(h.data, h.len), 1.0, "%s alone", way_name[w]);
		buf_adds(&b, "What a nice day it is " HEART);
		at = b.len;
		buf_add(&b, h.data, h.len);
		end = b.len;
		buf_adds(&b, " in London " ENGLAND "!");
		cr_expect_eq(score_of(b.data, b.len), 1.0, "%s in a text", way_name[w]);
		/* where it is, and not more: behind a sign of its own the emoji's is one of it */
		cr_assert_geq(r.n, 1);
		cr_expect_eq(r.finding[0].family, GATE_TOKEN);
		at -= w == IN_SELECTORS ? 3 : 0;
		cr_expect_eq(r.finding[0].offset, at);
		cr_expect_eq(r.finding[0].offset + r.finding[0].len, end);
	}
}

/* The sign of an emoji is a selector, and a flag is made of tags. */
Test(gate_unseen, behind_an_ordinary_sign_for_each_letter_it_is_refused)
{
	static const char *const sign[] = {SCOTLAND, HEART};

	for (enum way w = 0; w < WAY_MAX_; w++)
		for (size_t halves = 0; halves < 2; halves++) {
			cleanup_buf struct buf b = new_buf();

			for (size_t i = 0; i < strlen(TOKEN); i++) {
				if (!halves || i == strlen(TOKEN) / 2)
					buf_adds(&b, sign[w]);
				put(&b, character(w, (unsigned char)TOKEN[i]));
			}
			cr_expect_eq(score_of(b.data, b.len), 1.0, "%s, %zu", way_name[w],
				     halves);
		}
}

Test(gate_unseen, strewn_between_letters_it_is_refused_whichever_of_the_two_is_the_token)
{
	for (enum way w = 0; w < WAY_MAX_; w++) {
		cleanup_buf struct buf b = new_buf();

		cr_expect_eq(score_hidden(w, TOKEN, "A quiet walk by the sea.\n"), 1.0,
			     "a token of %s between letters", way_name[w]);
		for (const char *p = TOKEN; *p; p++) {
			buf_addc(&b, *p);
			put(&b,
			    character(w,
				      (unsigned char)"meet me there "[(p - TOKEN) % 14]));
		}
		cr_expect_eq(score_of(b.data, b.len), 1.0, "%s between a token's",
			     way_name[w]);
	}
}

Test(gate_unseen, tags_that_begin_and_end_a_flag_cut_nothing)
{
	static const uint32_t between[] = {0xe007f, 0xe0001, 0x200d, 0xfe0f, 0xe0180};

	for (size_t k = 0; k < ARRAY_SIZE(between); k++) {
		cleanup_buf struct buf b = new_buf();

		for (const char *p = TOKEN; *p; p++) {
			put(&b, character(IN_TAGS, (unsigned char)*p));
			put(&b, between[k]);
		}
		cr_expect_eq(score_of(b.data, b.len), 1.0, "U+%X", between[k]);
	}
}

/* One flag and then some hide nothing of what stands behind them. */
Test(gate_unseen, what_is_whole_by_itself_is_found_beside_others)
{
	static const char *const secrets[] = {"4111 1111 1111 1111", TOKEN,
					      "Projekt Morgenstern"};

	add_term(secrets[2]);
	for (enum way w = 0; w < WAY_MAX_; w++)
		for (size_t k = 0; k < ARRAY_SIZE(secrets); k++) {
			cleanup_buf struct buf b = new_buf();
			cleanup_buf struct buf h =
				hidden(w, secrets[k], strlen(secrets[k]), "");

			buf_adds(&b, ENGLAND ENGLAND HEART " and\n");
			buf_add(&b, h.data, h.len);
			buf_adds(&b, "\n" SCOTLAND HEART HEART);
			cr_expect_geq(score_of(b.data, b.len), 0.9, "%s: %s", way_name[w],
				      secrets[k]);
		}
}

Test(gate_unseen, terms_and_canaries)
{
	add_term("Zebrawolke");
	add_term("Zeus");
	for (enum way w = 0; w < WAY_MAX_; w++) {
		const struct gate_canary canary = {.data = "lych-canary-1234567890",
						   .len = 22};
		cleanup_buf struct buf h = hidden(w, canary.data, canary.len, "");
		const struct gate_part p = {.data = h.data, .len = h.len};
		const struct gate_input in = {
			.parts = &p, .n_parts = 1, .canaries = &canary, .n_canaries = 1};

		gate_scan(g, &in, &r);
		cr_expect_eq(r.score, 1.0, "a canary in %s", way_name[w]);
		cr_expect_eq(score_hidden(w, "ZEBRAWOLKE", ""), 1.0, "%s", way_name[w]);
		cr_expect_eq(score_hidden(w, "zeus", ""), 1.0, "%s", way_name[w]);
		cr_expect_eq(score_hidden(w, "we call it zebrawolke", "harmless. "), 1.0,
			     "%s", way_name[w]);
	}
}

static void as_escapes(struct buf *out, const struct buf *h, unsigned form)
{
	const char *p = h->data;
	size_t left = h->len;

	while (left) {
		uint32_t c = 0;
		size_t n = utf8_get(p, left, &c);

		if (form == 0)
			for (size_t i = 0; i < n; i++)
				buf_addf(out, "%%%02X", (unsigned char)p[i]);
		else if (form == 1)
			buf_addf(out, "&#x%X;", c);
		else if (form == 2 && c > 0xffff)
			buf_addf(out, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
				 0xdc00 + (c & 0x3ff));
		else if (form == 2)
			buf_addf(out, "\\u%04x", c);
		else if (form == 3)
			buf_addf(out, "\\u{%x}", c);
		else
			for (size_t i = 0; i < n; i++)
				buf_addf(out, "\\x%02x", (unsigned char)p[i]);
		p += n;
		left -= n;
	}
}

Test(gate_unseen, under_other_encodings_and_over_them)
{
	for (enum way w = 0; w < WAY_MAX_; w++) {
		cleanup_buf struct buf h = hidden(w, TOKEN, strlen(TOKEN), ""),
				       b64 = new_buf(), of64 = new_buf(), in64 = {0};
		cleanup_buf struct buf rev = new_buf(), back = {0};

		for (unsigned form = 0; form < 5; form++) {
			cleanup_buf struct buf b = new_buf(), twice = new_buf();

			as_escapes(&b, &h, form);
			cr_expect_eq(score_of(b.data, b.len), 1.0, "%s: %.40s",
				     way_name[w], buf_str(&b));
			for (size_t i = 0; i < b.len; i++)
				buf_addf(&twice, "%%%02X", (unsigned char)b.data[i]);
			cr_expect_eq(score_of(twice.data, twice.len), 1.0, "%s: %.40s",
				     way_name[w], buf_str(&twice));
		}
		add64(&b64, h.data, h.len, 0);
		cr_expect_eq(score_of(b64.data, b64.len), 1.0, "base64 of %s",
			     way_name[w]);
		add64(&of64, TOKEN, strlen(TOKEN), 0);
		in64 = hidden(w, of64.data, of64.len, "");
		cr_expect_eq(score_of(in64.data, in64.len), 1.0, "%s of base64",
			     way_name[w]);
		for (size_t i = strlen(TOKEN); i-- > 0;)
			buf_addc(&rev, TOKEN[i]);
		back = hidden(w, rev.data, rev.len, "");
		cr_expect_eq(score_of(back.data, back.len), 1.0, "%s backwards",
			     way_name[w]);
	}
}

Test(gate_unseen, bytes_that_nobody_can_read_are_opaque)
{
	unsigned char noise[400];
	uint32_t seed = 7;
	cleanup_buf struct buf h = {0}, url = new_buf();

	for (size_t i = 0; i < sizeof(noise); i++) {
		seed = seed * 1664525u + 1013904223u;
		noise[i] = (unsigned char)(seed >> 24);
	}
	h = hidden(IN_SELECTORS, noise, sizeof(noise), "");
	cr_expect_geq(score_of(h.data, h.len), 0.6);
	as_escapes(&url, &h, 0);
	cr_expect_geq(score_of(url.data, url.len), 0.6);
}

/* Text set apart by a line's end never lowers a score. */
Test(gate_unseen, more_of_them_on_another_line_lowers_nothing)
{
	for (enum way w = 0; w < WAY_MAX_; w++)
		for (enum way x = 0; x < WAY_MAX_; x++) {
			cleanup_buf struct buf b =
				hidden(w, "4111 1111 1111 1111", 19, "");
			cleanup_buf struct buf more = hidden(x, "12345678", 8, "");
			double before = score_of(b.data, b.len);

			buf_addc(&b, '\n');
			buf_add(&b, more.data, more.len);
			cr_expect_geq(score_of(b.data, b.len), before);
		}
}

/* "Ich liebe <heart> London <England>", ideographs with their variants, keycaps, families. */
Test(gate_unseen, ordinary_emoji_pass)
{
	static const char *const texts[] = {
		"I " HEART " London " ENGLAND ", Edinburgh " SCOTLAND
		" and Cardiff " WALES,
		HEART HEART HEART HEART HEART HEART HEART HEART,
		"1\xef\xb8\x8f\xe2\x83\xa3 2\xef\xb8\x8f\xe2\x83\xa3 "
		"3\xef\xb8\x8f\xe2\x83\xa3",
		"\xf0\x9f\x8f\xb3\xef\xb8\x8f\xe2\x80\x8d\xf0\x9f\x8c\x88 and "
		"\xe2\x9c\x82\xef\xb8\x8e",
		"\xe8\x91\x9b\xf3\xa0\x84\x80\xe5\x9f\x8e\xf3\xa0\x84\x81 "
		"\xe8\xbe\xbb\xf3\xa0\x84\x82\xe9\x82\x8a\xf3\xa0\x84\x91",
	};
	cleanup_buf struct buf many = new_buf();

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		cr_expect_eq(score_of(texts[i], strlen(texts[i])), 0.0, "%s", texts[i]);
		for (unsigned k = 0; k < 400; k++)
			buf_adds(&many, texts[(i * k + k) % ARRAY_SIZE(texts)]);
	}
	cr_expect_eq(score_of(many.data, many.len), 0.0);
}

Test(gate_unseen, much_of_them_takes_no_longer_than_it_should)
{
	cleanup_buf struct buf b = new_buf();

	/* one in each kilobyte, and a megabyte of nothing else */
	for (unsigned i = 0; i < 1000; i++) {
		for (unsigned k = 0; k < 100; k++)
			buf_adds(&b, "plain text ");
		put(&b, character(IN_TAGS, (unsigned char)('a' + i % 26)));
		put(&b, character(IN_SELECTORS, (unsigned char)('a' + i % 26)));
	}
	for (unsigned i = 0; i < 250000; i++)
		put(&b, character(IN_TAGS, (unsigned char)("some words "[i % 11])));
	(void)score_of(b.data, b.len);
	for (size_t i = 0; i < r.n; i++)
		cr_expect_neq(r.finding[i].family, GATE_UNREADABLE);
}
