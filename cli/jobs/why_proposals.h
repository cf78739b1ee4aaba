/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The proposals of one job (docs/EGRESS.md): what lych why tells of them, and what to do.
 */
#ifndef LYCH_CLI_JOBS_WHY_PROPOSALS_H
#define LYCH_CLI_JOBS_WHY_PROPOSALS_H

#include "cli/base/client.h"
#include "common/id.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include <stdbool.h>

/* The vessel's answer, of all jobs; NULL when it has none. */
struct json *why_proposals_ask(struct client *c);
/* Nothing when the job has none. ended: it can be allowed to later jobs only. */
void why_proposals_print(const struct json *all, job_id_t id, bool ended);
/* The member "proposals" of an open object. */
void why_proposals_json(const struct json *all, job_id_t id, struct jsonw *w);

#endif
