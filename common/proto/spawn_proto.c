/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See spawn_proto.h.
 */
#include "common/proto/spawn_proto.h"

#include <stddef.h>

static const char *const ends[SPAWN_END_MAX_] = {
	[SPAWN_END_EXITED] = "exited",	   [SPAWN_END_SIGNALLED] = "signalled",
	[SPAWN_END_TIMEOUT] = "timeout",   [SPAWN_END_OOM] = "oom",
	[SPAWN_END_DISK] = "disk",	   [SPAWN_END_PROCESSES] = "processes",
	[SPAWN_END_CPU] = "cpu",	   [SPAWN_END_OUTPUT] = "output",
	[SPAWN_END_CANCEL] = "cancel",	   [SPAWN_END_LEASE] = "lease",
	[SPAWN_END_SHUTDOWN] = "shutdown", [SPAWN_END_EXEC] = "exec",
	[SPAWN_END_LOST] = "lost",	   [SPAWN_END_UNMEASURED] = "unmeasured",
	[SPAWN_END_OBJECTS] = "objects",
};

const char *spawn_end_name(uint32_t how)
{
	return how < SPAWN_END_MAX_ ? ends[how] : NULL;
}
