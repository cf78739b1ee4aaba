/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See git_refs.h.
 */
#include "vessel/broker/intents/git_refs.h"

#include "common/cleanup.h"
#include "common/str.h"

#include <stdio.h>
#include <string.h>

#define SERVICE "001f# service=git-receive-pack\n0000"
#define VERSION "000eversion 1\n"
#define DIGITS 4
#define OID_DIGITS 40
#define OID256_DIGITS 64
#define LINE_MAX_BYTES 65520
#define HELD_MAX_BYTES ((size_t)2 * LINE_MAX_BYTES)
#define WORD_MAX_BYTES 512

void git_refs_done(struct git_refs *r)
{
	buf_done(&r->held);
}

static int refuse(enum reason *why, struct err *err, const char *text)
{
	return reason_set(why, REASON_REPLY_TEXT, err,
			  "what git's server says before a push: %s", text);
}

/* Does it begin so? 0: not yet known. */
static int starts(const struct buf *b, size_t at, const char *text)
{
	size_t n = strlen(text), have = b->len - at < n ? b->len - at : n;

	if (memcmp(b->data + at, text, have) != 0)
		return -1;
	return have == n;
}

/* Where the first line of refs begins, and how long it is with its digits. 0: more is needed. */
static int find_line(const struct buf *b, size_t *ret_at, size_t *ret_len)
{
	size_t at = strlen(SERVICE), n = 0;
	int r = starts(b, 0, SERVICE);

	if (r <= 0)
		return r;
	r = starts(b, at, VERSION);
	if (r == 0)
		return 0;
	at += r > 0 ? strlen(VERSION) : 0;
	if (b->len - at < DIGITS)
		return 0;
	for (size_t i = 0; i < DIGITS; i++) {
		int digit = hex_digit_value(b->data[at + i]);

		if (digit < 0)
			return -1;
		n = n * 16 + (size_t)digit;
	}
	if (n <= DIGITS || n > LINE_MAX_BYTES)
		return -1;
	*ret_at = at;
	*ret_len = n;
	return b->len - at >= n;
}

static bool is_kept(const char *word, size_t len)
{
	static const char *const dropped[] = {"push-cert=", "push-options", "no-thin"};

	for (size_t i = 0; i < ARRAY_SIZE(dropped); i++)
		if (len >= strlen(dropped[i]) &&
		    memcmp(word, dropped[i], strlen(dropped[i])) == 0)
			return false;
	return true;
}

/* The digits of the id at s, of which len bytes are there, with a blank behind it. */
static size_t id_digits(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && hex_digit_value(s[n]) >= 0)
		n++;
	return n < len && s[n] == ' ' ? n : 0;
}

static int refuse_ids(enum reason *why, struct err *err)
{
	return refuse(why, err,
		      "the ids of its objects are not SHA-1's, and only such a push can "
		      "be read");
}

/* Words with blanks between, into words with one before each. */
static int add_words(const char *s, size_t len, struct buf *out, enum reason *why,
		     struct err *err)
{
	static const char format[] = "object-format=";

	while (len > 0) {
		const char *blank = memchr(s, ' ', len);
		size_t n = blank ? (size_t)(blank - s) : len;

		if (n > WORD_MAX_BYTES || str_has_control(s, n))
			return refuse(why, err, "a capability that is none");
		if (n > strlen(format) && memcmp(s, format, strlen(format)) == 0 &&
		    (n != strlen(format) + 4 || memcmp(s + n - 4, "sha1", 4) != 0))
			return refuse_ids(why, err);
		if (n > 0 && is_kept(s, n)) {
			buf_addc(out, ' ');
			buf_add(out, s, n);
		}
		n += blank ? 1 : 0;
		s += n;
		len -= n;
	}
	return 0;
}

/* "ID REF", a NUL, what it can do. line: without its digits. */
static int write_line(const char *line, size_t len, struct buf *out, enum reason *why,
		      struct err *err)
{
	const char *nul = memchr(line, '\0', len);
	size_t before = nul ? (size_t)(nul - line) : 0, behind;
	char digits[DIGITS + 1];
	size_t at = out->len;

	if (id_digits(line, before) == OID256_DIGITS)
		return refuse_ids(why, err);
	if (before <= OID_DIGITS + 1 || id_digits(line, before) != OID_DIGITS)
		return refuse(why, err, "it has no first line with what it can do");
	behind = len - before - 1;
	behind -= behind > 0 && line[len - 1] == '\n';
	buf_adds(out, "0000");
	buf_add(out, line, before + 1);
	if (add_words(nul + 1, behind, out, why, err) < 0)
		return -1;
	buf_adds(out, " no-thin\n");
	if (!buf_ok(out) || out->len - at > LINE_MAX_BYTES ||
	    str_fmt(digits, sizeof(digits), "%04zx", out->len - at) < 0)
		return refuse(why, err, "its first line is too long");
	memcpy(out->data + at, digits, DIGITS);
	return 0;
}

/* As a server says it (gitprotocol-pack): "ERR" and a text. */
static void tell(struct git_refs *r, struct buf *out, const struct err *err)
{
	char text[1024];
	int n = snprintf(text, sizeof(text), "ERR %s: %s: %s\n%s\n", err_text(err),
			 err_title(err), err->msg, err_hint(err));

	r->is_refused = true;
	buf_done(&r->held);
	if (n < 0 || (size_t)n >= sizeof(text))
		text[sizeof(text) - 1] = '\0';
	buf_addf(out, SERVICE "%04zx%s", DIGITS + strlen(text), text);
}

/* When it is there. -1: it may not go on, and nothing of it did. */
static int write_first(struct git_refs *r, const void *data, size_t len, struct buf *out,
		       enum reason *ret_reason, struct err *err)
{
	cleanup_buf struct buf line = {0};
	size_t at = 0, n = 0;
	int found;

	r->held.max = HELD_MAX_BYTES + len;
	buf_add(&r->held, data, len);
	if (!buf_ok(&r->held))
		return refuse(ret_reason, err, "it is too long");
	found = find_line(&r->held, &at, &n);
	if (found < 0)
		return refuse(ret_reason, err, "it does not begin as git's");
	if (found == 0)
		return 0;
	buf_init(&line, HELD_MAX_BYTES);
	if (write_line(r->held.data + at + DIGITS, n - DIGITS, &line, ret_reason, err) <
	    0)
		return -1;
	buf_add(out, r->held.data, at);
	buf_add(out, line.data, line.len);
	buf_add(out, r->held.data + at + n, r->held.len - at - n);
	r->is_written = true;
	buf_done(&r->held);
	return 0;
}

void git_refs_feed(struct git_refs *r, const void *data, size_t len, struct buf *out,
		   enum reason *ret_reason, struct err *err)
{
	if (r->is_written)
		buf_add(out, data, len);
	else if (!r->is_refused && write_first(r, data, len, out, ret_reason, err) < 0)
		tell(r, out, err);
}

void git_refs_end(struct git_refs *r, struct buf *out, enum reason *ret_reason,
		  struct err *err)
{
	if (r->is_written || r->is_refused)
		return;
	(void)refuse(ret_reason, err, "it ends early");
	tell(r, out, err);
}
