/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * See pkt.h.
 */
#include "vessel/gate/git/pkt.h"

#include "common/str.h"
#include "common/utf8.h"

#include <string.h>

#define DIGITS 4
#define OID_DIGITS 40
#define OID256_DIGITS 64

static bool is_small_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static int no_line(struct err *err, const char *why)
{
	return err_set_id(err, ERRID_GIT_REQUEST, "a line of git's protocol: %s", why);
}

static int take_length(struct pkt_reader *r, size_t *ret, struct err *err)
{
	size_t n = 0;

	if (r->left < DIGITS)
		return no_line(err, "it ends early");
	for (size_t i = 0; i < DIGITS; i++) {
		if (!is_small_hex(r->at[i]))
			return no_line(err, "its length is no number");
		n = n * 16 + (size_t)hex_digit_value(r->at[i]);
	}
	r->at += DIGITS;
	r->left -= DIGITS;
	*ret = n;
	return 0;
}

int pkt_next(struct pkt_reader *r, enum pkt_kind *ret_kind, const char **ret,
	     size_t *ret_len, struct err *err)
{
	size_t n = 0;

	*ret = NULL;
	*ret_len = 0;
	*ret_kind = PKT_END;
	if (r->left == 0)
		return 0;
	if (take_length(r, &n, err) < 0)
		return -1;
	if (n <= 1) {
		*ret_kind = n == 0 ? PKT_FLUSH : PKT_DELIM;
		return 0;
	}
	if (n <= DIGITS || n - DIGITS > PKT_MAX_BYTES)
		return no_line(err, "no line is that long");
	n -= DIGITS;
	if (n > r->left)
		return no_line(err, "it ends early");
	*ret_kind = PKT_LINE;
	*ret = r->at;
	*ret_len = r->at[n - 1] == '\n' ? n - 1 : n;
	r->at += n;
	r->left -= n;
	return 0;
}

bool pkt_is(struct pkt_line l, const char *text)
{
	return l.len == strlen(text) && memcmp(l.s, text, l.len) == 0;
}

bool pkt_skip(struct pkt_line *l, const char *prefix)
{
	size_t n = strlen(prefix);

	if (l->len < n || memcmp(l->s, prefix, n) != 0)
		return false;
	l->s += n;
	l->len -= n;
	return true;
}

bool pkt_is_oid(struct pkt_line l)
{
	if (l.len != OID_DIGITS && l.len != OID256_DIGITS)
		return false;
	for (size_t i = 0; i < l.len; i++)
		if (!is_small_hex(l.s[i]))
			return false;
	return true;
}

bool pkt_is_number(struct pkt_line l, uint64_t max)
{
	uint64_t n = 0;

	if (l.len == 0 || (l.len > 1 && l.s[0] == '0'))
		return false;
	for (size_t i = 0; i < l.len; i++) {
		unsigned digit = (unsigned)(l.s[i] - '0');

		if (digit > 9 || n > (max - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	return true;
}

bool pkt_is_word(struct pkt_line l, size_t max)
{
	return l.len > 0 && l.len <= max && !str_has_control(l.s, l.len) &&
	       !memchr(l.s, ' ', l.len) && utf8_is_valid(l.s, l.len);
}
