/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the guard.
 * What the files of the guard share: guard.c (its life), guard_pulse.c (its look at the
 * keeper), guard_report.c (what the parent is told).
 */
#ifndef LYCH_SANDBOX_KEEPER_GUARD_PRIV_H
#define LYCH_SANDBOX_KEEPER_GUARD_PRIV_H

#include "sandbox/keeper/guard.h"

enum guard_phase {
	GUARD_WARM,    /* built, without a spec */
	GUARD_SETUP,   /* until exec */
	GUARD_RUNNING, /* from here on it reaps */
	GUARD_TERM,    /* SIGTERM sent, the grace runs */
	GUARD_KILL,    /* SIGKILL until nothing is left */
};

struct guard {
	const struct sbx_limits *limits; /* borrowed: the leaf, if there is one */
	struct watch *watch;
	int parent_sock, words, meter_words, signal_fd;
	int pulse_fd, proc_fd,
		meter_fd; /* meter_fd: its /proc/PID/status, once it is there */
	pid_t main_pid;
	enum guard_phase phase;
	usec_t deadline, kill_at, next_kill, began, over;
	bool child_ended; /* SIGCHLD came: there is something to reap */
	bool empty;	  /* waitpid() said ECHILD */
	bool main_over, parent_gone, keeper_gone, looked;
	bool refused, exec_failed; /* watch->status says why */
	int main_status;
	bool ended; /* how is decided */
	uint32_t how;
	char detail[SPAWN_TEXT_MAX];
	uint32_t strays;
	uint64_t largest_bytes; /* of what was reaped: the largest resident set */
	usec_t word_by; /* not longer: the keeper's word on a job that is killed */
	usec_t look_by; /* not longer: its last look */
	/* guard_pulse.c */
	usec_t pulse_at, still_since;
	uint64_t switches;
	bool held;	/* the meter, for too long */
	unsigned stops; /* looks in a row that found it stopped */
	bool stopped;	/* too many of them */
	bool killed;	/* SIGKILL waits for the keeper, or for the meter */
};

/* How they do; sets held, stopped and killed, and when to look again. */
void guard_take_pulse(struct guard *g, usec_t now);
/* The job runs: the first look is due when it is no short one. */
void guard_start_pulse(struct guard *g, usec_t now);
/* REFUSED or EXITED, to the parent. */
void guard_report(struct guard *g);

#endif
