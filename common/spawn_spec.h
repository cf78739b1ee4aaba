/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a spec (the NUL-separated block that lych-sandbox reads) goes with a message: to the
 * spawner, from there to a warm keeper, from there to its job. Up to SPAWN_SPEC_INLINE bytes
 * it is the rest of the packet; a longer one, which no socket would carry, is a sealed memfd
 * and comes first among the descriptors. One way for each length: the other is refused.
 */
#ifndef LYCH_COMMON_SPAWN_SPEC_H
#define LYCH_COMMON_SPAWN_SPEC_H

#include "common/attr.h"
#include "common/err.h"
#include <stddef.h>
#include <stdint.h>

#define SPAWN_SPEC_INLINE 3072u

struct spawn_spec {
	const char *block;
	uint32_t bytes;
	int memfd; /* a longer one's; -1 */
	char *own; /* the block, where it is not borrowed */
};
#define SPAWN_SPEC_NONE ((struct spawn_spec){.memfd = -1})

/* block is borrowed for ret's life. ERRID_SPEC_SIZE: not 1 to SPAWN_SPEC_MAX_BYTES. */
MUST_CHECK int spawn_spec_make(const char *block, size_t bytes, struct spawn_spec *ret,
			       struct err *err);
/* msg, which says spec->bytes, with fds (n_fds, none -1) after the memfd. flags are sendmsg's.
 * -1 with errno when not all of it went. */
MUST_CHECK int spawn_spec_send(int sock, const void *msg, size_t size,
			       const struct spawn_spec *spec, const int *fds,
			       unsigned n_fds, int flags);
/*
 * What came with a message that says `bytes`: tail is the rest of its packet (borrowed for
 * ret's life when the spec is in it), fds and *n_fds what fdpass_recv() gave. A memfd is taken
 * out of fds; it has to be sealed and of that size. ERRID_SANDBOX_SPAWNER.
 */
MUST_CHECK int spawn_spec_take(const char *tail, size_t tail_bytes, uint32_t bytes,
			       int *fds, unsigned *n_fds, struct spawn_spec *ret,
			       struct err *err);
void spawn_spec_done(struct spawn_spec *s);

#endif
