/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The I/O around the job machine: carries out its actions and feeds it what happens.
 */
#ifndef LYCH_TOMB_JOB_RUNNER_H
#define LYCH_TOMB_JOB_RUNNER_H

#include "common/net/httpc.h"
#include "common/net/loop.h"
#include "common/proto.h"
#include "tomb/job/spawn.h"
#include "tomb/queue/lease.h"
#include "tomb/queue/notes.h"
#include "tomb/queue/queue.h"
#include "tomb/queue/vessel_peer.h"
#include "tomb/queue/work.h"
#include <stdbool.h>

struct files;
struct runner;
struct tls;

/*
 * So long each step before a job's own run may take: its folder and all its inputs; later its files
 * and the spawner's word that it runs. A sandbox before the job's ends by the job's time limit, and has so
 * much beyond it. The largest blob (4 GiB) arrives in it at 14 MB a second; what needs longer begins nowhere.
 */
#define PREPARE_USEC (300 * USEC_PER_SEC)

struct runner_world {
	struct loop *loop;
	const struct queue *queue;
	struct work *work;
	struct httpc *intents; /* what jobs ask of their brokers, to the work socket */
	const struct vessel_peer *peer;
	unsigned slots;
	struct spawn *spawn;
	struct leases *leases;
	struct notes *notes;
	struct files *files;
	struct tls *tls; /* grade full; else NULL */
	int null_fd;	 /* /dev/null for reading */
	enum sbx_grade grade;
	bool unrooted; /* the daemons have no private root, and each result says so */
	usec_t prepare_usec; /* PREPARE_USEC */
	const char *tools;   /* the directory of the broker's clients, as we see it */
	void (*on_slot)(void *arg);  /* a job is done and gone */
	void (*on_lease)(void *arg); /* the leases' next tick may have changed */
	/* An answer that only a second speaker for the job explains. */
	void (*on_security)(const struct lease_key *key, enum queue_answer answer,
			    void *arg);
	void *arg;
};

struct runner *runner_new(const struct runner_world *world);
void runner_free(struct runner *r); /* no farewell: for the end of the process */
/* Take a job; sent as in lease_add(). One that is known already is ignored. */
void runner_take(struct runner *r, const struct queue_claimed *job, usec_t sent);
unsigned runner_count(const struct runner *r);
bool runner_has(const struct runner *r, job_id_t job);
/* Live ones are killed and given back, finished ones still reported; now: not even that.
 */
void runner_shutdown(struct runner *r, bool now);

/* What the spawner says. -1: a handle that we do not know, so the promise is broken. */
/* master is taken over. */
MUST_CHECK int runner_terminal(struct runner *r, const struct spawn_terminal *m,
			       int master);
/* broker (-1: none) is taken over. */
MUST_CHECK int runner_started(struct runner *r, const struct spawn_started *m,
			      int broker);
MUST_CHECK int runner_refused(struct runner *r, const struct spawn_refused *m);
/* One of the unpacking is no word about the job, and is not kept. */
MUST_CHECK int runner_denied(struct runner *r, const struct spawn_denied *m);
MUST_CHECK int runner_exited(struct runner *r, const struct spawn_exited *m);

#endif
