/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * `deps` of a job's spec, of what --dep named and of the lock files among the job's own.
 */
#ifndef LYCH_CLI_DEPS_DEPS_WRITE_H
#define LYCH_CLI_DEPS_DEPS_WRITE_H

#include "common/attr.h"
#include "common/err.h"
#include "common/jsonw.h"
#include "common/proto/deps.h"
#include <stdbool.h>
#include <stddef.h>

/* All of it is the command line's own. */
struct deps_args {
	const char *pypi[DEPS_MAX], *npm[DEPS_MAX], *cargo[DEPS_MAX], *go[DEPS_MAX];
	size_t n_pypi, n_npm, n_cargo, n_go;
	bool npm_lock, cargo_lock, go_sum;
};

/* Where the file is that the job has at its top by this name, owned; NULL: there is none. */
struct deps_files {
	char *(*path_of)(const void *arg, const char *name);
	const void *arg;
};

/* Nothing is written when there was no --dep. ERRID_SPEC_DEPS, ERRID_CORE_USAGE, and what reading
 * a file may bring. */
MUST_CHECK int deps_write(const struct deps_args *a, const struct deps_files *files,
			  struct jsonw *w, struct err *err);

#endif
