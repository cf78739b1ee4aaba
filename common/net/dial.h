/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the tomb.
 * A daemon without a private root (docs/adr/0047) connects to nothing itself. It asks the
 * starter, over a socket that it was started with, for one of these names, and is passed a
 * descriptor that is connected already. No path crosses that socket. One a process.
 */
#ifndef LYCH_COMMON_NET_DIAL_H
#define LYCH_COMMON_NET_DIAL_H

#include "common/attr.h"
#include "common/err.h"
#include "common/proto/dial_proto.h"
#include <stdbool.h>

/* fd: a SOCK_SEQPACKET socket to the starter, this module's from now on. */
MUST_CHECK int dial_begin(int fd, struct err *err);
/* Whether connections are asked for at all; else everybody makes their own. */
bool dial_is_on(void);
/* Returns a connected descriptor that does not block, the caller's. -1 with ERR_UNAVAILABLE when
 * nobody listens there, or no answer comes within five seconds. */
MUST_CHECK int dial(enum dial_name name, struct err *err);

#endif
