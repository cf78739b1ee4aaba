/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The anchor of the audit log in the database, which is always on: a checkpoint a minute goes there, as the
 * scribe said it. One that has more than the log, or other records, is left as it is and told.
 */
#ifndef LYCH_VESSEL_AUDIT_ANCHOR_H
#define LYCH_VESSEL_AUDIT_ANCHOR_H

#include "common/jsonw.h"
#include "common/net/loop.h"
#include "vessel/audit/link.h"
#include "vessel/db/queue.h"

struct audit_anchor;

struct audit_anchor_config {
	struct loop *loop;
	struct queue *queue;
	/* How it stands has changed: members of an event's data, as an object. */
	void (*told)(const struct buf *data, void *arg);
	void *arg;
};
struct audit_anchor *audit_anchor_new(const struct audit_anchor_config *cfg);
void audit_anchor_free(struct audit_anchor *a);
/* The scribe has said its newest checkpoint; borrowed for the call. */
void audit_anchor_offer(struct audit_anchor *a, const struct audit_checkpoint *c);
/* The database is ours. */
void audit_anchor_owned(struct audit_anchor *a);
/* As one of the anchors of status. */
void audit_anchor_write(const struct audit_anchor *a, struct jsonw *w);

#endif
