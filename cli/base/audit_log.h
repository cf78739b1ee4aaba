/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The scribe's files of the audit log (docs/PROTOCOL.md, "The audit log"), which are the
 * user's, embedded and in the pod. They are shown, not verified: that is `lych-audit verify`.
 */
#ifndef LYCH_CLI_BASE_AUDIT_LOG_H
#define LYCH_CLI_BASE_AUDIT_LOG_H

#include "cli/base/paths.h"
#include "common/attr.h"
#include "common/err.h"
#include "common/json/json.h"
#include <stdint.h>

#define AUDIT_LINE_MAX_BYTES ((size_t)16 << 10) /* of one record */

/* The directory's descriptor; ERR_NOT_FOUND: there is no log yet. */
MUST_CHECK int audit_log_open(const struct paths *p, int *ret_dirfd, struct err *err);
/* A segment to read, -1 and errno. */
MUST_CHECK int audit_log_segment(int dirfd, uint64_t number);
/* The highest number; 0: there is none. */
MUST_CHECK int audit_log_newest(int dirfd, uint64_t *ret, struct err *err);

/* Each record of a job from `from` to `to` (as in "ts"; "": no bound), oldest
 * first; a line that is no record is left out. on_record stops it by -1 with err. */
struct audit_log_query {
	const char *job, *from, *to;
	int (*on_record)(const char *event, const struct json *record, void *arg,
			 struct err *err);
	void *arg;
};
MUST_CHECK int audit_log_read(int dirfd, const struct audit_log_query *q,
			      struct err *err);

/* The public key with which its keys begin, as the first checkpoint says it. ERRID_AUDIT_SEAL. */
#define AUDIT_KEY_TEXT 45
MUST_CHECK int audit_log_first_key(int dirfd, char ret[AUDIT_KEY_TEXT], struct err *err);
/* How many records the newest whole checkpoint is of; 0: there is none. ERRID_AUDIT_SEAL. */
MUST_CHECK int audit_log_sealed(int dirfd, uint64_t *ret, struct err *err);

#endif
