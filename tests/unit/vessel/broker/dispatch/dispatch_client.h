/* SPDX-License-Identifier: Apache-2.0 */
/* The client before the dispatcher's double: what it sends, and what it has got so far. */
#ifndef LYCH_TESTS_UNIT_VESSEL_BROKER_DISPATCH_DISPATCH_CLIENT_H
#define LYCH_TESTS_UNIT_VESSEL_BROKER_DISPATCH_DISPATCH_CLIENT_H

#include "tests/support/dispatch_double.h"

/* What the client has got so far; true at the end of the connection. */
static inline bool receive(void)
{
	static char chunk[65536];
	ssize_t n;

	while ((n = recv(w.fd, chunk, sizeof(chunk), MSG_DONTWAIT)) > 0)
		buf_add(&w.got, chunk, (size_t)n);
	return n == 0 || errno != EAGAIN;
}

static inline bool has_got(const char *text)
{
	(void)receive();
	return strstr(buf_str(&w.got), text) != NULL;
}

static inline void send_to(const char *path, const char *body)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	cleanup_buf struct buf b;

	hang_up();
	buf_init(&b, 1 << 20);
	buf_reset(&w.got);
	w.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert(str_copy(to.sun_path, sizeof(to.sun_path), w.path) == 0);
	cr_assert(connect(w.fd, (struct sockaddr *)&to, sizeof(to)) == 0);
	buf_addf(&b,
		 "POST %s HTTP/1.1\r\nHost: lychgate\r\nContent-Length: %zu\r\n\r\n%s",
		 path, strlen(body), body);
	cr_assert(send(w.fd, b.data, b.len, MSG_NOSIGNAL) == (ssize_t)b.len);
}

#define ASK(model)                                                                       \
	"{\"seq\":1,\"dialect\":\"openai\",\"stream\":false,\"request\":{\"model\":"     \
	"\"" model "\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],"           \
	"\"max_tokens\":100}}"
#define FETCH                                                                            \
	"{\"seq\":1,\"method\":\"GET\",\"url\":\"https://a.example.org/one\","           \
	"\"headers\":[],\"body\":\"\"}"

#endif
