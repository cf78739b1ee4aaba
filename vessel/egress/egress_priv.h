/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What egress.c (the workers' links), calls.c (the calls), last_read.c (what a worker
 * read when it died) and renew.c (other keys of hosts) share.
 */
#ifndef LYCH_VESSEL_EGRESS_EGRESS_PRIV_H
#define LYCH_VESSEL_EGRESS_EGRESS_PRIV_H

#include "common/buf.h"
#include "common/worker/pulse.h"
#include "vessel/egress/egress.h"
#include "vessel/egress/link.h"
#include "vessel/egress/worker.h"

#define EGRESS_BODIES_MAX ((size_t)128 << 20) /* of one worker's open calls together */

/* Jobs whose calls are remembered beyond their end: who hangs up while its reply is read is
 * found all the same. */
#define EGRESS_RECENT 64u

struct egress_call {
	struct worker *worker;
	job_id_t job; /* 0: of none */
	int64_t epoch;
	struct egress_call *prev, *next;
	struct egress_ops ops;
	void *arg;
	uint32_t id;
	struct buf queue; /* what came while paused */
	size_t unpaid;	  /* bytes that came and for which no room was given back */
	size_t taken;	  /* of these, taken */
	size_t body_len;
	uint64_t received;
	struct egress_end end;
	struct err end_err;
	bool head_seen, paused, ended, busy, gone;
};

/* Of a place for a key of a host. */
enum host_state {
	HOST_NOBODY,
	HOST_PREPARED, /* not asked yet */
	HOST_IN_FORCE,
	HOST_REPLACED, /* not asked any more; its calls go on */
};

struct worker {
	struct egress *egress;
	enum host_state host;
	uint32_t turn; /* the parent's word on another one is of the past */
	char name[EGRESS_NAME_SIZE + 8];
	struct egress_link *link;
	struct egress_call *calls;
	unsigned n_calls, starts;
	size_t bodies;
	uint32_t next_id;
	struct confine_report walls;
	struct egress_pulse *pulse;
	/* What it read when we gave it up, of a job that had a request with it: counts when it
	 * is found dead with that. */
	struct reading_note suspect;
	/* the last jobs that asked something of it */
	struct reading_note recent[EGRESS_RECENT];
	unsigned next_recent;
	bool up;
};

struct egress {
	struct egress_config cfg;
	struct loop *loop;
	struct egress_events events;
	struct loop_io *io;
	struct loop_timer *late, *look;
	struct egress_pulse *pulse; /* the parent's */
	struct egress_heard heard;
	struct worker *worker;
	size_t n;
	struct confine_report parent_walls, watcher_walls;
	struct err failed; /* why attaching failed */
	pid_t pid;
	int control;
	/* the parent ends when the watcher does */
	bool parent_up, watcher_up, attaching, parent_stuck;
	/* The keys of hosts that shall be in force: each one's worker, and how many of them are not
	 * up yet. done NULL: none shall be. */
	struct {
		egress_hosts_done *done;
		void *arg;
		struct worker *worker[EGRESS_HOSTS_MAX];
		size_t n, missing;
		struct loop_timer *late;
		uint32_t turn;
	} next;
};

static inline bool egress_is_host(const struct worker *w)
{
	return w >= w->egress->worker + egress_first_host(&w->egress->cfg);
}
/* As a packet of the parent has it. */
uint32_t egress_turn(const unsigned char *at);
/* The name's part of "host:NAME". */
const char *egress_host_name(const struct worker *w);
/* The one in force; NULL: there is none of that name. */
struct worker *egress_host_find(const struct egress *e, const char *name);
/* One that was prepared is up, or will not be; why NULL: it is. Others are none of its business. */
void egress_host_began(struct worker *w, const struct err *why);
/* One that was replaced has no call any more. */
void egress_host_idle(struct worker *w);
/* What the parent says of a place for which no worker comes: egress_hosts_prepare(). */
MUST_CHECK int egress_host_told(struct egress *e, const unsigned char *data, size_t len,
				struct err *err);

/* The worker breaks the protocol: ERRID_EGRESS_WORKER. */
int egress_broken(struct err *err, const char *what);

/* Without calling back; one whose callback runs is gone when that returns. */
void egress_call_free(struct egress_call *c);
/* One frame of a worker that is up. */
MUST_CHECK int egress_calls_frame(struct worker *w, const struct egress_frame *f,
				  struct err *err);
/* Its link has ended: every open call of it is lost, and counts as spent. */
void egress_calls_lost(struct worker *w);

/* A job asks something of the worker. */
void egress_last_read_asked(struct worker *w, job_id_t job, int64_t epoch);
/* Its link has ended. An end of file is its death, or a clean end, which leaves no note. One
 * that we gave up may still live. */
void egress_last_read_closed(struct worker *w, bool is_dead);
/* Another one has come, so it is dead. */
void egress_last_read_next(struct worker *w);

#endif
