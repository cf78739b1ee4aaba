/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See log_order.h.
 */
#include "cli/jobs/log_order.h"

#include "cli/base/cmd.h"
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/str.h"
#include <inttypes.h>

#define PIECES_MAX ((size_t)1 << 17)
#define READ_MAX ((size_t)1 << 20)
#define BLOCK ((uint64_t)64 << 10) /* of what is read backwards */

void log_order_done(struct log_order *o)
{
	free(o->piece);
	*o = (struct log_order){0};
}

static void add_piece(struct log_order *o, const struct log_piece *p)
{
	if (p->from >= p->to)
		return;
	if ((o->n & (o->n + 1)) == 0) /* at 0, 1, 3, 7: twice as many */
		o->piece = xreallocarray(o->piece, 2 * (o->n + 1), sizeof(*o->piece));
	o->piece[o->n++] = *p;
}

/* What the vessel says is looked at only as far as the stream has bytes. */
static int take_piece(struct log_order *o, const struct json *v, uint64_t *have,
		      struct err *err)
{
	struct log_piece p = {0};
	const char *stream;
	uint64_t end;

	if (json_as_obj(v, err) < 0 ||
	    json_get_str(v, "stream", true, 16, &stream, err) < 0 ||
	    json_get_u64(v, "end", true, 0, INT64_MAX, &end, err) < 0 ||
	    json_get_u64(v, "sec", true, 0, INT64_MAX, &p.sec, err) < 0)
		return -1;
	if (!str_eq(stream, "stdout") && !str_eq(stream, "stderr"))
		return err_set_id(err, ERRID_HTTP_ANSWER, "unknown stream '%s'", stream);
	p.which = str_eq(stream, "stderr");
	p.from = have[p.which];
	p.to = end < o->bytes[p.which] ? end : o->bytes[p.which];
	if (p.to > p.from)
		have[p.which] = p.to;
	add_piece(o, &p);
	return 0;
}

static const char *and_tainted(const struct log_reader *r)
{
	return r->tainted ? "&tainted=1" : "";
}

static int take_page(const struct log_reader *r, uint64_t from, struct log_order *o,
		     uint64_t *have, size_t *ret_n, struct err *err)
{
	cleanup_free char *target =
		xasprintf("/v1/jobs/%" PRId64 "/order?from=%" PRIu64 "%s", r->id, from,
			  and_tainted(r));
	const struct client_request rq = {
		.method = "GET", .target = target, .timeout_ms = 30000};
	cleanup_json struct json *j = NULL;
	const struct json *arr = NULL;

	if (client_json(r->client, &rq, &j, NULL, err) < 0 ||
	    json_get_i64(j, "epoch", true, 0, INT64_MAX, &o->epoch, err) < 0 ||
	    json_get_u64(j, "stdout_bytes", true, 0, INT64_MAX, &o->bytes[0], err) < 0 ||
	    json_get_u64(j, "stderr_bytes", true, 0, INT64_MAX, &o->bytes[1], err) < 0 ||
	    json_get_arr(j, "pieces", true, PIECES_MAX, &arr, err) < 0)
		return -1;
	*ret_n = json_arr_len(arr);
	for (size_t i = 0; i < *ret_n; i++)
		if (take_piece(o, json_arr_at(arr, i), have, err) < 0)
			return -1;
	return 0;
}

int log_order_get(const struct log_reader *r, struct log_order *ret, struct err *err)
{
	struct log_order o = {0};
	uint64_t have[2] = {0, 0};
	size_t asked = 0, n;

	do {
		if (take_page(r, asked, &o, have, &n, err) < 0) {
			log_order_done(&o);
			return -1;
		}
		asked += n;
	} while (n > 0 && asked < PIECES_MAX);
	for (int i = 0; i < 2; i++) {
		const struct log_piece rest = {.which = i,
					       .from = have[i],
					       .to = o.bytes[i],
					       .sec = LOG_NO_TIME};

		add_piece(&o, &rest);
	}
	*ret = o;
	return 0;
}

void log_order_only(struct log_order *o, int which)
{
	size_t n = 0;

	for (size_t i = 0; i < o->n; i++)
		if (o->piece[i].which == which)
			o->piece[n++] = o->piece[i];
	o->n = n;
}

static void drop(struct log_order *o, size_t n)
{
	if (n == 0)
		return;
	memmove(o->piece, o->piece + n, (o->n - n) * sizeof(*o->piece));
	o->n -= n;
}

void log_order_since(struct log_order *o, usec_t wall)
{
	size_t n = 0;

	while (n < o->n && o->piece[n].sec < wall / USEC_PER_SEC)
		n++;
	drop(o, n);
}

/* ---- reading ---------------------------------------------------------------- */

void log_reader_done(struct log_reader *r)
{
	for (int i = 0; i < 2; i++)
		free(r->ahead[i].data);
	*r = (struct log_reader){0};
}

static int on_bytes(const void *data, size_t len, void *arg, struct err *err)
{
	struct log_ahead *a = arg;

	if (len > a->room - a->len)
		return err_set_id(err, ERRID_HTTP_ANSWER, "more than was asked for");
	memcpy(a->data + a->len, data, len);
	a->len += len;
	return 0;
}

/* What there is from `from` on. */
static int fill(struct log_reader *r, int which, uint64_t from, uint64_t *ret_next,
		struct err *err)
{
	struct log_ahead *a = &r->ahead[which];
	cleanup_free char *target = xasprintf(
		"/v1/jobs/%" PRId64 "/output?stream=%s&offset=%" PRIu64 "&limit=%zu%s",
		r->id, which ? "stderr" : "stdout", from, READ_MAX, and_tainted(r));
	uint64_t expected = 0;
	const struct client_request rq = {
		.method = "GET", .target = target, .ret_expected = &expected};

	if (!a->data)
		a->data = xmalloc(READ_MAX);
	a->room = READ_MAX;
	a->at = from;
	a->len = 0;
	if (client_raw(r->client, &rq, on_bytes, a, err) == 0)
		return 0;
	if (err->id != ERRID_STORE_DAMAGED || expected <= from)
		return -1;
	/* the rest is worth having */
	if (!r->looks_ahead) {
		cmd_tell(err->id, err->msg);
		r->is_damaged = true;
	}
	err_clear(err);
	a->len = 0;
	*ret_next = expected;
	return 0;
}

int log_read(struct log_reader *r, int which, uint64_t from, uint64_t to,
	     const char **ret, size_t *ret_len, uint64_t *ret_next, struct err *err)
{
	const struct log_ahead *a = &r->ahead[which];

	*ret_len = 0;
	*ret_next =
		to; /* bytes that were there and are not any more: of another attempt */
	if (!a->data || from < a->at || from >= a->at + a->len) {
		if (fill(r, which, from, ret_next, err) < 0)
			return -1;
		if (*ret_next > to)
			*ret_next = to;
	}
	if (a->len == 0)
		return 0;
	*ret = a->data + (from - a->at);
	*ret_len = a->len - (size_t)(from - a->at);
	if (*ret_len > to - from)
		*ret_len = (size_t)(to - from);
	return 0;
}

/* ---- the last lines ---------------------------------------------------------- */

struct counting {
	uint64_t left;	  /* line ends until the first of the lines begins */
	bool is_past_end; /* the very last byte ends a line, and begins none */
};

/* Where the first line begins that is wanted, in [from, to); false: further up. */
static bool count_back(struct counting *c, const char *data, uint64_t from, uint64_t to,
		       uint64_t *ret)
{
	for (uint64_t at = to; at > from; at--) {
		bool ends = data[at - from - 1] == '\n' && c->is_past_end;

		c->is_past_end = true;
		if (!ends || --c->left > 0)
			continue;
		*ret = at;
		return true;
	}
	return false;
}

/* A piece, block by block from its end; what can't be read has no lines. */
static int tail_piece(struct log_reader *r, struct counting *c, const struct log_piece *p,
		      uint64_t *ret, bool *ret_found, struct err *err)
{
	for (uint64_t to = p->to, from; to > p->from && !*ret_found; to = from) {
		const char *data = NULL;
		uint64_t next = 0;
		size_t len = 0;

		from = to - p->from > BLOCK ? to - BLOCK : p->from;
		/* what lies before this piece is read with it, for those before it */
		if (r->ahead[p->which].len == 0 || from < r->ahead[p->which].at ||
		    to > r->ahead[p->which].at + r->ahead[p->which].len) {
			uint64_t begin = to > BLOCK ? to - BLOCK : 0;

			if (fill(r, p->which, begin, &next, err) < 0)
				return -1;
		}
		if (log_read(r, p->which, from, to, &data, &len, &next, err) < 0)
			return -1;
		if (data && len == to - from)
			*ret_found = count_back(c, data, from, to, ret);
	}
	return 0;
}

int log_order_tail(struct log_reader *r, struct log_order *o, uint64_t n, struct err *err)
{
	struct counting c = {.left = n};
	bool found = false;
	uint64_t at = 0;

	if (n == 0) {
		o->n = 0;
		return 0;
	}
	r->looks_ahead = true;
	for (size_t i = o->n; i-- > 0;) {
		if (tail_piece(r, &c, &o->piece[i], &at, &found, err) < 0)
			return -1;
		if (!found)
			continue;
		drop(o, i);
		o->piece[0].from = at;
		break;
	}
	r->looks_ahead = false;
	return 0;
}
