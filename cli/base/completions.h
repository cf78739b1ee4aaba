/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych completions: a script for bash, zsh or fish, made from the tables by which each command reads its
 * options, so that it has what there is.
 */
#ifndef LYCH_CLI_BASE_COMPLETIONS_H
#define LYCH_CLI_BASE_COMPLETIONS_H

#include "cli/base/cmd.h"
#include <stddef.h>

/* The command itself; commands: those that `lych help` lists. */
int completions(const struct cmd *commands, size_t n, int argc, char **argv);

#endif
