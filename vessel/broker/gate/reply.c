/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See reply.h.
 */
#include "vessel/broker/gate/reply.h"
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/text/event_stream.h"
#include "common/text/stream_text.h"
#include "vessel/broker/gate/issued.h"

#include <assert.h>
#include <stdlib.h>

#define DEPTH_MAX 32

struct gate_reply {
	struct gate_job *job;
	char *portal;
	bool is_stream;
	bool is_unnoted; /* too long: what is issued from here on is not known */
	struct event_stream lines;
	struct buf kept; /* of what is no stream */
	struct {
		uint64_t index;	 /* of its block */
		unsigned pieces; /* 0: there is none */
		struct buf text;
	} signature; /* that comes in pieces */
	struct gate_restore *whole;
	struct stream_text *events;
};

static void *restore_open(enum stream_text_form form, void *arg)
{
	return gate_restore_new(arg, form == STREAM_TEXT_JSON ? GATE_FORM_JSON
							      : GATE_FORM_TEXT);
}

static void restore_feed(void *filter, const char *text, size_t len, struct buf *out)
{
	gate_restore_feed(filter, text, len, out);
}

static void restore_release(void *filter, struct buf *out)
{
	gate_restore_end(filter, out);
}

static size_t restore_held(const void *filter)
{
	return gate_restore_held(filter);
}

static void restore_close(void *filter)
{
	gate_restore_free(filter);
}

static const struct stream_text_ops restore = {
	restore_open, restore_feed, restore_release, restore_held, restore_close, false};

struct gate_reply *gate_reply_new(struct gate_job *job, const char *portal,
				  bool is_stream)
{
	struct gate_reply *r = xnew(struct gate_reply);

	r->job = job;
	r->portal = xstrdup(portal);
	r->is_stream = is_stream;
	event_stream_init(&r->lines, EVENT_MAX_BYTES);
	buf_init(&r->kept, GATE_REPLY_NOTED_MAX_BYTES);
	buf_init(&r->signature.text, ISSUED_OPAQUE_MAX_BYTES);
	r->whole = gate_restore_new(job, GATE_FORM_JSON);
	r->events = stream_text_new(&restore, job);
	return r;
}

static void stop_noting(struct gate_reply *r)
{
	r->is_unnoted = true;
	event_stream_done(&r->lines);
	buf_done(&r->kept);
	buf_done(&r->signature.text);
	r->signature.pieces = 0;
}

void gate_reply_free(struct gate_reply *r)
{
	if (!r)
		return;
	stop_noting(r);
	stream_text_free(r->events);
	gate_restore_free(r->whole);
	free(r->portal);
	free(r);
}

/* ---- what is issued -------------------------------------------------------------- */

/* Its pieces were noted as they came; a client sends back one of them, or the whole. */
static void signature_over(struct gate_reply *r)
{
	if (r->signature.pieces > 1 && buf_ok(&r->signature.text))
		gate_job_issued_signature(r->job, r->portal, buf_str(&r->signature.text));
	r->signature.pieces = 0;
	buf_done(&r->signature.text);
	buf_init(&r->signature.text, ISSUED_OPAQUE_MAX_BYTES);
}

/* Of Anthropic's stream: a thinking block's signature, in one event or in several. */
static void join_signature(struct gate_reply *r, const struct json *said)
{
	const char *type = "", *text = "";
	const struct json *of = NULL;
	uint64_t index = 0;
	bool begins;

	if (json_get_str(said, "type", true, SIZE_MAX, &type, NULL) < 0)
		return;
	begins = str_eq(type, "content_block_start");
	if (begins || !str_eq(type, "content_block_delta"))
		signature_over(r);
	if (json_get_obj(said, begins ? "content_block" : "delta", true, &of, NULL) < 0 ||
	    json_get_str(of, "signature", true, SIZE_MAX, &text, NULL) < 0 || !*text ||
	    json_get_u64(said, "index", true, 0, UINT32_MAX, &index, NULL) < 0)
		return;
	if (r->signature.pieces && index != r->signature.index)
		signature_over(r);
	r->signature.index = index;
	r->signature.pieces++;
	buf_adds(&r->signature.text, text);
}

static void note(struct gate_reply *r, const struct buf *said)
{
	cleanup_json struct json *j = NULL;

	if (!said->len ||
	    (!r->signature.pieces && !issued_may_hold(said->data, said->len)) ||
	    json_parse(said->data, said->len, DEPTH_MAX, &j, NULL) < 0)
		return;
	gate_job_issued(r->job, r->portal, j);
	if (r->is_stream)
		join_signature(r, j);
}

static void note_events(struct gate_reply *r, const char *data, size_t len)
{
	struct event_line line;

	for (;;) {
		switch (event_stream_take(&r->lines, &data, &len, &line)) {
		case EVENT_NONE:
			return;
		case EVENT_LINE:
			break;
		case EVENT_END:
			note(r, &r->lines.data);
			break;
		case EVENT_TOO_LONG:
			stop_noting(r);
			return;
		}
	}
}

static void note_piece(struct gate_reply *r, const void *data, size_t len)
{
	if (r->is_unnoted || len == 0)
		return;
	if (r->is_stream)
		note_events(r, data, len);
	else if (len > r->kept.max - r->kept.len)
		stop_noting(r);
	else
		buf_add(&r->kept, data, len);
}

static void note_end(struct gate_reply *r)
{
	struct event_line line;

	if (r->is_unnoted)
		return;
	if (r->is_stream)
		(void)event_stream_end(&r->lines, &line);
	note(r, r->is_stream ? &r->lines.data : &r->kept);
	signature_over(r);
	stop_noting(r);
}

/* ---- what goes on ---------------------------------------------------------------- */

void gate_reply_feed(struct gate_reply *r, const void *data, size_t len, struct buf *out)
{
	int done = 0;

	note_piece(r, data, len);
	if (gate_job_is_clean(r->job))
		buf_add(out, data, len);
	else if (r->is_stream)
		done = stream_text_feed(r->events, data, len, out, NULL);
	else
		gate_restore_feed(r->whole, data, len, out);
	assert(done == 0);
}

void gate_reply_end(struct gate_reply *r, struct buf *out)
{
	int done = stream_text_end(r->events, out, NULL);

	assert(done == 0);
	gate_restore_end(r->whole, out);
	note_end(r);
}
