/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * What another codex.yaml takes away from what stands between jobs and the person.
 */
#ifndef LYCH_CLI_LOCAL_CONFIG_WALLS_H
#define LYCH_CLI_LOCAL_CONFIG_WALLS_H

#include "common/conf/conf.h"

/* Calls put() with a line, "KEY: what is less", for each wall that is lower in `to`: of the keys
 * with one value. Rules and portals are lists, of which `lych config check` tells. The line lives
 * for the call. */
void config_walls_lowered(const struct conf *from, const struct conf *to,
			  void (*put)(const char *line, void *arg), void *arg);

#endif
