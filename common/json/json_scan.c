/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * The pre-scan: a complete RFC 8259 recogniser with the tightenings of RFC
 * 7493. json-c sees only bytes that passed it, so none of json-c's leniencies
 * (duplicate keys, single quotes, NaN, leading zeros, raw control bytes,
 * overlong UTF-8, bytes after a NUL, NUL in keys, clamped integers) matters.
 *
 * Keys are compared after unescaping. Those of the objects that are open lie on
 * one stack; an object's own are sorted when it closes. Nothing recurses deeper
 * than depth_max, and memory is bounded by the length of the input.
 */
#include "common/json/json.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/utf8.h"

#include <assert.h>
#include <math.h>

#define SCAN_DEPTH_CEILING 32 /* as JSONW_DEPTH_MAX */
#define SCAN_NUMBER_MAX 64

struct scan_key {
	size_t pos; /* of the opening quote, for the message */
	size_t off; /* into arena or input */
	size_t len;
	bool in_arena;
};

struct scan {
	const unsigned char *in;
	size_t len, at;
	unsigned depth, depth_max;
	size_t n_values;
	struct scan_key *keys;
	size_t n_keys, cap_keys;
	unsigned char *arena; /* unescaped keys; never longer than the input */
	size_t arena_len;
	struct err *err;
};

static int scan_value(struct scan *s);

static int scan_fail(struct scan *s, size_t at, const char *why)
{
	return err_set_id(s->err, ERRID_SPEC_JSON, "at byte %zu: %s", at, why);
}

static void scan_ws(struct scan *s)
{
	while (s->at < s->len) {
		unsigned char c = s->in[s->at];

		if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
			return;
		s->at++;
	}
}

/* Length of the well-formed UTF-8 sequence at s->at (RFC 3629), 0 when there is none. */
static size_t scan_utf8(const struct scan *s)
{
	const unsigned char *p = s->in + s->at;
	size_t left = s->len - s->at;
	size_t n;

	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		n = 2;
	else if (p[0] >= 0xe0 && p[0] <= 0xef)
		n = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (left < n)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

static int hex_value(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Four hex digits at s->at. */
static int scan_hex4(struct scan *s, unsigned *ret)
{
	unsigned v = 0;

	if (s->len - s->at < 4)
		return scan_fail(s, s->at, "incomplete \\u escape");
	for (int i = 0; i < 4; i++) {
		int d = hex_value(s->in[s->at + (size_t)i]);

		if (d < 0)
			return scan_fail(s, s->at, "bad \\u escape");
		v = v << 4 | (unsigned)d;
	}
	s->at += 4;
	*ret = v;
	return 0;
}

static void arena_put(struct scan *s, bool keep, unsigned byte)
{
	if (keep)
		s->arena[s->arena_len++] = (unsigned char)byte;
}

static void arena_put_char(struct scan *s, bool keep, unsigned cp)
{
	char utf8[4];
	size_t n = utf8_put(cp, utf8);

	for (size_t i = 0; i < n; i++)
		arena_put(s, keep, (unsigned char)utf8[i]);
}

/* After "\u": one character, two escapes for a surrogate pair. */
static int scan_unicode_escape(struct scan *s, bool keep)
{
	size_t start = s->at - 2;
	unsigned cp, low;

	if (scan_hex4(s, &cp) < 0)
		return -1;
	if (cp == 0)
		return scan_fail(s, start, "NUL in a string");
	if (cp >= 0xdc00 && cp <= 0xdfff)
		return scan_fail(s, start, "lone surrogate");
	if (cp >= 0xd800 && cp <= 0xdbff) {
		if (s->len - s->at < 2 || s->in[s->at] != '\\' || s->in[s->at + 1] != 'u')
			return scan_fail(s, start, "lone surrogate");
		s->at += 2;
		if (scan_hex4(s, &low) < 0)
			return -1;
		if (low < 0xdc00 || low > 0xdfff)
			return scan_fail(s, start, "lone surrogate");
		cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
	}
	arena_put_char(s, keep, cp);
	return 0;
}

static int scan_escape(struct scan *s, bool keep)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *hit;
	unsigned char c;

	s->at++;
	if (s->at >= s->len)
		return scan_fail(s, s->at, "unterminated string");
	c = s->in[s->at++];
	if (c == 'u')
		return scan_unicode_escape(s, keep);
	hit = c ? strchr(from, c) : NULL;
	if (!hit)
		return scan_fail(s, s->at - 1, "unknown escape");
	arena_put(s, keep, (unsigned char)to[hit - from]);
	return 0;
}

/* At the opening quote. With keep the unescaped bytes are appended to the arena. */
static int scan_string(struct scan *s, bool keep)
{
	s->at++;
	while (s->at < s->len) {
		unsigned char c = s->in[s->at];
		size_t n;

		if (c == '"') {
			s->at++;
			return 0;
		}
		if (c == '\\') {
			if (scan_escape(s, keep) < 0)
				return -1;
			continue;
		}
		if (c < 0x20)
			return scan_fail(s, s->at, "control byte in a string");
		if (c < 0x80) {
			arena_put(s, keep, c);
			s->at++;
			continue;
		}
		n = scan_utf8(s);
		if (n == 0)
			return scan_fail(s, s->at, "not UTF-8");
		for (size_t i = 0; i < n; i++)
			arena_put(s, keep, s->in[s->at + i]);
		s->at += n;
	}
	return scan_fail(s, s->at, "unterminated string");
}

static bool scan_is_digit(const struct scan *s)
{
	return s->at < s->len && s->in[s->at] >= '0' && s->in[s->at] <= '9';
}

static int scan_digits(struct scan *s)
{
	if (!scan_is_digit(s))
		return scan_fail(s, s->at, "a digit is missing");
	while (scan_is_digit(s))
		s->at++;
	return 0;
}

/* Would json-c keep this number exactly (integers) or at least finite (the rest)? */
static int scan_number_range(struct scan *s, size_t start, bool integer)
{
	char text[SCAN_NUMBER_MAX + 1];
	size_t n = s->at - start;
	const char *digits;
	const char *limit;
	size_t n_digits;

	if (n > SCAN_NUMBER_MAX)
		return scan_fail(s, start, "number too long");
	memcpy(text, s->in + start, n);
	text[n] = '\0';
	if (!integer) {
		if (!isfinite(strtod(text, NULL)))
			return scan_fail(s, start, "number out of range");
		return 0;
	}
	digits = text[0] == '-' ? text + 1 : text;
	limit = text[0] == '-' ? "9223372036854775808" : "18446744073709551615";
	n_digits = strlen(digits);
	if (n_digits > strlen(limit) ||
	    (n_digits == strlen(limit) && strcmp(digits, limit) > 0))
		return scan_fail(s, start, "integer out of range");
	return 0;
}

static int scan_number(struct scan *s)
{
	size_t start = s->at;
	bool integer = true;

	if (s->in[s->at] == '-')
		s->at++;
	if (s->at < s->len && s->in[s->at] == '0') {
		s->at++;
		if (scan_is_digit(s))
			return scan_fail(s, start, "leading zero");
	} else if (scan_digits(s) < 0) {
		return -1;
	}
	if (s->at < s->len && s->in[s->at] == '.') {
		integer = false;
		s->at++;
		if (scan_digits(s) < 0)
			return -1;
	}
	if (s->at < s->len && (s->in[s->at] == 'e' || s->in[s->at] == 'E')) {
		integer = false;
		s->at++;
		if (s->at < s->len && (s->in[s->at] == '+' || s->in[s->at] == '-'))
			s->at++;
		if (scan_digits(s) < 0)
			return -1;
	}
	return scan_number_range(s, start, integer);
}

static int scan_word(struct scan *s, const char *word)
{
	size_t n = strlen(word);

	if (s->len - s->at < n || memcmp(s->in + s->at, word, n) != 0)
		return scan_fail(s, s->at, "not a JSON value");
	s->at += n;
	return 0;
}

static int key_cmp(const void *pa, const void *pb, void *ctx)
{
	const struct scan *s = ctx;
	const struct scan_key *a = pa, *b = pb;
	const unsigned char *da = (a->in_arena ? s->arena : s->in) + a->off;
	const unsigned char *db = (b->in_arena ? s->arena : s->in) + b->off;
	int r = memcmp(da, db, a->len < b->len ? a->len : b->len);

	if (r != 0)
		return r;
	return a->len < b->len ? -1 : a->len > b->len;
}

static int scan_key(struct scan *s)
{
	struct scan_key k = {.pos = s->at};

	if (s->at >= s->len || s->in[s->at] != '"')
		return scan_fail(s, s->at, "a key in double quotes is missing");
	k.off = s->at + 1;
	if (scan_string(s, false) < 0)
		return -1;
	k.len = s->at - 1 - k.off;
	if (memchr(s->in + k.off, '\\', k.len)) {
		if (!s->arena)
			s->arena = xmalloc(s->len);
		k.in_arena = true;
		k.off = s->arena_len;
		s->at = k.pos;
		if (scan_string(s, true) < 0)
			return -1;
		k.len = s->arena_len - k.off;
	}
	if (s->n_keys == s->cap_keys) {
		s->cap_keys = s->cap_keys ? s->cap_keys * 2 : 64;
		s->keys = xreallocarray(s->keys, s->cap_keys, sizeof(*s->keys));
	}
	s->keys[s->n_keys++] = k;
	return 0;
}

/* The object whose keys start at base has closed: no two may be equal. */
static int scan_check_duplicates(struct scan *s, size_t base)
{
	size_t n = s->n_keys - base;
	struct scan_key *k = s->keys + base;

	s->n_keys = base;
	if (n < 2)
		return 0;
	qsort_r(k, n, sizeof(*k), key_cmp, s);
	for (size_t i = 1; i < n; i++)
		if (key_cmp(&k[i - 1], &k[i], s) == 0)
			return scan_fail(
				s, k[i - 1].pos > k[i].pos ? k[i - 1].pos : k[i].pos,
				"duplicate key");
	return 0;
}

static int scan_object(struct scan *s)
{
	size_t base = s->n_keys;

	s->at++;
	scan_ws(s);
	if (s->at < s->len && s->in[s->at] == '}') {
		s->at++;
		return 0;
	}
	for (;;) {
		scan_ws(s);
		if (s->n_keys - base == JSON_MEMBERS_MAX)
			return scan_fail(s, s->at, "too many members in one object");
		if (scan_key(s) < 0)
			return -1;
		scan_ws(s);
		if (s->at >= s->len || s->in[s->at] != ':')
			return scan_fail(s, s->at, "':' is missing");
		s->at++;
		if (scan_value(s) < 0)
			return -1;
		scan_ws(s);
		if (s->at < s->len && s->in[s->at] == '}') {
			s->at++;
			return scan_check_duplicates(s, base);
		}
		if (s->at >= s->len || s->in[s->at] != ',')
			return scan_fail(s, s->at, "',' or '}' is missing");
		s->at++;
	}
}

static int scan_array(struct scan *s)
{
	s->at++;
	scan_ws(s);
	if (s->at < s->len && s->in[s->at] == ']') {
		s->at++;
		return 0;
	}
	for (;;) {
		if (scan_value(s) < 0)
			return -1;
		scan_ws(s);
		if (s->at < s->len && s->in[s->at] == ']') {
			s->at++;
			return 0;
		}
		if (s->at >= s->len || s->in[s->at] != ',')
			return scan_fail(s, s->at, "',' or ']' is missing");
		s->at++;
	}
}

static int scan_value(struct scan *s)
{
	unsigned char c;
	int r;

	scan_ws(s);
	if (s->at >= s->len)
		return scan_fail(s, s->at, "a value is missing");
	/* Each costs json-c a hundred times its bytes here. */
	if (++s->n_values > JSON_VALUES_MAX)
		return scan_fail(s, s->at, "too many values");
	c = s->in[s->at];
	if (c == '{' || c == '[') {
		if (s->depth == s->depth_max)
			return scan_fail(s, s->at, "nested too deeply");
		s->depth++;
		r = c == '{' ? scan_object(s) : scan_array(s);
		s->depth--;
		return r;
	}
	if (c == '"')
		return scan_string(s, false);
	if (c == '-' || (c >= '0' && c <= '9'))
		return scan_number(s);
	if (c == 't')
		return scan_word(s, "true");
	if (c == 'f')
		return scan_word(s, "false");
	return scan_word(s, "null");
}

int json_scan(const void *data, size_t len, unsigned depth_max, struct err *err)
{
	struct scan s = {.in = data, .len = len, .depth_max = depth_max, .err = err};
	int r = -1;

	assert(depth_max >= 1 && depth_max <= SCAN_DEPTH_CEILING);
	if (len == 0)
		return scan_fail(&s, 0, "empty");
	scan_ws(&s);
	if (s.at >= len || s.in[s.at] != '{')
		return scan_fail(&s, s.at, "an object is required");
	if (scan_value(&s) == 0) {
		scan_ws(&s);
		r = s.at == len ? 0 : scan_fail(&s, s.at, "bytes after the object");
	}
	free(s.keys);
	free(s.arena);
	return r;
}
