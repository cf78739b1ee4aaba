/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner.
 * What the files of the spawner (serve.c, serve_job.c, serve_walls.c, pool.c) share.
 */
#ifndef LYCH_SANDBOX_SPAWNER_SERVE_H
#define LYCH_SANDBOX_SPAWNER_SERVE_H

#include "common/fdpass.h"
#include "sandbox/contract/handover.h"
#include "sandbox/contract/keeper.h"
#include "sandbox/keeper/guard.h"
#include "sandbox/spawner/endings.h"
#include "sandbox/spawner/prepared_rules.h"

/* serve_walls.c: where the spawner stands. */
struct spawner_place {
	enum sbx_grade grade;
	const char *tools; /* shown in every sandbox; NULL */
	const char *jobs_dir;
	int landlock_abi;
	int jobs_fd;	 /* O_PATH, in the jobs namespace */
	int cgroup_fd;	 /* the delegated directory, -1 without */
	int jobs_ns;	 /* full: mount namespaces; the jobs directory is only in the */
	int template_ns; /* first, and the spawner only in the second */
};
/* Raises the spawner's own walls. cgroup may be NULL. */
MUST_CHECK int spawner_wall_in(struct spawner_place *p, const char *jobs_dir,
			       const char *cgroup, struct err *err);
/* full: a detached clone of the workspace that spec->workspace_fd is. */
MUST_CHECK int spawner_clone_workspace(const struct spawner_place *p,
				       const struct sbx_spec *spec, struct err *err);
/* full: would the template do for this spec? Else the keeper has to be started in the
 * jobs namespace, where it builds its own root. */
bool spawner_template_fits(const struct sbx_spec *spec);
/* full: to the jobs namespace and back. There is no way on when the way back fails: ends
 * the spawner. */
MUST_CHECK int spawner_enter_jobs(const struct spawner_place *p, struct err *err);
void spawner_leave_jobs(const struct spawner_place *p);

/*
 * pool.c: sandboxes that are built and wait. All are alike (the shape); each is used once.
 * How many there are follows the demand: one more after a job that found none, fewer by
 * those that nobody needed for a while, one when idle, none when memory is short.
 */
#define POOL_MAX 32
struct pool {
	struct sbx_spec shape;
	const char *jobs_dir;
	struct warm {
		struct keeper keeper;
		bool ready;
	} warm[POOL_MAX];
	unsigned n;	  /* built and being built */
	unsigned max;	  /* 0: no pool */
	unsigned want;	  /* 0..max */
	unsigned spare;	  /* the fewest ready since the last look */
	usec_t busy_at;	  /* the last start or end of a job: that goes first */
	usec_t retry_at;  /* not before: one could not be built */
	usec_t review_at; /* next look at the demand */
	int meminfo_fd;	  /* the host's, owned */
	struct endings *endings;
};
/* cgroup (NULL: none) is copied, place and endings borrowed for the pool's life. */
void pool_init(struct pool *p, const struct spawner_place *place, unsigned max,
	       int meminfo_fd, const char *cgroup, struct endings *endings);
/* Takes a ready sandbox that can run this spec; counts the demand either way. */
bool pool_take(struct pool *p, const struct sbx_spec *spec, struct keeper *ret);
/* Something came from warm[i]: it is ready, or gone. */
void pool_on_event(struct pool *p, unsigned i);
/* A job has ended: whoever waits for that goes first. */
void pool_after_end(struct pool *p);
/* Builds, or takes away, at most one; jobs_run: some do now. Returns when to come again, USEC_INFINITY: on an
 * event. */
usec_t pool_turn(struct pool *p, bool jobs_run);
void pool_done(struct pool *p);

/* HELLO, a PONG, and at most TERMINAL, STARTED and an end for every job; what was refused to a job waits in
 * its keeper's socket while there is no room for it (has_room). */
#define OUT_MAX (4 * SPAWN_JOBS_MAX + 2)

/* An end is told so much later than it is due, at the latest: else the guard is stopped or stuck,
 * and keeper and guard are ended as if they had died. */
#define OVERDUE_USEC (LAST_LOOK_MAX_USEC + 5 * USEC_PER_SEC)

struct served {
	uint64_t handle;
	usec_t end_by; /* clock_awake_usec(): its end is overdue then */
	bool wants_terminal;
	int terminal; /* the job's side of it, held open and told of new sizes; -1 */
	struct keeper keeper;
};

struct server {
	int fd, lifeline;
	const char *jobs_dir, *cgroup;
	struct spawner_place place;
	struct pool pool;
	struct prepared_rules prepared;
	unsigned pool_max;
	/* The numbers stand together: each page that a start writes to is copied for it. */
	unsigned n, n_out;
	struct served job[SPAWN_JOBS_MAX];
	struct endings endings;
	struct {
		size_t size;
		int fd; /* goes with it; -1 */
		union spawn_message m;
	} out[OUT_MAX];
};

/* serve.c. To the tomb, now or when it has room; fd (-1: none) is taken over. */
void serve_put(struct server *s, const void *msg, size_t size, int fd);

/* serve_job.c. The job of this handle; NULL. */
struct served *serve_find(struct server *s, uint64_t handle);
/* What the tomb asked for becomes a keeper, or a refusal. stdio: HANDOVER_WORK descriptors. */
void serve_start(struct server *s, const struct spawn_run *m, const struct payload *sent,
		 const int *stdio);
/* Something came from a job's keeper. */
void serve_on_keeper(struct server *s, struct served *j);
/* It is to end within usec. */
void serve_end_within(struct served *j, usec_t usec);
/* Ends those that are overdue. Returns in how many microseconds to come again. */
usec_t serve_overdue(struct server *s);
/* endings.all[i] may be over. */
void serve_on_ending(struct server *s, unsigned i);

#endif
