/* SPDX-License-Identifier: Apache-2.0 */
#include "vessel/gate/gate.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "vessel/gate/private.h"
#include "vessel/gate/score.h"
#include <criterion/criterion.h>
#include <zlib.h>

#define TOKEN "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"

static struct gate *g;
static struct gate_report r;

static void begin(void)
{
	const struct gate_config cfg = {.portal_threshold = 0.4,
					.forbidden_threshold = 0.7};
	struct err err = ERR_INIT;

	cr_assert_eq(gate_new(&cfg, &g, &err), 0, "%s", err.msg);
}

static void end(void)
{
	gate_free(g);
}

TestSuite(gate, .init = begin, .fini = end, .timeout = 60);

static double score_parts(const struct gate_part *p, size_t n)
{
	const struct gate_input in = {.parts = p, .n_parts = n};

	gate_scan(g, &in, &r);
	return r.score;
}

static double score(const char *text)
{
	const struct gate_part p = {.data = text, .len = strlen(text)};

	return score_parts(&p, 1);
}

/* A small generator of numbers. */
static uint32_t draw(uint32_t *s, uint32_t n)
{
	*s = *s * 1664525u + 1013904223u;
	return (*s >> 8) % n;
}

static bool has(enum gate_family f)
{
	for (size_t i = 0; i < r.n; i++)
		if (r.finding[i].family == f)
			return true;
	return false;
}

Test(gate, a_live_token_is_refused_where_it_is)
{
	cr_assert_eq(score("key: " TOKEN " end"), 1.0);
	cr_assert_eq(r.verdict, GATE_REFUSE);
	cr_assert_eq(r.n, 1);
	cr_assert_eq(r.finding[0].family, GATE_TOKEN);
	cr_assert_eq(r.finding[0].offset, 5);
	cr_assert_eq(r.finding[0].len, 40);
}

Test(gate, plain_text_passes)
{
	cr_assert_eq(score("The quick brown fox jumps over the lazy dog.\n"), 0);
	cr_assert_eq(r.verdict, GATE_PASS);
	cr_assert_eq(score(""), 0);
}

Test(gate, look_alikes_are_not_taken)
{
	static const char *const fine[] = {
		"4111 1111 1111 1112",		       /* Luhn */
		"GB82 WEST 1234 5698 7654 33",	       /* mod 97 */
		"000-12-3456 666-12-3456 900-12-3456", /* never given out */
		"NHS number: 943 476 5918",	       /* mod 11 */
		"AKIAIOSFODNN7EXAMPLE",		       /* documentation */
		"ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		"password = 'changeme'",
		"postgres://user:password@localhost/db",
		"123e4567-e89b-12d3-a456-426614174000", /* UUID */
		"da39a3ee5e6b4b0d3255bfef95601890afd80709",
		"sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwv"
		"Y7kxvUdBeoGlODJ6+SfaPg==",
		"john@example.com",
		"lib/systemd/system/user@1000.service",
		"usr/lib/llvm-14/lib/libLLVMAArch64CodeGen32X86AsmParser",
		"usr/lib/x86_64-linux-gnu/Qt5WebEngine2DWidgets/QtQuickCompilerV3x64",
		"po/en@quot.header",
		"systemd.be@latin.catalog",
		"version 1.2.3.4 at 127.0.0.1",
	};

	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		cr_expect_lt(score(fine[i]), 0.4, "%s: %f %s", fine[i], r.score,
			     r.n ? r.finding[0].rule : "");
}

/* Seven of nine formats were let go for a word behind them. */
Test(gate, a_word_beside_a_secret_hides_nothing)
{
	static const char *const live[] = {
		TOKEN,
		"glpat-x7Kq2mZv9LsT4bNcW8Rd",
		"AKIA2E7A5F3B244CVQZT",
		"sk_live_4Xb7Qm2Zr9Kt5Wv8Ny3Pc6Hd",
		"AIzaSyB3xK9mQ2vL7pW4zT8nR5cY1hJ6dF0gSaU",
		"xoxb-123456789012-210987654321-AbCdEfGhIjKlMnOpQrStUvWx",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI4MTU1In0.hT9kQ2vLx7pW4zR8nB5cY1",
		"postgres://app:k9Qm2Zr7Kt5@db.corp.io/x",
		"4111 1111 1111 1111",
		"password = 'k9Qm#2Zr7Kt5W'",
	};
	static const char *const words[] = {"example", "xxxxx",	  "none", "NULL", "your_",
					    "test_",   "1234567", "<",	  "${",	  "...."};
	char text[512];

	for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++) {
		double alone = score(live[i]);

		cr_expect_geq(alone, 0.5, "%s", live[i]);
		for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
			(void)snprintf(text, sizeof(text), "%s%s", words[w], live[i]);
			cr_expect_geq(score(text), alone, "%s: %f", text, r.score);
			(void)snprintf(text, sizeof(text), "%s%s", live[i], words[w]);
			cr_expect_geq(score(text), alone, "%s: %f", text, r.score);
			(void)snprintf(text, sizeof(text), "# %s\n%s %s", words[w],
				       live[i], words[w]);
			cr_expect_geq(score(text), alone, "%s: %f", text, r.score);
		}
	}
}

Test(gate, a_word_within_a_secret_hides_nothing)
{
	static const struct {
		const char *text;
		double least;
	} found[] = {
		{"password = 'kJ8none#mQ2vL7'", 0.5},
		{"api_key: Zr9example4Kt5Wv8Nq", 0.5},
		{"postgres://app:k9nullQm2Zr7@db.corp.io/x", 0.85},
		{"Server=sql.corp.net;User Id=sa;Password=q7sample2Zr;", 0.85},
		{"Authorization: Bearer q9Zxxxxr4Kt5Wv8Ny3Pc6HdLm2", 0.85},
		{"AKIAI5QOX7ZMNEXAMPLE", 1.0},
		{"sk_live_4Xb7Qm2Zr9Kt5exampleWv8Ny3", 1.0},
		{"john.test.smith@corp.io", 0.4},
		/* "->" is no reason either, nor is a bracket */
		{"password = 'kJ8->mQ2vL7'", 0.5},
		{"postgres://app:$tr0ngPassw0rd@db.corp.io/x", 0.85},
		{"sha512-aV9kQ2vLx7pW4zR8nB5cY1hT6dG3m", 0.5},
	};
	static const char *const let_go[] = {
		"AKIAIOSFODNN7EXAMPLE",
		"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
		"sk_test_4eC39HqLyjWDarjtT1zdp7dc",
		"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
		"eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIy"
		"fQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
		"AKIAXXXXXXXXXXXXXXXX",
		"glpat-xxxxxxxxxxxxxxxxxxxx",
		"password = 'your-password-here'",
		"password = '${DB_PASSWORD}'",
		"postgres://app:$DB_PASS@localhost/x",
		"postgres://app:{{db_pass}}@localhost/x",
		"password = self.config.password",
	};

	for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++)
		cr_expect_geq(score(found[i].text), found[i].least, "%s: %f",
			      found[i].text, r.score);
	for (size_t i = 0; i < sizeof(let_go) / sizeof(let_go[0]); i++)
		cr_expect_lt(score(let_go[i]), 0.4, "%s: %f %s", let_go[i], r.score,
			     r.n ? r.finding[0].rule : "");
	/* what is published is one value, not all that hold it */
	cr_expect_eq(score("AKIAIOSFODNN7EXAMPLE" TOKEN), 1.0);
	cr_expect_geq(score("sk_test_4eC39HqLyjWDarjtT1zdp7dcQ9"), 0.7);
}

/* The letters that miss can be tried. */
Test(gate, a_token_without_its_end_is_a_token)
{
	static const char *const cut[] = {
		"ghp_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq1",
		"ghp_zQWBuTSOoRi4A9spHcVY5ncn",
		"hp_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17",
		"AIzaSyB3xK9mQ2vL7pW4zT8nR5cY1hJ6dF0gSa",
		"dop_v1_0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8",
		"op_v1_0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9",
		"hf_aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFg",
		"ASIA2E7A5F3B244CVQZ",
	};

	for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++)
		cr_expect_geq(score(cut[i]), 0.7, "%s: %f", cut[i], r.score);
	/* these share no more than a beginning with one */
	cr_expect_lt(score("ghp_zQWBuTSOoRi4"), 0.4);
	cr_expect_lt(score("ASIAPACIFICREGIONX ASIAPACIFICSOUTHEASTERN"), 0.4);
	cr_expect_lt(score("MKLVAKIAGTWRNDQPSLHKVEFYCMAG"), 0.4);
}

Test(gate, a_broken_checksum_makes_it_less)
{
	cr_assert_eq(score("ghp_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq18"), 0.6);
	cr_assert_not(has(GATE_TOKEN));
}

Test(gate, what_is_undone)
{
	static const char *const hidden[] = {
		"Z2hwX3pRV0J1VFNPb1JpNEE5c3BIY1ZZNW5jbnNEa3hrSjBtTHExNw==",
		"x=Z2hwX3pRV0J1VFNPb1JpNEE5c3BIY1ZZNW5jbnNEa3hrSjBtTHExNw",
		"71qLm0JkxkDsncn5YVcHps9A4iRoOSTuBWQz_phg",
		"%67hp%5FzQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17",
		"&#103;hp&#x5f;zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17",
		"\\u0067hp_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17",
		"g\xe2\x80\x8bhp_zQWBuTSOoRi4A9spHcVY5ncns\xe2\x81\xa0"
		"DkxkJ0mLq17",
		"\xef\xbd\x87hp_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17",
		"6768705f7a515742755453"
		"4f6f526934413973704863565935"
		"6e636e73446b786b4a306d4c713137",
	};

	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		cr_expect_eq(score(hidden[i]), 1.0, "%zu: %f", i, r.score);
		cr_expect(has(GATE_TOKEN), "%zu", i);
	}
}

Test(gate, utf16_is_read_and_not_called_binary)
{
	const char token[] = TOKEN;
	char wide[2 * sizeof(token)];
	struct gate_part p = {.data = wide, .len = 2 * (sizeof(token) - 1)};

	for (size_t i = 0; i < sizeof(token) - 1; i++) {
		wide[2 * i] = token[i];
		wide[2 * i + 1] = 0;
	}
	cr_assert_eq(score_parts(&p, 1), 1.0);
	cr_assert(has(GATE_TOKEN));
	cr_assert_not(has(GATE_BINARY));
}

/* The first bytes of a picture are also the first of a word. */
Test(gate, a_sentence_is_no_picture_at_any_length)
{
	static const char text[] = "GIF89 is a format of pictures, and ID3 one of words "
				   "about music; caf\xc3\xa9 is a word with an accent";
	struct gate_part p = {.data = text};

	for (p.len = 1; p.len < sizeof(text); p.len++)
		cr_expect_eq(score_parts(&p, 1), 0, "%zu", p.len);
	for (p.data = strstr(text, "ID3"), p.len = 1; p.len < 40; p.len++)
		cr_expect_eq(score_parts(&p, 1), 0, "%zu", p.len);
	p = (struct gate_part){.data = "GIF89a\x10\0\x10\0\x80\0\0 a picture", .len = 23};
	cr_expect_gt(score_parts(&p, 1), 0);
}

/* As gzip. */
static size_t compress_all(char *out, size_t room, const char *text, size_t len)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)text,
		      .avail_in = (uInt)len,
		      .next_out = (Bytef *)out,
		      .avail_out = (uInt)room};
	int r = deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);

	cr_assert_eq(r, Z_OK);
	cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
	(void)deflateEnd(&z);
	return room - z.avail_out;
}

/* The head of a block alone is a hundred bytes of which nothing can be read yet. Were they
 * called binary, the rest of the stream would lower the score. */
Test(gate, a_compressed_text_is_harmless_at_each_length)
{
	static char text[4000], packed[8192];
	uint32_t seed = 7;
	struct gate_part p = {.data = packed};
	size_t n;

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = i % 7 == 6 ? ' ' : (char)('a' + draw(&seed, 10));
	n = compress_all(packed, sizeof(packed), text, sizeof(text));
	for (p.len = 1; p.len <= n; p.len++)
		cr_assert_eq(score_parts(&p, 1), 0, "%zu of %zu", p.len, n);
}

Test(gate, a_compressed_token_is_found_though_the_stream_is_cut)
{
	static const char text[] = "my token is " TOKEN ", keep it";
	char packed[256];
	struct gate_part p = {.data = packed};

	p.len = compress_all(packed, sizeof(packed), text, sizeof(text) - 1) - 9;
	cr_expect_eq(score_parts(&p, 1), 1.0);
	cr_expect(has(GATE_TOKEN));
}

/* Blocks with nothing in them: bytes that are taken and never said. */
Test(gate, a_stream_that_says_nothing_is_binary)
{
	char packed[1024] = "\x1f\x8b\x08\0\0\0\0\0\0\3";
	const struct gate_part p = {.data = packed, .len = sizeof(packed)};

	for (size_t i = 10; i + 5 <= sizeof(packed); i += 5)
		memcpy(packed + i, "\0\0\0\xff\xff", 5);
	cr_expect_geq(score_parts(&p, 1), 0.85);
	cr_expect(has(GATE_BINARY));
}

Test(gate, a_secret_cut_in_two_parts_is_seen)
{
	struct gate_part p[] = {
		{.data = "here it is: ghp_zQWBuTSOoRi4", .tag = 7},
		{.data = "role", .tag = 8},
		{.data = "A9spHcVY5ncnsDkxkJ0mLq17 done", .tag = 7},
	};

	for (size_t i = 0; i < 3; i++)
		p[i].len = strlen(p[i].data);
	cr_assert_eq(score_parts(p, 3), 1.0);
	cr_assert(has(GATE_TOKEN));
	p[2].tag = 9;
	cr_assert_lt(score_parts(p, 3), 0.7);
	cr_assert_not(has(GATE_TOKEN));
}

Test(gate, a_number_whose_keyword_came_before_is_seen)
{
	struct gate_part p[] = {
		{.data = "the NHS number:", .len = 15, .tag = 7},
		{.data = " 943 476 5919 as told", .len = 21, .tag = 7},
	};

	cr_assert_eq(score_parts(p, 2), 0.9);
	cr_assert_eq(r.finding[0].family, GATE_NHS);
	cr_assert_eq(r.finding[0].part, 1);
	cr_assert_eq(r.finding[0].offset, 1);
	cr_assert_eq(r.finding[0].len, 12);
	cr_assert(r.finding[0].is_split);
	p[1].tag = 8;
	cr_assert_lt(score_parts(p, 2), 0.4);
}

Test(gate, numbers_backwards_when_they_are_grouped)
{
	cr_assert_geq(score("see 0989-56-421 there"), 0.9);
	cr_assert(has(GATE_SSN));
	cr_assert_geq(score("see 1111 1111 1111 1114 there"), 0.9);
	cr_assert(has(GATE_CARD));
	/* Any other time in microseconds would be one, and any other account. */
	cr_assert_lt(score("at 1111111111111114 and 1623881471914"), 0.4);
	cr_assert_lt(score("see 98 1111 1111 1111 1114 22 there"), 0.4);
}

Test(gate, digits_alone_are_found_in_base64)
{
	/* 004-35-2056: capitals and digits only */
	cr_assert_geq(score("x\nMDA0LTM1LTIwNTY=\ny"), 0.9);
	cr_assert(has(GATE_SSN));
}

Test(gate, a_secret_cut_in_two_requests_is_seen)
{
	const struct gate_tail tail = {
		.tag = 7, .len = 28, .data = "it: ghp_zQWBuTSOoRi4A9spHcVY"};
	const struct gate_part p = {.data = "5ncnsDkxkJ0mLq17", .len = 16, .tag = 7};
	struct gate_input in = {.parts = &p, .n_parts = 1};

	gate_scan(g, &in, &r);
	cr_assert_lt(r.score, 0.4);
	in.tails = &tail;
	in.n_tails = 1;
	gate_scan(g, &in, &r);
	cr_assert_eq(r.score, 1.0);
}

Test(gate, a_members_name_is_its_values_keyword)
{
	const struct gate_part p[] = {
		{.data = "db_password", .len = 11, .kind = GATE_PART_NAME},
		{.data = "xK9#mQ2$vL7pW4", .len = 14},
	};

	cr_assert_geq(score_parts(p, 2), 0.5);
	cr_assert_eq(r.finding[0].part, 1);
	cr_assert_eq(r.finding[0].offset, 0);
	cr_assert_eq(r.finding[0].len, 14);
}

Test(gate, canaries_and_registered_terms_are_one)
{
	cleanup_private struct gate_private *p = gate_private_new();
	const struct gate_canary canary = {.data = "canary-5c1fd03a77", .len = 17};
	const struct gate_part part = {.data = "x canary-5c1fd03a77 y", .len = 21};
	struct gate_input in = {.parts = &part, .n_parts = 1};
	uint64_t id;

	gate_scan(g, &in, &r);
	cr_assert_lt(r.score, 0.4);
	in.canaries = &canary;
	in.n_canaries = 1;
	gate_scan(g, &in, &r);
	cr_assert_eq(r.score, 1.0);
	cr_assert(has(GATE_CANARY));

	cr_assert_lt(score("we call it project  Bluebird here"), 0.4);
	cr_assert_eq(gate_private_add(p, PRIVATE_TERM, "t", "Project BlueBird", 16, 0,
				      &id, NULL),
		     0);
	gate_set_private(g, p);
	cr_assert_eq(score("we call it project  Bluebird here"), 1.0);
	cr_assert_eq(r.finding[0].family, GATE_EXACT);
	cr_assert_eq(r.finding[0].offset, 11);
	cr_assert_eq(r.finding[0].len, 17);
	gate_set_private(g, NULL);
}

Test(gate, what_cannot_be_read_is_one)
{
	static char big[1 << 20];
	struct gate_part p = {.data = big, .len = GATE_INPUT_MAX_BYTES + 1};

	cr_assert_eq(score_parts(&p, 1), 1.0);
	cr_assert(has(GATE_UNREADABLE));
	cr_assert_eq(r.verdict, GATE_REFUSE);
	/* more findings than fit */
	for (size_t i = 0; i + 24 < sizeof(big); i += 24)
		(void)snprintf(big + i, sizeof(big) - i, "+49 30 9%06zu       \n\n\n",
			       i / 24 % 1000000);
	p.len = sizeof(big);
	cr_assert_eq(score_parts(&p, 1), 1.0);
	/* unknown bytes */
	for (size_t i = 0; i < 4096; i++)
		big[i] = (char)(i * 7919 >> 3);
	p.len = 4096;
	cr_assert_geq(score_parts(&p, 1), 0.7);
	cr_assert(has(GATE_BINARY));
}

Test(gate, the_score_adds_up)
{
	struct gate_finding f[3] = {
		{.severity = 0.4, .mac = {1}},
		{.severity = 0.4, .mac = {2}},
		{.severity = 0.4, .mac = {2}},
	};

	cr_assert_float_eq(gate_score(f, 1), 0.4, 1e-9);
	/* 1 - 0.8 * 0.8 = 0.36 */
	cr_assert_float_eq(gate_score(f, 2), 0.4, 1e-9);
	cr_assert_float_eq(gate_score(f, 3), 0.4, 1e-9);
	f[2].mac[0] = 3;
	cr_assert_float_eq(gate_score(f, 3), 1 - 0.8 * 0.8 * 0.8, 1e-9);
	cr_assert_eq(gate_judge(0.39, 0.4, 0.7), GATE_PASS);
	cr_assert_eq(gate_judge(0.4, 0.4, 0.7), GATE_ANONYMISE);
	cr_assert_eq(gate_judge(0.7, 0.4, 0.7), GATE_REFUSE);
	cr_assert_eq(gate_judge(__builtin_nan(""), 0.4, 0.7), GATE_REFUSE);
}

Test(gate, a_bucket_raises_it)
{
	const struct gate_part p = {.data = "from 8.8.8.8 today", .len = 18};
	struct gate_input in = {.parts = &p, .n_parts = 1};

	gate_scan(g, &in, &r);
	cr_assert_lt(r.score, 0.4);
	cr_assert_gt(gate_added(r.finding, r.n), 0);
	in.carry = 0.6;
	gate_scan(g, &in, &r);
	cr_assert_geq(r.score, 0.4);
}

/* Lines of all kinds. */
static void add_line(struct buf *b, uint32_t *seed)
{
	static const char *const pieces[] = {
		TOKEN,
		"john.smith@corp.io",
		"4111 1111 1111 1111",
		"hello there",
		"Z2hwX3pRV0J1VFNPb1JpNEE5c3BIY1ZZNW5jbnNEa3hrSjBtTHExNw==",
		"%41%42%20",
		"password = 'kJ8#mQ2vL7pW4z'",
		"8.8.4.4",
		"-----BEGIN RSA PRIVATE KEY-----",
		"MIIEpAIBAAKCAQEA1c7e8qk2mPz3Zk1Vt0b9Yx",
		"&#103;&#104;",
		"\\u0041",
		"=",
		"==",
		"GB82 WEST 1234 5698 7654 32",
		"\xe2\x80\x8b",
		"71qLm0JkxkDsncn5YVcHps9A4iRoOS",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijkl",
		"+49 30 901820",
	};
	uint32_t n = 1 + draw(seed, 3);

	for (uint32_t i = 0; i < n; i++) {
		buf_adds(b, pieces[draw(seed, sizeof(pieces) / sizeof(pieces[0]))]);
		buf_adds(b, draw(seed, 2) ? " " : "");
	}
	buf_adds(b, "\n");
}

Test(gate, more_text_never_lowers_the_score)
{
	uint32_t seed = 20260101;

	for (unsigned round = 0; round < 1500; round++) {
		struct buf a, b, both;
		double sa, sb;

		buf_init(&a, 65536);
		buf_init(&b, 65536);
		buf_init(&both, 131072);
		for (uint32_t i = draw(&seed, 4); i > 0; i--)
			add_line(&a, &seed);
		for (uint32_t i = draw(&seed, 4); i > 0; i--)
			add_line(&b, &seed);
		buf_adds(&both, buf_str(&a));
		buf_adds(&both, buf_str(&b));
		sa = score(buf_str(&a));
		sb = score(buf_str(&b));
		cr_expect_geq(score(buf_str(&both)), (sa > sb ? sa : sb) - 1e-9,
			      "round %u: %f %f -> %f\n%s---\n%s", round, sa, sb, r.score,
			      buf_str(&a), buf_str(&b));
		buf_done(&a);
		buf_done(&b);
		buf_done(&both);
	}
}
