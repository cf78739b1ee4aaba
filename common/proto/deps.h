/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * What a job may name as its dependencies (`deps` of the job spec). Names, versions and
 * hashes, never a URL, a path, an option or a marker: what is fetched comes from the
 * registries of codex.yaml or not at all.
 */
#ifndef LYCH_COMMON_PROTO_DEPS_H
#define LYCH_COMMON_PROTO_DEPS_H

#include "common/attr.h"
#include <stdbool.h>

#define DEPS_MAX 256 /* of a kind */
#define DEPS_TEXT_MAX 1024

/* PEP 508 as far as a name, extras and version clauses (PEP 440) go, and pip's hashes:
 * "six", "six==1.16.0", "uvicorn[standard]>=0.20,<1", "six==1.16.0 --hash=sha256:<64 hex>".
 * A direct reference ("x @ https://…") and an environment marker are none of it. */
bool deps_is_requirement(const char *s);
/* "left-pad", "left-pad@1.3.0", "@babel/core@^7.0.0": a name and a version, range or tag
 * of one clause. An alias, a tarball, a directory and a git address are none of it. */
bool deps_is_npm(const char *s);

#endif
