/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe.
 * Anchors: files beside the log, on another disk say, to which each seal is appended as a line
 * (anchor_line.h). Who puts the log back as it was, or writes it anew, has to do so there too.
 *
 * Theory of operation. A file is opened before the scribe confines itself, and only appended to
 * from then on: no directory is opened for it, and no right is asked for. It must be a regular file of
 * ours with one name, which nobody else may write. At the start its last line is compared with
 * the log's last seal. One that knows more than the log, or something else, is left as it is:
 * it is the evidence, and a person looks at it.
 *
 * One that fails does not stop the log, unless it is required: the scribe says so, and tries
 * again with the next seal. A line that was not finished is left, and the next one begins
 * behind a newline. One that was removed or cut while it was in use stands no more until the next
 * start: whoever did that is not to have it look whole again.
 */
#ifndef LYCH_VESSEL_SCRIBE_ANCHORS_H
#define LYCH_VESSEL_SCRIBE_ANCHORS_H

#include "common/jsonw.h"
#include "vessel/scribe/anchor_line.h"

struct anchor_want {
	const char *path; /* absolute; borrowed */
	bool is_required;
};

struct anchors;

/* Not in the log's own directory. ERRID_AUDIT_ANCHOR: a name that is none, or there twice; a required one
 * that can't be opened. */
MUST_CHECK int anchors_open(const char *log_dir, const struct anchor_want *want, size_t n,
			    struct anchors **ret, struct err *err);
void anchors_free(struct anchors *a);
/* What lies there against the log's last seal (NULL: there is none). ERRID_AUDIT_ANCHOR: a required
 * one does not go with it. */
MUST_CHECK int anchors_compare(struct anchors *a, const struct seal *last,
			       struct err *err);
/* Append it to each, durable. ERRID_AUDIT_ANCHOR: a required one failed. */
MUST_CHECK int anchors_add(struct anchors *a, const struct seal *s, struct err *err);

/* The next one whose state was not told yet, as members of a record; false: there is none. *ret_why:
 * borrowed, NULL when it is good. */
bool anchors_tell(struct anchors *a, struct buf *members, const struct err **ret_why);
/* For the heartbeat: ,"anchored":{"NAME":SIZE,...}, the newest seal that each has. */
void anchors_write_sizes(const struct anchors *a, struct buf *out);
/* An array for who asks how they stand. */
void anchors_write(const struct anchors *a, struct jsonw *w);

#endif
