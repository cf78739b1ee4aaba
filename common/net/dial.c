/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the tomb.
 * See dial.h.
 */
#include "common/net/dial.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fdpass.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define PATIENCE_USEC (5 * USEC_PER_SEC)

static struct {
	int fd;
	uint32_t serial;
} dialer = {.fd = -1};

int dial_begin(int fd, struct err *err)
{
	int domain = 0, type = 0;
	socklen_t len = sizeof(domain);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0)
		return err_sys_id(err, ERRID_START_UNROOTED, "the dialer's descriptor");
	len = sizeof(type);
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return err_sys_id(err, ERRID_START_UNROOTED, "the dialer's descriptor");
	if (domain != AF_UNIX || type != SOCK_SEQPACKET)
		return err_set_id(err, ERRID_START_UNROOTED,
				  "the dialer's descriptor is another socket");
	dialer.fd = fd;
	return 0;
}

bool dial_is_on(void)
{
	return dialer.fd >= 0;
}

/* The answer to that question; those to earlier ones, whose patience was over, are dropped. */
static int await(uint32_t serial, usec_t deadline, struct err *err)
{
	for (;;) {
		usec_t now = clock_boot_usec();
		struct pollfd p = {.fd = dialer.fd, .events = POLLIN};
		struct dial_answer a = {0};
		int fds[FDPASS_MAX] = FDPASS_NONE;
		unsigned n_fds = 0;
		ssize_t n;

		if (now >= deadline)
			return err_set(err, ERR_UNAVAILABLE,
				       "the starter does not connect us");
		if (poll(&p, 1, (int)((deadline - now) / USEC_PER_MSEC) + 1) <= 0)
			continue;
		n = fdpass_recv(dialer.fd, &a, sizeof(a), fds, &n_fds, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n == (ssize_t)sizeof(a) && a.serial == serial && a.error == 0 &&
		    n_fds == 1)
			return fds[0];
		for (unsigned i = 0; i < FDPASS_MAX; i++)
			fd_close(&fds[i]);
		if (n != (ssize_t)sizeof(a))
			return err_set(err, ERR_UNAVAILABLE,
				       "the starter is gone: it connected us");
		if (a.serial != serial)
			continue;
		errno = a.error ? a.error : EPROTO;
		return err_sys_id(err, ERRID_RUN_DB, "connect, by the starter");
	}
}

int dial(enum dial_name name, struct err *err)
{
	const struct dial_ask ask = {.name = name, .serial = ++dialer.serial};

	if (fdpass_send(dialer.fd, &ask, sizeof(ask), NULL, 0, MSG_DONTWAIT) < 0)
		return err_set(err, ERR_UNAVAILABLE,
			       "the starter takes no question to connect us: %s",
			       strerror(errno));
	return await(ask.serial, clock_boot_usec() + PATIENCE_USEC, err);
}
