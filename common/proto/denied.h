/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * What a wall refused (struct spawn_denied), in names, in JSON and in a sentence. One place
 * for lych-sandbox, the tomb and the command line, so that they say the same.
 *
 * A record's object and the value in its grant are what the job named: raw bytes. The grant
 * is one option and, after one space, its value, not quoted.
 */
#ifndef LYCH_COMMON_PROTO_DENIED_H
#define LYCH_COMMON_PROTO_DENIED_H

#include "common/buf.h"
#include "common/jsonw.h"
#include "common/proto/spawn_proto.h"
#include <stdbool.h>
#include <stdint.h>

/* Lower-case names ("landlock", "connect"); NULL / false when unknown. */
const char *spawn_wall_name(uint32_t wall);
bool spawn_wall_from_name(const char *name, uint32_t *ret);
const char *spawn_act_name(uint32_t act);
bool spawn_act_from_name(const char *name, uint32_t *ret);

/* "EACCES"; "errno 4711" for a number that has no name. size >= 16. */
void denied_errno_name(int sys, char *out, size_t size);
/* The reverse; 0 when unknown. */
int denied_errno_from_name(const char *name);

/* Names, sizes and texts are within the protocol: known wall and act, a positive count. */
bool denied_is_valid(const struct spawn_denied *d);

/* {act, wall, call, object, errno, count, grant}, and withheld where it is not "": object and grant escaped, what is no
 * UTF-8 replaced. */
void denied_json(const struct spawn_denied *d, struct jsonw *w);

/*
 * One line without a newline, safe for a terminal and for a shell:
 *
 *	read "/srv/data" refused (landlock: nothing grants this), openat gave EACCES,
 *	3 times; --ro /srv/data would allow it
 *	read "/home/u/.ssh" not found (absent: it is not shown inside), openat gave ENOENT;
 *	no option is offered: it keeps secrets (SSH keys)
 *	call unshare "flags 0x10000000" refused (seccomp: no job may do this), EPERM
 *
 * A value that a shell would take apart is quoted; one that cannot be shown as it is (no
 * UTF-8, control bytes) is not offered.
 */
void denied_sentence(const struct spawn_denied *d, struct buf *out);

#endif
