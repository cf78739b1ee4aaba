/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Embedded or in the pod: the words and commands that fit. In one place, so that no command
 * names what does not run here.
 */
#ifndef LYCH_CLI_BASE_MODE_H
#define LYCH_CLI_BASE_MODE_H

#include "cli/base/paths.h"
#include "common/err.h"
#include <stdbool.h>

/* Did `lych bind --install` place the units of this data directory's pod? Whether they run,
 * systemd knows. */
bool mode_is_pod(const struct paths *p);

/* The commands of this mode, to be typed as they stand. */
const char *mode_start(bool is_pod);
const char *mode_stop(bool is_pod);
const char *mode_restart(bool is_pod);
/* The value of `lych secret --store`. */
const char *mode_store(bool is_pod);
/* The hint of an error, in the words of the mode that this user has. */
const char *mode_hint(enum err_id id);

#endif
