/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * What somebody who follows a job is told when nothing of it comes. One line on stderr each; before: what
 * ends the job's own colours.
 */
#ifndef LYCH_CLI_FOLLOW_FOLLOW_WORDS_H
#define LYCH_CLI_FOLLOW_FOLLOW_WORDS_H

#include "common/id.h"
#include "common/json/json.h"
#include <stdbool.h>
#include <stdint.h>

/* The vessel has been away for a few seconds. */
void follow_say_away(job_id_t id, const char *before);
/* The job waits: asks the vessel whether jobs are begun at all. Nothing is said when they are, or when it
 * does not answer. socket: of a connection of its own. */
void follow_say_waiting(const char *socket, job_id_t id, const char *before);

/* Output that the job's result counts and the store has no more, beyond the have[] bytes of stdout and
 * stderr that it gave or told of: it is told. False: there is none. */
bool follow_tell_missing(const struct json *job, const uint64_t have[2]);

#endif
