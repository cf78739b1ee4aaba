/* SPDX-License-Identifier: Apache-2.0 */
/* Random bytes are found in each of the common spellings, at any length; what looks like them
 * and is a checksum, a protein or a long word is not. */
#define GATE_TEXTS_DEADLINE_USEC (600 * USEC_PER_SEC)
#include "common/cleanup.h"
#include "common/mem.h"
#include "tests/support/gate_texts.h"
#include "vessel/gate/gate.h"
#include <criterion/criterion.h>

TestSuite(gate_opaque, .init = begin, .fini = end, .timeout = 600);

static const char upper64[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url64[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char hex_lower[] = "0123456789abcdef", hex_upper[] = "0123456789ABCDEF";
static const char b32[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
		  b32_lower[] = "abcdefghijklmnopqrstuvwxyz234567",
		  b32_hex[] = "0123456789ABCDEFGHIJKLMNOPQRSTUV";

static uint32_t seed = 42;

static uint32_t draw(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (uint32_t)(((uint64_t)(seed >> 4) * n) >> 28);
}

/* n letters of an alphabet, in lines of `width`; 0: in one. */
static void letters(struct buf *b, const char *alphabet, size_t n, size_t width)
{
	for (size_t i = 0; i < n; i++) {
		if (width && i && i % width == 0)
			buf_addc(b, '\n');
		buf_addc(b, alphabet[draw((uint32_t)strlen(alphabet))]);
	}
}

static double score(const struct buf *b)
{
	return score_of(b->data, b->len);
}

static const struct form {
	const char *name, *alphabet;
	size_t bits, width;
} forms[] = {
	{"base64", upper64, 6, 0},
	{"hex", hex_lower, 4, 0},
	{"base32", b32, 5, 0},
	{"base64 in lines", upper64, 6, 76},
	{"base64url", url64, 6, 0},
	{"HEX", hex_upper, 4, 0},
	{"hex in lines of 64", hex_lower, 4, 64},
	{"HEX in lines of 76", hex_upper, 4, 76},
	{"base64url in lines", url64, 6, 64},
	{"hex in lines", hex_lower, 4, 60},
	{"base32 in lines", b32, 5, 64},
	{"base32, small", b32_lower, 5, 0},
	{"base32hex", b32_hex, 5, 0},
};
#define FORMS (sizeof(forms) / sizeof(forms[0]))

static void expect_found(const struct form *f, size_t bytes)
{
	cleanup_buf struct buf b = new_buf();

	buf_adds(&b, "see\n");
	letters(&b, f->alphabet, (bytes * 8 + f->bits - 1) / f->bits, f->width);
	buf_adds(&b, "\nthere\n");
	cr_expect_geq(score(&b), 0.4, "%s of %zu bytes", f->name, bytes);
}

Test(gate_opaque, random_bytes_at_any_length)
{
	static const size_t bytes[] = {96,  97,	 100, 128, 160,	 192,  250,
				       320, 400, 511, 777, 2048, 10000};

	for (size_t f = 0; f < FORMS; f++)
		for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
			for (unsigned k = 0; k < 8; k++)
				expect_found(&forms[f], bytes[i]);
	for (size_t f = 0; f < 3; f++)
		expect_found(&forms[f], (size_t)1 << 20);
}

/* Something that can be read, in the midst of it. */
Test(gate_opaque, a_readable_part_makes_nothing_readable)
{
	static const char *const alphabets[] = {upper64, hex_lower, b32};

	for (size_t i = 0; i < sizeof(alphabets) / sizeof(alphabets[0]); i++) {
		cleanup_buf struct buf b = new_buf();

		letters(&b, alphabets[i], 600, 0);
		buf_adds(&b, i == 0   ? "aGVsbG8gdGhlcmUsIGhlbGxvIQ"
			     : i == 1 ? "68656c6c6f2074686572652c2068656c6c6f21"
				      : "NBSWY3DPEB2GQZLSMU");
		letters(&b, alphabets[i], 600, 0);
		cr_expect_geq(score(&b), 0.4, "%zu", i);
	}
}

/* Two in a text are replaced, both. */
Test(gate_opaque, each_of_several_is_a_finding)
{
	cleanup_buf struct buf b = new_buf();

	letters(&b, b32, 300, 0);
	buf_adds(&b, " and ");
	letters(&b, b32, 200, 0);
	(void)score(&b);
	cr_expect_eq(r.n, 2);
	cr_expect_eq(r.verdict, GATE_ANONYMISE);
}

/* ---- what is no secret ------------------------------------------------------------------- */

Test(gate_opaque, letters_that_are_not_drawn)
{
	static const char amino[] = "ACDEFGHIKLMNPQRSTVWY", dna[] = "ACGT";
	cleanup_buf struct buf protein = new_buf(), gene = new_buf(), words = new_buf();

	letters(&protein, amino, 4000, 60);
	cr_expect_lt(score(&protein), 0.4, "%f", r.score);
	letters(&gene, dna, 4000, 0);
	cr_expect_lt(score(&gene), 0.4, "%f", r.score);
	for (unsigned i = 0; i < 500; i++)
		buf_adds(&words, i % 20 == 19 ? "antidisestablishmentarianism2\n"
					      : "antidisestablishmentarianism");
	cr_expect_lt(score(&words), 0.4, "%f", r.score);
}

/* %h: hexadecimal digits of a digest of that many bytes, %b: base64; the number is of bytes. */
static void put_line(struct buf *b, const char *form)
{
	for (; *form; form++) {
		unsigned n;

		if (*form != '%') {
			buf_addc(b, *form);
			continue;
		}
		n = (unsigned)(form[2] - '0') * 10 + (unsigned)(form[3] - '0');
		if (form[1] == 'h') {
			letters(b, hex_lower, 2 * (size_t)n, 0);
		} else {
			letters(b, upper64, ((size_t)n * 8 + 5) / 6, 0);
			buf_adds(b, n % 3 == 1 ? "==" : n % 3 == 2 ? "=" : "");
		}
		form += 3;
	}
}

Test(gate_opaque, lock_files_and_lists_of_checksums_are_never_rewritten)
{
	static const char *const forms[] = {
		"\"node_modules/x\": {\"version\": \"1.2.3\", \"integrity\": "
		"\"sha512-%b64\"},",
		"  integrity sha512-%b64",
		"  integrity sha1-%b20",
		"    resolution: {integrity: sha512-%b64}",
		"github.com/a/b v1.2.3 h1:%b32",
		"github.com/a/b v0.0.0-20190412183630-%h06 h1:%b32",
		"checksum = \"%h32\"",
		"%h32  x-1.2.3.tar.gz",
		"%h64 *x-1.2.3.tar.gz",
		"%h20  x",
		"%h16  usr/share/x",
		"SHA256 (x.tgz) = %h32",
		"x==1.2.3 --hash=sha256:%h32 --hash=sha256:%h32",
		"    {file = \"x-1.2.3-py3-none-any.whl\", hash = \"sha256:%h32\"},",
		"    { url = \"https://files.example.org/%h01/%h01/%h30/x.tar.gz\", hash "
		"= \"sha256:%h32\" },",
		"  x (1.2.3) sha256=%h32",
		"\"narHash\": \"sha256-%b32\", \"rev\": \"%h20\"",
		"\"reference\": \"%h20\", \"shasum\": \"%h20\"",
		"<sha256 value=\"%h32\" origin=\"Generated by Gradle\"/>",
		"FROM debian@sha256:%h32",
		"pip/_vendor/x.py,sha256=%b32,1234",
		"SHA-256-Digest: %b32",
		"\"bzlTransitiveDigest\": \"%b32\",",
		"\"usagesDigest\": \"%b32\",",
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		cleanup_buf struct buf b = new_buf();

		for (unsigned k = 0; k < 100; k++) {
			put_line(&b, forms[i]);
			buf_addc(&b, '\n');
		}
		cr_expect_lt(score(&b), 0.4, "%s: %f %s", forms[i], r.score,
			     r.n ? r.finding[0].rule : "");
	}
}

/* A name excuses a value as long as a digest, and none other; nor does the name of something
 * else. */
Test(gate_opaque, what_only_stands_where_a_digest_would_is_found)
{
	static const char *const forms[] = {
		"digest: %b30",		  "\"integrity\": \"%b40\"", "sha512-%b32",
		"bzlTransitiveKey: %b32", "digested by %b32",
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		cleanup_buf struct buf b = new_buf();

		for (unsigned k = 0; k < 4; k++) {
			put_line(&b, forms[i]);
			buf_addc(&b, '\n');
		}
		cr_expect_geq(score(&b), 0.4, "%s: %f", forms[i], r.score);
	}
}
