/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Names, limits and states that more than one program must agree on.
 */
#ifndef LYCH_COMMON_PROTO_H
#define LYCH_COMMON_PROTO_H

#include "common/attr.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LYCH_VERSION "0.1.0"
#define LYCH_API_VERSION 1

/* An event stream says at least this often that it is there (microseconds); a client that
 * hears nothing for three times as long asks again. */
#define SSE_ALIVE_USEC ((uint64_t)5 * 1000000)

/* Sizes in bytes. */
#define RESULT_MAX_BYTES ((size_t)1 << 20)
#define OUTPUT_CHUNK_MAX_BYTES ((size_t)256 << 10)
#define UPLOAD_PART_MAX_BYTES ((size_t)4 << 20)
#define BLOB_MAX_BYTES ((uint64_t)4 << 30)
#define ARTIFACTS_MAX 256

/* In a tomb's data directory: whoever starts a tomb there has proved that every earlier one
 * is dead, and all that it started. The tomb takes it away before it notes a lease.
 * What it says: whether the last one died alone, or with what had started it. */
#define TOMB_GONE_FILE "gone"
#define TOMB_GONE_ALONE "alone\n"
#define TOMB_GONE_HOUSE "house\n"

/* In audit/: the scribe's private key, which is in no archive. A restore leaves this text in its
 * place: the log goes on with keys that the old ones did not sign. */
#define AUDIT_KEYS_FILE ".keys"
#define AUDIT_KEYS_RESTORED "restored\n"

/* Lease: seconds. */
#define LEASE_TTL_SEC 30

/* Through the vessel (profile sovereign): jobs of one claim, leases of one extend, and
 * how long it holds the question for a hint. */
#define DOOR_CLAIM_MAX 8
#define DOOR_EXTEND_MAX 64
#define DOOR_HINT_SEC 20
/* Whose a job is as long as nobody else may submit one. */
#define IDENTITY_OWNER "owner"
/* Requests of all jobs of one tomb that the vessel has at once, and of one job. */
#define BROKER_INFLIGHT_ALL 512u
#define BROKER_INFLIGHT_JOB 16u
#define TOMB_NAME_SIZE 33 /* [a-z][a-z0-9_]{0,31} */

/* Where a job's programs are found, in both grades; the tomb adds the broker's clients. */
#define JOB_PATH "/usr/local/bin:/usr/bin:/bin"

/* Exit code of lych-sandbox: nothing ran. */
#define EXIT_SETUP 78

/* What a user sees. */
enum job_state {
	JOB_HELD,
	JOB_QUEUED,
	JOB_PREPARING,
	JOB_RUNNING,
	JOB_CANCELLING,
	JOB_SUCCEEDED,
	JOB_FAILED,
	JOB_CANCELLED,
	JOB_TIMED_OUT,
	JOB_LOST,
	JOB_QUARANTINED,
	JOB_STATE_MAX_
};

enum fail_class {
	FAIL_NONE, /* "" */
	FAIL_SETUP_REFUSED,
	FAIL_POLICY_DENY,
	FAIL_TIMEOUT_KILL,
	FAIL_OOM_KILL,
	FAIL_OUTPUT_LIMIT,
	FAIL_DISK_LIMIT,
	FAIL_RESOURCE_KILL,
	FAIL_EXIT, /* the program's own non-zero code */
	FAIL_CRASH, /* a signal that nobody of ours sent; no program that could be executed */
	FAIL_INPUT, /* nothing of it ran: an archive, a file or a dependency */
	FAIL_LEASE_EXPIRED,
	FAIL_GATE_FAILED,
	FAIL_TRANSPORT_LOSS,
	FAIL_BUDGET_EXHAUSTED,
	FAIL_CLASS_MAX_
};

enum sbx_grade { GRADE_FULL, GRADE_FLOOR, GRADE_MAX_ };

/* Which way a tomb claims: with a login of its own, or through the vessel. */
enum queue_door { DOOR_POSTGRES, DOOR_VESSEL, DOOR_MAX_ };

/* What a job may ask the broker for: nothing; models and URLs; packages too. */
enum egress_mode { EGRESS_NONE, EGRESS_BROKERED, EGRESS_REGISTRY, EGRESS_MAX_ };

/* Lower-case names ("timed_out", "oom_kill", "full"); NULL / false when unknown. */
const char *job_state_name(enum job_state s);
bool job_state_from_name(const char *name, enum job_state *ret);
bool job_state_is_final(enum job_state s);
const char *fail_class_name(enum fail_class c);
bool fail_class_from_name(const char *name, enum fail_class *ret);
const char *sbx_grade_name(enum sbx_grade g);
bool sbx_grade_from_name(const char *name, enum sbx_grade *ret);
const char *queue_door_name(enum queue_door d);
bool queue_door_from_name(const char *name, enum queue_door *ret);
const char *egress_mode_name(enum egress_mode m);
bool egress_mode_from_name(const char *name, enum egress_mode *ret);

/* Anchors of the audit log that are files. So long a path, so that an answer of the scribe has room for all of them. */
#define ANCHORS_MAX 4
#define ANCHOR_PATH_MAX_BYTES 512
#define ANCHOR_NAME_MAX 64 /* with its NUL */
/* What one is called in the log: the last component of its path, and in it. NULL: that is not letters, digits, "-", "_"
 * and ".", which is not the first; or too long. */
const char *anchor_name_in(const char *path);

/* A tomb's name: it is a role of the database, and stands in names of files. */
bool tomb_name_is_usable(const char *name);

/*
 * May a job set this environment variable? [A-Za-z_][A-Za-z0-9_]{0,63} and none of
 * the names that a loader, shell or interpreter obeys (LD_*, BASH_ENV, ENV,
 * GCONV_PATH, PYTHON*PATH/HOME/STARTUP, NODE_OPTIONS, PERL5*, RUBYOPT, GIT_*,
 * ...), none of Lychgate's own (LYCHGATE_*, in any case), nor the ones that the sandbox itself sets (HOME, PATH, TMPDIR, USER,
 * LOGNAME, SHELL, PWD).
 */
bool env_name_is_allowed(const char *name, size_t len);

#endif
