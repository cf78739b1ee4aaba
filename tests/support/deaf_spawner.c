/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In place of lych-sandbox: a spawner that says HELLO and from then on takes no message. What
 * the tomb sends it meets EPIPE, as it does between a spawner's death and the loop's word of
 * it. For anything but --serve it becomes lych-sandbox.real, beside it.
 */
#include "common/landlock.h"
#include "common/proto/spawn_proto.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SERVE_FD 3 /* tomb/job/spawn.c */

static int serve(void)
{
	const struct spawn_hello hello = {
		.type = SPAWN_HELLO,
		.version = SPAWN_PROTO_VERSION,
		.landlock_abi = LL_ABI_REQUIRED,
		.pid = getpid(),
		.mechanism = "deaf",
	};
	struct pollfd p = {.fd = SERVE_FD};

	if (shutdown(SERVE_FD, SHUT_RD) < 0 ||
	    send(SERVE_FD, &hello, sizeof(hello), MSG_NOSIGNAL) != (ssize_t)sizeof(hello))
		return 1;
	while (!(p.revents & POLLHUP))
		(void)poll(&p, 1, -1);
	return 0;
}

int main(int argc, char **argv)
{
	char self[PATH_MAX - 8] = "", real[PATH_MAX];

	if (argc > 2 && strcmp(argv[1], "--serve") == 0)
		return serve();
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) > 0) {
		(void)snprintf(real, sizeof(real), "%s.real", self);
		execv(real, argv);
	}
	perror("lych-sandbox.real");
	return 126;
}
