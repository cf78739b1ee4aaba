/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * The key of one attempt's own broker (struct broker_key), as tomb and vessel both make it
 * from the lease: the tomb gives it to the job, the vessel looks for it in what the job
 * sends away. It tells nothing of the token. PROTOCOL.md has the formula.
 */
#ifndef LYCH_COMMON_CRYPTO_BROKER_KEY_H
#define LYCH_COMMON_CRYPTO_BROKER_KEY_H

#include "common/proto/broker_proto.h"

void broker_key_of(job_id_t job, int64_t epoch, const struct uuid *token,
		   struct broker_key *ret);

#endif
