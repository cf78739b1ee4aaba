/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * What somebody who sees the outside, as its user, says to a record of the keeper: is what
 * the job missed there at all, and may the option that would show it be offered? Never for
 * what keeps secrets (common/proto/sensitive.h), or has such a thing below it.
 */
#ifndef LYCH_SANDBOX_OFFER_H
#define LYCH_SANDBOX_OFFER_H

#include "common/proto/spawn_proto.h"
#include <stdbool.h>

/* After the job has ended. false: it is not there outside either, which is no record. */
bool offer_judge(struct spawn_denied *d);

#endif
