/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The subcommands of lych. Each run() gets its own argv (argv[0] is the
 * subcommand's name), parses it with argp and returns an exit code: 0 ok,
 * 1 refused or failed, 2 usage, 3 not found, 4 unavailable, 78 set-up;
 * `lych run` passes the job's own code through.
 */
#ifndef LYCH_CLI_BASE_CMD_H
#define LYCH_CLI_BASE_CMD_H

#include "common/attr.h"
#include "common/err.h"
#include "common/id.h"
#include <stdbool.h>
#include <stddef.h>

struct cmd {
	const char *name, *summary; /* summary NULL: internal, not listed */
	int (*run)(int argc, char **argv);
};

#define EXIT_FAILED 1
#define EXIT_USAGE 2
#define EXIT_NOT_FOUND 3
#define EXIT_UNAVAILABLE 4
#define EXIT_INPUT 65
#define EXIT_TIMED_OUT 124
#define EXIT_CANNOT_EXEC 126
#define EXIT_NO_COMMAND 127

int cmd_run(int argc, char **argv);
int cmd_agent(int argc, char **argv);
int cmd_jobs(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_sandbox(int argc, char **argv);
int cmd_why(int argc, char **argv);
int cmd_logs(int argc, char **argv);
int cmd_attach(int argc, char **argv);
int cmd_cancel(int argc, char **argv);
int cmd_contain(int argc, char **argv);
int cmd_retry(int argc, char **argv);
int cmd_rm(int argc, char **argv);
int cmd_prune(int argc, char **argv);
int cmd_artifacts(int argc, char **argv);
int cmd_quarantine(int argc, char **argv);
int cmd_receipt(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_up(int argc, char **argv);
int cmd_down(int argc, char **argv);
int cmd_react(int argc, char **argv);
int cmd_request(int argc, char **argv);
int cmd_backup(int argc, char **argv);
int cmd_restore(int argc, char **argv);
int cmd_audit(int argc, char **argv);
int cmd_secret(int argc, char **argv);
int cmd_gate(int argc, char **argv);
int cmd_private(int argc, char **argv);
int cmd_passphrase(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_ward(int argc, char **argv);
int cmd_proposals(int argc, char **argv);
int cmd_portals(int argc, char **argv);
int cmd_budget(int argc, char **argv);
int cmd_bind(int argc, char **argv);
int cmd_unbind(int argc, char **argv);
int cmd_version(int argc, char **argv);
/* Internal: the tomb's wall, started by the supervisor (up_wall.c). */
int cmd_tomb_wall(int argc, char **argv);
/* Internal: the main process of a phylactery's container; becomes the server. */
int cmd_phylactery(int argc, char **argv);
/* Internal: a client program of PostgreSQL, started in that container. */
int cmd_pgtool(int argc, char **argv);

/* Print an error on stderr (as one JSON line when json) and return its exit code. That nobody
 * reads stdout any more (EPIPE) is none: nothing is printed. */
int cmd_fail(const struct err *err, bool json);
/* --json is among the arguments: from now on every error is told so, wrong options too. */
void cmd_ask_json(bool is_asked);
/* The end of a command that returned r: what it printed reaches stdout, or that is its error. */
MUST_CHECK int cmd_end(int r, struct err *err, bool json);
/* The two lines of any error: title and text (escaped), code and hint. ERRID_NONE: the
 * text alone. */
void cmd_tell(enum err_id id, const char *text);
/* Wrong usage found while options are read: says so and exits. */
struct argp_state;
NORETURN PRINTF_FMT(2, 3) void cmd_usage(const struct argp_state *state, const char *fmt,
					 ...);
/* The same of a command by its name ("lych jobs"). */
NORETURN PRINTF_FMT(2, 3) void cmd_usage_of(const char *command, const char *fmt, ...);
/* The words of a command line: a verb, and what it is about. */
#define CMD_WORDS_MAX 3
struct cmd_words {
	const char *at[CMD_WORDS_MAX];
	size_t n;
};
/* For ARGP_KEY_ARG: 0, or ARGP_ERR_UNKNOWN for one too many. */
MUST_CHECK int cmd_take_word(struct cmd_words *w, const char *arg);
/* For ARGP_KEY_ARG of a command that is about one job, whose number is 0 as long as none was given: the
 * same, and no number of a job is wrong usage. */
MUST_CHECK int cmd_take_job(job_id_t *id, const char *arg,
			    const struct argp_state *state);
bool cmd_words_are(const struct cmd_words *w, size_t n, const char *verb);
/* args_parse() of a command; what is wrong is told as cmd_usage_of() does. Returns when all was right. */
struct argp;
void cmd_parse(const struct argp *argp, int argc, char **argv, unsigned flags,
	       void *input);
/* For who wants a command's tables and not its work: from now on cmd_parse(), or a command that reads
 * its options itself by cmd_describe_if(), hands them over and ends the process. */
typedef void cmd_describe_fn(const struct argp *argp, void *arg);
void cmd_describe_with(cmd_describe_fn *fn, void *arg);
void cmd_describe_if(const struct argp *argp);
/* ERRID_CORE_ROOT when any uid is 0 or any capability is held. */
MUST_CHECK int cmd_refuse_root(struct err *err);

#endif
