/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See log_filter.h.
 */
#include "cli/ui/log_filter.h"

#include "cli/ui/glyph.h"
#include "common/attr.h"
#include "common/str.h"
#include "common/utf8.h"

#define SGR_DIGITS_MAX 3
#define SGR_PARTS_MAX 8

enum { F_TEXT, F_ESC, F_CSI, F_STRING, F_STRING_ESC, F_ESC_INTER };

/* ---- text ------------------------------------------------------------------ */

/* Before anything else is shown: a \r that was no half of \r\n. */
static void settle_return(struct log_filter *f, struct buf *out)
{
	if (f->returned && f->on_line) {
		buf_addc(out, '\n');
		f->on_line = false;
	}
	f->returned = false;
}

static void show_byte(struct log_filter *f, unsigned char c, struct buf *out)
{
	buf_addf(out, "\\x%02x", c);
	f->on_line = true;
}

static void flush_utf8(struct log_filter *f, struct buf *out)
{
	for (unsigned i = 0; i < f->n_utf8; i++)
		show_byte(f, f->utf8[i], out);
	f->n_utf8 = f->want_utf8 = 0;
}

/* A character is whole. */
static void show_utf8(struct log_filter *f, struct buf *out)
{
	uint32_t cp;

	if (!utf8_is_valid(f->utf8, f->n_utf8)) {
		flush_utf8(f, out);
		return;
	}
	cp = glyph_decode(f->utf8, f->n_utf8);
	if (glyph_is_dangerous(cp))
		buf_addf(out, "\\u{%x}", cp);
	else
		buf_add(out, f->utf8, f->n_utf8);
	f->n_utf8 = f->want_utf8 = 0;
	f->on_line = true;
}

static void start_utf8(struct log_filter *f, unsigned char c, struct buf *out)
{
	f->want_utf8 = glyph_len(c);
	if (f->want_utf8 < 2) {
		show_byte(f, c, out);
		return;
	}
	f->utf8[0] = c;
	f->n_utf8 = 1;
}

static void text_byte(struct log_filter *f, unsigned char c, struct buf *out)
{
	if (f->n_utf8 && (c & 0xc0) == 0x80) {
		f->utf8[f->n_utf8++] = c;
		if (f->n_utf8 == f->want_utf8)
			show_utf8(f, out);
		return;
	}
	flush_utf8(f, out);
	if (c == 0x1b) {
		f->state = F_ESC;
		return;
	}
	if (c == '\r') {
		f->returned = true;
		return;
	}
	if (c == '\n') {
		f->returned = f->on_line = false;
		buf_addc(out, '\n');
		return;
	}
	settle_return(f, out);
	if (c >= 0x80) {
		start_utf8(f, c, out);
	} else if ((c < 0x20 && c != '\t') || c == 0x7f) {
		show_byte(f, c, out);
	} else {
		buf_addc(out, (char)c);
		f->on_line = true;
	}
}

/* ---- SGR -------------------------------------------------------------------- */

/*
 * What is let through is written anew, in numbers without ':': terminals differ in what they
 * make of one that they do not know, and some go on to read its parts as numbers of their own.
 * For that reason too no other colour than 38 and 48 is taken (58 is, by few).
 */
static bool is_plain_sgr(unsigned n)
{
	static const struct {
		unsigned char from, to;
	} plain[] = {{0, 4},   {7, 7},	 {9, 9},   {21, 25},  {27, 37},
		     {39, 47}, {49, 49}, {90, 97}, {100, 107}};

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		if (n >= plain[i].from && n <= plain[i].to)
			return true;
	return false;
}

/* What stands between two ';': a number, and its parts behind ':'. An empty one is 0. */
struct sgr {
	const char *at, *end;
	unsigned v[SGR_PARTS_MAX], n;
};

/* False: there is none left, or what comes is none. */
static bool next_sgr(struct sgr *s)
{
	unsigned digits = 0;

	if (s->at > s->end)
		return false;
	s->v[0] = 0;
	for (s->n = 1; s->at < s->end && *s->at != ';'; s->at++) {
		if (*s->at == ':') {
			if (s->n == SGR_PARTS_MAX)
				return false;
			s->v[s->n++] = digits = 0;
			continue;
		}
		if (*s->at < '0' || *s->at > '9' || ++digits > SGR_DIGITS_MAX)
			return false;
		s->v[s->n - 1] = s->v[s->n - 1] * 10 + (unsigned)(*s->at - '0');
	}
	s->at++;
	return true;
}

static void add_number(struct buf *out, bool *any, unsigned n)
{
	buf_addf(out, "%s%u", *any ? ";" : "\x1b[", n);
	*any = true;
}

static bool add_colour(struct buf *out, bool *any, unsigned which, const unsigned *v,
		       unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (v[i] > UINT8_MAX)
			return false;
	add_number(out, any, which);
	add_number(out, any, n == 1 ? 5 : 2);
	for (unsigned i = 0; i < n; i++)
		add_number(out, any, v[i]);
	return true;
}

/* "38:5:N", "38:2:R:G:B", "38:2:SPACE:R:G:B" */
static void add_parts(struct sgr *s, struct buf *out, bool *any)
{
	if (s->v[1] == 5 && s->n == 3)
		(void)add_colour(out, any, s->v[0], &s->v[2], 1);
	else if (s->v[1] == 2 && (s->n == 5 || s->n == 6))
		(void)add_colour(out, any, s->v[0], &s->v[s->n - 3], 3);
}

/* "38;5;N", "38;2;R;G;B". False: the list can't be read any further. */
static bool add_list(struct sgr *s, struct buf *out, bool *any)
{
	unsigned which = s->v[0], v[3], n;

	if (!next_sgr(s) || s->n > 1 || (s->v[0] != 5 && s->v[0] != 2))
		return false;
	n = s->v[0] == 5 ? 1 : 3;
	for (unsigned i = 0; i < n; i++) {
		if (!next_sgr(s) || s->n > 1)
			return false;
		v[i] = s->v[0];
	}
	return add_colour(out, any, which, v, n);
}

/* Of a sequence that ends in m: what is left of it. */
static void add_sgr(struct log_filter *f, struct buf *out)
{
	struct sgr s = {.at = f->param, .end = f->param + f->n_param};
	bool any = false, more = true;

	while (more && next_sgr(&s)) {
		bool colour = s.v[0] == 38 || s.v[0] == 48;

		if (colour && s.n > 1)
			add_parts(&s, out, &any);
		else if (colour)
			more = add_list(&s, out, &any);
		else if (is_plain_sgr(s.v[0]) && (s.n == 1 || s.v[0] == 4))
			add_number(out, &any, s.v[0]);
	}
	if (any)
		buf_addc(out, 'm');
}

/* ---- escapes ----------------------------------------------------------------- */

static void csi_byte(struct log_filter *f, unsigned char c, struct buf *out)
{
	if (c >= 0x20 && c <= 0x3f) {
		if (f->n_param < sizeof(f->param))
			f->param[f->n_param] = (char)c;
		f->n_param++;
		return;
	}
	f->state = c == 0x1b ? F_ESC : F_TEXT;
	if (c == 'm' && f->n_param <= sizeof(f->param))
		add_sgr(f, out);
}

static void esc_byte(struct log_filter *f, unsigned char c)
{
	f->state = F_TEXT;
	if (c == '[') {
		f->state = F_CSI;
		f->n_param = 0;
	} else if (c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_') {
		f->state = F_STRING; /* OSC, DCS, SOS, PM, APC: dropped to their end */
	} else if (c >= 0x20 && c <= 0x2f) {
		f->state = F_ESC_INTER;
	} else if (c == 0x1b) {
		f->state = F_ESC;
	}
}

/* A line's end closes it too, so that a lost terminator hides one line only. */
static void string_byte(struct log_filter *f, unsigned char c, struct buf *out)
{
	if (c == 0x1b) {
		f->state = F_STRING_ESC;
	} else if (c == '\a') {
		f->state = F_TEXT;
	} else if (c == '\n') {
		f->state = F_TEXT;
		text_byte(f, c, out);
	}
}

void log_filter(struct log_filter *f, const void *data, size_t len, struct buf *out)
{
	const unsigned char *s = data;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = s[i];

		switch (f->state) {
		case F_ESC:
			esc_byte(f, c);
			break;
		case F_ESC_INTER:
			if (c < 0x20 || c > 0x2f)
				f->state = F_TEXT;
			break;
		case F_CSI:
			csi_byte(f, c, out);
			break;
		case F_STRING:
			string_byte(f, c, out);
			break;
		case F_STRING_ESC:
			if (c == '\\')
				f->state = F_TEXT;
			else
				esc_byte(f, c);
			break;
		case F_TEXT:
		default:
			text_byte(f, c, out);
			break;
		}
	}
}

void log_filter_end(struct log_filter *f, struct buf *out)
{
	flush_utf8(f, out);
	settle_return(f, out);
	buf_adds(out, "\x1b[0m");
	*f = (struct log_filter){0};
}
