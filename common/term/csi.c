/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See csi.h.
 */
#include "common/term/csi.h"

#include "common/term/table.h"
#include <string.h>

#define VALUE_DIGITS_MAX 5
#define SGR_DIGITS_MAX 3
#define SGR_PARTS_MAX 8
#define UNDERLINE_PARTS_MAX 5

bool term_csi_read(const char *text, size_t size, struct term_csi *ret)
{
	size_t i = 0, n = 0;

	if (size == 0)
		return false;
	size--; /* its final */
	if (size && text[0] >= '<' && text[0] <= '?')
		ret->id[n++] = text[i++];
	ret->params = text + i;
	while (i < size && text[i] >= '0' && text[i] <= ';')
		i++;
	ret->n_params = (size_t)(text + i - ret->params);
	for (; i < size; i++) {
		if (text[i] < ' ' || text[i] > '/' || n == sizeof(ret->id) - 2)
			return false;
		ret->id[n++] = text[i];
	}
	ret->id[n++] = text[size];
	ret->id[n] = '\0';
	return true;
}

bool term_csi_values(const struct term_csi *csi, uint32_t *values, size_t *ret_n)
{
	unsigned digits = 0;

	*ret_n = 0;
	if (csi->n_params == 0)
		return true;
	values[(*ret_n)++] = 0;
	for (size_t i = 0; i < csi->n_params; i++) {
		char c = csi->params[i];

		if (c == ';') {
			if (*ret_n == TERM_CSI_VALUES_MAX)
				return false;
			values[(*ret_n)++] = digits = 0;
			continue;
		}
		if (c == ':' || ++digits > VALUE_DIGITS_MAX)
			return false;
		values[*ret_n - 1] = values[*ret_n - 1] * 10 + (uint32_t)(c - '0');
	}
	return true;
}

/* ---- what is written ---------------------------------------------------------- */

/* A sequence with something in it. */
struct list {
	const char *prefix;
	char *out;
	size_t n;
};

static void put(struct list *l, const char *s, size_t n)
{
	memcpy(l->out + l->n, s, n);
	l->n += n;
}

static void put_digits(struct list *l, uint32_t v)
{
	char digits[10];
	size_t i = sizeof(digits);

	do {
		digits[--i] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	put(l, digits + i, sizeof(digits) - i);
}

static void put_number(struct list *l, uint32_t v)
{
	if (l->n) {
		put(l, ";", 1);
	} else {
		put(l, "\x1b[", 2);
		put(l, l->prefix, strlen(l->prefix));
	}
	put_digits(l, v);
}

static size_t put_final(struct list *l, char final)
{
	if (l->n)
		put(l, &final, 1);
	return l->n;
}

/* ---- a list of numbers -------------------------------------------------------- */

/* What stands between two ';': a number, and its parts behind ':'. An empty one is 0. */
struct field {
	const char *at, *end;
	unsigned digits_max;
	uint32_t v[SGR_PARTS_MAX];
	unsigned n;
};

/* False: there is none left, or what comes is none. */
static bool next(struct field *f)
{
	unsigned digits = 0;

	if (f->at > f->end)
		return false;
	f->v[0] = 0;
	for (f->n = 1; f->at < f->end && *f->at != ';'; f->at++) {
		if (*f->at == ':') {
			if (f->n == SGR_PARTS_MAX)
				return false;
			f->v[f->n++] = digits = 0;
			continue;
		}
		if (++digits > f->digits_max)
			return false;
		f->v[f->n - 1] = f->v[f->n - 1] * 10 + (uint32_t)(*f->at - '0');
	}
	f->at++;
	return true;
}

/* 58, the colour of the underline, is read and not written. */
static bool put_colour(struct list *l, uint32_t which, const uint32_t *v, unsigned n)
{
	if (which == 58)
		return true;
	for (unsigned i = 0; i < n; i++)
		if (v[i] > UINT8_MAX)
			return false;
	put_number(l, which);
	put_number(l, n == 1 ? 5 : 2);
	for (unsigned i = 0; i < n; i++)
		put_number(l, v[i]);
	return true;
}

/* "38:5:N", "38:2:R:G:B", "38:2:SPACE:R:G:B" */
static void colour_of_parts(struct field *f, struct list *l)
{
	if (f->v[1] == 5 && f->n == 3)
		(void)put_colour(l, f->v[0], &f->v[2], 1);
	else if (f->v[1] == 2 && (f->n == 5 || f->n == 6))
		(void)put_colour(l, f->v[0], &f->v[f->n - 3], 3);
}

/* "38;5;N", "38;2;R;G;B". False: the list can't be read any further. */
static bool colour_of_list(struct field *f, struct list *l)
{
	uint32_t which = f->v[0], v[3];
	unsigned n;

	if (!next(f) || f->n > 1 || (f->v[0] != 5 && f->v[0] != 2))
		return false;
	n = f->v[0] == 5 ? 1 : 3;
	for (unsigned i = 0; i < n; i++) {
		if (!next(f) || f->n > 1)
			return false;
		v[i] = f->v[0];
	}
	return put_colour(l, which, v, n);
}

/* "4:3", a curly underline; in a log it is a plain one. */
static void underline(const struct field *f, bool is_log, struct list *l)
{
	if (is_log) {
		put_number(l, f->v[0]);
	} else if (f->n == 2 && f->v[1] <= UNDERLINE_PARTS_MAX) {
		put_number(l, f->v[0]);
		put(l, ":", 1);
		put_digits(l, f->v[1]);
	}
}

size_t term_csi_sgr(const struct term_csi *csi, bool is_log, char *out)
{
	struct field f = {.at = csi->params,
			  .end = csi->params + csi->n_params,
			  .digits_max = SGR_DIGITS_MAX};
	struct list l = {.prefix = "", .out = out};
	bool more = true;

	while (more && next(&f)) {
		const struct term_rule *rule = term_rule_find(TERM_OF_SGR, NULL, f.v, 1);
		bool is_colour = f.v[0] == 38 || f.v[0] == 48 || f.v[0] == 58;

		if (is_colour && f.n > 1)
			colour_of_parts(&f, &l);
		else if (is_colour)
			more = colour_of_list(&f, &l);
		else if (!rule || (is_log && !rule->is_in_logs))
			continue;
		else if (f.n == 1)
			put_number(&l, f.v[0]);
		else if (f.v[0] == 4)
			underline(&f, is_log, &l);
	}
	return put_final(&l, 'm');
}

size_t term_csi_modes(const struct term_csi *csi, char *out)
{
	bool is_dec = csi->id[0] == '?';
	struct field f = {.at = csi->params,
			  .end = csi->params + csi->n_params,
			  .digits_max = VALUE_DIGITS_MAX};
	struct list l = {.prefix = is_dec ? "?" : "", .out = out};

	while (next(&f))
		if (f.n == 1 &&
		    term_rule_find(is_dec ? TERM_OF_DEC : TERM_OF_MODE, NULL, f.v, 1))
			put_number(&l, f.v[0]);
	return put_final(&l, is_dec ? csi->id[1] : csi->id[0]);
}
