/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * One packet with descriptors over an AF_UNIX SOCK_SEQPACKET socket (unix(7), SCM_RIGHTS).
 */
#ifndef LYCH_COMMON_FDPASS_H
#define LYCH_COMMON_FDPASS_H

#include "common/attr.h"
#include "common/clock.h"
#include <stddef.h>
#include <sys/types.h>

#define FDPASS_MAX 7
#define FDPASS_NONE {-1, -1, -1, -1, -1, -1, -1} /* FDPASS_MAX empty places */

/* Sends size bytes with n_fds descriptors (<= FDPASS_MAX; 0: fds is not looked at). flags
 * are sendmsg's, MSG_NOSIGNAL is added. -1 with errno when not all of it went. */
MUST_CHECK int fdpass_send(int sock, const void *msg, size_t size, const int *fds,
			   unsigned n_fds, int flags);
/* The same; while the user's programs have as many descriptors under way as this one may have open
 * (ETOOMANYREFS), which somebody else's packets alone can bring about, it waits for that long. */
MUST_CHECK int fdpass_send_patiently(int sock, const void *msg, size_t size,
				     const int *fds, unsigned n_fds, usec_t patience);
/*
 * Receives at most size bytes. fds (FDPASS_MAX places, -1 before) get what came with
 * them, O_CLOEXEC, the caller's to close even on failure; *n_fds how many. Returns the
 * length, 0 at end of file, -1 with errno; EPROTO: bytes or descriptors were cut off.
 */
MUST_CHECK ssize_t fdpass_recv(int sock, void *msg, size_t size, int *fds,
			       unsigned *n_fds, int flags);

#endif
