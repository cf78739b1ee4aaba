/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Jobs that have just ended, of which the audit log shall have a receipt (api/receipt.h): one after the
 * other, a piece of its output in a turn of the loop. What waits is in memory; the end of a job that
 * the database has not been told to be in the log is heard of again by the next vessel.
 */
#ifndef LYCH_VESSEL_RECEIPTS_H
#define LYCH_VESSEL_RECEIPTS_H

#include "common/id.h"

struct receipts;
struct vessel;

/* v has loop, queue, output and audit by then. */
struct receipts *receipts_new(struct vessel *v);
/* NULL is fine. */
void receipts_free(struct receipts *r);
/* An attempt of it ended, or its containment. One that goes on all the same gets none. */
void receipts_add(struct receipts *r, job_id_t job, int64_t epoch);
/* Once none waits, now perhaps; at the latest when r is freed. */
void receipts_when_idle(struct receipts *r, void (*fn)(void *arg), void *arg);

#endif
