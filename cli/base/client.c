/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See client.h.
 */
#include "cli/base/client.h"

#include "cli/base/sse.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/crypto/factor.h"
#include "common/crypto/sha256.h"
#include "common/http1.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CONNECT_USEC (5 * USEC_PER_SEC)
#define CONNECT_NAP_MSEC 50
/* Of an answer that may take as long as it likes: a part of an upload may wait for a disk. */
#define ANSWER_SILENCE_USEC (60 * USEC_PER_SEC)

struct client {
	char *socket;
	struct http1 http;
};

/* One exchange in flight. */
struct exchange {
	struct client *c;
	struct buf body; /* of a JSON answer, or of any refusal */
	client_sink *sink;
	void *sink_arg;
	struct sse *sse;
	const struct client_events *ev;
	usec_t until; /* no answer by then is an error; 0: as long as something comes */
	usec_t heard; /* when the last bytes came */
	struct http1_head head;
};

int client_new(const char *socket_path, struct client **ret, struct err *err)
{
	struct client *c;

	if (strlen(socket_path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return err_set_id(
			err, ERRID_HTTP_AWAY, "%s: a socket's path has at most %zu bytes",
			socket_path, sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1);
	c = xnew(struct client);
	c->socket = xstrdup(socket_path);
	*ret = c;
	return 0;
}

void client_free(struct client *c)
{
	if (!c)
		return;
	free(c->socket);
	free(c);
}

static int away(const struct client *c, const char *why, struct err *err)
{
	return err_set_id(err, ERRID_HTTP_AWAY, "%s: %s", c->socket, why);
}

/* A vessel that is stopped accepts nobody, and its queue fills (EAGAIN). Who waits for room
 * hears an interrupt. sys is ECONNREFUSED when nothing can have been heard by anybody. */
static int open_socket(const struct client *c, const struct client_events *ev,
		       struct err *err)
{
	const usec_t until = clock_boot_usec() + CONNECT_USEC;
	struct pollfd wake = {.fd = ev ? ev->wake_fd : -1, .events = POLLIN};
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	cleanup_close int fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_sys_id(err, ERRID_HTTP_AWAY, "socket");
	(void)!str_copy(to.sun_path, sizeof(to.sun_path), c->socket);
	while (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0) {
		if (errno != EAGAIN || clock_boot_usec() > until) {
			(void)away(c,
				   errno == EAGAIN ? "no answer in time"
						   : strerror(errno),
				   err);
			err->sys = ECONNREFUSED;
			return -1;
		}
		if (poll(&wake, 1, CONNECT_NAP_MSEC) > 0 && ev &&
		    ev->on_wake(ev->arg, err) < 0)
			return -1;
	}
	return TAKE_FD(fd);
}

static bool is_refusal(const struct exchange *x)
{
	return x->head.status < 200 || x->head.status > 299;
}

/* The last exchange of this process brought something to be read. */
static bool is_answered;

bool client_is_misread(const struct err *err)
{
	return is_answered &&
	       (err->id == ERRID_SPEC_KEY || err->id == ERRID_SPEC_TYPE ||
		err->id == ERRID_SPEC_RANGE || err->id == ERRID_SPEC_MISSING);
}

/* What was wrong with it is not the user's mistake. */
static int not_acceptable(struct err *err)
{
	struct err why = *err;

	*err = (struct err)ERR_INIT;
	return err_set_id(err, ERRID_HTTP_ANSWER, "%s", why.msg);
}

static int on_sse(const char *event, const char *data, size_t len, void *arg,
		  struct err *err)
{
	struct exchange *x = arg;
	cleanup_json struct json *j = NULL;

	if (json_parse(data, len, JSON_DEPTH_DEFAULT, &j, err) < 0)
		return not_acceptable(err);
	return x->ev->on_event(event, j, x->ev->arg, err);
}

static int on_data(const void *data, size_t len, void *arg, struct err *err)
{
	struct exchange *x = arg;
	int r;

	if (is_refusal(x) || (!x->sink && !x->sse)) {
		buf_add(&x->body, data, len);
		return buf_ok(&x->body) ? 0
					: err_set_id(err, ERRID_HTTP_ANSWER,
						     "the answer is too large");
	}
	r = x->sink ? x->sink(data, len, x->sink_arg, err)
		    : sse_feed(x->sse, data, len, on_sse, x, err);
	x->heard = clock_boot_usec(); /* what it took to write it out is not silence */
	return r;
}

static int refusal(struct exchange *x, const struct client_request *rq, struct err *err)
{
	cleanup_json struct json *j = NULL;
	const char *code = "", *detail = "", *title = "";
	struct err bad = ERR_INIT;
	enum err_id id;

	if (json_parse(buf_str(&x->body), x->body.len, JSON_DEPTH_DEFAULT, &j, &bad) <
		    0 ||
	    json_get_str(j, "error_code", true, 64, &code, &bad) < 0 ||
	    json_get_str(j, "title", false, 512, &title, &bad) < 0 ||
	    json_get_str(j, "detail", false, 2048, &detail, &bad) < 0)
		return err_set_id(err, ERRID_HTTP_ANSWER,
				  "the vessel answered %d without an error",
				  x->head.status);
	if (rq->ret_expected)
		(void)!json_get_u64(j, "expected", false, 0, INT64_MAX, rq->ret_expected,
				    &bad);
	id = err_id_from_text(code);
	if (id == ERRID_NONE)
		return err_set_id(err, ERRID_HTTP_ANSWER, "%s: %s: %s", code, title,
				  detail);
	return err_set_id(err, id, "%s", detail[0] ? detail : title);
}

/* -1: nobody is beside. */
static int side_of(const struct client_events *ev)
{
	return ev && ev->on_side ? ev->side_fd(ev->arg) : -1;
}

/* The socket beside the wake descriptor; struct http1's wait(). */
static int wait_for(short events, void *arg, struct err *err)
{
	struct exchange *x = arg;
	const usec_t patience = x->ev ? CLIENT_SILENCE_USEC : ANSWER_SILENCE_USEC;
	const bool has_side = x->ev && x->ev->on_side;

	for (;;) {
		struct pollfd fds[] = {
			{.fd = x->c->http.fd, .events = events},
			{.fd = x->ev ? x->ev->wake_fd : -1, .events = POLLIN},
			{.fd = side_of(x->ev), .events = POLLIN},
		};
		int n = poll(fds, ARRAY_SIZE(fds), 250);
		usec_t now = clock_boot_usec();

		if (n < 0 && errno != EINTR)
			return err_sys_id(err, ERRID_HTTP_AWAY, "poll");
		if (n > 0 && x->ev && fds[1].revents &&
		    x->ev->on_wake(x->ev->arg, err) < 0)
			return -1;
		/* not when the other side has gone: what it said last is read first */
		if (has_side && (n <= 0 || !(fds[0].revents & (POLLHUP | POLLERR))) &&
		    x->ev->on_side(n > 0 && fds[2].revents, x->ev->arg, err) < 0)
			return -1;
		if (x->until && now > x->until)
			return away(x->c, "no answer in time", err);
		if (n > 0 && fds[0].revents) {
			if (!x->ev)
				x->heard = now;
			return 0;
		}
		if (!x->until && now - x->heard > patience)
			return err_set_id(err, ERRID_HTTP_AWAY,
					  "%s: it has been silent for %u s", x->c->socket,
					  (unsigned)(patience / USEC_PER_SEC));
	}
}

/* A connection of its own: a kept one may be closed just when it is used again. */
static int send_request(struct exchange *x, const struct client_request *rq,
			struct err *err)
{
	cleanup_buf struct buf head = {.max = 65536};

	buf_addf(&head,
		 "%s %s HTTP/1.1\r\nHost: lychgate\r\nConnection: close\r\n"
		 "Content-Type: application/%s\r\n",
		 rq->method, rq->target, rq->raw ? "octet-stream" : "json");
	if (x->ev && x->ev->last_id[0])
		buf_addf(&head, "Last-Event-ID: %s\r\n", x->ev->last_id);
	if (rq->proof)
		buf_addf(&head, FACTOR_HEADER ": %s\r\n", rq->proof);
	if (str_eq(rq->method, "POST") || str_eq(rq->method, "PUT"))
		buf_addf(&head, "Content-Length: %zu\r\n", rq->body_len);
	buf_adds(&head, "\r\n");
	return http1_request(&x->c->http, &head, rq->body, rq->body_len, err);
}

static int exchange_run(struct exchange *x, const struct client_request *rq,
			int *ret_status, struct err *err)
{
	struct http1 *http = &x->c->http;
	int r = -1;

	is_answered = false;
	*http = (struct http1){.wait = wait_for, .arg = x, .bad = ERRID_HTTP_AWAY};
	x->head = (struct http1_head){0};
	x->heard = clock_boot_usec();
	x->until =
		rq->timeout_ms ? clock_boot_usec() + rq->timeout_ms * USEC_PER_MSEC : 0;
	http->fd = open_socket(x->c, x->ev, err);
	if (http->fd < 0)
		return -1;
	if (send_request(x, rq, err) == 0 &&
	    http1_head(http, &x->head, NULL, NULL, err) == 0) {
		is_answered = !is_refusal(x);
		r = http1_body(http, &x->head, on_data, x, err);
	}
	if (r == 0 && is_refusal(x))
		r = refusal(x, rq, err);
	if (ret_status)
		*ret_status = x->head.status;
	fd_close(&http->fd);
	return r < 0 ? -1 : 0;
}

int client_json(struct client *c, const struct client_request *rq, struct json **ret,
		int *ret_status, struct err *err)
{
	struct exchange x = {.c = c};
	int r;

	buf_init(&x.body, CLIENT_REPLY_MAX);
	r = exchange_run(&x, rq, ret_status, err);
	if (r == 0 &&
	    json_parse(buf_str(&x.body), x.body.len, JSON_DEPTH_DEFAULT, ret, err) < 0)
		r = not_acceptable(err);
	buf_done(&x.body);
	return r;
}

int client_status(struct client *c, struct json **ret, bool *ret_ready, struct err *err)
{
	const struct client_request rq = {
		.method = "GET", .target = "/v1/status", .timeout_ms = 5000};
	cleanup_json struct json *said = NULL;
	const struct json *database = NULL;

	*ret_ready = false;
	if (client_json(c, &rq, &said, NULL, err) < 0 ||
	    json_get_obj(said, "database", true, &database, err) < 0 ||
	    json_get_bool(database, "up", true, ret_ready, err) < 0)
		return -1;
	*ret = TAKE_PTR(said);
	return 0;
}

int client_raw(struct client *c, const struct client_request *rq, client_sink *sink,
	       void *arg, struct err *err)
{
	struct exchange x = {.c = c, .sink = sink, .sink_arg = arg};
	int r;

	buf_init(&x.body, CLIENT_REPLY_MAX);
	r = exchange_run(&x, rq, NULL, err);
	buf_done(&x.body);
	return r;
}

int client_stream(struct client *c, const char *target, const struct client_events *ev,
		  struct err *err)
{
	const struct client_request rq = {.method = "GET", .target = target};
	struct sse sse;
	struct exchange x = {.c = c, .sse = &sse, .ev = ev};
	int r;

	sse_init(&sse);
	memcpy(sse.id, ev->last_id, sizeof(sse.id));
	memcpy(sse.next_id, ev->last_id, sizeof(sse.next_id));
	buf_init(&x.body, CLIENT_REPLY_MAX);
	r = exchange_run(&x, &rq, NULL, err);
	buf_done(&x.body);
	memcpy(ev->last_id, sse.id, sizeof(sse.id));
	sse_done(&sse);
	return r;
}

/* ---- uploads -------------------------------------------------------------- */

static int upload_begin(struct client *c, char id[33], struct err *err)
{
	const struct client_request rq = {
		.method = "POST", .target = "/v1/uploads", .body = "{}", .body_len = 2};
	cleanup_json struct json *j = NULL;
	const char *s;

	if (client_json(c, &rq, &j, NULL, err) < 0 ||
	    json_get_str(j, "upload", true, 32, &s, err) < 0)
		return err_wrap(err, "upload");
	if (strlen(s) != 32 || strspn(s, "0123456789abcdef") != 32 ||
	    str_copy(id, 33, s) < 0)
		return err_set_id(err, ERRID_HTTP_ANSWER,
				  "an upload's id has another form");
	return 0;
}

static int upload_part(struct client *c, const char *id, const void *data, size_t len,
		       uint64_t offset, struct err *err)
{
	cleanup_free char *target =
		xasprintf("/v1/uploads/%s?offset=%llu", id, (unsigned long long)offset);
	const struct client_request rq = {.method = "PUT",
					  .target = target,
					  .body = data,
					  .body_len = len,
					  .raw = true};
	cleanup_json struct json *j = NULL;
	uint64_t received;

	if (client_json(c, &rq, &j, NULL, err) < 0 ||
	    json_get_u64(j, "received", true, offset + len, offset + len, &received,
			 err) < 0)
		return err_wrap(err, "upload");
	return 0;
}

static int upload_commit(struct client *c, const char *id, const char *sha256,
			 uint64_t size, struct err *err)
{
	cleanup_free char *target = xasprintf("/v1/uploads/%s/commit", id);
	cleanup_buf struct buf body = {0};
	cleanup_json struct json *j = NULL;
	struct client_request rq = {.method = "POST", .target = target};
	struct jsonw w;

	buf_init(&body, 256);
	jsonw_init(&w, &body);
	jsonw_obj(&w);
	jsonw_kstr(&w, "sha256", sha256);
	jsonw_ku64(&w, "size", size);
	jsonw_obj_end(&w);
	rq.body = buf_str(&body);
	rq.body_len = body.len;
	return client_json(c, &rq, &j, NULL, err);
}

/* What came so far would take space until the vessel's sweep. A commit to the sha256 of
 * other bytes is refused, and the upload is gone. */
static void upload_abandon(struct client *c, const char *id, uint64_t received)
{
	struct err ignored = ERR_INIT;
	char sha256[65];

	memset(sha256, '0', sizeof(sha256) - 1);
	sha256[sizeof(sha256) - 1] = '\0';
	(void)!upload_commit(c, id, sha256, received, &ignored);
}

static int upload_parts(struct client *c, const char *id, client_source *source,
			void *arg, struct sha256 *sum, uint64_t *offset, struct err *err)
{
	cleanup_free char *part = xmalloc(UPLOAD_PART_MAX_BYTES);

	for (;;) {
		size_t n = 0;

		if (source(part, UPLOAD_PART_MAX_BYTES, &n, arg, err) < 0)
			return -1;
		if (n == 0)
			return 0;
		if (*offset + n > BLOB_MAX_BYTES)
			return err_set_id(err, ERRID_STORE_LIMIT,
					  "a blob has at most %llu bytes",
					  (unsigned long long)BLOB_MAX_BYTES);
		sha256_add(sum, part, n);
		if (upload_part(c, id, part, n, *offset, err) < 0)
			return -1;
		*offset += n;
	}
}

int client_upload(struct client *c, client_source *source, void *arg, char ret_sha256[65],
		  uint64_t *ret_size, struct err *err)
{
	cleanup_sha256 struct sha256 *sum = sha256_new();
	uint64_t offset = 0;
	char id[33];

	if (upload_begin(c, id, err) < 0)
		return -1;
	if (upload_parts(c, id, source, arg, sum, &offset, err) < 0) {
		upload_abandon(c, id, offset);
		return -1;
	}
	sha256_hex(sum, ret_sha256);
	*ret_size = offset;
	return upload_commit(c, id, ret_sha256, offset, err);
}
