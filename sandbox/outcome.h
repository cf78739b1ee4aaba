/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * What came of a job, as its caller is told: an exit code, and a line on stderr.
 */
#ifndef LYCH_SANDBOX_OUTCOME_H
#define LYCH_SANDBOX_OUTCOME_H

#include "common/err.h"
#include "common/proto/spawn_proto.h"
#include "sandbox/contract/sandbox.h"
#include <stdbool.h>

#define EXIT_OWN_ERROR 125

/* From the messages of its keeper. */
struct outcome {
	struct spawn_started started;
	struct spawn_refused refused;
	struct spawn_exited exited;
	struct spawn_denied denied[SPAWN_DENIED_MAX];
	unsigned n_denied;
	bool has_started, has_refused, has_exited;
	int signal;  /* that ended us, passed on */
	bool is_cut; /* --tty: the terminal did not take all that the job had shown it */
};

int outcome_exit_code(const struct outcome *o);
/* --tty, when the terminal is given back: words that it, or whatever stderr is, does not take within sec
 * are left out, and the program ends with its exit code there and then. */
void outcome_bound(const struct outcome *o, unsigned sec);
/* On stderr: as spec->json and spec->explain want it. */
void outcome_print(const struct outcome *o, const struct sbx_spec *spec);

/* The two lines of any error: title and text, code and hint. */
void outcome_complain(const struct err *err);
/* The same for a program to read. */
void outcome_complain_json(const struct err *err);

#endif
