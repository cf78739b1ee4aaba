/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * From what a person asked of lych run or lych agent to the spec of a job, and to that job.
 */
#ifndef LYCH_CLI_JOBS_RUN_SPEC_H
#define LYCH_CLI_JOBS_RUN_SPEC_H

#include "cli/base/client.h"
#include "cli/deps/deps_write.h"
#include "cli/follow/feed.h"
#include "cli/jobs/guard.h"
#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/proto.h"
#include "common/proto/job_spec.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIRS_MAX 16
#define PATTERNS_MAX 64
#define TEXTS_MAX 8

/* All of it is the command line's own; 0, NULL and false: not given. */
struct run_args {
	const char *files[FILES_MAX], *env[ENV_MAX], *artifacts[GLOBS_MAX];
	size_t n_files, n_env, n_artifacts;
	struct deps_args deps;
	const char *dirs[DIRS_MAX], *exclude[PATTERNS_MAX], *include[PATTERNS_MAX];
	size_t n_dirs, n_exclude, n_include;
	struct run_text { /* files of nobody's disk */
		const char *path, *text;
	} texts[TEXTS_MAX];
	size_t n_texts;
	bool git, home;
	const char *out, *request_id, *network, *egress, *retry;
	uint64_t timeout_usec, memory, disk, output, processes, cpus, priority;
	bool has_priority, explain, tty, json, summary, detach, no_stdin, force;
	bool names_request; /* request_id is the user's own */
	bool is_agent;	    /* of lych agent, which has no --request-id */
	char **argv;
	int argc;
};

/* *out: at most SPEC_MAX_BYTES. What is too large for it is sent as a blob meanwhile; all paths
 * that are read are the user's own. feed: gets a name when stdin is to be streamed; one with a
 * terminal has it. */
MUST_CHECK int run_spec_build(struct client *c, const struct run_args *a,
			      struct feed *feed, struct buf *out, struct err *err);
/* It becomes a job; one that is not a->detach ends with its client. */
MUST_CHECK int run_submit(struct client *c, const struct buf *spec,
			  const struct run_args *a, struct json **ret, job_id_t *ret_id,
			  struct err *err);
#endif
