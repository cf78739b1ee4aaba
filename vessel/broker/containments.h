/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Containments that are not done yet: their steps that are the vessel's. Which step is next stands in the database
 * (schema/0019_containment) and nowhere here, so that whoever is killed between two of them goes on there:
 *
 *	lease revoked -> broker closed -> tree dead -> evidence sealed -> in the log
 *
 * The first is the call that contains a job; that the tree is dead its tomb says, or the time of its lease; that it is in the
 * log the database sees by itself. The reconciler looks every second; while one is open, this looks sooner.
 */
#ifndef LYCH_VESSEL_BROKER_CONTAINMENTS_H
#define LYCH_VESSEL_BROKER_CONTAINMENTS_H

struct containments;
struct vessel;

/* v has loop, queue, dispatch and output by now. */
struct containments *containments_new(struct vessel *v);
/* NULL is fine. */
void containments_free(struct containments *c);
/* A job was contained, or the time has come to look. NULL is fine. */
void containments_hint(struct containments *c);
/* Something changed in the database: perhaps what one waits for. NULL is fine. */
void containments_changed(struct containments *c);

#endif
