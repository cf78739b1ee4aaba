/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper and the job.
 * The descriptors of a job's broker (common/proto/broker_proto.h). ERRID_SANDBOX_BROKER.
 */
#ifndef LYCH_SANDBOX_WALLS_BROKER_H
#define LYCH_SANDBOX_WALLS_BROKER_H

#include "common/err.h"
#include "common/proto/broker_proto.h"

struct broker_fds {
	enum broker_kind kind;
	int tomb; /* what the tomb serves; -1 */
	int job;  /* BROKER_CHANNEL: what becomes BROKER_FD of the job; else -1 */
};
#define BROKER_FDS_NONE {BROKER_NONE, -1, -1}

/* In the keeper: full, in the job's network namespace, whose loopback is up. Nothing of
 * the job has run yet, so nobody can have the address. */
MUST_CHECK int broker_make(enum sbx_grade grade, struct broker_fds *ret, struct err *err);
void broker_done(struct broker_fds *b);

#endif
