/* SPDX-License-Identifier: Apache-2.0 */
/* What is made to be shown is let go, as it is written and inside of other things; what only
 * says so, or begins so, is not. */
#define GATE_TEXTS_DEADLINE_USEC (600 * USEC_PER_SEC)
#include "common/cleanup.h"
#include "common/mem.h"
#include "tests/support/gate_public.h"
#include "tests/support/gate_texts.h"
#include "vessel/gate/gate.h"
#include <criterion/criterion.h>

TestSuite(gate_public, .init = begin, .fini = end, .timeout = 60);

static double score(const struct buf *b)
{
	return score_of(b->data, b->len);
}

static void add_noise(struct buf *out, uint32_t *seed, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		*seed = *seed * 1664525u + 1013904223u;
		buf_addc(out, (char)(*seed >> 24));
	}
}

Test(gate_public, a_private_half_is_refused_beside_its_public_one)
{
	cleanup_buf struct buf b = new_buf(), noise = new_buf();
	uint32_t seed = 3;

	add_noise(&noise, &seed, 120);
	buf_adds(&b, public_things[0].text);
	buf_adds(&b, "-----BEGIN PRIVATE KEY-----\n");
	add64(&b, noise.data, noise.len, 64);
	buf_adds(&b, "\n-----END PRIVATE KEY-----\n");
	cr_expect_eq(score(&b), 1.0);
	buf_reset(&b);
	buf_adds(&b, "AGE-SECRET-KEY-"
		     "1QQPQRLCYRZ8ZUP3XKV4V3A4NZ7QDXE2S5MW6J8H9T0GFYDLCUEX4A\n");
	cr_expect_eq(score(&b), 1.0);
}

/* The line above says anything. */
Test(gate_public, noise_below_the_line_of_a_public_thing_is_found)
{
	static const char *const lines[] = {"CERTIFICATE", "PUBLIC KEY", "RSA PUBLIC KEY",
					    "PGP PUBLIC KEY BLOCK"};
	uint32_t seed = 7;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		cleanup_buf struct buf b = new_buf(), noise = new_buf();

		add_noise(&noise, &seed, 300);
		buf_addf(&b, "-----BEGIN %s-----\n", lines[i]);
		add64(&b, noise.data, noise.len, 64);
		buf_addf(&b, "\n-----END %s-----\n", lines[i]);
		cr_expect_geq(score(&b), 0.4, "%s: %f", lines[i], r.score);
	}
}

/* Behind a whole one, or in the place of its numbers when there are too many of them. */
Test(gate_public, noise_behind_a_key_is_found)
{
	static const uint8_t spki[] = {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03,
				       0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};
	static const uint8_t rsa[] = {0x30, 0x82, 0x20, 0x09, 0x02, 0x82, 0x20, 0x00};
	static const char ssh[] = "\0\0\0\x0bssh-ed25519\0\0\0\x20";
	/* OpenPGP: a version and a time, and an algorithm that there is */
	static const uint8_t pgp[] = {0x99, 0x09, 0x00, 4, 0x60, 0, 0, 0, 1};
	uint32_t seed = 11;

	for (unsigned which = 0; which < 4; which++) {
		cleanup_buf struct buf b = new_buf(), key = new_buf();

		if (which == 0)
			buf_add(&key, spki, sizeof(spki));
		else if (which == 1)
			buf_add(&key, rsa, sizeof(rsa));
		else if (which == 2)
			buf_add(&key, ssh, sizeof(ssh) - 1);
		else
			buf_add(&key, pgp, sizeof(pgp));
		add_noise(&key, &seed, which == 1 ? 8000 : 400);
		add64(&b, key.data, key.len, 64);
		cr_expect_geq(score(&b), 0.4, "%u: %f", which, r.score);
	}
}

Test(gate_public, tokens_and_terms_in_one_are_found)
{
	static const char token[] = "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";
	static const char ssh[] = "\0\0\0\x0bssh-ed25519\0\0\0\x40";
	cleanup_buf struct buf b = new_buf(), key = new_buf();

	add_term("project bluebird");
	buf_add(&key, ssh, sizeof(ssh) - 1);
	buf_addf(&key, "%-64s", token);
	add64(&b, key.data, key.len, 0);
	cr_expect_eq(score(&b), 1.0);
	buf_reset(&b);
	buf_reset(&key);
	buf_add(&key, ssh, sizeof(ssh) - 1);
	buf_addf(&key, "%-64s", "project bluebird");
	add64(&b, key.data, key.len, 0);
	cr_expect_eq(score(&b), 1.0);
}

Test(gate_public, a_key_of_signify_is_known_by_its_comment)
{
	cleanup_buf struct buf b = new_buf();

	buf_adds(&b, "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3\n");
	cr_expect_geq(score(&b), 0.4);
}

/* As they are, quoted and indented, and as a string of a program has them. */
Test(gate_public, it_is_let_go_however_it_is_written)
{
	for (size_t i = 0; i < sizeof(public_things) / sizeof(public_things[0]); i++) {
		cleanup_buf struct buf plain = new_buf(), indented = new_buf(),
				       quoted = new_buf();

		buf_adds(&indented, "data:\n  key: |\n    ");
		buf_adds(&quoted, "const key = \"");
		for (const char *c = public_things[i].text; *c; c++) {
			buf_addc(&indented, *c);
			if (*c == '\n')
				buf_adds(&indented, "    ");
			if (*c == '\n')
				buf_adds(&quoted, "\\n");
			else
				buf_addc(&quoted, *c);
		}
		buf_adds(&indented, "\n  other: value\n");
		buf_adds(&quoted, "\";\n");
		buf_adds(&plain, public_things[i].text);
		cr_expect_eq(score(&plain), 0, "%s: %f %s", public_things[i].name,
			     r.score, r.n ? r.finding[0].rule : "");
		cr_expect_eq(score(&indented), 0, "%s, indented: %f %s",
			     public_things[i].name, r.score,
			     r.n ? r.finding[0].rule : "");
		cr_expect_lt(score(&quoted), 0.4, "%s, quoted: %f %s",
			     public_things[i].name, r.score,
			     r.n ? r.finding[0].rule : "");
	}
}

/* A bundle of authorities has a hundred. */
Test(gate_public, however_many_they_are)
{
	cleanup_buf struct buf b = new_buf();

	for (unsigned i = 0; i < 200; i++)
		buf_addf(&b, "# %u\n%s%s", i, public_things[i % 2].text,
			 public_things[6 + i % 3].text);
	cr_expect_eq(score(&b), 0, "%f %s", r.score, r.n ? r.finding[0].rule : "");
}
