/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Placeholders back to what they stood for, in a stream. What begins like a placeholder
 * and is cut by the end of a piece waits; anything else goes on at once. A reply is
 * hostile: a placeholder gives back only what this job itself had sent.
 */
#include "common/jsonw.h"
#include "common/mem.h"
#include "vessel/broker/gate/job_priv.h"
#include <ctype.h>
#include <strings.h>

/* "\\u003c", the name, "\\u003e" */
#define HELD_MAX (GATE_ROW_NAME_SIZE + 16)

struct gate_restore {
	const struct gate_job *job;
	enum gate_form form;
	char held[HELD_MAX];
	size_t n;
};

struct gate_restore *gate_restore_new(const struct gate_job *j, enum gate_form form)
{
	struct gate_restore *r = xnew(struct gate_restore);

	r->job = j;
	r->form = form;
	return r;
}

void gate_restore_free(struct gate_restore *r)
{
	if (r)
		explicit_bzero(r->held, sizeof(r->held));
	free(r);
}

size_t gate_restore_held(const struct gate_restore *r)
{
	return r->n;
}

enum answer { NO, PARTLY, YES };

/* One of the ways to write a bracket, at s. */
static enum answer bracket_at(const struct gate_restore *r, const char *s, size_t len,
			      bool is_open, size_t *ret_used)
{
	static const char *const ways[][3] = {{">", "\\u003e", "\\\\u003e"},
					      {"<", "\\u003c", "\\\\u003c"}};
	size_t n_ways = r->form == GATE_FORM_TEXT ? 1 : r->form == GATE_FORM_JSON ? 2 : 3;
	enum answer best = NO;

	for (size_t i = 0; i < n_ways; i++) {
		const char *way = ways[is_open][i];
		size_t n = strlen(way), have = n < len ? n : len;

		if (strncasecmp(s, way, have) != 0)
			continue;
		*ret_used = n;
		if (have == n)
			return YES;
		best = PARTLY;
	}
	return best;
}

static enum answer placeholder_at(const struct gate_restore *r, const char *s, size_t len,
				  const struct gate_row **ret, size_t *ret_used)
{
	const struct gate_map *m = gate_job_map(r->job);
	size_t open = 0, name = 0, close = 0;
	enum answer a = bracket_at(r, s, len, true, &open);

	if (a != YES)
		return a;
	while (open + name < len && name < GATE_ROW_NAME_SIZE &&
	       (isupper((unsigned char)s[open + name]) ||
		isdigit((unsigned char)s[open + name]) || s[open + name] == '_'))
		name++;
	if (name == GATE_ROW_NAME_SIZE)
		return NO;
	if (open + name == len)
		return PARTLY;
	a = bracket_at(r, s + open + name, len - open - name, false, &close);
	if (a != YES)
		return a;
	*ret = gate_map_find(m, s + open, name);
	*ret_used = open + name + close;
	return *ret ? YES : NO;
}

/* The inside of a JSON string. */
static void escape(const char *s, size_t len, struct buf *out)
{
	struct buf quoted;
	struct jsonw w;

	buf_init(&quoted, len * 6 + 16);
	jsonw_init(&w, &quoted);
	jsonw_strn(&w, s, len);
	if (quoted.len >= 2)
		buf_add(out, quoted.data + 1, quoted.len - 2);
	buf_done(&quoted);
}

static void put_original(const struct gate_restore *r, const struct gate_row *row,
			 struct buf *out)
{
	struct buf once;

	if (r->form == GATE_FORM_TEXT) {
		buf_add(out, row->text, row->len);
		return;
	}
	if (r->form == GATE_FORM_JSON) {
		escape(row->text, row->len, out);
		return;
	}
	buf_init(&once, row->len * 6 + 16);
	escape(row->text, row->len, &once);
	escape(buf_str(&once), once.len, out);
	buf_done(&once);
}

/* As much of s as is certain; how many bytes that was. */
static size_t restore(struct gate_restore *r, const char *s, size_t len, bool is_last,
		      struct buf *out)
{
	size_t i = 0, plain = 0;

	while (i < len) {
		const struct gate_row *row = NULL;
		size_t used = 0;
		enum answer a = s[i] == '<' || s[i] == '\\'
					? placeholder_at(r, s + i, len - i, &row, &used)
					: NO;

		if (a == PARTLY && !is_last)
			break;
		if (a == YES) {
			buf_add(out, s + plain, i - plain);
			put_original(r, row, out);
			plain = i += used;
		} else {
			/* an escaped backslash is no beginning of an escape */
			i += r->form == GATE_FORM_JSON && s[i] == '\\' && i + 1 < len ? 2
										      : 1;
		}
	}
	buf_add(out, s + plain, i - plain);
	return i;
}

void gate_restore_feed(struct gate_restore *r, const void *data, size_t len,
		       struct buf *out)
{
	const char *s = data;
	size_t used, more;

	/* What was held grows until it is certain. */
	while (r->n && len) {
		more = sizeof(r->held) - r->n < len ? sizeof(r->held) - r->n : len;
		memcpy(r->held + r->n, s, more);
		used = restore(r, r->held, r->n + more, false, out);
		if (used >= r->n) {
			/* on from where that stopped */
			s += used - r->n;
			len -= used - r->n;
			r->n = 0;
			break;
		}
		if (used == 0 && r->n + more < sizeof(r->held)) {
			r->n += more;
			return;
		}
		/* the front of it is settled: what is left moves up */
		used = used ? used : restore(r, r->held, 1, true, out);
		memmove(r->held, r->held + used, r->n - used);
		r->n -= used;
	}
	if (!len)
		return;
	used = restore(r, s, len, false, out);
	r->n = len - used;
	memcpy(r->held, s + used, r->n);
}

void gate_restore_end(struct gate_restore *r, struct buf *out)
{
	(void)restore(r, r->held, r->n, true, out);
	r->n = 0;
}
