/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Files that this program obeys: profiles, the mount allow-list, unit templates. One is
 * believed only when nobody but its owner (the user or root) can change it, or replace it
 * or any directory above it. Each refusal bears the id that the caller gives.
 */
#ifndef LYCH_CLI_BASE_TRUSTED_H
#define LYCH_CLI_BASE_TRUSTED_H

#include "common/attr.h"
#include "common/err.h"
#include <stddef.h>

/* Every directory above an absolute path without symbolic links. */
MUST_CHECK int trusted_above(const char *real, enum err_id id, struct err *err);
/* The bytes (NUL-terminated, caller frees) of a regular file of at most max bytes; its
 * last component may not be a symbolic link. The directories are not looked at. */
MUST_CHECK int trusted_read(const char *real, size_t max, enum err_id id, char **ret,
			    size_t *ret_len, struct err *err);

#endif
