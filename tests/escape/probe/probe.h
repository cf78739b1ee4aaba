/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attempts to get out, and who judges them.
 *
 * Inside: a file a section of the list of threats (probe_*.c), a row an attempt. run()
 * makes it and returns the answer: the errno of a refusal, or one of the words below.
 * Each runs in a child of its own. Outside: victims (victim_*.c), set up before the job
 * and looked at after it: an errno proves little, an unharmed victim does. A row without
 * run() names the test that makes the attempt.
 *
 * The rows are also the table in docs/SANDBOX.md (try_probe --table, `make docs`), so an
 * answer that is not in the table fails the run.
 */
#ifndef LYCH_TESTS_ESCAPE_PROBE_PROBE_H
#define LYCH_TESTS_ESCAPE_PROBE_PROBE_H

#include <stddef.h>

#define ANSWERS_MAX 5

enum {
	ALLOWED = 10000, /* it worked, and that is right: the row's note says why */
	HELD,		 /* tried to its end and gained nothing */
	NOT_HERE,	 /* makes no sense in this grade, or on this architecture */
	GOT_THROUGH,	 /* never right */
	NO_ANSWER,
	KILLED_BY = 20000, /* + the signal */
};

struct probe {
	const char *id; /* the number in the list of threats and a letter: "5b" */
	const char *tried;
	int (*run)(void);
	/* Each answer that is right; the first is the usual one, the others depend on
	 * kernel or host. Ends with 0. */
	int full[ANSWERS_MAX], floor[ANSWERS_MAX];
	const char *note;
	/* Without run(): a test, and a text in it that is the attempt. note is the answer. */
	const char *test, *mark;
};
#define ELSEWHERE(id, tried, answer, test, mark)                                         \
	{(id), (tried), NULL, {0}, {0}, (answer), (test), (mark)}

struct section {
	char letter;
	const char *title;
	const struct probe *probes;
	size_t n;
};
extern const struct section section_files, section_metadata, section_roots, section_inet,
	section_unix, section_processes, section_kernel, section_terminal, section_parent,
	section_harvest, section_setup, section_leaks;

struct victim {
	const char *what;
	int (*set_up)(void);   /* 0, or -1: nothing can be judged */
	int (*unharmed)(void); /* after the job */
	void (*look)(void);    /* every 20 ms meanwhile, when there is one */
};
struct victims {
	const struct victim *all;
	size_t n;
};
extern const struct victims victims_files, victims_network, victims_processes,
	victims_terminal;

/* What outside tells inside: lines of "key value" in the file "targets" of the workspace. */
void target_set(const char *key, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
const char *target(const char *key);
long target_number(const char *key);

/* Inside. */
int in_floor(void);
int keeper_pid(void); /* floor: the guard, its child, which is all that is known there */
int guard_pid(void);
/* 0 or errno as an answer: GOT_THROUGH when r says that it worked */
int answer_of(long r);
/* answer_of, where that it works is no escape */
int allowed_or_errno(long r);
const char *path_beside(const char *path, const char *name);
int read_outside(const char *path);
int write_outside(const char *path);

/* probe_supervision.c; rows of section_processes */
int attack_guard(void);
int attack_keeper(void);
int attack_meter(void);

/* probe_sysv.c; rows of section_processes */
int sysv_shm_foreign(void);
int sysv_shm_attach(void);
int sysv_shm_remove(void);
int sysv_shm_new(void);
int sysv_shm_huge(void);
int sysv_shm_list(void);
int sysv_ipc_bounds(void);
int sysv_sem_foreign(void);
int sysv_sem_remove(void);
int sysv_msg_foreign(void);
int sysv_msg_read(void);

/* Outside. The scratch directory: the victims' place, "work" in it is the workspace. */
const char *scratch_path(const char *name);
/* argv[0] with this terminal as its own and as standard input; its exit code */
int run_on_terminal(const char *pts, char **argv);

#endif
