/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper and the job.
 * The one door in the job's walls, and who holds which side of it.
 *
 * Full: a TCP socket that listens on the loopback of the job's own network namespace. The
 * keeper makes it, hands it out and forgets it; the job never has it. No other socket
 * gets the address while it listens: it is bound without SO_REUSEADDR and SO_REUSEPORT,
 * and to share an address the kernel wants them of both. Connections wait in its queue
 * until the tomb accepts them, also those from before it has the socket.
 *
 * Floor: a pair. What goes through it is packets; whoever serves it takes no descriptor.
 */
#include "sandbox/walls/broker.h"

#include "common/cleanup.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

static int make_listener(struct broker_fds *b, struct err *err)
{
	const struct sockaddr_in at = {.sin_family = AF_INET,
				       .sin_port = htons(BROKER_PORT),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	cleanup_close int fd =
		socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_sys_id(err, ERRID_SANDBOX_BROKER, "make its socket");
	if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		return err_sys_id(err, ERRID_SANDBOX_BROKER, "bind " BROKER_HOST);
	if (listen(fd, BROKER_BACKLOG) < 0)
		return err_sys_id(err, ERRID_SANDBOX_BROKER, "listen on " BROKER_HOST);
	*b = (struct broker_fds){BROKER_LISTENER, TAKE_FD(fd), -1};
	return 0;
}

static int make_channel(struct broker_fds *b, struct err *err)
{
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return err_sys_id(err, ERRID_SANDBOX_BROKER, "make its pair of sockets");
	*b = (struct broker_fds){BROKER_CHANNEL, sv[0], sv[1]};
	return 0;
}

int broker_make(enum sbx_grade grade, struct broker_fds *ret, struct err *err)
{
	return grade == GRADE_FULL ? make_listener(ret, err) : make_channel(ret, err);
}

void broker_done(struct broker_fds *b)
{
	fd_close(&b->tomb);
	fd_close(&b->job);
}
