/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Answers of unknown length, in chunks. The stream's owner holds it until on_close
 * (the client went, or was too slow), end or abort. A stream that was cut off stays
 * valid for its owner until on_close, which comes from the loop and never from
 * inside a call.
 */
#include "common/net/httpd.h"
#include "common/net/httpd_priv.h"

#include "common/mem.h"
#include "common/str.h"

#include <assert.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

/* A chunk's own framing: its size in hex and two line ends. */
#define CHUNK_FRAME_BYTES 20

struct httpd_stream *httpd_stream_start(struct httpd_req *req, int status,
					const char *content_type,
					void (*on_close)(void *arg), void *arg)
{
	struct conn *c = req->conn;
	struct httpd_stream *s;

	if (!c) {
		httpd_req_free(req);
		return NULL;
	}
	s = xnew(struct httpd_stream);
	s->conn = c;
	s->backlog_max = httpd_config_of(c)->stream_backlog_max_bytes;
	assert(s->backlog_max > 0);
	s->on_close = on_close;
	s->close_arg = arg;
	reply_head(c, req, status, content_type, UINT64_MAX);
	httpd_req_free(req);
	c->stream = s;
	c->state = CONN_STREAM;
	bufferevent_setwatermark(c->bev, EV_WRITE, s->backlog_max / 2, 0);
	return s;
}

static bool has_room(struct httpd_stream *s, size_t len)
{
	if (s->cut)
		return false;
	if (len <= s->backlog_max && httpd_stream_backlog(s) <= s->backlog_max - len)
		return true;
	s->cut = true;
	conn_doom(s->conn);
	return false;
}

bool httpd_stream_send(struct httpd_stream *s, const void *data, size_t len)
{
	struct evbuffer *out;

	if (len == 0) /* an empty chunk would be the last one */
		return !s->cut;
	if (!has_room(s, len + CHUNK_FRAME_BYTES))
		return false;
	out = bufferevent_get_output(s->conn->bev);
	(void)evbuffer_add_printf(out, "%zx\r\n", len);
	(void)evbuffer_add(out, data, len);
	(void)evbuffer_add(out, "\r\n", 2);
	return true;
}

size_t httpd_stream_backlog(const struct httpd_stream *s)
{
	return evbuffer_get_length(bufferevent_get_output(s->conn->bev));
}

void httpd_stream_on_drain(struct httpd_stream *s, void (*fn)(void *arg), void *arg)
{
	s->on_drain = fn;
	s->drain_arg = arg;
}

void httpd_stream_set_mark(struct httpd_stream *s, size_t mark)
{
	assert(mark < s->backlog_max);
	bufferevent_setwatermark(s->conn->bev, EV_WRITE, mark, 0);
}

static void finish(struct httpd_stream *s, bool whole)
{
	struct conn *c = s->conn;

	c->stream = NULL;
	conn_cut_when_deaf(c, true);
	if (!s->cut) {
		if (whole)
			(void)bufferevent_write(c->bev, "0\r\n\r\n", 5);
		else
			c->close_after = true;
		conn_flush(c);
	}
	free(s);
}

void httpd_stream_end(struct httpd_stream *s)
{
	finish(s, true);
}

void httpd_stream_abort(struct httpd_stream *s)
{
	finish(s, false);
}

void stream_drained(struct httpd_stream *s)
{
	if (!s->cut && s->on_drain)
		s->on_drain(s->drain_arg);
}

void stream_closed(struct httpd_stream *s)
{
	void (*fn)(void *arg) = s->on_close;
	void *arg = s->close_arg;

	free(s);
	if (fn)
		fn(arg);
}

/* ---- server-sent events: one chunk an event ---- */

struct httpd_stream *httpd_sse_start(struct httpd_req *req, void (*on_close)(void *arg),
				     void *arg)
{
	struct conn *c = req->conn;

	if (c) {
		c->close_after = true;
		conn_cut_when_deaf(c, false);
	}
	return httpd_stream_start(req, 200, "text/event-stream", on_close, arg);
}

bool httpd_sse_send(struct httpd_stream *s, const char *id, const char *event,
		    const char *data, size_t len)
{
	struct evbuffer *out;
	size_t n;

	/* A line break would forge an event; jsonw escapes it, so here it is a bug. */
	assert(!memchr(data, '\n', len) && !memchr(data, '\r', len));
	assert(!str_has_control(event, strlen(event)));
	assert(!id || !str_has_control(id, strlen(id)));
	n = strlen("event: \ndata: \n\n") + strlen(event) + len;
	if (id)
		n += strlen("id: \n") + strlen(id);
	if (!has_room(s, n + CHUNK_FRAME_BYTES))
		return false;
	out = bufferevent_get_output(s->conn->bev);
	(void)evbuffer_add_printf(out, "%zx\r\n", n);
	if (id)
		(void)evbuffer_add_printf(out, "id: %s\n", id);
	(void)evbuffer_add_printf(out, "event: %s\ndata: ", event);
	(void)evbuffer_add(out, data, len);
	(void)evbuffer_add(out, "\n\n\r\n", 4);
	return true;
}

bool httpd_sse_comment(struct httpd_stream *s)
{
	static const char line[] = ":\n\n";

	return httpd_stream_send(s, line, sizeof(line) - 1);
}
