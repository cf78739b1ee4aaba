/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See registry_json.h.
 */
#include "vessel/broker/intents/registry_json.h"
#include "common/jsonw.h"
#include "common/str.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

enum json_within { IN_NOTHING, IN_STRING, IN_ESCAPE, IN_HEX, IN_NUMBER, IN_WORD };

enum json_next {
	N_PAGE,	   /* its one value, an object or an array */
	N_VALUE,   /* after a colon, or a comma of an array */
	N_ELEMENT, /* after '[': or its end */
	N_KEY,	   /* after a comma of an object */
	N_MEMBER,  /* after '{': or its end */
	N_COLON,
	N_MORE, /* a comma, or the end */
	N_NOTHING,
};

enum json_number {
	NUM_MINUS, /* a digit must come */
	NUM_ZERO,
	NUM_DIGITS,
	NUM_POINT, /* a digit must come */
	NUM_FRACTION,
	NUM_E,	    /* a sign or a digit must come */
	NUM_E_SIGN, /* a digit must come */
	NUM_EXPONENT,
};

static int bad(struct err *err, const char *what)
{
	return registry_no_index(err, what);
}

void registry_json_init(struct registry_json *j, const char *key,
			struct registry_held *link)
{
	assert(!key || strlen(key) * 6 <= REGISTRY_KEY_MAX);
	*j = (struct registry_json){.key = key, .link = link, .next = N_PAGE};
}

/* ---- strings ------------------------------------------------------------------- */

static unsigned hex4(const char *s)
{
	unsigned v = 0;

	for (int i = 0; i < 4; i++) {
		char c = s[i];

		if (!isxdigit((unsigned char)c))
			return 0;
		v = v * 16 + (unsigned)(isdigit((unsigned char)c)
						? c - '0'
						: tolower((unsigned char)c) - 'a' + 10);
	}
	return v;
}

/* Links, and the keys that they are found by, are ASCII: what only escapes can say beyond that
 * is none of ours. */
static bool unescape(const char *s, size_t len, char *out, size_t *ret_len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned u;

		if (s[i] != '\\') {
			out[n++] = s[i];
			continue;
		}
		i++;
		if (i < len && (s[i] == '/' || s[i] == '\\' || s[i] == '"')) {
			out[n++] = s[i];
			continue;
		}
		if (i + 4 >= len || s[i] != 'u')
			return false;
		u = hex4(s + i + 1);
		if (u < 0x20 || u > 0x7e)
			return false;
		out[n++] = (char)u;
		i += 4;
	}
	*ret_len = n;
	return true;
}

static void put_link(struct registry_json *j, struct buf *out)
{
	cleanup_buf struct buf mapped = {.max = REGISTRY_MAPPED_MAX};
	struct jsonw w;

	registry_held_map(j->link, unescape, &mapped);
	jsonw_init(&w, out);
	jsonw_strn(&w, buf_str(&mapped), mapped.len);
}

/* A backslash and what it stands before, as every reader of JSON has it: what one of them might
 * read otherwise could hide where a string ends. */
static int escape(struct registry_json *j, char c, struct err *err)
{
	if (j->within == IN_HEX) {
		if (!isxdigit((unsigned char)c))
			return bad(err, "an escape that JSON has not");
		j->within = --j->hex_left ? IN_HEX : IN_STRING;
		return 0;
	}
	if (j->within == IN_STRING) {
		j->within = c == '\\' ? IN_ESCAPE : IN_STRING;
		return 0;
	}
	if (!c || !strchr("\"\\/bfnrtu", c))
		return bad(err, "an escape that JSON has not");
	j->within = c == 'u' ? IN_HEX : IN_STRING;
	j->hex_left = 4;
	return 0;
}

/* A byte of a character, as RFC 3629 has them. */
static int utf8(struct registry_json *j, unsigned char c, struct err *err)
{
	if (j->more) {
		if (c < j->lo || c > j->hi)
			return bad(err, "text that is not UTF-8");
		j->more--;
		j->lo = 0x80;
		j->hi = 0xbf;
		return 0;
	}
	if (c < 0x80)
		return 0;
	if (c < 0xc2 || c > 0xf4)
		return bad(err, "text that is not UTF-8");
	j->more = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
	j->lo = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
	j->hi = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
	return 0;
}

static void value_over(struct registry_json *j)
{
	j->within = IN_NOTHING;
	j->armed = false;
	j->next = j->depth ? N_MORE : N_NOTHING;
}

/* A key is what its escapes say. */
static int key_over(struct registry_json *j, struct err *err)
{
	char key[REGISTRY_KEY_MAX];
	size_t len;

	j->within = IN_NOTHING;
	j->next = N_COLON;
	j->armed = j->name_len <= REGISTRY_KEY_MAX &&
		   unescape(j->name, j->name_len, key, &len) && len == strlen(j->key) &&
		   memcmp(key, j->key, len) == 0;
	if (!j->armed)
		return 0;
	/* which of the two counts is each reader's own choice */
	if (j->has_link[j->depth - 1])
		return bad(err, "a link's key that stands twice");
	j->has_link[j->depth - 1] = true;
	return 0;
}

static void name_add(struct registry_json *j, char c)
{
	if (j->name_len < REGISTRY_KEY_MAX)
		j->name[j->name_len] = c;
	if (j->name_len <= REGISTRY_KEY_MAX)
		j->name_len++;
}

static int in_string(struct registry_json *j, char c, struct buf *out, struct err *err)
{
	if ((unsigned char)c < 0x20)
		return bad(err, "a control byte");
	if (utf8(j, (unsigned char)c, err) < 0)
		return -1;
	if (c != '"' || j->within != IN_STRING) {
		if (escape(j, c, err) < 0)
			return -1;
		if (j->in_key)
			name_add(j, c);
		buf_addc(j->holding ? &j->link->text : out, c);
		return buf_ok(&j->link->text) ? 0 : bad(err, "a link that is too long");
	}
	if (j->holding) {
		put_link(j, out);
		j->holding = false;
	} else {
		buf_addc(out, c);
	}
	if (j->in_key)
		return key_over(j, err);
	value_over(j);
	return 0;
}

/* ---- numbers and words --------------------------------------------------------- */

/* The next byte of a number; false: it is none. */
static bool number_goes_on(struct registry_json *j, char c)
{
	static const enum json_number digit[] = {
		[NUM_MINUS] = NUM_DIGITS,      [NUM_ZERO] = NUM_ZERO,
		[NUM_DIGITS] = NUM_DIGITS,     [NUM_POINT] = NUM_FRACTION,
		[NUM_FRACTION] = NUM_FRACTION, [NUM_E] = NUM_EXPONENT,
		[NUM_E_SIGN] = NUM_EXPONENT,   [NUM_EXPONENT] = NUM_EXPONENT,
	};
	bool is_whole = j->number == NUM_ZERO || j->number == NUM_DIGITS;

	if (isdigit((unsigned char)c) && j->number != NUM_ZERO)
		j->number =
			(uint8_t)(j->number == NUM_MINUS && c == '0' ? NUM_ZERO
								     : digit[j->number]);
	else if (c == '.' && is_whole)
		j->number = NUM_POINT;
	else if ((c == 'e' || c == 'E') && (is_whole || j->number == NUM_FRACTION))
		j->number = NUM_E;
	else if ((c == '+' || c == '-') && j->number == NUM_E)
		j->number = NUM_E_SIGN;
	else
		return false;
	return true;
}

static bool number_is_whole(const struct registry_json *j)
{
	return j->number == NUM_ZERO || j->number == NUM_DIGITS ||
	       j->number == NUM_FRACTION || j->number == NUM_EXPONENT;
}

static int in_word(struct registry_json *j, char c, struct err *err)
{
	if (c != *j->word)
		return bad(err, "a word that JSON has not");
	if (!*++j->word)
		value_over(j);
	return 0;
}

/* ---- what is between ------------------------------------------------------------ */

static int opens(struct registry_json *j, char c, struct err *err)
{
	if (j->depth == REGISTRY_DEPTH_MAX)
		return bad(err, "too deep");
	/* a reader may take its text for the link */
	if (j->armed && c == '[')
		return bad(err, "a list where a link should be");
	j->armed = false;
	j->has_link[j->depth] = false;
	j->is_array[j->depth++] = c == '[';
	j->next = c == '[' ? N_ELEMENT : N_MEMBER;
	return 0;
}

static int closes(struct registry_json *j, char c, struct err *err)
{
	if (!j->depth || j->is_array[j->depth - 1] != (c == ']'))
		return bad(err, "brackets that do not match");
	j->depth--;
	value_over(j);
	return 0;
}

static void string_begins(struct registry_json *j, bool is_key)
{
	j->in_key = is_key;
	j->holding = !is_key && j->armed;
	j->armed = false;
	j->name_len = 0;
	j->within = IN_STRING;
}

static int value_begins(struct registry_json *j, char c, struct err *err)
{
	static const char *const words[] = {"true", "false", "null"};

	if (c == '{' || c == '[')
		return opens(j, c, err);
	if (j->next == N_PAGE)
		return bad(err, "neither an object nor an array");
	if (c == '"') {
		string_begins(j, false);
		return 0;
	}
	if (c == '-' || isdigit((unsigned char)c)) {
		j->within = IN_NUMBER;
		j->number = c == '-' ? NUM_MINUS : c == '0' ? NUM_ZERO : NUM_DIGITS;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (c == words[i][0]) {
			j->within = IN_WORD;
			j->word = words[i] + 1;
			return 0;
		}
	return bad(err, "a value is missing");
}

static int outside(struct registry_json *j, char c, struct err *err)
{
	switch ((enum json_next)j->next) {
	case N_ELEMENT:
		if (c == ']')
			return closes(j, c, err);
		return value_begins(j, c, err);
	case N_PAGE:
	case N_VALUE:
		return value_begins(j, c, err);
	case N_MEMBER:
		if (c == '}')
			return closes(j, c, err);
		break;
	case N_KEY:
		break;
	case N_COLON:
		if (c != ':')
			return bad(err, "a colon is missing");
		j->next = N_VALUE;
		return 0;
	case N_MORE:
		if (c == ',') {
			j->next = j->is_array[j->depth - 1] ? N_VALUE : N_KEY;
			return 0;
		}
		if (c != '}' && c != ']')
			return bad(err, "a comma is missing");
		return closes(j, c, err);
	case N_NOTHING:
		return bad(err, "something behind its end");
	}
	if (c != '"')
		return bad(err, "a key is missing");
	string_begins(j, true);
	return 0;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

int registry_json_byte(struct registry_json *j, char c, struct buf *out, struct err *err)
{
	int r = 0;

	if (j->within == IN_STRING || j->within == IN_ESCAPE || j->within == IN_HEX)
		return in_string(j, c, out, err);
	if (j->within == IN_NUMBER && !number_goes_on(j, c)) {
		if (!number_is_whole(j) || isdigit((unsigned char)c))
			return bad(err, "a number that JSON has not");
		value_over(j);
	}
	if (j->within == IN_WORD)
		r = in_word(j, c, err);
	else if (j->within == IN_NOTHING && !is_space(c))
		r = outside(j, c, err);
	if (r == 0 && !j->holding)
		buf_addc(out, c);
	return r;
}

int registry_json_end(const struct registry_json *j, struct err *err)
{
	return j->next == N_NOTHING ? 0 : bad(err, "it ends too early");
}
