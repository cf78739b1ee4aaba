/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * See redact_reply.h.
 */
#include "vessel/egress/redact_reply.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/text/stream_text.h"
#include "vessel/egress/redact_strings.h"

#include <stdint.h>
#include <stdlib.h>

/* Of an event, escaped anew; a piece that is larger is refused. */
#define PIECE_MAX_BYTES ((size_t)64 << 20)

struct redact_reply {
	const struct redact *what;
	struct redact_stream bytes;
	struct redact_strings strings;
	struct stream_text *events; /* NULL: it is no stream */
	unsigned stream_text_hits;
};

/* ---- one channel of a stream ---- */

struct channel {
	struct redact_stream stream;
	unsigned *hits;
};

static void *channel_open(enum stream_text_form form UNUSED, void *arg)
{
	struct redact_reply *r = arg;
	struct channel *c = xnew(struct channel);

	redact_begin(&c->stream, r->what);
	c->hits = &r->stream_text_hits;
	return c;
}

static void channel_feed(void *filter, const char *text, size_t len, struct buf *out)
{
	struct channel *c = filter;
	unsigned before = c->stream.hits;

	redact_feed(&c->stream, text, len, out);
	*c->hits += c->stream.hits - before;
}

static void channel_release(void *filter, struct buf *out)
{
	struct channel *c = filter;
	unsigned before = c->stream.hits;

	redact_release(&c->stream, out);
	*c->hits += c->stream.hits - before;
}

static size_t channel_held(const void *filter)
{
	const struct channel *c = filter;

	return redact_held(&c->stream);
}

static void channel_close(void *filter)
{
	struct channel *c = filter;

	redact_done(&c->stream);
	free(c);
}

static const struct stream_text_ops channel_ops = {
	channel_open, channel_feed, channel_release, channel_held, channel_close, true};

/* ---- the reply ---- */

struct redact_reply *redact_reply_new(const struct redact *what, bool is_stream)
{
	struct redact_reply *r = xnew(struct redact_reply);

	r->what = what;
	redact_begin(&r->bytes, what);
	redact_strings_begin(&r->strings, what);
	if (what && is_stream)
		r->events = stream_text_new(&channel_ops, r);
	return r;
}

void redact_reply_keep_length(struct redact_reply *r)
{
	r->bytes.keeps_length = true;
}

void redact_reply_free(struct redact_reply *r)
{
	if (!r)
		return;
	redact_done(&r->bytes);
	redact_strings_done(&r->strings);
	stream_text_free(r->events);
	free(r);
}

static int check_room(const struct buf *out, struct err *err)
{
	return buf_ok(out)
		       ? 0
		       : err_set_id(err, ERRID_EGRESS_TOO_LARGE, "a piece of the reply");
}

/* What the texts let go, through the bytes: names of keys, numbers, what is no text. Not the
 * other way round: a mark for the beginning of a key would hide that the rest follows. */
static int put_bytes(struct redact_reply *r, const void *data, size_t len,
		     struct buf *out, struct err *err)
{
	redact_feed(&r->bytes, data, len, out);
	return check_room(out, err);
}

int redact_reply_feed(struct redact_reply *r, const void *data, size_t len,
		      struct buf *out, struct err *err)
{
	cleanup_buf struct buf texts;

	buf_init(&texts, PIECE_MAX_BYTES);
	if (!r->what) {
		buf_add(out, data, len);
		return check_room(out, err);
	}
	if (r->bytes.keeps_length)
		return put_bytes(r, data, len, out, err);
	if (!r->events)
		redact_strings_feed(&r->strings, data, len, &texts);
	else if (stream_text_feed(r->events, data, len, &texts, err) < 0)
		return -1;
	if (check_room(&texts, err) < 0)
		return -1;
	return texts.len ? put_bytes(r, texts.data, texts.len, out, err) : 0;
}

int redact_reply_end(struct redact_reply *r, struct buf *out, struct err *err)
{
	cleanup_buf struct buf texts;

	buf_init(&texts, PIECE_MAX_BYTES);
	if (!r->what)
		return 0;
	if (!r->events)
		redact_strings_end(&r->strings, &texts);
	else if (stream_text_end(r->events, &texts, err) < 0)
		return -1;
	if (check_room(&texts, err) < 0 ||
	    (texts.len && put_bytes(r, texts.data, texts.len, out, err) < 0))
		return -1;
	redact_end(&r->bytes, out);
	return check_room(out, err);
}

unsigned redact_reply_hits(const struct redact_reply *r)
{
	return r->bytes.hits + r->stream_text_hits + redact_strings_hits(&r->strings);
}
