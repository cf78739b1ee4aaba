/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * `deps` of a job's specification: the vessel reads it when it accepts the job, the tomb
 * when it runs it.
 */
#ifndef LYCH_COMMON_JSON_DEPS_READ_H
#define LYCH_COMMON_JSON_DEPS_READ_H

#include "common/attr.h"
#include "common/err.h"
#include "common/json/json.h"
#include <stdbool.h>
#include <stddef.h>

struct deps {
	char **pypi, **npm, **cargo, **go; /* owned */
	size_t n_pypi, n_npm, n_cargo, n_go;
	/* owned; NULL: none, and not with npm: package-lock.json and the package.json to it,
	 * as npm_lock_write() makes them */
	char *npm_lock, *npm_package;
};

/*
 * spec: the whole. registry: npm_lock.h. Without deps, or with an empty list, *ret is left
 * as it is; else it is whole (deps_done() frees it) or untouched. ERRID_SPEC_DEPS, and
 * json.h's for what has another shape.
 */
MUST_CHECK int deps_read(const struct json *spec, const char *registry, struct deps *ret,
			 struct err *err);
void deps_done(struct deps *d);
bool deps_any(const struct deps *d);

#endif
