/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * In an egress worker: the reply of a call, as curl hands it out.
 *
 * Theory of operation. The head is judged line by line (reply.h) and goes to the vessel
 * without the credential; so does the body, through the redactor, as far as the vessel has
 * room. While it has none curl is paused. What is wrong with a reply is left in c->why, and
 * curl is told to stop: the end of the call is http_attempt.c's to make of it.
 */
#include "common/mem.h"
#include "common/proto/git_http.h"
#include "common/str.h"
#include "vessel/egress/http_priv.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define IDLE_USEC (60 * USEC_PER_SEC)
#define REPLY_MAX_BYTES ((uint64_t)64 << 20)

usec_t http_reply_idle_usec(const struct call *c)
{
	usec_t given = c->request.rq.limits.idle_usec;

	return given ? given : IDLE_USEC;
}

static void tell_redactions(struct call *c, bool in_header, unsigned count)
{
	if (count == 0)
		return;
	c->redactions += count;
	egress_redacted_add(egress_link_out(c->http->link), c->id, in_header, count);
}

/* A header's value without the credential. */
static char *redacted(struct call *c, const char *value)
{
	struct redact_stream s;
	cleanup_buf struct buf b;
	size_t len;

	buf_init(&b, 2 * strlen(value) + 64);
	redact_begin(&s, c->http->cfg->redact);
	redact_feed(&s, value, strlen(value), &b);
	redact_end(&s, &b);
	tell_redactions(c, true, s.hits);
	redact_done(&s);
	return b.data ? buf_take(&b, &len) : xstrdup("");
}

static const char *type_of(const struct egress_reply *r)
{
	for (size_t i = 0; i < r->n_kept; i++)
		if (strcasecmp(r->kept[i].name, "Content-Type") == 0)
			return r->kept[i].value;
	return "";
}

static struct redact_reply *redact_for(const struct call *c)
{
	const char *type = type_of(&c->reply);
	/* as the vessel judges it, by the same function */
	bool is_stream = headers_is_type(type, "text/event-stream");
	struct redact_reply *r = redact_reply_new(c->http->cfg->redact, is_stream);

	if (git_is_reply_type(type))
		redact_reply_keep_length(r);
	return r;
}

static int send_head(struct call *c, struct err *err)
{
	struct egress_header h[HEADERS_MAX];
	const struct egress_reply *r = &c->reply;
	struct egress_head head = {.status = r->status, .headers = h};
	char *owned[HEADERS_MAX + 1] = {NULL};
	int done;

	for (; head.n_headers < r->n_kept; head.n_headers++) {
		size_t i = head.n_headers;

		owned[i] = redacted(c, r->kept[i].value);
		h[i] = (struct egress_header){r->kept[i].name, owned[i]};
	}
	if (r->location && r->status >= 300 && r->status < 400)
		head.location = owned[HEADERS_MAX] = redacted(c, r->location);
	done = egress_head_add(egress_link_out(c->http->link), c->id, &head, err);
	for (size_t i = 0; i < ARRAY_SIZE(owned); i++)
		free(owned[i]);
	c->head_sent = done == 0;
	c->redact = redact_for(c);
	return done;
}

uint64_t http_reply_max(const struct call *c)
{
	uint64_t given = c->request.rq.limits.reply_max_bytes;

	return given ? given : REPLY_MAX_BYTES;
}

/* May so much more be read? -1: never; 0: not yet. Asks for room in good time. */
static int room_for(struct call *c, size_t len)
{
	uint64_t max = c->room_is_last && c->room < http_reply_max(c) ? c->room
								      : http_reply_max(c);
	uint64_t down = c->bytes_down + len;

	if (down > max)
		return err_set_id(&c->why, ERRID_EGRESS_TOO_LARGE, "more than %llu bytes",
				  (unsigned long long)max);
	if (!c->room_is_last && !c->room_is_asked && down > c->room / 2) {
		c->room_is_asked = true;
		egress_frame_add(egress_link_out(c->http->link), EGRESS_F_MORE, c->id,
				 NULL, 0);
		egress_link_flush(c->http->link);
	}
	return down <= c->room;
}

/* Before its head goes on: curl's own look at the length comes before that or after, by its release. A
 * reply to HEAD names a length of what does not come. */
static int check_length(struct call *c)
{
	if (!c->reply.has_length || c->reply.length <= http_reply_max(c) ||
	    str_eq(c->request.rq.method, "HEAD"))
		return 0;
	return err_set_id(&c->why, ERRID_EGRESS_TOO_LARGE, "by the length that it names");
}

static size_t take_header(struct call *c, char *line, size_t len)
{
	int r = egress_reply_line(&c->reply, line, len, &c->why);

	/* a head is short: what is over the room is taken from what follows */
	if (r >= 0 && room_for(c, len) < 0)
		r = -1;
	c->bytes_down += len;
	if (r < 0)
		return 0;
	if (r == 0)
		return len;
	if (http_attempt_may_repeat(c, c->reply.status)) {
		c->again = true;
		return 0;
	}
	if (check_length(c) < 0 || send_head(c, &c->why) < 0)
		return 0;
	http_call_wait(c, FOR_BODY, http_reply_idle_usec(c));
	egress_link_flush(c->http->link);
	return len;
}

/* curl calls these in the turn of a socket, and elsewhere too. */
size_t http_reply_on_header(char *line, size_t size, size_t n, void *arg)
{
	struct call *c = arg;
	bool began = http_call_reads_reply(c);
	size_t taken = take_header(c, line, size * n);

	reading_end(c->http->note, began);
	return taken;
}

/* As much of what is redacted as the vessel has room for. */
void http_reply_drain(struct call *c)
{
	size_t n = c->pending.len < c->window ? c->pending.len : c->window;

	if (n == 0)
		return;
	egress_frame_add_data(egress_link_out(c->http->link), c->id, c->pending.data, n);
	c->window -= (uint32_t)n;
	buf_consume(&c->pending, n);
}

/* Through the redactor; data NULL: nothing follows. */
int http_reply_hand_on(struct call *c, const void *data, size_t len)
{
	unsigned before = redact_reply_hits(c->redact);
	int r = data ? redact_reply_feed(c->redact, data, len, &c->pending, &c->why)
		     : redact_reply_end(c->redact, &c->pending, &c->why);

	tell_redactions(c, false, redact_reply_hits(c->redact) - before);
	if (r == 0)
		http_reply_drain(c);
	return r;
}

static size_t take_body(struct call *c, const char *data, size_t len)
{
	int room = room_for(c, len);

	if (room < 0)
		return 0;
	if (c->window == 0 || room == 0) {
		c->paused = true;
		loop_timer_disarm(c->timer);
		return CURL_WRITEFUNC_PAUSE;
	}
	c->bytes_down += len;
	http_call_wait(c, FOR_BODY, http_reply_idle_usec(c));
	if (http_reply_hand_on(c, data, len) < 0)
		return 0;
	egress_link_flush(c->http->link);
	return len;
}

size_t http_reply_on_body(char *data, size_t size, size_t n, void *arg)
{
	struct call *c = arg;
	bool began = http_call_reads_reply(c);
	size_t taken = take_body(c, data, size * n);

	reading_end(c->http->note, began);
	return taken;
}
