/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the egress worker.
 * See wire.h.
 */
#include "vessel/egress/wire.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/proto/wire.h"
#include "common/str.h"

#include <stdlib.h>
#include <string.h>

#define LIMIT_USEC_MAX (3600 * USEC_PER_SEC)
#define LIMIT_BYTES_MAX ((uint64_t)1 << 40)
#define WIRE_FIELD_NAME_MAX 256u
#define WIRE_FIELD_VALUE_MAX 8192u
#define ADDRESS_TEXT_MAX 64u
#define RETRIES_MAX 3u

/* ---- numbers and strings ---- */

struct reader {
	struct wire w;
	char *strings; /* where they are copied to, NUL-terminated; one byte less each than
			  what they take in the frame */
};

static uint64_t get_uint(struct reader *r, unsigned bytes)
{
	return wire_uint(&r->w, bytes);
}

/* Never NULL; "" once the reader has failed. */
static const char *get_str(struct reader *r, size_t max)
{
	return wire_string(&r->w, 2, max, &r->strings);
}

static void add_str(struct buf *out, const char *s)
{
	wire_put_sized(out, 2, s, strlen(s));
}

static int broken(struct err *err, const char *what)
{
	return err_set_id(err, ERRID_EGRESS_WORKER, "a frame: %s", what);
}

static int finished(const struct wire *w, struct err *err, const char *what)
{
	return wire_is_done(w) ? 0 : broken(err, what);
}

/* ---- frames ---- */

int egress_frame_next(const void *data, size_t len, struct egress_frame *ret,
		      size_t *ret_used, struct err *err)
{
	struct wire w = {.at = data, .left = len};
	uint32_t size, call;
	unsigned type;

	if (len < EGRESS_FRAME_HEADER)
		return 0;
	size = (uint32_t)wire_uint(&w, 4);
	type = (unsigned)wire_uint(&w, 1);
	if (wire_uint(&w, 3) != 0 || type == 0 || type >= EGRESS_F_MAX_)
		return broken(err, "unknown type");
	call = (uint32_t)wire_uint(&w, 4);
	if (size > EGRESS_FRAME_MAX)
		return broken(err, "too long");
	/* what is of the worker, and what is of a call */
	if ((call == 0) != (type == EGRESS_F_READY || type == EGRESS_F_FAILED))
		return broken(err, "of no call");
	if (w.left < size)
		return 0;
	*ret = (struct egress_frame){
		.type = (enum egress_frame_type)type,
		.call = call,
		.data = (const unsigned char *)data + EGRESS_FRAME_HEADER,
		.len = size,
	};
	*ret_used = EGRESS_FRAME_HEADER + size;
	return 1;
}

void egress_frame_add(struct buf *out, enum egress_frame_type type, uint32_t call,
		      const void *data, size_t len)
{
	if (len > EGRESS_FRAME_MAX) {
		out->failed = true;
		return;
	}
	wire_put_uint(out, len, 4);
	wire_put_uint(out, (unsigned)type, 4); /* the zeros too */
	wire_put_uint(out, call, 4);
	buf_add(out, data, len);
}

void egress_frame_add_data(struct buf *out, uint32_t call, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		size_t n = len < EGRESS_FRAME_MAX ? len : EGRESS_FRAME_MAX;

		egress_frame_add(out, EGRESS_F_DATA, call, p, n);
		p += n;
		len -= n;
	}
}

/* A payload that was built apart: all of it becomes a frame, or none. */
static bool add_built(struct buf *out, enum egress_frame_type type, uint32_t call,
		      const struct buf *payload)
{
	if (!buf_ok(payload))
		return false;
	egress_frame_add(out, type, call, payload->data, payload->len);
	return true;
}

/* ---- request ---- */

static bool is_header_name(const char *s)
{
	static const char others[] = "!#$%&'*+-.^_`|~";

	if (!*s || strlen(s) > WIRE_FIELD_NAME_MAX)
		return false;
	for (; *s; s++)
		if (!((*s >= '0' && *s <= '9') || (*s >= 'a' && *s <= 'z') ||
		      (*s >= 'A' && *s <= 'Z') || strchr(others, *s)))
			return false;
	return true;
}

static bool are_headers(const struct egress_header *h, size_t n)
{
	if (n > EGRESS_HEADERS_MAX)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_header_name(h[i].name) ||
		    strlen(h[i].value) > WIRE_FIELD_VALUE_MAX ||
		    str_has_control(h[i].value, strlen(h[i].value)))
			return false;
	return true;
}

static bool is_target(const char *s)
{
	size_t len = strlen(s);

	if (len == 0 || len > EGRESS_TARGET_MAX_BYTES)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] <= ' ' || (unsigned char)s[i] >= 0x7f ||
		    s[i] == '#' || s[i] == '\\')
			return false;
	return s[0] == '/' || str_starts(s, "http://") || str_starts(s, "https://");
}

static const char *limits_wrong(const struct egress_limits *l)
{
	if (l->connect_usec > LIMIT_USEC_MAX || l->first_byte_usec > LIMIT_USEC_MAX ||
	    l->idle_usec > LIMIT_USEC_MAX || l->total_usec > LIMIT_USEC_MAX)
		return "a time limit is above an hour";
	return l->reply_max_bytes > LIMIT_BYTES_MAX ||
			       l->reply_room_bytes > LIMIT_BYTES_MAX
		       ? "the reply's limit is above 1 TiB"
		       : NULL;
}

/* The rules that both ends hold it to; NULL: it keeps them. */
static const char *request_wrong(const struct egress_request *rq)
{
	static const char *const with_body[] = {"POST", "PUT", "PATCH", "DELETE"};
	bool may_have = false;

	for (size_t i = 0; i < ARRAY_SIZE(with_body); i++)
		may_have |= str_eq(rq->method, with_body[i]);
	if (!may_have && !str_eq(rq->method, "GET") && !str_eq(rq->method, "HEAD"))
		return "the method is none that is spoken here";
	if (!is_target(rq->target))
		return "the target is not acceptable";
	if (!are_headers(rq->headers, rq->n_headers))
		return "a header is not acceptable, or there are too many";
	if (rq->body_len > EGRESS_BODY_MAX_BYTES)
		return "the body is too large";
	if (rq->body_len > 0 && !may_have)
		return "a GET or HEAD has no body";
	if (rq->n_addresses > EGRESS_ADDRESSES_MAX)
		return "too many addresses";
	for (size_t i = 0; i < rq->n_addresses; i++)
		if (strlen(rq->addresses[i]) > ADDRESS_TEXT_MAX)
			return "an address is not one";
	if (rq->retries > RETRIES_MAX)
		return "more than 3 retries";
	return limits_wrong(&rq->limits);
}

static void add_headers(struct buf *out, const struct egress_header *h, size_t n)
{
	wire_put_uint(out, n, 1);
	for (size_t i = 0; i < n; i++) {
		add_str(out, h[i].name);
		add_str(out, h[i].value);
	}
}

static size_t get_headers(struct reader *r, struct egress_header *h)
{
	size_t n = (size_t)get_uint(r, 1);

	if (n > EGRESS_HEADERS_MAX) {
		r->w.failed = true;
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		h[i].name = get_str(r, WIRE_FIELD_NAME_MAX);
		h[i].value = get_str(r, WIRE_FIELD_VALUE_MAX);
	}
	if (!r->w.failed && !are_headers(h, n))
		r->w.failed = true;
	return n;
}

int egress_request_add(struct buf *out, uint32_t call, const struct egress_request *rq,
		       struct err *err)
{
	const char *wrong = request_wrong(rq);
	const struct egress_limits *l = &rq->limits;
	cleanup_buf struct buf b;

	buf_init(&b, EGRESS_FRAME_MAX);
	if (wrong)
		return err_set_id(err, ERRID_EGRESS_REQUEST, "%s", wrong);
	add_str(&b, rq->method);
	add_str(&b, rq->target);
	add_headers(&b, rq->headers, rq->n_headers);
	wire_put_uint(&b, rq->n_addresses, 1);
	for (size_t i = 0; i < rq->n_addresses; i++)
		add_str(&b, rq->addresses[i]);
	wire_put_uint(&b, l->connect_usec, 8);
	wire_put_uint(&b, l->first_byte_usec, 8);
	wire_put_uint(&b, l->idle_usec, 8);
	wire_put_uint(&b, l->total_usec, 8);
	wire_put_uint(&b, l->reply_max_bytes, 8);
	wire_put_uint(&b, l->reply_room_bytes, 8);
	wire_put_uint(&b, rq->retries, 1);
	wire_put_uint(&b, rq->body_len, 4);
	if (!add_built(out, EGRESS_F_REQUEST, call, &b))
		return err_set_id(err, ERRID_EGRESS_REQUEST,
				  "its target and headers are too large together");
	return 0;
}

int egress_request_parse(const void *data, size_t len, struct egress_wire_request *ret,
			 struct err *err)
{
	cleanup_free char *memory = xmalloc(len + 1);
	struct reader r = {.w = {.at = data, .left = len}, .strings = memory};
	struct egress_request *rq = &ret->rq;

	*ret = (struct egress_wire_request){.memory = NULL};
	rq->headers = ret->headers;
	rq->addresses = ret->addresses;
	rq->method = get_str(&r, 8);
	rq->target = get_str(&r, EGRESS_TARGET_MAX_BYTES);
	rq->n_headers = get_headers(&r, ret->headers);
	rq->n_addresses = (size_t)get_uint(&r, 1);
	for (size_t i = 0; i < rq->n_addresses && i < EGRESS_ADDRESSES_MAX; i++)
		ret->addresses[i] = get_str(&r, ADDRESS_TEXT_MAX);
	rq->limits.connect_usec = get_uint(&r, 8);
	rq->limits.first_byte_usec = get_uint(&r, 8);
	rq->limits.idle_usec = get_uint(&r, 8);
	rq->limits.total_usec = get_uint(&r, 8);
	rq->limits.reply_max_bytes = get_uint(&r, 8);
	rq->limits.reply_room_bytes = get_uint(&r, 8);
	rq->retries = (unsigned)get_uint(&r, 1);
	rq->body_len = (size_t)get_uint(&r, 4);
	if (finished(&r.w, err, "a request is malformed") < 0)
		return -1;
	if (request_wrong(rq))
		return broken(err, request_wrong(rq));
	ret->memory = TAKE_PTR(memory);
	return 0;
}

/* ---- head ---- */

static const char *head_wrong(const struct egress_head *h)
{
	if (h->status < 200 || h->status > 599)
		return "no acceptable status";
	if (!are_headers(h->headers, h->n_headers))
		return "a header is not acceptable, or there are too many";
	if (h->location && (strlen(h->location) > WIRE_FIELD_VALUE_MAX ||
			    str_has_control(h->location, strlen(h->location))))
		return "its redirect is not acceptable";
	return NULL;
}

int egress_head_add(struct buf *out, uint32_t call, const struct egress_head *head,
		    struct err *err)
{
	const char *wrong = head_wrong(head);
	cleanup_buf struct buf b;

	buf_init(&b, EGRESS_FRAME_MAX);
	if (wrong)
		return err_set_id(err, ERRID_EGRESS_REPLY, "%s", wrong);
	wire_put_uint(&b, head->status, 2);
	add_headers(&b, head->headers, head->n_headers);
	wire_put_uint(&b, head->location ? 1 : 0, 1);
	if (head->location)
		add_str(&b, head->location);
	if (!add_built(out, EGRESS_F_HEAD, call, &b))
		return err_set_id(err, ERRID_EGRESS_REPLY, "its headers are too large");
	return 0;
}

int egress_head_parse(const void *data, size_t len, struct egress_wire_head *ret,
		      struct err *err)
{
	cleanup_free char *memory = xmalloc(len + 1);
	struct reader r = {.w = {.at = data, .left = len}, .strings = memory};
	uint64_t has_location;

	*ret = (struct egress_wire_head){.memory = NULL};
	ret->head.status = (unsigned)get_uint(&r, 2);
	ret->head.headers = ret->headers;
	ret->head.n_headers = get_headers(&r, ret->headers);
	has_location = get_uint(&r, 1);
	if (has_location > 1)
		return broken(err, "a head is malformed");
	if (has_location)
		ret->head.location = get_str(&r, WIRE_FIELD_VALUE_MAX);
	if (finished(&r.w, err, "a head is malformed") < 0)
		return -1;
	if (head_wrong(&ret->head))
		return broken(err, head_wrong(&ret->head));
	ret->memory = TAKE_PTR(memory);
	return 0;
}

/* ---- errors and the end ---- */

static void add_err(struct buf *out, const struct err *why)
{
	wire_put_uint(out, (unsigned)why->id, 4);
	wire_put_uint(out, (unsigned)why->code, 1);
	add_str(out, why->msg);
}

/* strings must have room: sizeof(err->msg). */
static void get_err(struct reader *r, struct err *ret)
{
	uint64_t id = get_uint(r, 4), code = get_uint(r, 1);
	const char *msg = get_str(r, sizeof(ret->msg) - 1);

	if (r->w.failed || id >= ERRID_MAX_ || code == ERR_NONE ||
	    code >= ERR_CODE_MAX_) {
		r->w.failed = true;
		return;
	}
	if (id == ERRID_NONE)
		(void)err_set(ret, (enum err_code)code, "%s", msg);
	else
		(void)err_set_id(ret, (enum err_id)id, "%s", msg);
}

void egress_end_add(struct buf *out, uint32_t call, const struct egress_end *end)
{
	cleanup_buf struct buf b;

	buf_init(&b, EGRESS_FRAME_MAX);
	wire_put_uint(&b, end->err ? 1 : 0, 1);
	if (end->err)
		add_err(&b, end->err);
	wire_put_uint(&b, (unsigned)end->reason, 1);
	wire_put_uint(&b, end->bytes_up, 8);
	wire_put_uint(&b, end->bytes_down, 8);
	wire_put_uint(&b, end->attempts, 1);
	wire_put_uint(&b, end->sent, 1);
	wire_put_uint(&b, end->redactions, 4);
	if (!add_built(out, EGRESS_F_END, call, &b))
		out->failed = true;
}

int egress_end_parse(const void *data, size_t len, struct egress_end *ret,
		     struct err *ret_err, struct err *err)
{
	char text[sizeof(ret_err->msg)];
	struct reader r = {.w = {.at = data, .left = len}, .strings = text};
	uint64_t failed = get_uint(&r, 1), sent, reason;

	*ret = (struct egress_end){0};
	*ret_err = (struct err)ERR_INIT;
	if (failed == 1) {
		get_err(&r, ret_err);
		if (!r.w.failed && !str_starts(err_text(ret_err), "LYCH-EGRESS-") &&
		    !str_starts(err_text(ret_err), "LYCH-FETCH-"))
			return broken(err, "an error of another family");
		ret->err = ret_err;
	}
	reason = get_uint(&r, 1);
	ret->reason = (enum reason)reason;
	ret->bytes_up = get_uint(&r, 8);
	ret->bytes_down = get_uint(&r, 8);
	ret->attempts = (unsigned)get_uint(&r, 1);
	sent = get_uint(&r, 1);
	ret->sent = sent == 1;
	ret->redactions = (unsigned)get_uint(&r, 4);
	if (failed > 1 || sent > 1 || reason >= REASON_MAX_)
		return broken(err, "an end is malformed");
	return finished(&r.w, err, "an end is malformed");
}

void egress_failed_add(struct buf *out, const struct err *why)
{
	cleanup_buf struct buf b;

	buf_init(&b, EGRESS_FRAME_MAX);
	add_err(&b, why);
	if (!add_built(out, EGRESS_F_FAILED, 0, &b))
		out->failed = true;
}

int egress_failed_parse(const void *data, size_t len, struct err *ret, struct err *err)
{
	char text[sizeof(ret->msg)];
	struct reader r = {.w = {.at = data, .left = len}, .strings = text};

	get_err(&r, ret);
	return finished(&r.w, err, "a failure is malformed");
}

/* ---- the small ones ---- */

void egress_redacted_add(struct buf *out, uint32_t call, bool in_header, unsigned count)
{
	cleanup_buf struct buf b;

	buf_init(&b, 5);
	wire_put_uint(&b, in_header, 1);
	wire_put_uint(&b, count, 4);
	egress_frame_add(out, EGRESS_F_REDACTED, call, b.data, b.len);
}

int egress_redacted_parse(const void *data, size_t len, bool *ret_in_header,
			  unsigned *ret_count, struct err *err)
{
	struct wire w = {.at = data, .left = len};
	uint64_t in_header = wire_uint(&w, 1), count = wire_uint(&w, 4);

	if (in_header > 1 || count == 0)
		return broken(err, "a redaction is malformed");
	*ret_in_header = in_header == 1;
	*ret_count = (unsigned)count;
	return finished(&w, err, "a redaction is malformed");
}

void egress_credit_add(struct buf *out, uint32_t call, uint32_t bytes)
{
	cleanup_buf struct buf b;

	buf_init(&b, 4);
	wire_put_uint(&b, bytes, 4);
	egress_frame_add(out, EGRESS_F_CREDIT, call, b.data, b.len);
}

int egress_credit_parse(const void *data, size_t len, uint32_t *ret, struct err *err)
{
	struct wire w = {.at = data, .left = len};
	uint64_t bytes = wire_uint(&w, 4);

	if (bytes == 0 || bytes > EGRESS_WINDOW_BYTES)
		return broken(err, "a credit is malformed");
	*ret = (uint32_t)bytes;
	return finished(&w, err, "a credit is malformed");
}

void egress_room_add(struct buf *out, uint32_t call, uint64_t bytes, bool is_last)
{
	cleanup_buf struct buf b;

	buf_init(&b, 9);
	wire_put_uint(&b, bytes, 8);
	wire_put_uint(&b, is_last, 1);
	egress_frame_add(out, EGRESS_F_ROOM, call, b.data, b.len);
}

int egress_room_parse(const void *data, size_t len, uint64_t *ret, bool *ret_is_last,
		      struct err *err)
{
	struct wire w = {.at = data, .left = len};
	uint64_t bytes = wire_uint(&w, 8), is_last = wire_uint(&w, 1);

	if (bytes > LIMIT_BYTES_MAX || is_last > 1)
		return broken(err, "a reply's room is malformed");
	*ret = bytes;
	*ret_is_last = is_last == 1;
	return finished(&w, err, "a reply's room is malformed");
}

void egress_whose_add(struct buf *out, uint32_t call, job_id_t job, int64_t epoch)
{
	cleanup_buf struct buf b;

	buf_init(&b, 16);
	wire_put_uint(&b, (uint64_t)job, 8);
	wire_put_uint(&b, (uint64_t)epoch, 8);
	egress_frame_add(out, EGRESS_F_WHOSE, call, b.data, b.len);
}

int egress_whose_parse(const void *data, size_t len, job_id_t *ret_job,
		       int64_t *ret_epoch, struct err *err)
{
	struct wire w = {.at = data, .left = len};
	uint64_t job = wire_uint(&w, 8), epoch = wire_uint(&w, 8);

	if (job > INT64_MAX || epoch > INT64_MAX)
		return broken(err, "a job's number is malformed");
	*ret_job = (job_id_t)job;
	*ret_epoch = (int64_t)epoch;
	return finished(&w, err, "a job's number is malformed");
}

void egress_ready_add(struct buf *out, const struct confine_report *walls)
{
	cleanup_buf struct buf b;

	buf_init(&b, EGRESS_FRAME_MAX);
	wire_put_uint(&b, walls->n, 1);
	for (unsigned i = 0; i < walls->n; i++) {
		wire_put_uint(&b, walls->line[i].held, 1);
		add_str(&b, walls->line[i].wall);
		add_str(&b, walls->line[i].answer);
	}
	if (!add_built(out, EGRESS_F_READY, 0, &b))
		out->failed = true;
}

int egress_ready_parse(const void *data, size_t len, struct confine_report *ret,
		       struct err *err)
{
	cleanup_free char *memory = xmalloc(len + 1);
	struct reader r = {.w = {.at = data, .left = len}, .strings = memory};
	uint64_t n = get_uint(&r, 1);

	*ret = (struct confine_report){0};
	if (n > ARRAY_SIZE(ret->line))
		return broken(err, "a report is malformed");
	for (; ret->n < n && !r.w.failed; ret->n++) {
		uint64_t held = get_uint(&r, 1);
		const char *wall = get_str(&r, sizeof(ret->line[0].wall) - 1);
		const char *answer = get_str(&r, sizeof(ret->line[0].answer) - 1);

		if (held > 1 ||
		    str_copy(ret->line[ret->n].wall, sizeof(ret->line[0].wall), wall) <
			    0 ||
		    str_copy(ret->line[ret->n].answer, sizeof(ret->line[0].answer),
			     answer) < 0)
			return broken(err, "a report is malformed");
		ret->line[ret->n].held = held == 1;
	}
	return finished(&r.w, err, "a report is malformed");
}
