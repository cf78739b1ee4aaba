/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * A package-lock.json (version 2 or 3, docs.npmjs.com/cli/configuring-npm/package-lock-json)
 * as a job may have it fetched: every pin is a name, a version and its digest, of the one
 * registry that the codex names. What names another place is refused: a link, a workspace,
 * a git address, a tarball's URL, a range that is one of these. What npm writes beside that
 * (licences, engines, the pins once more for older versions) is left out.
 *
 * It is looked at before the job is accepted. The tomb gets what was written here, and no
 * other file leads what it fetches.
 */
#ifndef LYCH_COMMON_JSON_NPM_LOCK_H
#define LYCH_COMMON_JSON_NPM_LOCK_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/json/json.h"

#define NPM_LOCK_DEPTH_MAX 32

/*
 * registry: the URL whose files `resolved` may name, beside npm's own and the broker's mirror;
 * they are written as npm's own, which npm replaces by the registry that it has. NULL: other
 * places stay as they are, for who does not know the codex. lock gets package-lock.json,
 * package the package.json whose dependencies are its root's. ERRID_SPEC_DEPS names the pin.
 */
MUST_CHECK int npm_lock_write(const struct json *j, const char *registry,
			      struct buf *lock, struct buf *package, struct err *err);

#endif
