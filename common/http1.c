/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See http1.h.
 */
#include "common/http1.h"

#include "common/str.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

static int cut(const struct http1 *h, struct err *err)
{
	return err_set_id(err, h->bad, "it was cut off");
}

static int no_http(const struct http1 *h, struct err *err)
{
	return err_set_id(err, h->bad, "it is not HTTP");
}

int http1_send(struct http1 *h, const void *data, size_t len, struct err *err)
{
	const char *p = data;

	while (len) {
		ssize_t n =
			send(h->fd, p, len, MSG_NOSIGNAL | (h->wait ? MSG_DONTWAIT : 0));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN && h->wait) {
			if (h->wait(POLLOUT, h->arg, err) < 0)
				return -1;
			continue;
		}
		if (n <= 0)
			return 0;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int http1_request(struct http1 *h, const struct buf *head, const void *body, size_t len,
		  struct err *err)
{
	if (!buf_ok(head))
		return err_set_id(err, ERRID_CORE_USAGE, "the request is too long");
	return http1_send(h, head->data, head->len, err) < 0 ||
			       http1_send(h, body, len, err) < 0
		       ? -1
		       : 0;
}

/* 1: there is something; 0: the end. */
static int fill(struct http1 *h, struct err *err)
{
	ssize_t n;

	if (h->at < h->len)
		return 1;
	do {
		if (h->wait && h->wait(POLLIN, h->arg, err) < 0)
			return -1;
		n = recv(h->fd, h->in, sizeof(h->in), h->wait ? MSG_DONTWAIT : 0);
	} while (n < 0 && (errno == EINTR || (errno == EAGAIN && h->wait)));
	if (n < 0)
		return err_sys_id(err, h->bad, "read");
	h->at = 0;
	h->len = (size_t)n;
	return n > 0;
}

/* Without its CRLF. */
static int read_line(struct http1 *h, char line[HTTP1_LINE_MAX_BYTES], struct err *err)
{
	size_t n = 0;

	for (;;) {
		int r = fill(h, err);
		char byte;

		if (r < 0)
			return -1;
		if (r == 0)
			return cut(h, err);
		byte = h->in[h->at++];
		if (byte == '\n')
			break;
		if (n + 1 == HTTP1_LINE_MAX_BYTES || byte == '\0')
			return no_http(h, err);
		line[n++] = byte;
	}
	if (n == 0 || line[n - 1] != '\r')
		return no_http(h, err);
	line[n - 1] = '\0';
	return 0;
}

/* "Name: value", taken apart in place; *ret_value without the blanks around it. */
static int take_header(const struct http1 *h, char *line, struct http1_head *head,
		       const char **ret_value, struct err *err)
{
	char *colon = strchr(line, ':'), *value;
	size_t n;

	if (!colon || colon == line)
		return no_http(h, err);
	*colon = '\0';
	value = colon + 1 + strspn(colon + 1, " \t");
	for (n = strlen(value); n && (value[n - 1] == ' ' || value[n - 1] == '\t'); n--)
		value[n - 1] = '\0';
	if (strcasecmp(line, "transfer-encoding") == 0) {
		if (head->chunked || strcasecmp(value, "chunked") != 0)
			return no_http(h, err);
		head->chunked = true;
	} else if (strcasecmp(line, "content-length") == 0) {
		if (head->sized || parse_u64(value, 0, UINT64_MAX, &head->size, NULL) < 0)
			return no_http(h, err);
		head->sized = true;
	}
	*ret_value = value;
	return 0;
}

int http1_head(struct http1 *h, struct http1_head *ret, http1_header *header, void *arg,
	       struct err *err)
{
	char line[HTTP1_LINE_MAX_BYTES] = "";
	const char *value = "";
	uint64_t status = 0;

	*ret = (struct http1_head){0};
	if (read_line(h, line, err) < 0)
		return -1;
	if (!str_starts(line, "HTTP/1.1 ") || strlen(line) < 12 ||
	    (line[12] && line[12] != ' '))
		return no_http(h, err);
	line[12] = '\0';
	if (parse_u64(line + 9, 200, 599, &status, NULL) < 0)
		return no_http(h, err);
	ret->status = (int)status;
	for (unsigned i = 0;; i++) {
		if (i == HTTP1_HEAD_LINES_MAX)
			return no_http(h, err);
		if (read_line(h, line, err) < 0)
			return -1;
		if (!line[0])
			break;
		if (take_header(h, line, ret, &value, err) < 0)
			return -1;
		if (header)
			header(line, value, arg);
	}
	if (ret->chunked && ret->sized)
		return no_http(h, err);
	/* A body that ends where the connection does may have been cut anywhere. */
	if (!ret->chunked && !ret->sized && ret->status != 204 && ret->status != 304)
		return no_http(h, err);
	return 0;
}

static int pass_on(struct http1 *h, uint64_t size, http1_data *data, void *arg,
		   struct err *err)
{
	while (size) {
		size_t n;
		int r = fill(h, err);

		if (r < 0)
			return -1;
		if (r == 0)
			return cut(h, err);
		n = h->len - h->at < size ? h->len - h->at : (size_t)size;
		r = data(h->in + h->at, n, arg, err);
		if (r != 0)
			return r;
		h->at += n;
		size -= n;
	}
	return 0;
}

static int chunk_size(const struct http1 *h, const char *line, uint64_t *ret,
		      struct err *err)
{
	size_t n = strspn(line, "0123456789abcdefABCDEF");

	if (n == 0 || n > 8 || (line[n] && line[n] != ';'))
		return no_http(h, err);
	*ret = 0;
	for (size_t i = 0; i < n; i++) {
		char d = line[i];

		*ret = *ret * 16 + (uint64_t)(d <= '9'	 ? d - '0'
					      : d <= 'F' ? d - 'A' + 10
							 : d - 'a' + 10);
	}
	return 0;
}

static int read_chunks(struct http1 *h, http1_data *data, void *arg, struct err *err)
{
	char line[HTTP1_LINE_MAX_BYTES] = "";
	uint64_t size = 0;
	int r;

	do {
		if (read_line(h, line, err) < 0 || chunk_size(h, line, &size, err) < 0)
			return -1;
		r = pass_on(h, size, data, arg, err);
		if (r != 0)
			return r;
		if (read_line(h, line, err) < 0)
			return -1;
		if (line[0])
			return no_http(h, err);
	} while (size);
	return 0;
}

int http1_body(struct http1 *h, const struct http1_head *head, http1_data *data,
	       void *arg, struct err *err)
{
	return head->chunked ? read_chunks(h, data, arg, err)
			     : pass_on(h, head->size, data, arg, err);
}
