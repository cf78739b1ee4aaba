/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider of models that costs next to nothing itself, so that what is added to it is
 * seen: one process, every answer the same. Prints "port N" and serves until its standard
 * input ends.
 */
#include "tests/bench/die.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS_MAX 512
#define REQUEST_MAX 65536

#define ANSWER_BODY                                                                      \
	"{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":1,"           \
	"\"model\":\"small\",\"choices\":[{\"index\":0,\"finish_reason\":\"stop\","      \
	"\"message\":{\"role\":\"assistant\",\"content\":\"a short answer\"}}],"         \
	"\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,\"total_tokens\":10}}"

struct client {
	char data[REQUEST_MAX + 1];
	size_t len;
};

static struct pollfd polled[CLIENTS_MAX + 2]; /* standard input, the listener, clients */
static struct client *client[CLIENTS_MAX + 2];
static nfds_t n_polled;
static char answer[1024];

/* The bytes of the first whole request, 0 when it is not all there. */
static size_t whole_request(const struct client *c)
{
	const char *end = strstr(c->data, "\r\n\r\n"), *length;
	size_t need;

	if (!end)
		return 0;
	length = strcasestr(c->data, "content-length:");
	need = (size_t)(end + 4 - c->data);
	if (length && length < end)
		need += strtoull(length + strlen("content-length:"), NULL, 10);
	return c->len >= need ? need : 0;
}

static bool serve(int fd, struct client *c)
{
	ssize_t n = read(fd, c->data + c->len, REQUEST_MAX - c->len);
	size_t used;

	if (n <= 0)
		return false;
	c->len += (size_t)n;
	c->data[c->len] = '\0';
	while ((used = whole_request(c)) > 0) {
		size_t len = strlen(answer);

		if (write(fd, answer, len) != (ssize_t)len)
			return false;
		c->len -= used;
		memmove(c->data, c->data + used, c->len + 1);
	}
	return c->len < REQUEST_MAX;
}

static void add(int fd)
{
	int one = 1;

	if (fd < 0)
		return;
	if (n_polled == CLIENTS_MAX + 2) {
		(void)close(fd);
		return;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	client[n_polled] = calloc(1, sizeof(struct client));
	if (!client[n_polled])
		die("memory");
	polled[n_polled++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

static void forget(nfds_t i)
{
	(void)close(polled[i].fd);
	free(client[i]);
	n_polled--;
	polled[i] = polled[n_polled];
	client[i] = client[n_polled];
}

int main(void)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(sa);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    listen(fd, 256) < 0 || getsockname(fd, (struct sockaddr *)&sa, &len) < 0)
		die_errno("listen");
	(void)snprintf(answer, sizeof(answer),
		       "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
		       "Content-Length: %zu\r\n\r\n%s",
		       strlen(ANSWER_BODY), ANSWER_BODY);
	printf("port %u\n", ntohs(sa.sin_port));
	(void)fflush(stdout);
	polled[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
	polled[1] = (struct pollfd){.fd = fd, .events = POLLIN};
	n_polled = 2;
	while (poll(polled, n_polled, -1) > 0) {
		if (polled[0].revents)
			return 0;
		for (nfds_t i = n_polled; i-- > 2;)
			if (polled[i].revents && !serve(polled[i].fd, client[i]))
				forget(i);
		if (polled[1].revents)
			add(accept4(fd, NULL, NULL, SOCK_CLOEXEC));
	}
	die_errno("poll");
}
