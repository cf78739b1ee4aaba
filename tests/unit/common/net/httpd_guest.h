/* SPDX-License-Identifier: Apache-2.0 */
/* A server, and one connection that is given to it. */
#ifndef LYCH_TESTS_UNIT_COMMON_NET_HTTPD_GUEST_H
#define LYCH_TESTS_UNIT_COMMON_NET_HTTPD_GUEST_H

#include "common/attr.h"
#include "common/err.h"
#include "common/net/httpd.h"
#include "common/net/httpd_priv.h"
#include "common/net/loop.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static struct loop *guest_loop; /* the guest's on_gone stops it with 0 */

static inline void guest_is_late(void *arg UNUSED)
{
	loop_stop(guest_loop, 99);
}

/* What it answers to this, up to the end of the connection. */
static inline const char *guest_said(const struct httpd_config *cfg,
				     const struct httpd_guest *guest, const char *text)
{
	static char got[4096];
	struct err err = ERR_INIT;
	struct loop_timer *guard;
	struct httpd *h;
	size_t len = 0;
	ssize_t n;
	int pair[2];

	cr_assert_eq(loop_new(&guest_loop, &err), 0);
	guard = loop_timer_new(guest_loop, guest_is_late, NULL);
	loop_timer_arm(guard, 30 * USEC_PER_SEC);
	h = httpd_new_inner(guest_loop, cfg);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	cr_assert_eq(fcntl(pair[1], F_SETFL, O_NONBLOCK), 0);
	httpd_add(h, pair[1], guest);
	cr_assert_eq(write(pair[0], text, strlen(text)), (ssize_t)strlen(text));
	cr_assert_eq(shutdown(pair[0], SHUT_WR), 0);
	cr_assert_eq(loop_run(guest_loop, &err), 0, "it does not end");
	/* its end is not closed before the loop's next turn, which there isn't */
	cr_assert_eq(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
	while (len < sizeof(got) - 1 &&
	       (n = read(pair[0], got + len, sizeof(got) - 1 - len)) > 0)
		len += (size_t)n;
	got[len] = '\0';
	(void)close(pair[0]);
	httpd_free(h);
	loop_timer_free(guard);
	loop_free(guest_loop);
	return got;
}

#endif
