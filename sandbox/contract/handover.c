/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner, the keeper, the guard and the job.
 * See handover.h.
 */
#include "sandbox/contract/handover.h"

#include "common/fdpass.h"

#include <errno.h>
#include <sys/socket.h>

_Static_assert(HANDOVER_FDS + 1 == FDPASS_MAX, "the descriptors of a handover");

int handover_send(int sock, const void *msg, size_t size, const struct payload *spec,
		  const int *fds, unsigned n_fds, struct err *err)
{
	int r = spec ? payload_send(sock, msg, size, spec, fds, n_fds, MSG_DONTWAIT)
		     : fdpass_send(sock, msg, size, fds, n_fds, MSG_DONTWAIT);

	return r < 0 ? err_sys(err, "hand over") : 0;
}

int handover_recv(int sock, void *msg, size_t size, int *fds, unsigned *n_fds,
		  struct err *err)
{
	ssize_t n;

	do
		n = fdpass_recv(sock, msg, size, fds, n_fds, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(err, "take over");
	return (size_t)n == size
		       ? 0
		       : err_set(err, ERR_SETUP, "%zd bytes instead of %zu", n, size);
}
