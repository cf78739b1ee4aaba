/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * See fold.h.
 */
#include "vessel/gate/text/fold.h"
#include "common/attr.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "vessel/gate/text/runs.h"
#include <ctype.h>
#include <string.h>

/* ---- escapes --------------------------------------------------------------------- */

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Exactly n digits at s. */
static bool hex_digits(const char *s, size_t len, size_t n, uint32_t *ret)
{
	uint32_t v = 0;

	if (len < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		int d = hex_value(s[i]);

		if (d < 0)
			return false;
		v = v << 4 | (uint32_t)d;
	}
	*ret = v;
	return true;
}

static size_t entity_at(const char *s, size_t len, uint32_t *ret)
{
	static const struct {
		const char *name;
		char is;
	} named[] = {
		{"amp;", '&'},	  {"lt;", '<'},	    {"gt;", '>'},     {"quot;", '"'},
		{"apos;", '\''},  {"commat;", '@'}, {"period;", '.'}, {"nbsp;", ' '},
		{"colon;", ':'},  {"sol;", '/'},    {"lowbar;", '_'}, {"hyphen;", '-'},
		{"equals;", '='}, {"plus;", '+'},   {"num;", '#'},    {"dollar;", '$'},
	};
	uint32_t v = 0;
	size_t i = 2;
	bool is_hex;

	if (len > 3 && s[1] == '#') {
		is_hex = (s[2] | 0x20) == 'x';
		for (i = is_hex ? 3 : 2; i < len && i < 12; i++) {
			int d = hex_value(s[i]);

			if (d < 0 || (!is_hex && d > 9))
				break;
			v = v * (is_hex ? 16 : 10) + (uint32_t)d;
		}
		if (i == (is_hex ? 3U : 2U) || v > 0x10ffff)
			return 0;
		*ret = v;
		return i < len && s[i] == ';' ? i + 1 : i;
	}
	for (size_t k = 0; k < ARRAY_SIZE(named); k++) {
		size_t n = strlen(named[k].name);

		if (len > n && memcmp(s + 1, named[k].name, n) == 0) {
			*ret = (unsigned char)named[k].is;
			return n + 1;
		}
	}
	return 0;
}

/* {1F600}: up to eight digits. */
static size_t braced_at(const char *s, size_t len, uint32_t *ret)
{
	size_t n = 1;

	while (n < len && n <= 8 && hex_value(s[n]) >= 0)
		n++;
	if (len == 0 || s[0] != '{' || n == 1 || n == len || s[n] != '}' ||
	    !hex_digits(s + 1, n - 1, n - 1, ret) || *ret > 0x10ffff)
		return 0;
	return n + 1;
}

/* A text with escapes that was itself written as one, as JSON within JSON is: `\\u0041`. */
#define BACKSLASHES_MAX 8
#define LETTERS_MIN 16 /* of a line */

static size_t backslash_at(const char *s, size_t len, uint32_t *ret)
{
	uint32_t low;
	size_t n, more = 0;

	while (more < BACKSLASHES_MAX && more + 2 < len && s[more + 1] == '\\')
		more++;
	if (more && s[more + 1] == '\\')
		return 0;
	if (more) {
		n = backslash_at(s + more, len - more, ret);
		return n > 2 ? n + more : 0;
	}
	if (len < 2)
		return 0;
	n = s[1] == 'x' || s[1] == 'u' ? braced_at(s + 2, len - 2, ret) : 0;
	if (n)
		return n + 2;
	switch (s[1]) {
	case '"':
	case '/':
		*ret = (unsigned char)s[1];
		return 2;
	case 'x':
		return hex_digits(s + 2, len - 2, 2, ret) ? 4 : 0;
	case 'U':
		return hex_digits(s + 2, len - 2, 8, ret) && *ret <= 0x10ffff ? 10 : 0;
	case 'u':
		if (!hex_digits(s + 2, len - 2, 4, ret))
			return 0;
		if (*ret >= 0xd800 && *ret < 0xdc00 && len >= 12 && s[6] == '\\' &&
		    s[7] == 'u' && hex_digits(s + 8, len - 8, 4, &low) && low >= 0xdc00 &&
		    low < 0xe000) {
			*ret = 0x10000 + ((*ret & 0x3ff) << 10 | (low & 0x3ff));
			return 12;
		}
		return 6;
	default:
		return 0;
	}
}

/* The escape at s: how many bytes it takes, 0 when there is none. is_byte: *ret is a byte
 * of an encoding and no character. */
static size_t escape_at(const char *s, size_t len, uint32_t *ret, bool *is_byte)
{
	*is_byte = false;
	if (s[0] == '%' && len > 1 &&
	    (s[1] | 0x20) == 'u') /* as escape() of ECMAScript */
		return hex_digits(s + 2, len - 2, 4, ret) ? 6 : 0;
	if (s[0] == '%') {
		*is_byte = true;
		return hex_digits(s + 1, len - 1, 2, ret) ? 3 : 0;
	}
	if (s[0] == '&')
		return entity_at(s, len, ret);
	return s[0] == '\\' ? backslash_at(s, len, ret) : 0;
}

/* ---- the walk -------------------------------------------------------------------- */

struct walk {
	struct gate_folded *f;
	unsigned how;
	bool is_after_blank;
	uint32_t last;	 /* the character or byte of what was folded last, */
	size_t last_end; /* and its end in the text */
	char last_sign;	 /* and its first byte there */
};

static void put_byte(struct walk *w, char c, size_t from)
{
	if (w->how & FOLD_CASE) {
		if (isspace((unsigned char)c)) {
			if (w->is_after_blank)
				return;
			c = ' ';
		}
		w->is_after_blank = c == ' ';
		c = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
	}
	w->f->map[w->f->len] = (uint32_t)from;
	w->f->data[w->f->len++] = c;
}

static void put_character(struct walk *w, uint32_t c, size_t from)
{
	char utf8[4];
	uint32_t to = w->how & FOLD_SHAPES ? gate_fold_one(c) : GATE_FOLD_SAME;
	size_t n;

	if (to == GATE_FOLD_DROP && c != 0)
		return;
	if (to == GATE_FOLD_SAME && c >= 0x80 && w->how & FOLD_LETTERS)
		to = gate_fold_letter(c);
	n = utf8_put(to == GATE_FOLD_SAME ? c : to, utf8);
	for (size_t i = 0; i < n; i++)
		put_byte(w, utf8[i], from);
}

/* Bytes that are written one after the other, each behind `sign` (%41, \x41), may be one character
 * of UTF-8: how many there are. */
static size_t bytes_at(const char *s, size_t len, const char *sign, char out[4])
{
	size_t head = strlen(sign), n = 0;
	uint32_t v;

	while (n < 4 && len > head && memcmp(s, sign, head) == 0 &&
	       hex_digits(s + head, len - head, 2, &v)) {
		out[n++] = (char)v;
		s += head + 2;
		len -= head + 2;
		if (n == 1 && v < 0xc0)
			break;
	}
	return n;
}

/* What stands for a blank at s: how many bytes, 0 when nothing does. */
static size_t form_blank_at(const char *s, size_t len)
{
	if (s[0] == '+')
		return 1;
	return len > 1 && s[0] == '\\' && s[1] && strchr("nrt", s[1]) ? 2 : 0;
}

static bool is_of_word(char c)
{
	return c && (isalnum((unsigned char)c) || strchr("+/_=-", c));
}

/* In a JSON string: the end of a line of base64 or hex. How many bytes; 0: none is there. Other lines
 * may be what they look like. */
static size_t line_end_at(const char *s, size_t len, size_t i)
{
	size_t n = len - i >= 4 && memcmp(s + i, "\\r\\n", 4) == 0 ? 4
		   : len - i >= 2 && memcmp(s + i, "\\n", 2) == 0  ? 2
								   : 0;

	for (size_t k = 1; n && k <= LETTERS_MIN; k++)
		if (k > i || !is_of_word(s[i - k]))
			return 0;
	return n;
}

bool gate_begins_packed(uint32_t a, uint32_t b)
{
	return (a == 0x1f && b == 0x8b) ||
	       (a == 0x78 && (b == 1 || b == '^' || b == 0x9c || b == 0xda));
}

static unsigned kind_of(char sign)
{
	return sign == '%'    ? FOLD_PERCENT
	       : sign == '\\' ? FOLD_BACKSLASH
	       : sign == '&'  ? FOLD_REFERENCE
			      : 0;
}

/* What stands before s[i]. */
static uint32_t before(const struct walk *w, const char *s, size_t i)
{
	return i == 0 ? 0 : w->last_end == i ? w->last : (unsigned char)s[i - 1];
}

/* `c` is at [i, i + n) of s: a stream may begin with it and with what is before it. */
static void note_packed(struct walk *w, const char *s, size_t i, size_t n, uint32_t c)
{
	unsigned kind = kind_of(s[i]);

	if (gate_begins_packed(before(w, s, i), c)) {
		kind |= w->last_end == i ? kind_of(w->last_sign) : 0;
		kind |= kind & FOLD_PERCENT && c < 0x80 ? FOLD_UTF8 : 0;
		w->f->packed |= kind ? kind : FOLD_BYTES;
	}
	w->f->escapes |= n > 1 ? kind_of(s[i]) : 0;
	w->last = c;
	w->last_end = i + n;
	w->last_sign = s[i];
}

/* The one byte that a backslash and a letter stand for; -1: none. */
static int control_at(const char *s, size_t len)
{
	static const char letters[] = "nrtbfva\\\"'/", is[] = "\n\r\t\b\f\v\a\\\"'/";
	const char *at = len > 1 && s[0] == '\\' && s[1] ? strchr(letters, s[1]) : NULL;

	return at ? is[at - letters] : -1;
}

/* A byte that became a character, and its UTF-8 escapes: how many bytes, 0 when there is none. */
static size_t utf8_escape_at(const char *s, size_t len, uint32_t *ret)
{
	char bytes[4] = {0};
	size_t n = utf8_get_lax(bytes, bytes_at(s, len, "%", bytes), ret);

	return *ret <= UINT8_MAX ? 3 * n : 0;
}

/* FOLD_BYTES */
static size_t byte_step(struct walk *w, const char *s, size_t len, size_t i)
{
	bool is_escape = (w->how & kind_of(s[i])) != 0, is_byte;
	int control = is_escape ? control_at(s + i, len - i) : -1;
	uint32_t c = 0;
	size_t n = 0;

	if (control >= 0) {
		w->f->had_nested |= control == '\\' && len - i > 2 &&
				    (s[i + 2] == 'u' || s[i + 2] == 'x');
		put_byte(w, (char)control, i);
		return 2;
	}
	if (w->how & FOLD_FORM && s[i] == '+') {
		put_byte(w, ' ', i);
		return 1;
	}
	if (w->how & FOLD_UTF8)
		n = utf8_escape_at(s + i, len - i, &c);
	if (n == 0 && is_escape)
		n = escape_at(s + i, len - i, &c, &is_byte);
	else if (n == 0 && (unsigned char)s[i] >= 0x80)
		n = utf8_get_lax(s + i, len - i, &c);
	put_byte(w, n && c <= UINT8_MAX ? (char)c : s[i], i);
	return n && c <= UINT8_MAX ? n : 1;
}

static size_t step(struct walk *w, const char *s, size_t len, size_t i)
{
	uint32_t c = 0;
	bool is_byte;
	size_t n = w->how & FOLD_ESCAPES ? escape_at(s + i, len - i, &c, &is_byte) : 0;
	char bytes[4] = {0};
	size_t used;

	if (w->how & FOLD_BYTES)
		return byte_step(w, s, len, i);
	if (w->how & FOLD_FORM && (used = form_blank_at(s + i, len - i)) > 0) {
		put_byte(w, ' ', i);
		return used;
	}
	if (w->how & FOLD_ESCAPES && (used = line_end_at(s, len, i)) > 0) {
		w->f->had_escapes = true;
		put_byte(w, '\n', i);
		return used;
	}
	if (n && is_byte) {
		uint32_t head = before(w, s, i);

		note_packed(w, s, i, n, c);
		used = utf8_get_lax(bytes, bytes_at(s + i, len - i, "%", bytes), &c);
		w->f->packed |= used > 1 && gate_begins_packed(head, c) ? FOLD_UTF8 : 0;
		w->f->had_escapes = true;
		if (used == 0) {
			put_byte(w, bytes[0], i);
			return 3;
		}
		w->f->had_unseen |= gate_is_unseen(c);
		put_character(w, c, i);
		return used * 3;
	}
	if (n) {
		note_packed(w, s, i, n, c);
		/* what else it would be is a character below U+0100 */
		used = c >= 0xc0 && n == 4 ? bytes_at(s + i, len - i, "\\x", bytes) : 0;
		used = used ? utf8_get_lax(bytes, used, &c) : 0;
		w->f->had_escapes = true;
		w->f->had_unseen |= gate_is_unseen(c);
		put_character(w, c, i);
		return used ? used * 4 : n;
	}
	n = (unsigned char)s[i] < 0x80 ? 0 : utf8_get_lax(s + i, len - i, &c);
	note_packed(w, s, i, n ? n : 1, n ? c : 0);
	if (n == 0) {
		put_byte(w, s[i], i);
		return 1;
	}
	put_character(w, c, i);
	return n;
}

/* Bytes that stay as they are whatever is folded: `+` only as a form has it. */
static size_t plain_run(unsigned how, const char *s, size_t len)
{
	static const struct gate_stops special = {.one = "%&\\\\", .above = 0x7f};
	static const struct gate_stops of_form = {.one = "%&\\+", .above = 0x7f};

	return gate_next_stop(how & FOLD_FORM ? &of_form : &special, s, len, 0);
}

/* The first place from `i` on that does not stay as it is; len: none. */
static size_t next_change(const char *s, size_t len, size_t i)
{
	for (; i < len; i++) {
		uint32_t c;
		bool is_byte;
		size_t n;

		if ((unsigned char)s[i] < 0x80)
			i += plain_run(0, s + i, len - i);
		if (i == len)
			break;
		if ((unsigned char)s[i] < 0x80) {
			if (escape_at(s + i, len - i, &c, &is_byte) ||
			    line_end_at(s, len, i))
				break;
			continue;
		}
		n = utf8_get_lax(s + i, len - i, &c);
		if (n && (gate_fold_one(c) != GATE_FOLD_SAME ||
			  (i && gate_begins_packed((unsigned char)s[i - 1], c))))
			break;
		i += n ? n - 1 : 0;
	}
	return i;
}

static void begin(struct gate_folded *f, size_t room)
{
	*f = (struct gate_folded){0};
	f->data = xmalloc(room);
	f->map = xreallocarray(NULL, room, sizeof(*f->map));
}

/* s[from, to), an escape at its end whole; returns where it stopped. */
static size_t fold_range(struct walk *w, const char *s, size_t len, size_t from,
			 size_t to)
{
	struct gate_folded *f = w->f;
	size_t before = f->len, i = from;

	while (i < to) {
		size_t plain = w->how & FOLD_CASE ? 0 : plain_run(w->how, s + i, to - i);

		uint32_t *map = f->map + f->len;

		memcpy(f->data + f->len, s + i, plain);
		for (size_t k = 0; k < plain; k++)
			map[k] = (uint32_t)(i + k);
		f->len += plain;
		i += plain;
		if (i < to)
			i += step(w, s, len, i);
	}
	f->changed |= f->len - before != i - from ||
		      memcmp(f->data + before, s + from, i - from) != 0;
	return i;
}

void gate_fold(const char *s, size_t len, unsigned how, struct gate_folded *ret)
{
	struct walk w = {.f = ret, .how = how, .is_after_blank = true};

	begin(ret, len + 8);
	(void)fold_range(&w, s, len, 0, len);
	ret->map[ret->len] = (uint32_t)len;
}

/* A piece begins and ends where a word does: half a digest is none, and looks like a secret. A word
 * that is too long is cut. */
static size_t begin_of_word(const char *s, size_t at, size_t least)
{
	size_t i = at;

	while (i > least && is_of_word(s[i - 1]))
		i--;
	return i;
}

static size_t end_of_word(const char *s, size_t at, size_t most)
{
	size_t i = at;

	while (i < most && is_of_word(s[i]))
		i++;
	return i;
}

void gate_fold_around(const char *s, size_t len, size_t around, struct gate_folded *ret)
{
	struct walk w = {.f = ret, .how = FOLD_ESCAPES | FOLD_SHAPES};
	size_t at = next_change(s, len, 0), done = 0;

	begin(ret, at < len ? len + len / around * 2 + 16 : 1);
	while (at < len) {
		size_t from = at - done > around ? at - around : done;
		size_t most, to, next = at;

		from = begin_of_word(s, from,
				     from - done > around ? from - around : done);

		/* changes that are near each other are of one piece */
		do {
			to = len - next > around ? next + around : len;
			most = len - to > around ? to + around : len;
			to = end_of_word(s, to, most);
			next = next_change(s, len, next + 1);
		} while (next < len && next <= to);
		if (ret->len) {
			/* what ends the piece before it ends there, not here */
			ret->map[ret->len] = (uint32_t)done;
			ret->data[ret->len++] = '\n';
		}
		/* the last escape of it may go on over where another could begin */
		done = fold_range(&w, s, len, from, to);
		at = next < done ? next_change(s, len, done) : next;
	}
	ret->map[ret->len] = (uint32_t)(ret->len ? done : 0);
}

size_t gate_fold_ways(const struct gate_folded *f, unsigned how[GATE_FOLD_WAYS_MAX])
{
	unsigned all = f->packed | f->escapes;
	size_t n = 0;

	if (!f->packed)
		return 0;
	if (f->packed & FOLD_BYTES)
		all |= FOLD_BACKSLASH; /* JSON */
	for (unsigned way = FOLD_BYTES; way <= FOLD_UTF8; way <<= 1)
		if (all & way)
			how[n++] = FOLD_BYTES | way;
	if (all & FOLD_PERCENT)
		how[n++] = FOLD_BYTES | FOLD_PERCENT | FOLD_FORM;
	how[n++] = FOLD_BYTES | all;
	return n;
}

void gate_folded_done(struct gate_folded *f)
{
	free(f->data);
	free(f->map);
	*f = (struct gate_folded){0};
}
