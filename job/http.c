/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the job.
 * A request to the job's own loopback: what comes is the tomb's, but its head tells of a
 * stranger's server (common/http1.h). One request a connection.
 */
#include "job/client.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/http1.h"
#include "common/proto/broker_proto.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static int open_loopback(struct err *err)
{
	const struct sockaddr_in to = {.sin_family = AF_INET,
				       .sin_port = htons(BROKER_PORT),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	cleanup_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return err_sys_id(err, ERRID_BROKER_SILENT, "socket");
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		return err_sys_id(err, ERRID_BROKER_SILENT, "connect to " BROKER_HOST);
	return TAKE_FD(fd);
}

static int send_request(struct http1 *h, const struct client_request *rq, struct err *err)
{
	cleanup_buf struct buf head = {.max = 65536};

	buf_addf(&head,
		 "%s %s HTTP/1.1\r\nhost: " BROKER_HOST "\r\nconnection: close\r\n",
		 rq->method, rq->path);
	for (size_t i = 0; i < rq->n_headers; i++)
		buf_addf(&head, "%s: %s\r\n", rq->headers[i].name, rq->headers[i].value);
	if (rq->body)
		buf_addf(&head, "content-length: %zu\r\n", rq->len);
	buf_adds(&head, "\r\n");
	return http1_request(h, &head, rq->body, rq->body ? rq->len : 0, err);
}

static void on_header(const char *name, const char *value, void *arg)
{
	client_reply_header(arg, name, value);
}

int http_call(const struct client_request *rq, const struct client_ops *ops,
	      struct err *err)
{
	static struct http1 h;
	struct client_reply reply = {0};
	struct http1_head head;
	int r = -1;

	h.at = h.len = 0;
	h.bad = ERRID_BROKER_ANSWER;
	h.fd = open_loopback(err);
	if (h.fd < 0)
		return -1;
	if (send_request(&h, rq, err) < 0 ||
	    http1_head(&h, &head, on_header, &reply, err) < 0)
		goto out;
	reply.status = head.status;
	if (ops->head(&reply, ops->arg, err) == 0)
		r = http1_body(&h, &head, ops->data, ops->arg, err);
out:
	fd_close(&h.fd);
	return r;
}
