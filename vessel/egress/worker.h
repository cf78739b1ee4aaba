/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * A worker from its fork to its end: reads the one secret that is its own, confines
 * itself below its parent, tries its walls, says so, works.
 */
#ifndef LYCH_VESSEL_EGRESS_WORKER_H
#define LYCH_VESSEL_EGRESS_WORKER_H

#include "vessel/egress/addr.h"
#include "vessel/egress/egress.h"
#include "vessel/egress/resolve.h"
#include "vessel/egress/roots.h"
#include "vessel/egress/sources.h"

/* What the parent read while files could be opened, for all its children. */
struct egress_world {
	const struct egress_config *cfg;
	const struct sources *sources; /* as they are now ... */
	unsigned generation; /* ... and as they were when these were made of them */
	struct egress_roots *roots;
	struct resolve_config resolve;
	struct addr_policy addresses; /* the host's own */
	int secrets_fd;
	struct egress_pulse *pulse; /* in the child: its own */
};

/* Those that there are, those that take their place, and old ones that have requests yet. */
#define EGRESS_HOST_PLACES (3 * EGRESS_HOSTS_MAX)

/* The workers in order: the portals, the one without a key, the gate's where there are some, then
 * places for keys of hosts. */
size_t egress_workers_count(const struct egress_config *cfg);
bool egress_worker_is_gate(const struct egress_config *cfg, size_t i);
/* The first place; the one at i and all after it have a key of a host, or nobody. */
size_t egress_first_host(const struct egress_config *cfg);
/* "portal:NAME", "host:NAME", "keyless", "gate", "gate:large"; host: of such a place */
void egress_worker_name(const struct egress_config *cfg, size_t i,
			const struct egress_portal *host, char out[EGRESS_NAME_SIZE + 8]);

/* Test builds: the probes of that worker, which end the process. Else nothing. */
void egress_worker_probe(const struct egress_config *cfg, const char *name);

/* In the child, with nothing open but stdio, the secrets' directory and fd, its socket to
 * the vessel. host as above. Returns the exit code. */
int egress_worker_run(struct egress_world *w, size_t i, const struct egress_portal *host,
		      int fd);

#endif
