/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * What the vessel says of itself, in a few lines for a person; embedded and in a pod alike.
 */
#ifndef LYCH_CLI_POD_STATUS_WORDS_H
#define LYCH_CLI_POD_STATUS_WORDS_H

#include "common/err.h"
#include "common/json/json.h"
#include <stdbool.h>

/* "label: text", one line of a terminal. */
void status_line(const char *label, const char *text);
/* That no job is begun, when the audit log can't be written: it stands before all else. */
void status_alarm(const struct json *vessel);
/* A line for each thing that a person may have to act on; verbose: each key of the answer.
 * vessel NULL: it did not answer, and why. */
void status_vessel(const struct json *vessel, const struct err *why, bool verbose);

#endif
