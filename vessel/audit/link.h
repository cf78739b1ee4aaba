/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * One stream of events to the scribe: numbered, sent ahead of the answers, kept until it
 * says that they are on disk, sent again after a reconnect. The connection is made anew
 * for ever; how it stands is asked for.
 */
#ifndef LYCH_VESSEL_AUDIT_LINK_H
#define LYCH_VESSEL_AUDIT_LINK_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/id.h"
#include "common/net/loop.h"
#include <stdbool.h>
#include <stdint.h>

#define AUDIT_WINDOW 512 /* events without an answer; less than the scribe remembers */

struct audit_link;

/* A checkpoint of the log, as the scribe says it; line: as in a file of an anchor. */
struct audit_checkpoint {
	struct uuid log;
	uint64_t size;
	char root[48], line[1024];
};

struct audit_link_config {
	struct loop *loop;
	const struct clock_ops *clock;
	const char *socket_path;
	const char *prod;
	struct uuid stream;
	uint64_t acked; /* the number up to which the log is known to have the stream */
	/* Everything up to pseq is on disk. */
	void (*on_ack)(uint64_t pseq, void *arg);
	/* It became good, or stopped being so. */
	void (*on_change)(void *arg);
	/* The newest checkpoint; may be NULL. */
	void (*on_checkpoint)(const struct audit_checkpoint *c, void *arg);
	void *arg;
};

/* What the scribe says of itself. */
struct audit_link_report {
	bool is_good;
	struct err why; /* when it is not */
	struct uuid log;
	uint64_t seq, events, batches, duplicates;
	uint64_t acked, waiting;
	const char *walls; /* JSON array, borrowed; NULL before the first hello */
	size_t walls_len;
	const char *anchors; /* the same; how they stood when it said so last */
	size_t anchors_len;
};

struct audit_link *audit_link_new(const struct audit_link_config *cfg);
void audit_link_free(struct audit_link *l);
/* The event as a JSON object. False: the window is full, try again after an answer. */
MUST_CHECK bool audit_link_add(struct audit_link *l, const struct buf *event);
size_t audit_link_room(const struct audit_link *l);
void audit_link_report(const struct audit_link *l, struct audit_link_report *ret);

#endif
