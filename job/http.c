/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 to the job's own loopback: one request a connection. What comes is the tomb's,
 * but its head tells of a stranger's server: every length is checked, and an answer that
 * does not come to its own end is an error, not a short answer.
 */
#include "job/client.h"

#include "common/broker_proto.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINE_MAX_BYTES 16384
#define HEAD_LINES_MAX 128

struct conn {
	int fd;
	char in[65536];
	size_t at, len; /* what of in[] is not taken yet */
};

static int cut(struct err *err)
{
	return err_set_id(err, ERRID_BROKER_ANSWER, "it was cut off");
}

static int no_http(struct err *err)
{
	return err_set_id(err, ERRID_BROKER_ANSWER, "it is not HTTP");
}

static int conn_open(struct conn *c, struct err *err)
{
	const struct sockaddr_in to = {.sin_family = AF_INET,
				       .sin_port = htons(BROKER_PORT),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return err_sys_id(err, ERRID_BROKER_SILENT, "socket");
	if (connect(c->fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		return err_sys_id(err, ERRID_BROKER_SILENT, "connect to " BROKER_HOST);
	return 0;
}

/* false: the other side has closed. It may have answered before. */
static bool send_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

static int send_request(struct conn *c, const struct client_request *rq, struct err *err)
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
	if (!buf_ok(&head))
		return err_set_id(err, ERRID_CORE_USAGE, "the request is too long");
	if (send_all(c->fd, head.data, head.len) && rq->body)
		(void)send_all(c->fd, rq->body, rq->len);
	return 0;
}

/* 1: there is something; 0: the end. */
static int fill(struct conn *c, struct err *err)
{
	ssize_t n;

	if (c->at < c->len)
		return 1;
	do
		n = recv(c->fd, c->in, sizeof(c->in), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys_id(err, ERRID_BROKER_ANSWER, "read");
	c->at = 0;
	c->len = (size_t)n;
	return n > 0;
}

/* Without its CRLF. */
static int read_line(struct conn *c, char line[LINE_MAX_BYTES], struct err *err)
{
	size_t n = 0;

	for (;;) {
		int r = fill(c, err);
		char byte;

		if (r < 0)
			return -1;
		if (r == 0)
			return cut(err);
		byte = c->in[c->at++];
		if (byte == '\n')
			break;
		if (n + 1 == LINE_MAX_BYTES || byte == '\0')
			return no_http(err);
		line[n++] = byte;
	}
	if (n == 0 || line[n - 1] != '\r')
		return no_http(err);
	line[n - 1] = '\0';
	return 0;
}

struct framing {
	bool chunked, sized;
	uint64_t size;
};

static int take_header(char *line, struct client_reply *reply, struct framing *f,
		       struct err *err)
{
	char *colon = strchr(line, ':'), *value;
	size_t n;

	if (!colon || colon == line)
		return no_http(err);
	*colon = '\0';
	value = colon + 1 + strspn(colon + 1, " \t");
	for (n = strlen(value); n && (value[n - 1] == ' ' || value[n - 1] == '\t'); n--)
		value[n - 1] = '\0';
	if (strcasecmp(line, "transfer-encoding") == 0) {
		if (f->chunked || strcasecmp(value, "chunked") != 0)
			return no_http(err);
		f->chunked = true;
	} else if (strcasecmp(line, "content-length") == 0) {
		if (f->sized || parse_u64(value, 0, UINT64_MAX, &f->size, NULL) < 0)
			return no_http(err);
		f->sized = true;
	}
	client_reply_header(reply, line, value);
	return 0;
}

static int read_head(struct conn *c, struct client_reply *reply, struct framing *f,
		     struct err *err)
{
	char line[LINE_MAX_BYTES] = "";
	uint64_t status = 0;

	if (read_line(c, line, err) < 0)
		return -1;
	if (!str_starts(line, "HTTP/1.1 ") || strlen(line) < 12 ||
	    (line[12] && line[12] != ' '))
		return no_http(err);
	line[12] = '\0';
	if (parse_u64(line + 9, 200, 599, &status, NULL) < 0)
		return no_http(err);
	reply->status = (int)status;
	for (unsigned i = 0;; i++) {
		if (i == HEAD_LINES_MAX)
			return no_http(err);
		if (read_line(c, line, err) < 0)
			return -1;
		if (!line[0])
			break;
		if (take_header(line, reply, f, err) < 0)
			return -1;
	}
	return f->chunked && f->sized ? no_http(err) : 0;
}

static int pass_on(struct conn *c, uint64_t size, const struct client_ops *ops,
		   struct err *err)
{
	while (size) {
		size_t n;
		int r = fill(c, err);

		if (r < 0)
			return -1;
		if (r == 0)
			return cut(err);
		n = c->len - c->at < size ? c->len - c->at : (size_t)size;
		if (ops->data(c->in + c->at, n, ops->arg, err) < 0)
			return -1;
		c->at += n;
		size -= n;
	}
	return 0;
}

static int chunk_size(const char *line, uint64_t *ret, struct err *err)
{
	size_t n = strspn(line, "0123456789abcdefABCDEF");

	if (n == 0 || n > 8 || (line[n] && line[n] != ';'))
		return no_http(err);
	*ret = 0;
	for (size_t i = 0; i < n; i++) {
		char d = line[i];

		*ret = *ret * 16 + (uint64_t)(d <= '9'	 ? d - '0'
					      : d <= 'F' ? d - 'A' + 10
							 : d - 'a' + 10);
	}
	return 0;
}

static int read_chunks(struct conn *c, const struct client_ops *ops, struct err *err)
{
	char line[LINE_MAX_BYTES];
	uint64_t size = 0;

	do {
		if (read_line(c, line, err) < 0 || chunk_size(line, &size, err) < 0 ||
		    pass_on(c, size, ops, err) < 0 || read_line(c, line, err) < 0)
			return -1;
		if (line[0])
			return no_http(err);
	} while (size);
	return 0;
}

int http_call(const struct client_request *rq, const struct client_ops *ops,
	      struct err *err)
{
	static struct conn c;
	struct client_reply reply = {0};
	struct framing f = {0};
	int r = -1;

	c.at = c.len = 0;
	if (conn_open(&c, err) == 0 && send_request(&c, rq, err) == 0 &&
	    read_head(&c, &reply, &f, err) == 0 && ops->head(&reply, ops->arg, err) == 0)
		r = f.chunked ? read_chunks(&c, ops, err) : pass_on(&c, f.size, ops, err);
	fd_close(&c.fd);
	return r;
}
