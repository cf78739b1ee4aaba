/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress parent.
 * The parent of the egress workers: forked from lych-vessel before that reads a secret or
 * confines itself, because the vessel can start no process later. It reads what its
 * children need of the system (authorities, name servers, own addresses), forks the watcher, who
 * goes on reading that (watcher.h), confines
 * itself, forks a child a worker, and forks it anew when it ends; one that does not move any
 * more it ends. It reads no byte of a job's or of the network's: only which keys of hosts the vessel
 * wants workers for (hosts/word.h), bound to where each may go (hosts/places.h). When the
 * vessel closes the socket between them, everything here ends.
 *
 * Packets to the vessel (SOCK_SEQPACKET): one byte, which worker, with the vessel's end of
 * its socket, and for a key of a host the turn behind it; or EGRESS_PARENT_ITSELF and a READY or FAILED
 * frame (wire.h); before that READY EGRESS_PARENT_WATCHER and the watcher's. Of a place for which
 * no worker comes: _SAME or _REFUSED, the place, the turn, and a FAILED frame with the latter.
 */
#ifndef LYCH_VESSEL_EGRESS_PARENT_H
#define LYCH_VESSEL_EGRESS_PARENT_H

#include "vessel/egress/egress.h"

#define EGRESS_PARENT_ITSELF 255u
#define EGRESS_PARENT_WATCHER 254u
#define EGRESS_PARENT_SAME 253u
#define EGRESS_PARENT_REFUSED 252u
#define EGRESS_TURN_BYTES 4u /* the least first */
#define EGRESS_PARENT_PACKET_MAX 16384

/* In the child; control is the only descriptor that it keeps, pulse where it shows the
 * vessel that it lives, workers that of each worker. Returns the exit code. */
int egress_parent_run(const struct egress_config *cfg, int control,
		      struct egress_pulse *pulse, struct egress_pulse *const *workers);

#endif
