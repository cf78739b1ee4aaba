/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * A job's output: pipe -> spool file -> vessel. The pipe is always read, through a cap,
 * so that neither a silent vessel nor a loud job blocks anything; what the vessel has not
 * taken waits on the disk and resumes at the offset that the vessel expects. On a full
 * disk the job waits in its pipe until there is room.
 */
#ifndef LYCH_TOMB_JOB_RELAY_H
#define LYCH_TOMB_JOB_RELAY_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/net/loop.h"
#include "tomb/queue/work.h"
#include <stdbool.h>
#include <stdint.h>

enum relay_stream { RELAY_STDOUT, RELAY_STDERR, RELAY_STREAMS };

struct relay;

struct relay_events {
	void (*overflow)(
		void *arg); /* once: more than the cap; the rest is thrown away */
	void (*flushed)(
		void *arg); /* once, after relay_finish(): the vessel has everything */
	/* The lease is lost as far as the vessel knows (ERR_GONE), or the tomb's disk
	 * failed. */
	void (*trouble)(const struct err *why, void *arg);
	void *arg;
};

/* Takes the spool descriptors (empty files, read-write). cap: of both streams together.
 */
struct relay *relay_new(struct loop *l, struct work *w, const struct lease_key *key,
			const int spool_fds[RELAY_STREAMS], uint64_t cap,
			const struct relay_events *ev);
void relay_free(struct relay *r);
/* Take the reading end of a pipe; again for a second run, after relay_drain(). */
void relay_attach(struct relay *r, enum relay_stream which, int pipe_fd);
/* As for stderr, but of a program that is none of the job's: its first bytes go into words,
 * as far as these take them; nothing of it is the job's output or counts as such. words
 * outlive the relay. */
void relay_attach_words(struct relay *r, int pipe_fd, struct buf *words);
/* The writer's tree is gone: read what is there and close. A descriptor that was handed
 * elsewhere does not hold it open. */
void relay_drain(struct relay *r);
/* Nothing more comes: send the rest and the end. */
void relay_finish(struct relay *r);

uint64_t relay_bytes(const struct relay *r, enum relay_stream which); /* kept */
bool relay_truncated(const struct relay *r, enum relay_stream which);

#endif
