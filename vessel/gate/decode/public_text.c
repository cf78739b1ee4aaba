/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Certificates and public keys in a text: see public.h. What stands there must decode to one;
 * the line that says so is no reason.
 */
#include "common/mem.h"
#include "vessel/gate/decode/decode_priv.h"
#include "vessel/gate/decode/public.h"

#include <stdlib.h>
#include <string.h>

#define BODY_MAX ((size_t)96 << 10) /* letters: a certificate of 64 KiB */
#define LABEL_MAX 40
#define REST_MAX 8 /* padding, and the checksum of PGP */
#define SSH_MIN 64
#define SIGNIFY_LETTERS 56
#define COMMENT_MAX 160

struct finder {
	const char *s;
	size_t len;
	char *out; /* room for what BODY_MAX letters are */
	struct gate_stretches found;
	size_t cap;
};

static void add(struct finder *f, size_t start, size_t end)
{
	if (f->found.n == f->cap) {
		f->cap = f->cap * 2 + 8;
		f->found.one = xreallocarray(f->found.one, f->cap, sizeof(*f->found.one));
	}
	f->found.one[f->found.n++] = (struct gate_stretch){start, end};
}

/* Between letters of a body: its lines' ends, and what quotes or indents a line. */
static size_t between(const char *s, size_t len)
{
	if (len > 1 && s[0] == '\\' && (s[1] == 'n' || s[1] == 'r' || s[1] == 't'))
		return 2;
	return memchr(" \t\r\n\"',>|#\\", s[0], 11) != NULL;
}

/* Base64 from s on, over lines, up to what is none of it: bytes in f->out. *ret_used is where
 * it ended. */
static size_t decode(struct finder *f, const char *s, size_t len, size_t *ret_used)
{
	unsigned bits = 0, have = 0;
	size_t n = 0, i = 0, skip;

	while (i < len && n < BODY_MAX / 4 * 3) {
		unsigned v = gate_values64[(unsigned char)s[i]];

		if (v) {
			bits = (bits << 6 | (v - 1)) & 0xffffff;
			have += 6;
			i++;
		} else if ((skip = between(s + i, len - i)) > 0) {
			i += skip;
		} else {
			break;
		}
		if (have >= 8) {
			have -= 8;
			f->out[n++] = (char)(bits >> have);
		}
	}
	*ret_used = i;
	return n;
}

/* Letters and signs that are not only between letters. */
static size_t signs(const char *s, size_t len)
{
	size_t n = 0, skip;

	for (size_t i = 0; i < len; i += skip ? skip : 1) {
		skip = between(s + i, len - i);
		n += skip == 0;
	}
	return n;
}

static bool ends_in(const char *s, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && memcmp(s + len - n, end, n) == 0;
}

/* "Version: 1", "Comment: x" below the first line of PGP, up to a line that has none. */
static size_t skip_headers(const char *s, size_t len)
{
	size_t at = 0;

	while (at < len && (s[at] == '\n' || s[at] == '\r'))
		at++;
	for (;;) {
		const char *nl = memchr(s + at, '\n', len - at);
		size_t line = nl ? (size_t)(nl - s) - at : 0;

		if (!nl || !memmem(s + at, line, ": ", 2))
			return at;
		at += line + 1;
	}
}

/* The block whose "-----BEGIN " is at `at`; where to go on. */
static size_t take_block(struct finder *f, size_t at)
{
	static const char begin[] = "-----BEGIN ", end[] = "-----END ";
	const char *label = f->s + at + strlen(begin), *stop = f->s + f->len, *body,
		   *close;
	size_t room = (size_t)(stop - label), n_label, used, n;

	close = memmem(label, room < LABEL_MAX ? room : LABEL_MAX, "-----", 5);
	if (!close)
		return at + strlen(begin);
	n_label = (size_t)(close - label);
	body = close + 5;
	if (!ends_in(label, n_label, "CERTIFICATE") &&
	    !ends_in(label, n_label, "PUBLIC KEY") &&
	    !ends_in(label, n_label, "PUBLIC KEY BLOCK"))
		return (size_t)(body - f->s);
	close = memmem(body, (size_t)(stop - body), "-----", 5);
	if (!close || (size_t)(stop - close) < strlen(end) ||
	    memcmp(close, end, strlen(end)) != 0)
		return close ? (size_t)(close - f->s) : f->len;
	if (ends_in(label, n_label, "BLOCK"))
		body += skip_headers(body, (size_t)(close - body));
	n = decode(f, body, (size_t)(close - body), &used);
	if (gate_is_public(f->out, n) &&
	    signs(body + used, (size_t)(close - body) - used) <= REST_MAX)
		add(f, (size_t)(body - f->s), (size_t)(close - f->s));
	return (size_t)(close - f->s);
}

/* A run of letters from `at` on that is a key by itself. */
static size_t take_ssh(struct finder *f, size_t at)
{
	size_t end = at, used;

	while (end < f->len &&
	       (gate_values64[(unsigned char)f->s[end]] || f->s[end] == '='))
		end++;
	if (end - at >= SSH_MIN && end - at <= BODY_MAX &&
	    gate_is_public(f->out, decode(f, f->s + at, end - at, &used)))
		add(f, at, end);
	return end;
}

/* "untrusted comment: minisign public key ...", and the next line. */
static size_t take_signify(struct finder *f, size_t at)
{
	static const char what[] = "public key";
	size_t room = f->len - at < COMMENT_MAX ? f->len - at : COMMENT_MAX;
	size_t from, end, used;
	const char *said = memmem(f->s + at, room, what, strlen(what)), *nl, *written;

	if (!said)
		return at + 1;
	room -= (size_t)(said - f->s) - at;
	written = memmem(said, room, "\\n", 2);
	nl = memchr(said, '\n', written ? (size_t)(written - said) : room);
	if (!nl && !written)
		return at + 1;
	/* the letter of an escape looks like the first one of the key */
	from = (size_t)((nl ? nl : written) - f->s);
	at = from + (nl ? 1 : 2);
	while (at < f->len && f->s[at] == ' ')
		at++;
	for (end = at; end < f->len && gate_values64[(unsigned char)f->s[end]];)
		end++;
	if (end - at == SIGNIFY_LETTERS &&
	    decode(f, f->s + at, end - at, &used) == SIGNIFY_LETTERS / 4 * 3 &&
	    memcmp(f->out, "Ed", 2) == 0)
		add(f, from, end);
	return end;
}

static void each(struct finder *f, const char *sign,
		 size_t (*take)(struct finder *, size_t))
{
	const char *at = f->s;

	while ((at = memmem(at, f->len - (size_t)(at - f->s), sign, strlen(sign))) !=
	       NULL) {
		if (!f->out)
			f->out = xmalloc(BODY_MAX);
		at = f->s + take(f, (size_t)(at - f->s));
	}
}

static int by_start(const void *a, const void *b)
{
	const struct gate_stretch *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

struct gate_stretches gate_find_public(const char *s, size_t len)
{
	struct finder f = {.s = s, .len = len};

	each(&f, "-----BEGIN ", take_block);
	each(&f, "AAAA", take_ssh);
	each(&f, "untrusted comment:", take_signify);
	if (f.found.n)
		qsort(f.found.one, f.found.n, sizeof(*f.found.one), by_start);
	free(f.out);
	return f.found;
}
