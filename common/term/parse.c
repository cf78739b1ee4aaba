/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See parse.h.
 */
#include "common/term/parse.h"

#define BEL 0x07
#define CAN 0x18
#define SUB 0x1a
#define ESC 0x1b
#define DEL 0x7f
/* of the console's "ESC ] P", which has no end */
#define PALETTE_DIGITS 7

/* Strings last. */
enum { IN_TEXT, IN_ESCAPE, IN_CSI, IN_STRING, IN_OSC, IN_PALETTE };

static void begin(struct term_parser *p, unsigned char state)
{
	p->state = state;
	p->n = 0;
	p->need = 0;
}

static void token_of(struct term_token *t, enum term_token_kind kind, const char *text,
		     size_t size)
{
	t->kind = kind;
	t->text = text;
	t->size = size;
}

static void control(struct term_token *t, unsigned char c)
{
	t->kind = TERM_CONTROL;
	t->value = c;
}

/* ---- UTF-8 ------------------------------------------------------------------ */

/* What a C1 control begins. */
static void begin_c1(struct term_parser *p)
{
	switch (p->value) {
	case 0x9b:
		begin(p, IN_CSI);
		break;
	case 0x9d:
		begin(p, IN_OSC);
		break;
	case 0x90: /* DCS */
	case 0x98: /* SOS */
	case 0x9e: /* PM */
	case 0x9f: /* APC */
		begin(p, IN_STRING);
		break;
	default:
		break;
	}
}

static void character(struct term_parser *p, struct term_token *t)
{
	bool is_c1 = p->value >= 0x80 && p->value <= 0x9f;

	if (p->state != IN_TEXT) {
		if (p->value == 0x9c)
			begin(p, IN_TEXT);
	} else if (is_c1 && !p->is_by_line) {
		begin_c1(p);
	} else {
		t->kind = TERM_CHARACTER;
		t->value = p->value;
	}
}

static void broken(struct term_parser *p, struct term_token *t)
{
	p->need = 0;
	if (p->state == IN_TEXT)
		token_of(t, TERM_BROKEN, p->raw, p->n_raw);
}

/* A byte above 0x7f, in text or in a string. */
static bool high_byte(struct term_parser *p, unsigned char c, struct term_token *t)
{
	if (p->need) {
		if (c < p->low || c > p->high) {
			broken(p, t);
			return true;
		}
		p->raw[p->n_raw++] = (char)c;
		p->value = p->value << 6 | (c & 0x3fu);
		p->low = 0x80;
		p->high = 0xbf;
		if (--p->need == 0)
			character(p, t);
		return false;
	}
	p->raw[0] = (char)c;
	p->n_raw = 1;
	p->need = c >= 0xc2 && c <= 0xdf   ? 1
		  : c >= 0xe0 && c <= 0xef ? 2
		  : c >= 0xf0 && c <= 0xf4 ? 3
					   : 0;
	p->low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
	p->high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
	p->value = c & (0x3fu >> p->need);
	if (!p->need)
		broken(p, t);
	return false;
}

/* ---- sequences --------------------------------------------------------------- */

static void collect(struct term_parser *p, unsigned char c)
{
	if (p->n < sizeof(p->text))
		p->text[p->n] = (char)c;
	if (p->n <= sizeof(p->text))
		p->n++;
}

static void finish(struct term_parser *p, unsigned char c, enum term_token_kind kind,
		   struct term_token *t)
{
	collect(p, c);
	if (p->n <= sizeof(p->text))
		token_of(t, kind, p->text, p->n);
	p->state = IN_TEXT;
}

static void escape_byte(struct term_parser *p, unsigned char c, struct term_token *t)
{
	if (p->n == 0 && c == '[') {
		begin(p, IN_CSI);
	} else if (p->n == 0 && c == ']') {
		begin(p, IN_OSC);
	} else if (p->n == 0 && (c == 'P' || c == 'X' || c == '^' || c == '_' ||
				 c == 'k' || c == '!')) {
		begin(p, IN_STRING); /* k, !: title and message of screen and tmux */
	} else if (c >= 0x20 && c <= 0x2f) {
		collect(p, c);
	} else {
		finish(p, c, TERM_ESCAPE, t);
	}
}

static bool is_hex(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Linux' console sets and resets its palette by strings without an end (console_codes(4)): with
 * TERM=linux a program's text stands right behind them. */
static bool is_palette(struct term_parser *p, unsigned char c)
{
	if (p->state == IN_OSC && p->n == 0 && (c == 'P' || c == 'R')) {
		begin(p, c == 'P' ? IN_PALETTE : IN_TEXT);
		return true;
	}
	if (p->state != IN_PALETTE)
		return false;
	if (!is_hex(c) || ++p->n == PALETTE_DIGITS)
		begin(p, IN_TEXT);
	return true;
}

static bool string_byte(struct term_parser *p, unsigned char c)
{
	p->need = 0;
	if (c == '\n' && p->is_by_line) {
		begin(p, IN_TEXT);
		return true;
	}
	if (is_palette(p, c))
		return false;
	if (c == BEL && (p->state == IN_OSC || p->is_by_line))
		begin(p, IN_TEXT);
	p->n = 1;
	return false;
}

/* A byte up to 0x7f, behind ESC or CSI. */
static void sequence_byte(struct term_parser *p, unsigned char c, struct term_token *t)
{
	if (c < 0x20)
		control(t, c);
	else if (c == DEL)
		t->kind = TERM_NOTHING;
	else if (p->state == IN_ESCAPE)
		escape_byte(p, c, t);
	else if (c <= 0x3f)
		collect(p, c);
	else
		finish(p, c, TERM_CSI, t);
}

bool term_parse(struct term_parser *p, unsigned char c, struct term_token *ret)
{
	*ret = (struct term_token){.kind = TERM_NOTHING};
	if (c >= 0x80) {
		if (p->state == IN_ESCAPE || p->state == IN_CSI) {
			begin(p, IN_TEXT);
			return true;
		}
		if (p->state == IN_OSC)
			p->n = 1;
		return high_byte(p, c, ret);
	}
	if (p->state == IN_TEXT && p->need) {
		broken(p, ret);
		return true;
	}
	if (c == ESC) {
		begin(p, IN_ESCAPE);
	} else if (c == CAN || c == SUB) {
		begin(p, IN_TEXT);
		control(ret, c);
	} else if (p->state >= IN_STRING) {
		return string_byte(p, c);
	} else if (p->state != IN_TEXT) {
		sequence_byte(p, c, ret);
	} else if (c < 0x20 || c == DEL) {
		control(ret, c);
	} else {
		ret->kind = TERM_CHARACTER;
		ret->value = c;
	}
	return false;
}
