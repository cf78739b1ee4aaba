/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * What is planted in an attempt of a job: a variable of its environment that looks like somebody's token and is good for
 * nothing. No program reads it, so who sends it away has taken the environment for what it may be worth
 * (docs/adr/audit/0059). Tomb and vessel both make it from the lease, as the broker's key (broker_key.h), of which it
 * tells nothing; PROTOCOL.md has the formula.
 */
#ifndef LYCH_COMMON_CRYPTO_PLANTED_H
#define LYCH_COMMON_CRYPTO_PLANTED_H

#include "common/id.h"
#include <stdint.h>

#define PLANTED_VARIABLE "DEPLOY_TOKEN"
/* Hexadecimal digits: it stays what it is in a host name, in a package's, and in any case of letters. */
#define PLANTED_BYTES 20
#define PLANTED_SIZE (2 * PLANTED_BYTES + 1)

struct planted {
	char s[PLANTED_SIZE];
};

void planted_of(job_id_t job, int64_t epoch, const struct uuid *token,
		struct planted *ret);

#endif
