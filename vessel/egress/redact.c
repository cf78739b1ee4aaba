/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * Theory of operation. A form is a string; at each place of the text every form is tried,
 * one of its characters for one unit of the text, a unit being a byte or one escape of it.
 * No form has a '%' or a '\' in it, so a unit is read in one way only and a match needs no
 * way back. A key may have a '&': each form is tried with references of HTML and without. A trial ends as no match, as a match of so many characters, or open: the
 * text ended while everything agreed. Where a trial is open the text from there on
 * waits for more, which is never longer than the longest form in its longest escapes.
 * What had to go out before it was decided stays as if it waited, and is not written twice.
 */
#include "vessel/egress/redact.h"

#include "common/base64.h"
#include "common/crypto/locked.h"
#include "common/str.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define FORM_MAX (4 * (REDACT_SECRET_MAX + 2) / 3 + 4)
#define PREFIX_BYTES 8
#define REFERENCE_MAX 10     /* "&#x000002f;" is longer: nobody writes it */
#define COMMON_PREFIX_MAX 16 /* a vendor's own part ends with '-' or '_' within it */
#define EDGE_MAX 16	     /* letters of base64 that begin with two given bits */

struct form {
	char text[FORM_MAX];
	size_t len;
	size_t min; /* so many of its characters are a match */
	bool is_base64;
	/* Of base64: the letters that may follow the whole of it, of which the secret has decided two or
	 * four bits. */
	char edge[EDGE_MAX + 1];
};

struct redact {
	struct form form[7]; /* raw, 3 of base64, 3 of base64url */
	unsigned n;
	bool begins[256]; /* bytes with which a match can begin */
};

static void wipe_buf(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap);
	buf_done(b);
}

static size_t count_of(const char *s, size_t max, const char *set)
{
	size_t n = 0;

	while (n < max && s[n] && strchr(set, s[n]))
		n++;
	return n;
}

/* Of a vendor's words, as of "sk-ant-api03-", "tgp_v1_" and "sk-None-", the length of the first, with what
 * ends it; 0: it is none. Two letters or more of one case, but the first may be large; behind small ones, or a v
 * alone, a number of two digits. Of chance there are longer parts between two signs, with digits and both cases
 * in them. */
static size_t word_at(const char *s, size_t max)
{
	static const char lower[] = "abcdefghijklmnopqrstuvwxyz",
			  upper[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", digits[] = "0123456789";
	size_t large = count_of(s, max, upper);
	size_t n = large < 2 ? large + count_of(s + large, max - large, lower) : large;

	if (large == 0 && n > 0 && (n > 1 || s[0] == 'v'))
		n += count_of(s + n, max - n < 2 ? max - n : 2, digits);
	return n > 1 && n < max && (s[n] == '-' || s[n] == '_') ? n + 1 : 0;
}

static size_t min_prefix(const char *secret, size_t len)
{
	size_t max = len < COMMON_PREFIX_MAX ? len : COMMON_PREFIX_MAX;
	size_t common = 0, min;

	for (size_t n; (n = word_at(secret + common, max - common)) > 0;)
		common += n;
	min = common + PREFIX_BYTES;
	return min < len ? min : len;
}

/* What the letter behind the core may be: it has the last bits of the secret, and others. */
static void set_edge(struct form *f, size_t bytes, char letter)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		"0123456789+/";
	size_t bits = 8 * bytes % 6, n = bits ? (size_t)1 << (6 - bits) : 0;
	const char *first = strchr(letters, letter);

	assert(n == 0 || first);
	for (size_t i = 0; i < n; i++)
		f->edge[i] = first[i];
	f->edge[n] = '\0';
}

static void to_url(char *text)
{
	for (; *text; text++)
		*text = *text == '+' ? '-' : *text == '/' ? '_' : *text;
}

/* The characters of base64 that the secret alone decides when `before` other bytes
 * stand in front of it in the group of three. */
static void add_base64(struct redact *r, const char *secret, size_t len, size_t before,
		       bool url)
{
	size_t from = (8 * before + 5) / 6, to = 8 * (before + len) / 6;
	struct form *f = &r->form[r->n];
	char plain[REDACT_SECRET_MAX + 2] = {0};
	struct buf b;

	buf_init(&b, FORM_MAX);
	memcpy(plain + before, secret, len);
	base64_add(&b, plain, before + len);
	assert(buf_ok(&b) && to <= b.len && to > from);
	memcpy(f->text, b.data + from, to - from);
	f->len = to - from;
	f->text[f->len] = '\0';
	f->is_base64 = true;
	f->min = 8 * (before + min_prefix(secret, len)) / 6 - from;
	set_edge(f, before + len, to < b.len ? b.data[to] : '\0');
	explicit_bzero(plain, sizeof(plain));
	wipe_buf(&b);
	if (!url) {
		r->n++;
		return;
	}
	to_url(f->text);
	to_url(f->edge);
	/* Most have neither character: it is one that is there already. */
	if (!str_eq(f->text, r->form[1 + before].text) ||
	    !str_eq(f->edge, r->form[1 + before].edge))
		r->n++;
}

int redact_new(const char *secret, size_t len, struct redact **ret, struct err *err)
{
	struct redact *r;
	void *memory;

	if (len < REDACT_SECRET_MIN || len > REDACT_SECRET_MAX)
		return err_set_id(err, ERRID_EGRESS_SECRET,
				  "it has not 8 to 512 characters");
	for (size_t i = 0; i < len; i++)
		if (secret[i] <= ' ' || secret[i] >= 0x7f ||
		    strchr(KEY_SIGNS_REFUSED, secret[i]))
			return err_set_id(err, ERRID_EGRESS_SECRET,
					  "a character in it is of no token");
	if (locked_new(sizeof(*r), &memory, err) < 0)
		return -1;
	r = memory;
	memcpy(r->form[0].text, secret, len);
	r->form[0].len = len;
	r->form[0].min = min_prefix(secret, len);
	r->n = 1;
	for (size_t before = 0; before < 3; before++)
		add_base64(r, secret, len, before, false);
	for (size_t before = 0; before < 3; before++)
		add_base64(r, secret, len, before, true);
	for (unsigned i = 0; i < r->n; i++)
		r->begins[(unsigned char)r->form[i].text[0]] = true;
	r->begins['%'] = r->begins['\\'] = r->begins['&'] = true;
	*ret = r;
	return 0;
}

void redact_free(struct redact *r)
{
	locked_free(r, sizeof(*r));
}

/* ---- matching ---- */

enum unit { UNIT_NO, UNIT_YES, UNIT_OPEN };

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The hex digits of c, `zeros` zeros in front, at text. */
static enum unit match_hex(const char *text, size_t len, char c, unsigned zeros)
{
	for (unsigned i = 0; i < zeros + 2; i++) {
		int want = i < zeros ? 0 : i == zeros ? (c >> 4) & 15 : c & 15;

		if (i >= len)
			return UNIT_OPEN;
		if (hex_value(text[i]) != want)
			return UNIT_NO;
	}
	return UNIT_YES;
}

/* The name of c at text, which is behind the '&'. */
static enum unit match_name(const char *text, size_t len, char c, size_t *ret_used)
{
	static const struct {
		char c;
		const char *name;
	} names[] = {
		{'&', "amp;"},	  {'<', "lt;"},	    {'>', "gt;"},     {'\'', "apos;"},
		{'+', "plus;"},	  {'=', "equals;"}, {'/', "sol;"},    {'_', "lowbar;"},
		{'$', "dollar;"}, {'.', "period;"}, {':', "colon;"},  {'!', "excl;"},
		{'#', "num;"},	  {'*', "ast;"},    {'@', "commat;"}, {'`', "grave;"}};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t n = strlen(names[i].name);

		if (names[i].c != c ||
		    memcmp(text, names[i].name, len < n ? len : n) != 0)
			continue;
		*ret_used = 1 + n;
		return len < n ? UNIT_OPEN : UNIT_YES;
	}
	return UNIT_NO;
}

/* A reference of HTML to the character c, as pages of errors write signs: &#43; &#x2f; &amp; */
static enum unit match_reference(const char *text, size_t len, char c, size_t *ret_used)
{
	unsigned base = 10, value = 0;
	size_t i = 2;

	if (len == 1)
		return UNIT_OPEN;
	if (text[1] != '#')
		return match_name(text + 1, len - 1, c, ret_used);
	if (i < len && (text[i] | 0x20) == 'x') {
		base = 16;
		i++;
	}
	for (; i < REFERENCE_MAX - 1 && i < len && text[i] != ';'; i++) {
		int digit = hex_value(text[i]);

		if (digit < 0 || digit >= (int)base)
			return UNIT_NO;
		value = value * base + (unsigned)digit;
	}
	*ret_used = i + 1;
	if (i == len)
		return UNIT_OPEN;
	return text[i] == ';' && value == (unsigned char)c ? UNIT_YES : UNIT_NO;
}

/* One unit of text for the character c; *ret_used is its width when it is one. */
static enum unit match_unit(const char *text, size_t len, char c, bool is_html,
			    size_t *ret_used)
{
	if (len == 0)
		return UNIT_OPEN;
	if (is_html && text[0] == '&') {
		enum unit u = match_reference(text, len, c, ret_used);

		if (u != UNIT_NO)
			return u;
	}
	*ret_used = 1;
	if (text[0] == c)
		return UNIT_YES;
	*ret_used = 3;
	if (text[0] == '%')
		return match_hex(text + 1, len - 1, c, 0);
	if (text[0] != '\\')
		return UNIT_NO;
	if (len == 1)
		return UNIT_OPEN;
	*ret_used = 6;
	if (text[1] == 'u')
		return match_hex(text + 2, len - 2, c, 2);
	*ret_used = 4;
	if (text[1] == 'x')
		return match_hex(text + 2, len - 2, c, 0);
	*ret_used = 2;
	return c == '/' && text[1] == '/' ? UNIT_YES : UNIT_NO;
}

/* The letter behind a whole form, when it is one that may be. */
static size_t match_edge(const struct form *f, const char *text, size_t len, bool is_html,
			 bool *ret_open)
{
	for (const char *c = f->edge; *c; c++) {
		size_t used;
		enum unit u = match_unit(text, len, *c, is_html, &used);

		if (u == UNIT_OPEN)
			*ret_open = true;
		if (u == UNIT_YES)
			return used;
	}
	return 0;
}

/* Base64 goes on behind the end of a line, of a JSON string's too. */
static size_t line_end(const char *text, size_t len, bool *ret_open)
{
	static const char *const ends[] = {"\n", "\r\n", "\\n", "\\r\\n"};

	for (size_t i = 0; i < ARRAY_SIZE(ends) && len > 0; i++) {
		size_t n = strlen(ends[i]);

		if (memcmp(text, ends[i], len < n ? len : n) != 0)
			continue;
		if (len >= n)
			return n;
		*ret_open = true;
	}
	return 0;
}

/* Bytes of text that are the form or enough of its beginning, 0: none; *ret_open: it
 * depends on what follows. */
static size_t match_form(const struct form *f, const char *text, size_t len, bool is_html,
			 bool *ret_open)
{
	size_t at = 0, i = 0;

	for (; i < f->len; i++) {
		size_t used, end = 0;
		enum unit u;

		if (i && f->is_base64)
			end = line_end(text + at, len - at, ret_open);
		u = match_unit(text + at + end, len - at - end, f->text[i], is_html,
			       &used);
		if (u == UNIT_OPEN)
			*ret_open = true;
		if (u != UNIT_YES)
			break;
		at += end + used;
	}
	if (i == f->len) {
		size_t end = f->is_base64 ? line_end(text + at, len - at, ret_open) : 0;
		size_t edge =
			match_edge(f, text + at + end, len - at - end, is_html, ret_open);

		at += edge ? end + edge : 0;
	}
	return i >= f->min ? at : 0;
}

static size_t match(const struct redact *r, const char *text, size_t len, bool *ret_open)
{
	size_t best = 0;

	*ret_open = false;
	for (unsigned i = 0; i < 2 * r->n; i++) {
		size_t n = match_form(&r->form[i / 2], text, len, i % 2, ret_open);

		best = n > best ? n : best;
	}
	return best;
}

/* ---- the stream ---- */

void redact_begin(struct redact_stream *s, const struct redact *what)
{
	*s = (struct redact_stream){.what = what};
	buf_init(&s->held, REDACT_HELD_MAX);
}

/* text[from..to) without what went out already. */
static void put(const struct redact_stream *s, const char *text, size_t from, size_t to,
		struct buf *out)
{
	from = from < s->gone ? s->gone : from;
	if (from < to)
		buf_add(out, text + from, to - from);
}

/* So many bytes, with a mark in front where it has the room. */
static void fill(size_t n, bool has_mark, struct buf *out)
{
	size_t i = has_mark && n >= strlen(REDACT_MARK) ? strlen(REDACT_MARK) : 0;

	buf_add(out, REDACT_MARK, i);
	for (; i < n; i++)
		buf_addc(out, '*');
}

/* A match of text[at..end): one mark, also when it began in what went out. */
static void mark(struct redact_stream *s, size_t at, size_t end, size_t len,
		 struct buf *out)
{
	bool is_new = at >= s->gone || !s->marked;

	if (end <= s->gone)
		return;
	if (s->keeps_length)
		fill(end - (at < s->gone ? s->gone : at), is_new, out);
	else if (is_new)
		buf_adds(out, REDACT_MARK);
	s->hits += is_new;
	s->ends_in_mark = end == len;
}

/* Adds what is decided to out; returns how many bytes of text that was. */
static size_t scan(struct redact_stream *s, const char *text, size_t len, bool last,
		   struct buf *out)
{
	size_t at = 0, from = 0; /* of what was not written yet */

	while (at < len) {
		size_t n;
		bool open;

		if (!s->what->begins[(unsigned char)text[at]]) {
			at++;
			continue;
		}
		n = match(s->what, text + at, len - at, &open);
		if (open && !last)
			break;
		if (n == 0) {
			at++;
			continue;
		}
		put(s, text, from, at, out);
		mark(s, at, at + n, len, out);
		at += n;
		from = at;
	}
	put(s, text, from, at, out);
	return at;
}

static void forget(struct redact_stream *s)
{
	buf_reset(&s->held);
	s->gone = 0;
	s->marked = false;
}

void redact_feed(struct redact_stream *s, const void *data, size_t len, struct buf *out)
{
	const char *p = data;

	if (!s->what) {
		buf_add(out, data, len);
		return;
	}
	/* What is held is joined with as much as a match could need, until none is held. */
	while (s->held.len > 0 && len > 0) {
		size_t room = REDACT_HELD_MAX - s->held.len;
		size_t n = len < room ? len : room, old = s->held.len, done;

		buf_add(&s->held, p, n);
		done = scan(s, s->held.data, s->held.len, false, out);
		assert(buf_ok(&s->held) && (done > 0 || n == len));
		if (done >= old) {
			/* the rest is of the new bytes: go on in them */
			p += done - old;
			len -= done - old;
			forget(s);
			break;
		}
		p += n;
		len -= n;
		buf_consume(&s->held, done);
		s->gone = s->gone > done ? s->gone - done : 0;
	}
	if (len > 0 && s->held.len == 0) {
		size_t done = scan(s, p, len, false, out);

		buf_add(&s->held, p + done, len - done);
		assert(buf_ok(&s->held));
	}
}

size_t redact_held(const struct redact_stream *s)
{
	return s->held.len - s->gone;
}

void redact_release(struct redact_stream *s, struct buf *out)
{
	if (redact_held(s) == 0)
		return;
	s->ends_in_mark = false;
	(void)scan(s, s->held.data, s->held.len, true, out);
	s->gone = s->held.len;
	s->marked = s->ends_in_mark;
}

void redact_end(struct redact_stream *s, struct buf *out)
{
	redact_release(s, out);
	forget(s);
}

void redact_done(struct redact_stream *s)
{
	wipe_buf(&s->held);
}
