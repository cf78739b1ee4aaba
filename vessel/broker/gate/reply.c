/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See reply.h.
 */
#include "vessel/broker/gate/reply.h"
#include "common/mem.h"
#include "common/text/stream_text.h"

#include <assert.h>
#include <stdlib.h>

struct gate_reply {
	const struct gate_job *job;
	bool is_stream;
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

struct gate_reply *gate_reply_new(const struct gate_job *job, bool is_stream)
{
	struct gate_reply *r = xnew(struct gate_reply);

	r->job = job;
	r->is_stream = is_stream;
	r->whole = gate_restore_new(job, GATE_FORM_JSON);
	/* the filters only read the job */
	r->events = stream_text_new(&restore, (void *)(uintptr_t)job);
	return r;
}

void gate_reply_free(struct gate_reply *r)
{
	if (!r)
		return;
	stream_text_free(r->events);
	gate_restore_free(r->whole);
	free(r);
}

void gate_reply_feed(struct gate_reply *r, const void *data, size_t len, struct buf *out)
{
	int done = 0;

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
}
