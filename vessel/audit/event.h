/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * An event in OCSF's names (docs/PROTOCOL.md, "The audit log"): pure, no I/O.
 */
#ifndef LYCH_VESSEL_AUDIT_EVENT_H
#define LYCH_VESSEL_AUDIT_EVENT_H

#include "common/buf.h"
#include "common/id.h"
#include <stdint.h>

/* An encoded event is shorter than a packet and than a line, whatever its data. */
#define AUDIT_DATA_MAX ((size_t)8192)

struct audit_event {
	const char *name; /* "job.claimed" */
	uint64_t time_ms;
	const char *actor; /* a database role, or the daemon */
	job_id_t job;	   /* 0: of no job */
	int64_t epoch;
	const char *data; /* JSON object of what else there is; "" for nothing */
	size_t data_len;
};

/* As a JSON object into out, which the caller initialised with AUDIT_EVENT_BUF_MAX.
 * Data that is no JSON object, or too long, is replaced by its length and hash. */
#define AUDIT_EVENT_BUF_MAX ((size_t)15000)
void audit_event_write(const struct audit_event *e, struct buf *out);

#endif
