/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Counters of this process and their Prometheus text.
 */
#ifndef LYCH_VESSEL_STORE_METRICS_H
#define LYCH_VESSEL_STORE_METRICS_H

#include "common/buf.h"
#include <stddef.h>
#include <stdint.h>

#define METRICS_COUNTERS(X)                                                              \
	X(requests, "HTTP requests that passed authentication")                          \
	X(refused_peers, "HTTP requests refused by authentication")                      \
	X(refused_versions, "Requests of tombs of another version, refused")             \
	X(submits, "Jobs accepted")                                                      \
	X(cancels, "Cancel requests")                                                    \
	X(retries, "Jobs that a person had tried again")                                 \
	X(removals, "Jobs that a person removed")                                        \
	X(output_bytes, "Bytes of job output stored")                                    \
	X(upload_bytes, "Bytes of uploads stored")                                       \
	X(stdin_bytes, "Bytes of streamed stdin that came from clients")                 \
	X(blobs_committed, "Blobs committed")                                            \
	X(streams_opened, "Event streams opened")                                        \
	X(leases_reaped, "Expired leases taken back")                                    \
	X(jobs_retired, "Old jobs deleted")                                              \
	X(blobs_collected, "Unnamed blobs deleted")                                      \
	X(sweeps, "Times everything old was looked for, to the end")                     \
	X(db_losses, "Times the database went away")                                     \
	X(egress_worker_ends, "Times an egress worker ended")                            \
	X(credentials_redacted, "Credentials that were taken out of replies")

struct metrics {
#define X(name, help) uint64_t name;
	METRICS_COUNTERS(X)
#undef X
	uint64_t queue_violations; /* at the last look, once an hour */
};

/* The counters, then every number of the queue's health JSON (may be NULL) as a gauge. */
void metrics_write(const struct metrics *m, const char *health, size_t health_len,
		   struct buf *out);
/* name without lychgate_ and _total */
void metrics_counter(struct buf *out, const char *name, const char *help, uint64_t value);
void metrics_gauge(struct buf *out, const char *name, const char *help, uint64_t value);

#endif
