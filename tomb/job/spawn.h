/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The spawner's client. The spawner (lych-sandbox --serve) is executed first, before the
 * tomb reads a secret or confines itself; from then on it is one SEQPACKET socket
 * (common/proto/spawn_proto.h). A broken promise on it is fatal for the tomb, and the end of
 * either side ends every job.
 */
#ifndef LYCH_TOMB_JOB_SPAWN_H
#define LYCH_TOMB_JOB_SPAWN_H

#include "common/attr.h"
#include "common/err.h"
#include "common/net/loop.h"
#include "common/proto.h"
#include "common/proto/spawn_proto.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spawn;

struct spawn_events {
	void (*hello)(const struct spawn_hello *m, void *arg);
	/* Of a job that was to have one, before started. master: the side that is not the job's, the
	 * callee's; it does not block. */
	void (*terminal)(const struct spawn_terminal *m, int master, void *arg);
	/* broker: the descriptor that m->broker is about, the callee's; else -1. */
	void (*started)(const struct spawn_started *m, int broker, void *arg);
	void (*refused)(const struct spawn_refused *m, void *arg);
	void (*denied)(const struct spawn_denied *m, void *arg);
	void (*exited)(const struct spawn_exited *m, void *arg);
	/* The spawner ended, broke its protocol or does not answer any more
	 * (ERRID_SANDBOX_SPAWNER). Nothing follows. */
	void (*gone)(const struct err *why, void *arg);
	void *arg;
};

/*
 * fork and exec `sandbox_path --serve 3 --jobs jobs_dir --grade grade --pool slots --tools
 * tools [--cgroup cgroup]`: empty environment, /dev/null, our stderr, nothing else inherited. Before confinement.
 * unrooted (daemons: no_private_root): nobody in it may connect(); no_new_privs must be set.
 */
MUST_CHECK int spawn_start(const char *sandbox_path, const char *jobs_dir,
			   const char *tools, const char *cgroup, enum sbx_grade grade,
			   bool unrooted, unsigned slots, struct spawn **ret,
			   struct err *err);
/* Begin to listen. Callbacks come from the loop, but for gone, which spawn_run() may call. */
MUST_CHECK int spawn_attach(struct spawn *s, struct loop *l,
			    const struct spawn_events *ev, struct err *err);
/* Closes the socket: the spawner ends every job and itself. Reaps it. */
void spawn_free(struct spawn *s);
struct spawn_wish {
	bool broker; /* the job gets one, and started brings the other side of it */
	unsigned cols, rows; /* of a terminal, which is its stdio then; 0: none */
};

/*
 * Run one job: block is the NUL-separated spec, stdio become 0, 1, 2 of the job
 * (borrowed: the caller closes its own). handle is unique among live jobs. Exactly one of refused, or started and
 * then exited, follows (exited alone when exec failed). -1: nothing was sent;
 * ERRID_SANDBOX_SPAWNER: and nothing will be, gone was called.
 */
MUST_CHECK int spawn_run(struct spawn *s, uint64_t handle, const char *block,
			 size_t block_len, const int stdio[3],
			 const struct spawn_wish *wish, struct err *err);
/* Of a job with a terminal. Unknown handles are ignored, as below. */
void spawn_resize(struct spawn *s, uint64_t handle, unsigned cols, unsigned rows);
/* why: SPAWN_END_OUTPUT .. SPAWN_END_SHUTDOWN. Unknown handles are ignored by the
 * spawner: the job may have just ended. */
void spawn_kill(struct spawn *s, uint64_t handle, enum spawn_end why, unsigned grace_ms);

#endif
