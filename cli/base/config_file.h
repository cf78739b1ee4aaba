/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The user's codex.yaml, as every command of lych reads it.
 */
#ifndef LYCH_CLI_BASE_CONFIG_FILE_H
#define LYCH_CLI_BASE_CONFIG_FILE_H

#include "common/attr.h"
#include "common/conf/conf.h"
#include "common/err.h"

/* As conf_load(), and ERRID_START_CONFIG_MODE where somebody else could put another in its
 * place: it names hosts that get keys, and programs. ERRID_START_CONFIG where that is so of
 * egress.authorities, or there is no certificate in it. (The directories above it are not
 * looked at in a user namespace without root.) ret: conf_done() after success. */
MUST_CHECK int config_load(const char *path, struct conf *ret, struct err *err);
/* What config_load() would say if this text stood in the file that is there. */
MUST_CHECK int config_accept(const char *path, const struct buf *text, struct conf *ret,
			     struct err *err);
/* The defaults where there is none. */
MUST_CHECK int config_load_or_defaults(const char *path, struct conf *ret,
				       struct err *err);

#endif
