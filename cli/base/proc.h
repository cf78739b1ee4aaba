/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Children of the starter: explicit environment, closed descriptors, death signal.
 */
#ifndef LYCH_CLI_BASE_PROC_H
#define LYCH_CLI_BASE_PROC_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_READY_FD 3 /* where a child finds its readiness pipe */
#define PROC_DIAL_FD 4	/* and its socket to the dialer */

struct proc_spec {
	const char *const *argv; /* argv[0] is an absolute path */
	const char *const *env;	 /* complete */
	int in, out, err;	 /* -1: /dev/null */
	int ready_fd;		 /* becomes PROC_READY_FD; -1: none */
	int dial_fd; /* becomes PROC_DIAL_FD, if ready_fd is there; 0, -1: none */
	uint64_t
		data_max_bytes; /* of its own memory, and its children's each; 0: as ours */
	int death_signal;	/* sent to the child when this process dies; 0: none */
	const char *cwd;	/* NULL: "/" */
};

/* Succeeds only when the exec did; umask 077, default signals, nothing blocked. */
MUST_CHECK int proc_start(const struct proc_spec *spec, pid_t *ret, struct err *err);
/* As data_max_bytes, for the calling process; errno. */
MUST_CHECK int proc_limit_data(uint64_t max);
/* Run to the end, whatever that is; stdout+stderr, bounded (what is above the bound is
 * lost). */
MUST_CHECK int proc_output(const char *const *argv, const char *const *env,
			   const char *input, usec_t timeout_usec, char **ret_output,
			   int *ret_status, struct err *err);
/* The same with stdin from and stdout to a descriptor (borrowed; -1: /dev/null). *ret_said:
 * its stderr, bounded. */
MUST_CHECK int proc_pipe(const char *const *argv, const char *const *env, int in, int out,
			 usec_t timeout_usec, char **ret_said, int *ret_status,
			 struct err *err);
/* Run to the end with input on stdin; its stdout+stderr (bounded) in *ret_output (may be
 * NULL). Any end but exit 0 is an error of the given id (or CORE_DISK_FULL), with the line
 * of what it said that tells why. */
MUST_CHECK int proc_run(const char *const *argv, const char *const *env,
			const char *input, usec_t timeout_usec, enum err_id id,
			char **ret_output, struct err *err);
/* The line of a program's output that tells why it failed: PostgreSQL's first FATAL, else
 * the last line. Writes into text. */
const char *proc_why(char *text);
bool proc_says_disk_full(const char *text);
/* A file of /proc/PID ("stat"), NUL-terminated, its bytes in *ret_len (NULL is fine); NULL: it is
 * gone, not ours to see, or above 64 KiB. The caller frees it. */
char *proc_text(pid_t pid, const char *name, size_t *ret_len) MUST_CHECK;
/* Of its first thread, in text. */
char *proc_children(pid_t pid) MUST_CHECK;
/* The environment of every child: PATH, LANG, HOME, XDG_RUNTIME_DIR and in test builds
 * LYCH_TEST_* and the sanitizers' options. NULL-terminated, caller frees with
 * proc_env_free. */
char **proc_env(void) MUST_CHECK;
/* With it SSH_AUTH_SOCK where try_agent: a daemon without a private root tries it. */
char **proc_env_of_daemons(bool try_agent) MUST_CHECK;
void proc_env_free(char **env);
static inline void proc_env_free_p(char ***env)
{
	proc_env_free(*env);
}
#define cleanup_env __attribute__((cleanup(proc_env_free_p)))

#endif
