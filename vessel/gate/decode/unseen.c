/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Characters that show nothing and stand for bytes: Unicode's tags (U+E0000 to U+E00FF, by their
 * last byte) and variation selectors (VS1 to VS256: 0 to 255).
 *
 * fold.c drops both, so that they hide nothing of the text that they stand in. Here it is the
 * other way round: they are read and the text is not, as a text of its own. Once each run of them
 * by itself, which nothing else in the text can spoil; and once all of them one behind the other,
 * when there are several, for whoever strews them between plain letters. What stands behind
 * an emoji or is a flag is left out there: else each would be a part of what was found.
 */
#include "common/attr.h"
#include "common/text/ignorable.h"
#include "common/utf8.h"
#include "vessel/gate/decode/decode_priv.h"
#include "vessel/gate/text/fold.h"
#include "vessel/gate/text/runs.h"
#include <string.h>

#define UNSEEN_MIN 4 /* bytes: what is shorter is no term, either */
#define PRESENTS_TEXT 14
#define PRESENTS_EMOJI 15
#define FLAG_LETTERS 5

/* What of one kind stands in s[from, to), with nothing that shows between it. */
struct run {
	size_t from, to, n;
	char head[FLAG_LETTERS];
};

/* The byte that the character stands for; -1: for none. */
static int byte_of(enum gate_encoding e, uint32_t c)
{
	return e == GATE_SELECTORS ? gate_selector_byte(c) : gate_tag_byte(c);
}

/* The next character that stands for a byte, from *at on, which is moved behind it. */
static bool next_byte(enum gate_encoding e, const char *s, size_t len, size_t *at,
		      size_t *ret_from, int *ret)
{
	static const struct gate_stops first = {.one = {0xef, 0xf3, 0xf3, 0xf3},
						.above = UINT8_MAX};

	for (size_t i = *at;;) {
		uint32_t c;
		size_t n;

		i = gate_next_stop(&first, s, len, i);
		if (i == len)
			return false;
		n = utf8_get_lax(s + i, len - i, &c);
		if (n && (*ret = byte_of(e, c)) >= 0) {
			*ret_from = i;
			*at = i + n;
			return true;
		}
		i += n ? n : 1;
	}
}

/* The end of a flag ends a run: what stands behind it is no part of the flag. */
static bool shows_nothing(const char *s, size_t len)
{
	for (size_t i = 0, n; i < len; i += n) {
		uint32_t c;

		n = utf8_get_lax(s + i, len - i, &c);
		if (n == 0 || !is_ignorable(c) || c == GATE_CANCEL_TAG)
			return false;
	}
	return true;
}

static bool next_run(enum gate_encoding e, const char *s, size_t len, size_t *at,
		     struct run *ret)
{
	size_t next, from;
	int byte;

	if (!next_byte(e, s, len, at, &ret->from, &byte))
		return false;
	ret->to = next = *at;
	ret->head[0] = (char)byte;
	ret->n = 1;
	while (next_byte(e, s, len, &next, &from, &byte) &&
	       shows_nothing(s + ret->to, from - ret->to)) {
		if (ret->n < FLAG_LETTERS)
			ret->head[ret->n] = (char)byte;
		ret->n++;
		ret->to = next;
	}
	*at = ret->to;
	return true;
}

/* is_strewn: without the signs that say how an emoji looks; no text has these bytes. */
static void put_run(enum gate_encoding e, const char *s, const struct run *run,
		    bool is_strewn, struct gate_decoded *d)
{
	size_t at = run->from, from;
	int byte;

	if (!decoded_reserve(d, run->n))
		return;
	while (next_byte(e, s, run->to, &at, &from, &byte))
		if (!is_strewn || e != GATE_SELECTORS ||
		    (byte != PRESENTS_TEXT && byte != PRESENTS_EMOJI))
			d->data[d->len++] = (char)byte;
}

/* The sign behind an emoji that says how it looks; the three flags that are made of tags. */
static bool is_ordinary(enum gate_encoding e, const struct run *run)
{
	static const char flags[][FLAG_LETTERS + 1] = {"gbeng", "gbsct", "gbwls"};

	if (e == GATE_SELECTORS)
		return run->n == 1 &&
		       (run->head[0] == PRESENTS_TEXT || run->head[0] == PRESENTS_EMOJI);
	for (size_t i = 0; run->n == FLAG_LETTERS && i < ARRAY_SIZE(flags); i++)
		if (memcmp(run->head, flags[i], FLAG_LETTERS) == 0)
			return true;
	return false;
}

/* Of the bytes since `out`; they came from s[src, src + src_len). `before`: where d ends without
 * them. Whatever they are somebody has written them so: nothing else looks like it by chance. */
static void keep(struct gate_decoded *d, size_t before, size_t out, size_t src,
		 size_t src_len)
{
	if (!d->too_large && d->len - out >= UNSEEN_MIN)
		decoded_end(d, out, src, src_len);
	else
		d->len = before;
}

void gate_decode_unseen(enum gate_encoding e, const char *s, size_t len,
			struct gate_decoded *d)
{
	size_t at = 0, runs = 0, before, out, begin = len, end = 0;
	struct run run;

	/* Most texts have no such character, and memchr() is the fastest to say so. */
	if (len == 0 ||
	    (!memchr(s, 0xf3, len) && (e == GATE_TAGS || !memchr(s, 0xef, len))))
		return;
	while (!d->too_large && next_run(e, s, len, &at, &run)) {
		before = d->len;
		if (!is_ordinary(e, &run)) {
			runs++;
			begin = run.from < begin ? run.from : begin;
			end = run.to;
		}
		if (run.n < UNSEEN_MIN)
			continue;
		out = decoded_begin(d);
		put_run(e, s, &run, false, d);
		keep(d, before, out, run.from, run.to - run.from);
	}
	if (runs < 2 || d->too_large)
		return;
	before = d->len;
	out = decoded_begin(d);
	for (at = begin; !d->too_large && next_run(e, s, end, &at, &run);)
		if (!is_ordinary(e, &run))
			put_run(e, s, &run, true, d);
	keep(d, before, out, begin, end - begin);
}
