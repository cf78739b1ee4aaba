/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that are both ends of a socket: the loop is turned until something came. They
 * wait for conditions, and give up after half a minute. */
#ifndef LYCH_TESTS_SUPPORT_TURNS_H
#define LYCH_TESTS_SUPPORT_TURNS_H

#include "common/buf.h"
#include "common/net/loop.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define TURNS_MAX 30000
#define TURN_USEC 1000

static inline void turn_is_over(void *arg)
{
	loop_stop(arg, 0);
}

static inline void turn_loop(struct loop *l, usec_t usec)
{
	struct loop_timer *t = loop_timer_new(l, turn_is_over, l);
	struct err err = ERR_INIT;

	loop_timer_arm(t, usec);
	cr_assert(loop_run(l, &err) == 0);
	loop_timer_free(t);
}

/* Turns the loop until the condition holds. */
#define TURN_UNTIL(l, cond)                                                              \
	do {                                                                             \
		for (int tries_ = 0; !(cond) && tries_ < TURNS_MAX; tries_++)            \
			turn_loop(l, TURN_USEC);                                         \
		cr_assert(cond);                                                         \
	} while (0)

/* A connection that has sent the request. The caller closes it. */
static inline int turn_dial(const struct sockaddr_in *to, const char *request)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert(connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0);
	cr_assert(send(fd, request, strlen(request), MSG_NOSIGNAL) ==
		  (ssize_t)strlen(request));
	return fd;
}

/* Until what came holds text (NULL: until the other end closes). */
static inline void turn_until_text(struct loop *l, int fd, struct buf *b,
				   const char *text)
{
	static char chunk[65536];

	for (int i = 0; i < TURNS_MAX; i++) {
		ssize_t n;

		if (text && strstr(buf_str(b), text))
			return;
		n = recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT);
		if (n > 0)
			buf_add(b, chunk, (size_t)n);
		else if (n == 0 || errno != EAGAIN)
			break;
		else
			turn_loop(l, TURN_USEC);
	}
	if (text)
		cr_assert_fail("no '%s' in: %s", text, buf_str(b));
}

#endif
