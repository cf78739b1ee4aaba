/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Test builds only: a confined daemon tries what a file lists and says what
 * happened (tests judge from the outside). The file is read before confinement.
 */
#ifndef LYCH_COMMON_CONFINE_PROBE_H
#define LYCH_COMMON_CONFINE_PROBE_H

#ifdef LYCH_TEST_BUILD

#include "common/attr.h"
#include "common/err.h"

struct confine_probe {
	char *text; /* the file's lines */
};

MUST_CHECK int confine_probe_load(const char *path, struct confine_probe *ret,
				  struct err *err);
/*
 * One line of the file, one line on stdout: "<line>: <ERRNO name>" or "<line>: ok".
 * Verbs: read PATH, write PATH, list PATH, stat PATH, exec PATH, connect unix:PATH,
 * send unix:PATH and sendmsg unix:PATH (a datagram; from a pair where no socket is to be had),
 * reconnect unix:PATH (a connected pair), socket inet|inet6|netlink|packet|unix|datagrams|packets, pair,
 * chmod PATH, fchmod PATH (a descriptor of access mode 3), kill PID, ptrace PID, fork, unshare, mmap-exec.
 * An unknown verb answers "unknown". Ends the process: 0.
 */
NORETURN void confine_probe_run(struct confine_probe *p);

#endif
#endif
