/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event streams: one chunk an event, ended by the last chunk and a close. The
 * stream's owner holds it until on_close (the client went, or was too slow) or
 * until httpd_sse_end. A stream that was cut off stays valid for its owner until
 * on_close, which comes from the loop and never from inside a call.
 */
#include "common/net/httpd.h"
#include "common/net/httpd_priv.h"

#include "common/mem.h"
#include "common/str.h"

#include <assert.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

struct httpd_sse *httpd_sse_start(struct httpd_req *req, void (*on_close)(void *arg),
				  void *arg)
{
	struct conn *c = req->conn;
	struct httpd_sse *s;

	if (!c) {
		httpd_req_free(req);
		return NULL;
	}
	s = xnew(struct httpd_sse);
	s->conn = c;
	s->backlog_max = httpd_config_of(c)->sse_backlog_max_bytes;
	s->on_close = on_close;
	s->close_arg = arg;
	c->close_after = true;
	reply_head(c, req, 200, "text/event-stream", UINT64_MAX);
	httpd_req_free(req);
	c->sse = s;
	c->state = CONN_SSE;
	bufferevent_setwatermark(c->bev, EV_WRITE, s->backlog_max / 2, 0);
	return s;
}

bool httpd_sse_send(struct httpd_sse *s, const char *id, const char *event,
		    const char *data, size_t len)
{
	struct evbuffer *out;
	size_t n;

	/* A line break would forge an event; jsonw escapes it, so here it is a bug. */
	assert(!memchr(data, '\n', len) && !memchr(data, '\r', len));
	assert(!str_has_control(event, strlen(event)));
	assert(!id || !str_has_control(id, strlen(id)));
	if (s->cut)
		return false;
	n = strlen("event: \ndata: \n\n") + strlen(event) + len;
	if (id)
		n += strlen("id: \n") + strlen(id);
	if (httpd_sse_backlog(s) + n > s->backlog_max) {
		s->cut = true;
		conn_doom(s->conn);
		return false;
	}
	out = bufferevent_get_output(s->conn->bev);
	(void)evbuffer_add_printf(out, "%zx\r\n", n);
	if (id)
		(void)evbuffer_add_printf(out, "id: %s\n", id);
	(void)evbuffer_add_printf(out, "event: %s\ndata: ", event);
	(void)evbuffer_add(out, data, len);
	(void)evbuffer_add(out, "\n\n\r\n", 4);
	return true;
}

size_t httpd_sse_backlog(const struct httpd_sse *s)
{
	return evbuffer_get_length(bufferevent_get_output(s->conn->bev));
}

void httpd_sse_on_drain(struct httpd_sse *s, void (*fn)(void *arg), void *arg)
{
	s->on_drain = fn;
	s->drain_arg = arg;
}

void httpd_sse_end(struct httpd_sse *s)
{
	struct conn *c = s->conn;

	c->sse = NULL;
	if (!s->cut) {
		(void)bufferevent_write(c->bev, "0\r\n\r\n", 5);
		conn_flush(c);
	}
	free(s);
}

void sse_drained(struct httpd_sse *s)
{
	if (!s->cut && s->on_drain)
		s->on_drain(s->drain_arg);
}

void sse_closed(struct httpd_sse *s)
{
	void (*fn)(void *arg) = s->on_close;
	void *arg = s->close_arg;

	free(s);
	if (fn)
		fn(arg);
}
