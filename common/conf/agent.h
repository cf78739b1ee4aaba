/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The profile of an agent (cli/profiles/agents): what `lych agent NAME` starts, and how. As strict as
 * codex.yaml is, and read by the same code.
 */
#ifndef LYCH_COMMON_CONF_AGENT_H
#define LYCH_COMMON_CONF_AGENT_H

#include "common/attr.h"
#include "common/conf/egress.h"
#include "common/err.h"
#include "common/proto.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONF_AGENT_WORDS_MAX 64
#define CONF_AGENT_ENV_MAX 32
#define CONF_AGENT_FILES_MAX 8

/* What a profile says that is so, and by what: a word of its command, a variable or a text of its
 * files. One that nothing of these says is refused. */
enum agent_claim {
	AGENT_TELEMETRY_OFF,
	AGENT_UPDATER_OFF,
	AGENT_SANDBOX_OFF, /* its own, which can't stand inside of ours */
	AGENT_MAY_ALL,	   /* it asks nobody before it does something */
	AGENT_CLAIM_MAX_
};

struct conf_agent {
	char *summary;
	char **command; /* its words */
	size_t n_command;
	char *package, *version; /* npm's; NULL: the command is the machine's */
	/* what it asks, and of which model; model NULL: none */
	enum portal_api api;
	char *model;
	char **env; /* NAME=VALUE */
	size_t n_env;
	char *home; /* a directory of the job's workspace: its HOME, where its state is */
	struct conf_agent_file {
		char *path; /* below home */
		char *text;
	} *file;
	size_t n_files;
	/* 0: the installation's default */
	uint64_t memory, disk, processes, timeout_usec;
	char *claim[AGENT_CLAIM_MAX_]; /* NULL: it says nothing of that */
};

/* ERRID_SPEC_PROFILE, with a line. What the spec of no such job may have (common/proto/job_spec.h,
 * broker_env_is_reserved()) is refused here already. */
MUST_CHECK int conf_agent_parse(const char *text, size_t len, struct conf_agent *ret,
				struct err *err);
void conf_agent_done(struct conf_agent *a);
/* Of its job: an agent that asks nobody has no broker. */
enum egress_mode conf_agent_egress(const struct conf_agent *a);
#define cleanup_agent __attribute__((cleanup(conf_agent_done)))

#endif
