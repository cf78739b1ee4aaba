/* SPDX-License-Identifier: Apache-2.0 */
/* A credential in a reply, in whatever form and however it is cut, does not go through. */
#include "common/base64.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/egress/redact.h"
#include <criterion/criterion.h>
#include <ctype.h>

#define BIG (4u << 20)
#define KEY "sk-proj-Zq7/R+xV2m9LbT0c_Hs"

static struct redact *made(const char *key)
{
	struct redact *r = NULL;
	struct err err = ERR_INIT;

	cr_assert_eq(redact_new(key, strlen(key), &r, &err), 0, "%s", err.msg);
	return r;
}

/* In pieces of `piece` bytes. */
static unsigned run(const struct redact *r, const char *text, size_t len, size_t piece,
		    struct buf *out)
{
	struct redact_stream s;
	unsigned hits;

	redact_begin(&s, r);
	buf_reset(out);
	for (size_t at = 0; at < len; at += piece)
		redact_feed(&s, text + at, len - at < piece ? len - at : piece, out);
	redact_end(&s, out);
	hits = s.hits;
	redact_done(&s);
	cr_assert(buf_ok(out));
	return hits;
}

/* What is around it says how long its pieces are. */
Test(redact, a_framed_reply_is_as_long_as_it_was)
{
	static const char text[] = "002d\x02key sk-proj-Zq7/R+xV2m9LbT0c_Hs ok\n"
				   "0010\x02%73k-proj-Zq7%2FR+xV2m9LbT0c_Hs0000"
				   "sk-proj-Zq7/R+xV2";
	static const char want[] = "002d\x02key [redacted]***************** ok\n"
				   "0010\x02[redacted]*********************0000"
				   "[redacted]*******";
	struct redact *r = made(KEY);
	cleanup_buf struct buf out;

	buf_init(&out, BIG);
	for (size_t piece = 1; piece < sizeof(text); piece++) {
		struct redact_stream s;

		redact_begin(&s, r);
		s.keeps_length = true;
		buf_reset(&out);
		for (size_t at = 0, n; at < sizeof(text) - 1; at += n) {
			n = sizeof(text) - 1 - at < piece ? sizeof(text) - 1 - at : piece;
			redact_feed(&s, text + at, n, &out);
		}
		redact_end(&s, &out);
		cr_expect_str_eq(buf_str(&out), want, "by %zu", piece);
		cr_expect_eq(s.hits, 3u);
		redact_done(&s);
	}
	redact_free(r);
}

/* A form of the key, padded by what may stand around it. */
static void add_form(struct buf *b, const char *key, unsigned form)
{
	static const char pad[] = "\1\2";
	cleanup_buf struct buf plain, coded;

	buf_init(&plain, BIG);
	buf_init(&coded, BIG);
	switch (form % 12) {
	case 0:
		buf_adds(b, key);
		return;
	case 1:
	case 2:
	case 3:
	case 4:
	case 5:
	case 6:
		buf_add(&plain, pad, form % 3);
		buf_adds(&plain, key);
		buf_adds(&plain, form % 2 ? "" : "tail");
		base64_add(&coded, plain.data, plain.len);
		for (size_t i = 0; form % 12 > 3 && i < coded.len; i++)
			coded.data[i] = coded.data[i] == '+'   ? '-'
					: coded.data[i] == '/' ? '_'
							       : coded.data[i];
		buf_add(b, coded.data, coded.len);
		return;
	default:
		break;
	}
	for (const char *k = key; *k; k++) {
		unsigned c = (unsigned char)*k;

		switch (form % 12) {
		case 7:
			buf_addf(b, "%%%02x", c);
			break;
		case 8:
			buf_addf(b, "%%%02X", c);
			break;
		case 9:
			buf_addf(b, "\\u%04x", c);
			break;
		case 10: /* what a serialiser escapes */
			buf_addf(b, *k == '/' ? "\\/" : "%c", *k);
			break;
		default: /* what a form encoder escapes */
			if (isalnum(*k))
				buf_addc(b, *k);
			else
				buf_addf(b, "%%%02X", c);
			break;
		}
	}
}

Test(redact, what_is_no_token_is_refused)
{
	static const char *const bad[] = {"",		"short12",	  "a b c d e f",
					  "abc%41defg", "abc\"defgh",	  "abc\\defgh",
					  "abc\ndefgh", "\xc3\xa4wwwwwww"};
	char *huge = xmalloc(REDACT_SECRET_MAX + 2);

	memset(huge, 'x', REDACT_SECRET_MAX + 1);
	huge[REDACT_SECRET_MAX + 1] = '\0';
	for (size_t i = 0; i <= ARRAY_SIZE(bad); i++) {
		const char *s = i < ARRAY_SIZE(bad) ? bad[i] : huge;
		struct redact *r = NULL;
		struct err err = ERR_INIT;

		cr_expect(redact_new(s, strlen(s), &r, &err) < 0, "%zu", i);
		cr_expect_eq(err.id, ERRID_EGRESS_SECRET);
		cr_expect(strlen(s) < 8 || !strstr(err.msg, s), "the secret is shown");
		redact_free(r);
	}
	huge[REDACT_SECRET_MAX] = '\0';
	redact_free(made(huge));
	free(huge);
}

Test(redact, every_form_is_found_at_every_cut)
{
	static const char *const keys[] = {KEY, "sk-ant-api03-AAAABBBBCCCC", "12345678",
					   "aaaaaaaaaaaaaaaaaaaaaaaa", "a/b+c=d~e.f_g-h"};
	cleanup_buf struct buf text, out, bare;

	buf_init(&text, BIG);
	buf_init(&out, BIG);
	buf_init(&bare, BIG);
	for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
		struct redact *r = made(keys[k]);

		for (unsigned form = 0; form < 12; form++) {
			buf_reset(&text);
			buf_reset(&bare);
			add_form(&bare, keys[k], form);
			buf_adds(&text, "{\"error\":\"bad key ");
			buf_add(&text, bare.data, bare.len);
			buf_adds(&text, " given\"}\n");
			for (size_t piece = 1; piece <= text.len; piece++) {
				unsigned hits = run(r, text.data, text.len, piece, &out);

				cr_assert(hits >= 1, "key %zu form %u piece %zu", k, form,
					  piece);
				cr_assert(!strstr(out.data, bare.data), "form %u: %s",
					  form, out.data);
				cr_assert(str_starts(out.data, "{\"error\":\"bad key ") &&
					  str_ends(out.data, " given\"}\n"));
			}
		}
		redact_free(r);
	}
}

Test(redact, of_a_base64_no_more_than_its_edges_stays)
{
	struct redact *r = made(KEY);
	cleanup_buf struct buf text, out;

	buf_init(&text, BIG);
	buf_init(&out, BIG);
	for (unsigned form = 1; form < 7; form++) {
		buf_reset(&text);
		add_form(&text, KEY, form);
		cr_assert_eq(run(r, text.data, text.len, 3, &out), 1u);
		cr_assert(out.len < strlen(REDACT_MARK) + 16, "%s", out.data);
	}
	redact_free(r);
}

/* A line may end at any letter of it, or at each. */
Test(redact, base64_goes_on_over_lines)
{
	static const char *const ends[] = {"\n", "\r\n", "\\n", "\\r\\n"};
	struct redact *r = made(KEY);
	cleanup_buf struct buf form, text, out;

	buf_init(&form, BIG);
	buf_init(&text, BIG);
	buf_init(&out, BIG);
	for (unsigned i = 0; i < 6 * ARRAY_SIZE(ends); i++) {
		const char *end = ends[i / 6];

		buf_reset(&form);
		add_form(&form, KEY, 1 + i % 6);
		for (size_t at = 1; at <= form.len; at++) {
			buf_reset(&text);
			for (size_t k = 0; k < form.len; k++) {
				buf_addc(&text, form.data[k]);
				if (k + 1 == at || at == form.len)
					buf_adds(&text, end);
			}
			cr_assert_eq(run(r, text.data, text.len, 1 + at % 7, &out), 1u,
				     "%s", buf_str(&text));
			cr_assert(out.len <
					  strlen(REDACT_MARK) + 16 +
						  (at == form.len ? 17 : 1) * strlen(end),
				  "%s", buf_str(&out));
		}
	}
	redact_free(r);
}

/* As a field of Basic has it: the last letter is the key's too. In whatever is read on, no other is taken
 * for it. */
Test(redact, of_a_basic_value_only_the_user_stays)
{
	static const struct {
		const char *value, *want;
	} said[] = {
		/* "x-access-token:", "u:" and "user:", each with the key; escaped; a beginning */
		{"eC1hY2Nlc3MtdG9rZW46S2V5MDEyMzQ1Njc4OUE=",
		 "eC1hY2Nlc3MtdG9rZW46" REDACT_MARK "="},
		{"\"dTpLZXkwMTIzNDU2Nzg5QQ==\"", "\"dTp" REDACT_MARK "==\""},
		{"dXNlcjpLZXkwMTIzNDU2Nzg5QQ== z", "dXNlcjp" REDACT_MARK "== z"},
		{"S2V5MDEyMzQ1Njc4OU%45=", REDACT_MARK "="},
		{"S2V5MDEyMzQ1Njc4OU\\u0045=", REDACT_MARK "="},
		{"S2V5MDEyMzQ1Njc4O.", REDACT_MARK "."},
	};
	struct redact *r = made("Key0123456789A");
	cleanup_buf struct buf out;

	buf_init(&out, BIG);
	for (size_t i = 0; i < ARRAY_SIZE(said); i++)
		for (size_t piece = 1; piece < 50; piece++) {
			(void)run(r, said[i].value, strlen(said[i].value), piece, &out);
			cr_expect_str_eq(buf_str(&out), said[i].want);
		}
	redact_free(r);
}

Test(redact, a_beginning_is_enough_but_not_the_vendors_part)
{
	struct redact *r = made(KEY);
	cleanup_buf struct buf out;

	buf_init(&out, BIG);
	cr_expect_eq(run(r, "sk-proj-Zq7/R+xV***", 19, 4, &out), 1u);
	cr_expect_str_eq(out.data, REDACT_MARK "***");
	cr_expect_eq(run(r, "sk-proj-Zq7", 11, 4, &out), 0u);
	cr_expect_str_eq(out.data, "sk-proj-Zq7");
	cr_expect_eq(run(r, "keys begin with sk-proj- here", 29, 1, &out), 0u);
	cr_expect_str_eq(out.data, "keys begin with sk-proj- here");
	redact_free(r);
}

/* Only whole words are a vendor's: a sign among random letters is not. */
Test(redact, a_sign_in_a_key_ends_no_vendors_part)
{
	static const struct {
		const char *key;
		size_t min;
	} keys[] = {
		{"ab+Cd/Ef=Gh-Ij_Kl~Mn.Op7St7xYz+9QwE", 8},
		{"9f2-kQ_7zR-Lm0pXvB3nT-s", 8},
		{"AIzaSyD-x9_QkLm2nOpQr4StUvWx", 8},
		{"550e8400-e29b-41d4-a716-446655440000", 8},
		{"glpat-Zq7_QkLm-2nOpQr4StUvW", 14},
		{"tgp_v1_x9-QkLm2nOpQr4StUvW", 15},
		{"sk-None-Zq7R-xV2m9LbT0c_Hs", 16},
		{"github_pat_11ABCDEF0_x9QkLm2nOpQr", 19},
		{"PROD-KEY-x9-QkLm2nOpQr", 17},
	};
	cleanup_buf struct buf out;

	buf_init(&out, BIG);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		struct redact *r = made(keys[i].key);
		char text[64];

		for (size_t n = 1; n < strlen(keys[i].key); n++) {
			int len = snprintf(text, sizeof(text), "(%.*s)", (int)n,
					   keys[i].key);

			cr_expect_eq(run(r, text, (size_t)len, 5, &out),
				     n >= keys[i].min ? 1u : 0u, "%s", text);
			cr_expect_str_eq(buf_str(&out),
					 n >= keys[i].min ? "(" REDACT_MARK ")" : text);
		}
		redact_free(r);
	}
}

Test(redact, forms_may_be_mixed_and_follow_each_other)
{
	static const char text[] = "%73k-proj-\\u005aq7\\/R%2BxV2m9LbT0c%5fHs" KEY
				   "sk-prsk-proj-" KEY "sk-proj-Zq7/R+x";
	struct redact *r = made(KEY);
	cleanup_buf struct buf out;

	buf_init(&out, BIG);
	for (size_t piece = 1; piece < sizeof(text); piece++) {
		cr_assert_eq(run(r, text, sizeof(text) - 1, piece, &out), 3u);
		cr_assert_str_eq(out.data, REDACT_MARK REDACT_MARK
				 "sk-prsk-proj-" REDACT_MARK "sk-proj-Zq7/R+x");
	}
	redact_free(r);
}

Test(redact, ordinary_text_is_not_held_back)
{
	static const char event[] = "data: {\"delta\":\"Hello\"}\n\n";
	struct redact *r = made(KEY);
	struct redact_stream s;
	cleanup_buf struct buf out;

	buf_init(&out, BIG);
	redact_begin(&s, r);
	redact_feed(&s, event, sizeof(event) - 1, &out);
	cr_expect_str_eq(out.data, event);
	redact_feed(&s, "sk-p", 4, &out);
	cr_expect_str_eq(out.data, event, "a beginning waits");
	redact_feed(&s, "!", 1, &out);
	cr_expect(str_ends(out.data, "sk-p!"));
	redact_done(&s);
	redact_free(r);
}

Test(redact, without_a_credential_all_goes_through)
{
	cleanup_buf struct buf out;

	buf_init(&out, BIG);
	cr_expect_eq(run(NULL, KEY, strlen(KEY), 2, &out), 0u);
	cr_expect_str_eq(out.data, KEY);
}

/* ---- against a naive one: the whole text at once, decoded anew at every place ---- */

static uint32_t seed = 1;

static unsigned dice(unsigned n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

/* One unit as its character, -1 when it is cut or none; *width. */
static int naive_unit(const char *t, size_t len, size_t *width)
{
	unsigned c;
	int n = 0;

	*width = 1;
	if (len >= 3 && t[0] == '%' && isxdigit((unsigned char)t[1]) &&
	    sscanf((char[]){t[1], t[2], 0}, "%2x%n", &c, &n) == 1 && n == 2) {
		*width = 3;
		return (int)c;
	}
	if (t[0] == '%')
		return -1;
	if (t[0] != '\\')
		return (unsigned char)t[0];
	if (len >= 6 && t[1] == 'u' && isxdigit((unsigned char)t[2]) &&
	    sscanf((char[]){t[2], t[3], t[4], t[5], 0}, "%4x%n", &c, &n) == 1 && n == 4) {
		*width = 6;
		return (int)c;
	}
	if (len >= 4 && t[1] == 'x' && isxdigit((unsigned char)t[2]) &&
	    sscanf((char[]){t[2], t[3], 0}, "%2x%n", &c, &n) == 1 && n == 2) {
		*width = 4;
		return (int)c;
	}
	*width = 2;
	return len >= 2 && t[1] == '/' ? '/' : -1;
}

/* edge: what may stand behind the whole form. */
static size_t naive_match(const char *t, size_t len, const char *form, size_t min,
			  const bool edge[256])
{
	size_t at = 0, i = 0, width;
	int c;

	for (; form[i] && at < len; i++, at += width)
		if (naive_unit(t + at, len - at, &width) != (unsigned char)form[i])
			break;
	if (!form[i] && at < len) {
		c = naive_unit(t + at, len - at, &width);
		at += c >= 0 && c < 256 && edge[c] ? width : 0;
	}
	return i >= min ? at : 0;
}

/* The letters behind the core, by encoding with each neighbour there is; none where all 64 may be. */
static void naive_edge(const char *s, size_t n, unsigned before, bool url, bool ret[256])
{
	unsigned count = 0;

	memset(ret, 0, 256 * sizeof(bool));
	for (unsigned next = 0; next < 256; next++) {
		cleanup_buf struct buf a, x;

		buf_init(&a, BIG);
		buf_init(&x, BIG);
		buf_add(&a, "\0\0", before);
		buf_add(&a, s, n);
		buf_addc(&a, (char)next);
		base64_add(&x, a.data, a.len);
		char c = x.data[8 * (before + n) / 6];

		c = (char)(url && c == '+' ? '-' : url && c == '/' ? '_' : c);
		count += !ret[(unsigned char)c];
		ret[(unsigned char)c] = true;
	}
	if (count == 64)
		memset(ret, 0, 256 * sizeof(bool));
}

/* The stable middle of base64, by encoding with two different neighbours. */
static void naive_core(const char *s, size_t n, unsigned before, bool url, char *ret)
{
	cleanup_buf struct buf a, b, x, y;
	size_t len = 0;

	buf_init(&a, BIG);
	buf_init(&b, BIG);
	buf_init(&x, BIG);
	buf_init(&y, BIG);
	for (unsigned i = 0; i < before; i++) {
		buf_addc(&a, '\0');
		buf_addc(&b, '\xff');
	}
	buf_add(&a, s, n);
	buf_add(&b, s, n);
	buf_add(&a, "\0\0\0", 3);
	buf_add(&b, "\xff\xff\xff", 3);
	base64_add(&x, a.data, a.len);
	base64_add(&y, b.data, b.len);
	for (size_t i = 0; i < x.len && i < y.len; i++)
		if (x.data[i] == y.data[i] && x.data[i] != '=')
			ret[len++] = url && x.data[i] == '+'   ? '-'
				     : url && x.data[i] == '/' ? '_'
							       : x.data[i];
	ret[len] = '\0';
}

static void naive(const char *key, size_t min, const char *text, size_t len,
		  struct buf *out)
{
	char forms[7][256], starts[7][256];
	bool edges[7][256] = {{false}};

	(void)snprintf(forms[0], sizeof(forms[0]), "%s", key);
	(void)snprintf(starts[0], sizeof(starts[0]), "%.*s", (int)min, key);
	for (unsigned i = 0; i < 6; i++) {
		naive_core(key, strlen(key), i % 3, i >= 3, forms[1 + i]);
		naive_core(key, min, i % 3, i >= 3, starts[1 + i]);
		naive_edge(key, strlen(key), i % 3, i >= 3, edges[1 + i]);
	}
	buf_reset(out);
	for (size_t at = 0; at < len;) {
		size_t best = 0;

		for (unsigned i = 0; i < 7; i++) {
			size_t n = naive_match(text + at, len - at, forms[i],
					       strlen(starts[i]), edges[i]);
			best = n > best ? n : best;
		}
		if (best > 0)
			buf_adds(out, REDACT_MARK);
		else
			buf_addc(out, text[at]);
		at += best ? best : 1;
	}
}

Test(redact, it_agrees_with_a_naive_one, .timeout = 60)
{
	static const struct {
		const char *key;
		size_t min;
	} keys[] = {{KEY, 16},
		    {"abababababab", 8},
		    {"sk-ant-api03-x-yabcdefgh", 21},
		    {"12345678", 8},
		    {"uuuu/xxx5c5c2525", 8}};
	static const char junk[] = "%\\u002fx/abks-proj12345=cC";
	cleanup_buf struct buf text, out, want;

	buf_init(&text, BIG);
	buf_init(&out, BIG);
	buf_init(&want, BIG);
	for (unsigned round = 0; round < 4000; round++) {
		size_t k = dice(ARRAY_SIZE(keys));
		struct redact *r = made(keys[k].key);

		buf_reset(&text);
		for (unsigned n = 1 + dice(8); n > 0; n--) {
			size_t before = text.len, cut;

			if (dice(2))
				add_form(&text, keys[k].key, dice(12));
			else
				for (unsigned j = dice(20); j > 0; j--)
					buf_addc(&text, junk[dice(sizeof(junk) - 1)]);
			cut = dice(3) ? 0 : dice((unsigned)(text.len - before) + 1);
			text.len -= cut;
		}
		naive(keys[k].key, keys[k].min, buf_str(&text), text.len, &want);
		for (unsigned t = 0; t < 3; t++) {
			(void)run(r, buf_str(&text), text.len, 1 + dice(40), &out);
			cr_assert_eq(out.len, want.len, "round %u", round);
			cr_assert(out.len == 0 ||
					  memcmp(out.data, want.data, out.len) == 0,
				  "round %u: %s", round, out.data);
		}
		redact_free(r);
	}
}

/* As pages of errors write what they were sent, in whole pieces and byte by byte. */
Test(redact, references_of_html_are_undone)
{
	static const char *const written[] = {
		"ab&#43;Cd&#x2F;Ef&#x3D;Gh-Ij&amp;Kl&lt;Mn",
		"ab&plus;Cd&sol;Ef&equals;Gh-Ij&#38;Kl&#60;Mn",
		"ab&#0043;Cd&#x002f;Ef=Gh-Ij&Kl<Mn",
		"&#97;b+Cd/Ef=Gh-Ij&Kl&#x3c;Mn",
	};
	struct redact *r = made("ab+Cd/Ef=Gh-Ij&Kl<Mn");
	cleanup_buf struct buf text, out;

	buf_init(&text, BIG);
	buf_init(&out, BIG);
	for (size_t i = 0; i < ARRAY_SIZE(written); i++)
		for (size_t piece = 1; piece < 60; piece++) {
			buf_reset(&text);
			buf_addf(&text, "&amp; <p>%s</p> &#", written[i]);
			cr_assert_eq(run(r, text.data, text.len, piece, &out), 1u, "%s",
				     written[i]);
			cr_assert_str_eq(buf_str(&out),
					 "&amp; <p>" REDACT_MARK "</p> &#");
		}
	redact_free(r);
	r = made("ab&amp;Cd0123456");
	buf_reset(&text);
	buf_adds(&text, "x ab&amp;Cd0123456 y");
	cr_assert_eq(run(r, text.data, text.len, 3, &out), 1u);
	cr_assert_str_eq(buf_str(&out), "x " REDACT_MARK " y");
	redact_free(r);
}
