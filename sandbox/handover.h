/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages with descriptors between our own processes: the tomb and the spawner, the
 * spawner and a warm keeper, the keeper and its job. One SOCK_SEQPACKET packet, one
 * fixed-size struct, at most HANDOVER_FDS descriptors. The order of the descriptors is
 * the same on every leg; the job is given its Landlock ruleset, and in floor its end of
 * the broker, before them.
 */
#ifndef LYCH_SANDBOX_HANDOVER_H
#define LYCH_SANDBOX_HANDOVER_H

#include "sandbox/sandbox.h"

enum {
	HANDOVER_SPEC,
	HANDOVER_STDIN,
	HANDOVER_STDOUT,
	HANDOVER_STDERR,
	HANDOVER_WORK, /* may be missing */
	/* keeper to job only, where they come first */
	HANDOVER_RULES,
	HANDOVER_BROKER, /* may be missing */
	HANDOVER_FDS,
};

/* fds: n_fds of them, none -1. Does not block. */
MUST_CHECK int handover_send(int sock, const void *msg, size_t size, const int *fds,
			     unsigned n_fds, struct err *err);
/*
 * Blocks for one packet of exactly size bytes. fds (FDPASS_MAX places, -1 before) get
 * what came with it, O_CLOEXEC, theirs to close; *n_fds how many. A packet of another
 * size, a cut one or the end of file is an error.
 */
MUST_CHECK int handover_recv(int sock, void *msg, size_t size, int *fds, unsigned *n_fds,
			     struct err *err);
/* The block of a spec, whole, out of a memfd that nobody can change any more. The caller
 * frees *ret. ERRID_SANDBOX_SPAWNER. */
MUST_CHECK int handover_read_block(int fd, uint32_t bytes, char **ret, struct err *err);
/* The same, parsed. */
MUST_CHECK int handover_read_spec(int fd, uint32_t bytes, struct sbx_spec *ret,
				  struct err *err);

#endif
