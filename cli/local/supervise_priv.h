/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * What the files of the starter share: its parts and their states. Private to
 * cli/supervise*.c.
 */
#ifndef LYCH_CLI_LOCAL_SUPERVISE_PRIV_H
#define LYCH_CLI_LOCAL_SUPERVISE_PRIV_H

#include "cli/local/host_requests.h"
#include "cli/local/up.h"
#include "common/watch.h"

enum part_id { PART_PG, PART_SCRIBE, PART_VESSEL, PART_TOMB, PART_MAX };
enum part_state { PART_DOWN, PART_STARTING, PART_READY };

struct part {
	enum part_state state;
	pid_t pid;
	int ready_fd;
	int dial_fd; /* our end of its dialer; -1: it has none */
	char heard[256];
	size_t n_heard;
	unsigned restarts, scope_serial;
	off_t log_from;
	usec_t started, next_start, backoff;
	struct watch watch;
	bool spoke;		/* it gave a sign of life */
	unsigned cut_off_looks; /* its socket was missing in so many */
};

struct super {
	struct supervise *s;
	struct part part[PART_MAX];
	const char *no_scope; /* why no scope is asked for; NULL: one is */
	char *no_cgroup;      /* why jobs have no cgroup limits; NULL: they have */
	char **env;
	int sfd;
	bool migrated, first, stopping;
	bool asked_restart, asked_stop;
	bool tomb_held; /* stopped by request: until another one or the next start */
	struct host_requests requests;
	int requests_fd;     /* inotify: something was dropped */
	int pg_ask_fd;	     /* a question to PostgreSQL that is out; -1: none */
	usec_t pg_ask_at;    /* when the next one is due, awake */
	usec_t look_at;	     /* when the parts are looked at next, awake */
	bool halting;	     /* parts are being stopped to be started anew */
	bool restarting;     /* ... and are not all ready again */
	unsigned generation; /* how often that was asked for */
	usec_t migrate_again;
	usec_t first_deadline, state_again; /* 0: the state file is up to date */
	usec_t logs_again;
};

extern const char *const supervise_names[PART_MAX];

/* The file that the part writes to. The caller frees it. */
char *part_log_path(const struct super *u, enum part_id id);

/* Opened anew for each start; *ret_from: where that start's part of it begins. */
MUST_CHECK int part_log_open(const struct super *u, enum part_id id, off_t *ret_from,
			     struct err *err);

/* Every few seconds: a log that grew large makes place for one successor. */
void part_logs_trim(struct super *u);

/* The last error that the part logged since its start, without any the last thing of its log, "" when that
 * is nothing: for the error of a start that failed. */
void part_log_tail(const struct super *u, enum part_id id, char *out, size_t size);

/* A child's own error code travels in its text: "LYCH-SANDBOX-004 ...". */
void part_adopt_code(struct err *err);
/* The words stay, the code is this one. */
void part_set_code(struct err *err, enum err_id id);

/* Starts it; it is PART_STARTING then. */
MUST_CHECK int part_start(struct super *u, enum part_id id, struct err *err);

/* A part asks to be connected. */
void part_dial(struct super *u, enum part_id id);

/* Reads what a part says; READY=1 makes it PART_READY. */
void part_hear(struct super *u, enum part_id id);

void part_ready(struct super *u, enum part_id id);

/* supervise_watch.c. Ends each part that does not move any more; returns in how many ms it is
 * to be called again. */
int watch_turn(struct super *u);
/* What came to pg_ask_fd. */
void watch_pg_hear(struct super *u);
/* Kills what a part that died left to us: we are a subreaper. */
void watch_kill_strays(const struct super *u);

/* Runs lych-vessel migrate to its end. */
MUST_CHECK int part_migrate(struct super *u, struct err *err);

/* reason NULL: jobs have cgroup limits. It is copied. */
void part_set_no_cgroup(struct super *u, const char *reason);

/* Writes the state file for `lych status`; what fails is tried again (state_again). */
void part_write_state(struct super *u);

#endif
