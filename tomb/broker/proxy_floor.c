/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The broker as frames on the job's descriptor 3 (common/proto/broker_proto.h). The other end
 * is hostile: a packet that is cut, that brings descriptors or is no frame is refused
 * with an X and ends the request it belongs to, and the next one is read a little later:
 * who sends nothing but refusals costs other jobs no more than who sends nothing; a
 * bounded number of packets is read a turn; answers wait in a bounded queue for which the
 * vessel is held back.
 */
#include "tomb/broker/proxy_floor.h"
#include "tomb/broker/proxy_priv.h"

#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/net/httpd.h"
#include "common/proto/broker_proto.h"
#include "common/str.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define FRAMES_PER_TURN 8
/* Nobody notices it once; a flood of refusals takes a hundredth of a processor. */
#define REFUSED_PAUSE_USEC USEC_PER_MSEC
/* In a row, by a job that reads none: nobody talks to it any more. */
#define UNREAD_REFUSALS_MAX 256
/* More than the largest refusal on top of what the vessel may bring. */
#define QUEUE_MAX_BYTES (2 * PROXY_BACKLOG_MAX_BYTES)

struct packet {
	struct packet *next;
	size_t len;
	unsigned char data[];
};

struct proxy_floor {
	struct proxy *proxy;
	int fd;
	struct loop_io *io;
	struct loop_timer *pause;
	bool is_paused; /* after a refusal: nothing is read */
	unsigned unread_refusals;
	/* the request */
	struct floor_head *head; /* NULL: none is being read or answered */
	struct buf body;
	bool asked; /* its body is whole */
	struct exchange *exchange;
	/* the answers */
	struct packet *out, *out_last;
	size_t out_bytes;
	bool broken; /* it does not read: the socket is shut */
};

/* ---- sending ---- */

static void watch(struct proxy_floor *f)
{
	loop_io_set(f->io, (f->is_paused ? 0 : LOOP_READ) | (f->out ? LOOP_WRITE : 0));
}

static void on_pause_over(void *arg)
{
	struct proxy_floor *f = arg;

	f->is_paused = false;
	watch(f);
}

static void hang_up_on(struct proxy_floor *f)
{
	f->broken = true;
	(void)shutdown(f->fd, SHUT_RDWR);
}

static void pause_reading(struct proxy_floor *f)
{
	f->unread_refusals = f->out ? f->unread_refusals + 1 : 0;
	if (f->unread_refusals > UNREAD_REFUSALS_MAX)
		hang_up_on(f);
	f->is_paused = true;
	loop_timer_arm(f->pause, REFUSED_PAUSE_USEC);
	watch(f);
}

/* False: the other end is gone. */
static bool flush(struct proxy_floor *f)
{
	while (f->out) {
		struct packet *p = f->out;

		if (send(f->fd, p->data, p->len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
			if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)
				break;
			return false;
		}
		f->out = p->next;
		f->out_bytes -= p->len;
		free(p);
	}
	if (!f->out)
		f->out_last = NULL;
	return true;
}

static void put(struct proxy_floor *f, enum broker_frame type, const void *data,
		size_t len)
{
	struct packet *p;

	assert(len < BROKER_FRAME_MAX);
	if (f->broken)
		return;
	/* Only small frames to one that never reads pile up so far. */
	if (f->out_bytes + len + 1 > QUEUE_MAX_BYTES) {
		hang_up_on(f);
		return;
	}
	p = xmalloc(sizeof(*p) + len + 1);
	p->next = NULL;
	p->len = len + 1;
	p->data[0] = (unsigned char)type;
	if (len > 0)
		memcpy(p->data + 1, data, len);
	if (f->out_last)
		f->out_last->next = p;
	else
		f->out = p;
	f->out_last = p;
	f->out_bytes += p->len;
	(void)flush(f); /* one that is gone is seen when it is read from */
	watch(f);
}

static void put_json(struct proxy_floor *f, enum broker_frame type, const struct buf *b)
{
	if (buf_ok(b))
		put(f, type, b->data, b->len);
}

static void put_abort(struct proxy_floor *f, const char *id, const struct err *err)
{
	cleanup_buf struct buf b;
	struct jsonw w;

	buf_init(&b, 4096);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_kstr(&w, "id", id);
	jsonw_kstr(&w, "code", err_text(err));
	jsonw_kstr(&w, "reason",
		   err_code_info(err->code)->public_text ? err->msg : err_title(err));
	jsonw_obj_end(&w);
	put_json(f, BROKER_ABORT, &b);
}

/* The head of an answer; headers of the vessel's, or content_type alone. */
static void put_head(struct proxy_floor *f, int status, const char *content_type,
		     const struct httpc_call *call)
{
	const char *name, *value, *as;
	cleanup_buf struct buf b;
	struct jsonw w;
	size_t at = 0;

	buf_init(&b, BROKER_HEAD_MAX);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_kstr(&w, "id", f->head->id);
	jsonw_ku64(&w, "status", (uint64_t)status);
	jsonw_key(&w, "headers");
	jsonw_obj(&w);
	jsonw_kstr(&w, "content-type", content_type);
	for (int n = 0; call && n < 16 && httpc_header_next(call, &at, &name, &value);) {
		char lower[64];

		if (strlen(value) > 200 || !proxy_header_passes(name, &as) ||
		    str_copy(lower, sizeof(lower), as) < 0)
			continue;
		for (char *c = lower; *c; c++)
			*c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
		jsonw_kstr(&w, lower, value);
		n++;
	}
	jsonw_obj_end(&w);
	jsonw_obj_end(&w);
	put_json(f, BROKER_HEAD, &b);
}

static void put_data(struct proxy_floor *f, const char *data, size_t len)
{
	while (len > 0) {
		size_t n = len < BROKER_FRAME_MAX - 1 ? len : BROKER_FRAME_MAX - 1;

		put(f, BROKER_DATA, data, n);
		data += n;
		len -= n;
	}
}

/* ---- the request's end ---- */

static void forget(struct proxy_floor *f)
{
	if (f->exchange)
		exchange_abandon(TAKE_PTR(f->exchange));
	free(TAKE_PTR(f->head));
	buf_done(&f->body);
	f->asked = false;
}

static void answered(struct proxy_floor *f)
{
	f->exchange = NULL;
	forget(f);
}

static void client_refuse(void *arg, const struct proxy_refusal *r, enum proxy_dialect d)
{
	struct proxy_floor *f = arg;
	cleanup_buf struct buf body;

	buf_init(&body, 16384);
	refusal_write(r, d, &body);
	put_head(f, r->status, "application/json", NULL);
	put_data(f, buf_str(&body), body.len);
	put(f, BROKER_END, NULL, 0);
	answered(f);
}

static void client_head(void *arg, int status, const struct httpc_call *call)
{
	const char *type = httpc_header(call, "Content-Type");

	put_head(arg, status, type ? type : "text/plain", call);
}

static void client_data(void *arg, const void *data, size_t len)
{
	put_data(arg, data, len);
}

static size_t client_backlog(void *arg)
{
	const struct proxy_floor *f = arg;

	return f->out_bytes;
}

static void client_end(void *arg)
{
	put(arg, BROKER_END, NULL, 0);
	answered(arg);
}

static void client_cut(void *arg)
{
	struct proxy_floor *f = arg;
	struct err err = ERR_INIT;

	(void)err_set_id(&err, ERRID_BROKER_AWAY, "the answer broke off");
	put_abort(f, f->head->id, &err);
	answered(f);
}

static const struct client_ops client_ops = {
	.refuse = client_refuse,
	.head = client_head,
	.data = client_data,
	.backlog = client_backlog,
	.end = client_end,
	.cut = client_cut,
};

/* ---- the request ---- */

static int admit(struct proxy_floor *f, const struct floor_head *h, struct err *err)
{
	const char *key = floor_header(h, "x-api-key");

	return proxy_admit(f->proxy, h->route, floor_header(h, "authorization"),
			   key ? key : floor_header(h, "x-goog-api-key"), err);
}

static void refuse(struct proxy_floor *f, const struct err *err)
{
	struct proxy_refusal r;
	struct request_id id;

	request_id_new(&random_real, &id);
	proxy_refuse(f->proxy, err, err_http_status(err), id.s, &r);
	client_refuse(f, &r, f->head->dialect);
}

static void drop_queue(struct proxy_floor *f)
{
	while (f->out) {
		struct packet *p = f->out;

		f->out = p->next;
		free(p);
	}
	f->out_last = NULL;
	f->out_bytes = 0;
}

static void on_head(struct proxy_floor *f, const char *json, size_t len)
{
	struct err err = ERR_INIT;

	forget(f);
	drop_queue(f);
	f->head = xnew(struct floor_head);
	if (floor_head_parse(json, len, f->head, &err) < 0) {
		pause_reading(f);
		if (f->head->id[0]) {
			refuse(f, &err);
		} else {
			proxy_count_refused(f->proxy, &err);
			put_abort(f, "", &err);
			forget(f);
		}
		return;
	}
	if (admit(f, f->head, &err) < 0) {
		refuse(f, &err);
		return;
	}
	buf_init(&f->body, f->head->body_bytes);
}

static void bad_frame(struct proxy_floor *f, const char *why)
{
	struct err err = ERR_INIT;

	(void)err_set_id(&err, ERRID_BROKER_FRAME, "%s", why);
	proxy_count_refused(f->proxy, &err);
	put_abort(f, f->head ? f->head->id : "", &err);
	forget(f);
	pause_reading(f);
}

static void on_request_end(struct proxy_floor *f)
{
	struct floor_head *h = f->head;
	const struct ask a = {
		.what = h->route->what,
		.dialect = h->dialect,
		.method = h->method,
		.url = h->url,
		.alt = h->alt,
		.headers = h->headers,
		.n_headers = proxy_takes_headers(h->route->what) ? h->n_headers : 0,
		.body = buf_str(&f->body),
		.len = f->body.len,
	};

	f->asked = true;
	f->exchange = exchange_begin(f->proxy, &a, &client_ops, f);
}

static void on_abort(struct proxy_floor *f, const char *json, size_t len)
{
	cleanup_json struct json *obj = NULL;
	struct err err = ERR_INIT;
	const char *id = NULL;

	/* Late ones are for a request that is over. */
	if (json_parse(json, len, 4, &obj, &err) == 0 &&
	    json_get_str(obj, "id", true, BROKER_ID_MAX, &id, &err) == 0 && f->head &&
	    str_eq(id, f->head->id))
		forget(f);
}

static void on_frame(struct proxy_floor *f, const char *data, size_t len)
{
	enum broker_frame type = (enum broker_frame)data[0];

	data++;
	len--;
	switch (type) {
	case BROKER_HEAD:
		on_head(f, data, len);
		return;
	case BROKER_ABORT:
		on_abort(f, data, len);
		return;
	case BROKER_DATA:
	case BROKER_END:
		break;
	default:
		bad_frame(f, "no such type");
		return;
	}
	/* What is left of a request that was refused already is passed over. */
	if (!f->head)
		return;
	if (f->asked || (type == BROKER_END ? len != 0 : len == 0)) {
		bad_frame(f, "not expected here");
	} else if (type == BROKER_DATA) {
		if (len > f->head->body_bytes - f->body.len)
			bad_frame(f, "more than body_bytes");
		else
			buf_add(&f->body, data, len);
	} else if (f->body.len != f->head->body_bytes) {
		bad_frame(f, "less than body_bytes");
	} else {
		on_request_end(f);
	}
}

/* ---- the descriptor ---- */

static void hang_up(struct proxy_floor *f)
{
	forget(f);
	loop_timer_disarm(f->pause);
	loop_io_set(f->io, 0);
}

/* False when there is nothing more to read now. */
static bool read_frame(struct proxy_floor *f)
{
	static char packet[BROKER_FRAME_MAX + 1];
	struct iovec iov = {packet, sizeof(packet)};
	/* No room for ancillary data: the kernel drops descriptors and says so. */
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n = recvmsg(f->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		/* An empty packet reads like the end; it is no frame either. */
		hang_up(f);
		return false;
	}
	if (m.msg_flags & MSG_CTRUNC)
		bad_frame(f, "descriptors are not taken");
	else if ((m.msg_flags & MSG_TRUNC) || n > BROKER_FRAME_MAX)
		bad_frame(f, "longer than 64 KiB");
	else
		on_frame(f, packet, (size_t)n);
	return true;
}

static void on_io(int fd UNUSED, unsigned what, void *arg)
{
	struct proxy_floor *f = arg;

	if (what & LOOP_WRITE) {
		if (!flush(f)) {
			hang_up(f);
			return;
		}
		if (f->exchange && f->out_bytes <= PROXY_BACKLOG_PAUSE_BYTES / 2)
			exchange_drained(f->exchange);
		watch(f);
	}
	if (what & LOOP_READ)
		for (int i = 0; i < FRAMES_PER_TURN && !f->is_paused && read_frame(f);
		     i++)
			;
}

int proxy_floor_new(struct proxy *p, int fd, struct proxy_floor **ret, struct err *err)
{
	cleanup_close int mine = fd;
	struct proxy_floor *f;
	int type = 0, domain = 0;
	socklen_t len = sizeof(int);

	if (getsockopt(mine, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
	    getsockopt(mine, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0)
		return err_sys(err, "the broker's descriptor");
	if (type != SOCK_SEQPACKET || domain != AF_UNIX)
		return err_set_id(err, ERRID_SANDBOX_SPAWNER,
				  "the broker's descriptor is no packet socket");
	f = xnew(struct proxy_floor);
	f->proxy = p;
	f->fd = TAKE_FD(mine);
	f->pause = loop_timer_new(proxy_config_of(p)->loop, on_pause_over, f);
	f->io = loop_io_new(proxy_config_of(p)->loop, f->fd, LOOP_READ, on_io, f);
	*ret = f;
	return 0;
}

void proxy_floor_free(struct proxy_floor *f)
{
	if (!f)
		return;
	forget(f);
	loop_timer_free(f->pause);
	loop_io_free(f->io);
	fd_close(&f->fd);
	drop_queue(f);
	free(f);
}
