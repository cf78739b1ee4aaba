/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The options of `lych-tomb`, and which of them need each other.
 */
#ifndef LYCH_TOMB_OPTIONS_H
#define LYCH_TOMB_OPTIONS_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/net/starter_word.h"
#include "common/proto.h"
#include <limits.h>
#include <stdbool.h>

struct tomb_options {
	const char *name, *data, *work_dir, *secrets, *sandbox;
	const char *pg_dir;	   /* NULL through the vessel */
	const char *cgroup;	   /* NULL: none */
	const char *probe_walls;   /* test builds: a file of attempts, */
	const char *probe_process; /* and who tries them; NULL: the tomb itself */
	char api_socket[PATH_MAX]; /* beside work_dir: no business of a tomb */
	bool jobs_apart; /* data/jobs is a file system of its own, or nothing starts */
	unsigned slots;
	enum sbx_grade grade;
	enum queue_door queue;
	usec_t prepare_usec; /* PREPARE_USEC; test builds have less patience */
	unsigned protocol;   /* LYCH_API_VERSION; test builds may lie */
	struct starter_word starter;
};

/* --help, --version and usage errors end the process as argp does (exit 2). */
MUST_CHECK int tomb_options_parse(int argc, char **argv, struct tomb_options *ret,
				  struct err *err);

#endif
