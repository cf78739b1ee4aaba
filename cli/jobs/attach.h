/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * A person's terminal, lent to that of a job which stays when nobody is at it.
 */
#ifndef LYCH_CLI_JOBS_ATTACH_H
#define LYCH_CLI_JOBS_ATTACH_H

#include "cli/base/client.h"
#include "cli/follow/tty.h"
#include "common/attr.h"
#include "common/err.h"
#include "common/id.h"
#include <stdbool.h>

struct attach {
	job_id_t id;
	bool takes;	     /* the terminal, from whoever is at it */
	bool is_new;	     /* nobody was there yet, and nothing is shown again */
	unsigned cols, rows; /* of a new one: the window that its spec has */
};

/* Until the job has ended or was left: what to exit with, or -1. The job goes on whatever ends it. */
MUST_CHECK int attach_to(struct client *c, const char *socket, struct tty *tty,
			 const struct attach *a, struct err *err);

#endif
