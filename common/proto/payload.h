/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * How bytes of any length go with a message: a spec (the NUL-separated block that lych-sandbox
 * reads) to the spawner, from there to a warm keeper, from there to its job; files to the
 * tomb's file workers, and what they harvested back. They are a sealed memfd that comes first
 * among the descriptors: who reads it knows that nobody changes it meanwhile.
 */
#ifndef LYCH_COMMON_PROTO_PAYLOAD_H
#define LYCH_COMMON_PROTO_PAYLOAD_H

#include "common/attr.h"
#include "common/err.h"
#include <stddef.h>
#include <stdint.h>

#define PAYLOAD_MAX_BYTES ((uint32_t)12 << 20)

struct payload {
	const char *block;
	uint32_t bytes;
	int memfd; /* -1: there is none */
	char *own; /* the block, where it is not borrowed */
};
#define PAYLOAD_NONE ((struct payload){.memfd = -1})

/* block is borrowed for ret's life. ERRID_SPEC_SIZE: not 1 to PAYLOAD_MAX_BYTES. */
MUST_CHECK int payload_make(const char *block, size_t bytes, struct payload *ret,
			    struct err *err);
/* msg, which says p->bytes, with fds (n_fds, none -1) after the memfd. flags are sendmsg's.
 * -1 with errno when not all of it went. */
MUST_CHECK int payload_send(int sock, const void *msg, size_t size,
			    const struct payload *p, const int *fds, unsigned n_fds,
			    int flags);
/*
 * What came with a message that says `bytes`: fds and *n_fds are what fdpass_recv() gave. The memfd
 * is taken out of fds; it has to be sealed and of that size. ERRID_SANDBOX_SPAWNER.
 */
MUST_CHECK int payload_take(uint32_t bytes, int *fds, unsigned *n_fds,
			    struct payload *ret, struct err *err);
void payload_done(struct payload *p);

#endif
