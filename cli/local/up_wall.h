/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The tomb's wall in embedded mode: up_wall.c, its processes; up_root.c, its root.
 */
#ifndef LYCH_CLI_LOCAL_UP_WALL_H
#define LYCH_CLI_LOCAL_UP_WALL_H

#include "common/attr.h"
#include "common/err.h"
#include <stdbool.h>

struct wall {
	char *data, *work, *secrets, *tomb, *sandbox, *tools;
	char *pg; /* NULL: it claims through the vessel, and has no database in its root */
	char *slots, *grade, *queue;
	char *jobs_dir, *jobs_tmpfs; /* where jobs' folders are; NULL: in data */
	char *cgroup;		     /* NULL: no delegated group */
	char *record;		     /* who the tomb is: up_gone.c */
	bool scope, ready;
	bool unrooted; /* daemons: no_private_root: no namespaces, no root */
};

/* In the child, as soon as its uid is mapped: it sees nothing else any more. */
MUST_CHECK int wall_build_root(const struct wall *w, struct err *err);

#endif
