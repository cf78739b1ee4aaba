/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * A daemon's own question to itself, for a container's health check: no shell, no other
 * program. One blocking exchange on a unix socket.
 */
#ifndef LYCH_COMMON_NET_HEALTH_H
#define LYCH_COMMON_NET_HEALTH_H

#include "common/attr.h"
#include "common/err.h"
#include <stddef.h>

#define HEALTH_REPLY_BYTES 65536

/* Send request to the listener at path; what came back until end_mark (or the end of the
 * stream, end_mark NULL) is in reply, NUL-terminated. ERR_UNAVAILABLE: nobody listens,
 * or no whole answer within five seconds. */
MUST_CHECK int health_ask(const char *path, const char *request, const char *end_mark,
			  char reply[HEALTH_REPLY_BYTES], struct err *err);

#endif
