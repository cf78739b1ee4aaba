/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the job.
 * The frames of common/proto/broker_proto.h. All processes of the job share the descriptor, and
 * it carries one request at a time: each client holds a POSIX lock of the whole socket
 * (of the process, not of the open file, which all of them have in common), so those of
 * the job wait for one another. One that was killed leaves the rest of its answer behind;
 * the next one passes over it to the head that bears its own id.
 */
#include "job/client.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/id.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/proto/broker_proto.h"
#include "common/str.h"
#include "job/pick.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

struct channel {
	int fd;
	struct request_id id;
	char frame[BROKER_FRAME_MAX + 1];
	size_t len; /* of the frame behind its type */
};

static int lock(int fd, struct err *err)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	while (fcntl(fd, F_SETLKW, &all) < 0)
		if (errno != EINTR)
			return err_sys_id(err, ERRID_BROKER_SILENT, "lock descriptor %d",
					  fd);
	return 0;
}

static int put(struct channel *c, enum broker_frame type, const void *data, size_t len,
	       struct err *err)
{
	c->frame[0] = (char)type;
	memcpy(c->frame + 1, data, len);
	while (send(c->fd, c->frame, len + 1, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return err_sys_id(err, ERRID_BROKER_SILENT,
					  "write to descriptor %d", c->fd);
	return 0;
}

static int put_request(struct channel *c, const struct client_request *rq,
		       struct err *err)
{
	cleanup_buf struct buf head = {.max = BROKER_HEAD_MAX};
	struct jsonw w;

	jsonw_init(&w, &head);
	jsonw_obj(&w);
	jsonw_kstr(&w, "id", c->id.s);
	jsonw_kstr(&w, "method", rq->method);
	jsonw_kstr(&w, "path", rq->path);
	jsonw_key(&w, "headers");
	jsonw_obj(&w);
	for (size_t i = 0; i < rq->n_headers; i++)
		jsonw_kstr(&w, rq->headers[i].name, rq->headers[i].value);
	jsonw_obj_end(&w);
	jsonw_ku64(&w, "body_bytes", rq->body ? rq->len : 0);
	jsonw_obj_end(&w);
	if (!buf_ok(&head))
		return err_set_id(err, ERRID_CORE_USAGE, "the request is too long");
	if (put(c, BROKER_HEAD, head.data, head.len, err) < 0)
		return -1;
	for (size_t at = 0; rq->body && at < rq->len; at += BROKER_FRAME_MAX - 1) {
		size_t n = rq->len - at;

		if (n > BROKER_FRAME_MAX - 1)
			n = BROKER_FRAME_MAX - 1;
		if (put(c, BROKER_DATA, rq->body + at, n, err) < 0)
			return -1;
	}
	return put(c, BROKER_END, "", 0, err);
}

static int take(struct channel *c, struct err *err)
{
	ssize_t n;

	do
		n = recv(c->fd, c->frame, sizeof(c->frame), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys_id(err, ERRID_BROKER_SILENT, "read descriptor %d", c->fd);
	if (n == 0)
		return err_set_id(err, ERRID_BROKER_ANSWER, "it was cut off");
	if (n > BROKER_FRAME_MAX)
		return err_set_id(err, ERRID_BROKER_ANSWER, "a frame that is too long");
	c->len = (size_t)n - 1;
	return 0;
}

static bool is_ours(const struct channel *c)
{
	cleanup_buf struct buf id = {.max = BROKER_ID_MAX + 1};

	return pick_text(c->frame + 1, c->len, "id", &id) &&
	       str_eq(buf_str(&id), c->id.s);
}

static void keep_header(const struct channel *c, const char *name, const char *path,
			struct client_reply *reply)
{
	cleanup_buf struct buf value = {.max = 1024};

	if (pick_text(c->frame + 1, c->len, path, &value))
		client_reply_header(reply, name, buf_str(&value));
}

/* X with our id: the reason is the answer. */
static int aborted(const struct channel *c, struct err *err)
{
	cleanup_buf struct buf code = {.max = 64}, reason = {.max = 512};

	(void)pick_text(c->frame + 1, c->len, "code", &code);
	(void)pick_text(c->frame + 1, c->len, "reason", &reason);
	return err_set_id(err, ERRID_BROKER_ANSWER, "%s%s%.180s", buf_str(&code),
			  code.len ? ": " : "", buf_str(&reason));
}

/* Up to our own head. */
static int take_head(struct channel *c, struct client_reply *reply, struct err *err)
{
	uint64_t status = 0;

	for (;;) {
		if (take(c, err) < 0)
			return -1;
		if (c->frame[0] == BROKER_ABORT && is_ours(c))
			return aborted(c, err);
		if (c->frame[0] == BROKER_HEAD && is_ours(c))
			break;
	}
	if (!pick_u64(c->frame + 1, c->len, "status", 599, &status) || status < 200)
		return err_set_id(err, ERRID_BROKER_ANSWER, "a head without a status");
	reply->status = (int)status;
	keep_header(c, "content-type", "headers.content-type", reply);
	keep_header(c, "retry-after", "headers.retry-after", reply);
	keep_header(c, "lychgate-upstream-status", "headers.lychgate-upstream-status",
		    reply);
	return 0;
}

static int take_body(struct channel *c, const struct client_ops *ops, struct err *err)
{
	for (;;) {
		if (take(c, err) < 0)
			return -1;
		if (c->frame[0] == BROKER_END)
			return 0;
		if (c->frame[0] == BROKER_ABORT)
			return aborted(c, err);
		if (c->frame[0] != BROKER_DATA)
			return err_set_id(err, ERRID_BROKER_ANSWER,
					  "a frame that has no place there");
		if (ops->data(c->frame + 1, c->len, ops->arg, err) < 0)
			return -1;
	}
}

/* It is of no use to anybody any more. */
static void give_up(struct channel *c)
{
	char text[64];
	struct err ignored = ERR_INIT;
	int n = snprintf(text, sizeof(text), "{\"id\":\"%s\"}", c->id.s);

	(void)!put(c, BROKER_ABORT, text, (size_t)n, &ignored);
}

int frames_call(int fd, const struct client_request *rq, const struct client_ops *ops,
		struct err *err)
{
	static struct channel c;
	struct client_reply reply = {0};

	c.fd = fd;
	request_id_new(&random_real, &c.id);
	if (lock(fd, err) < 0 || put_request(&c, rq, err) < 0 ||
	    take_head(&c, &reply, err) < 0)
		return -1;
	if (ops->head(&reply, ops->arg, err) == 0 && take_body(&c, ops, err) == 0)
		return 0;
	give_up(&c);
	return -1;
}
