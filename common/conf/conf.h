/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * codex.yaml, read strictly: the only caller of libcyaml. libcyaml's own
 * leniencies (numbers like 12abc, any word as a bool, a second document, NUL cut)
 * are closed here: numbers are strings through parse_*, booleans strict enums,
 * document markers, NUL, aliases, tags and empty files are refused.
 */
#ifndef LYCH_COMMON_CONF_CONF_H
#define LYCH_COMMON_CONF_CONF_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/conf/egress.h"
#include "common/err.h"
#include "common/proto.h"
#include <stdbool.h>
#include <stddef.h>

#define CONF_FILE_MAX_BYTES 65536

/* What conf_flatten() writes of the longest. */
#define CONF_FLAT_MAX_BYTES ((size_t)1 << 20)

#define CONF_MOUNTS_MAX 32

/* retention: the default, and its bounds. */
#define CONF_RETENTION_USEC (30 * 24 * 3600 * USEC_PER_SEC)
#define CONF_RETENTION_MIN_USEC (3600 * USEC_PER_SEC)
#define CONF_RETENTION_MAX_USEC (3650 * 24 * 3600 * USEC_PER_SEC)

/* What `lych bind` renders (the key pod). */
struct conf_pod {
	const char *profile; /* "golden-mean" or "sovereign" */
	bool cgroups;	     /* cgroups: required (the default) or none */
	bool unmask_proc;    /* yes or no (the default) */
	char *label;	     /* of the images that are not named; NULL: this release's */
	struct conf_unit {
		char *image; /* NULL: this release's */
		uint64_t memory;
	} tomb, vessel, scribe, phylactery;
	unsigned tomb_processes;
	unsigned tomb_cpus; /* 0: all that there are */
	struct conf_mount {
		char *path; /* as it stands there */
		bool read_write;
	} *mount;
	size_t n_mounts;
};

/* Everything has a default: no file is needed. */
struct conf {
	enum sbx_grade grade;  /* tomb.grade: full */
	unsigned slots;	       /* tomb.slots: jobs at once, 1..64, default 8 */
	enum queue_door queue; /* tomb.queue: postgres */
	bool unrooted; /* daemons: no_private_root (docs/adr/0047); else: absent */
	/* Where the folders of jobs are, when not in the tomb's data directory: at most one. */
	char *jobs_dir;		   /* tomb.jobs_dir: a mount of its own; NULL: none */
	uint64_t jobs_tmpfs_bytes; /* tomb.jobs_tmpfs: 64 MiB and more; 0: none */
	uint64_t memory_default, memory_max; /* limits.memory.{default,max}, bytes */
	uint64_t disk_default, disk_max;
	uint64_t output_default, output_max;
	usec_t timeout_default_usec, timeout_max_usec;
	unsigned processes_default, processes_max;
	unsigned cpus_default, cpus_max;
	unsigned queue_max;	  /* queue.max_waiting: 1..1000000, default 10000 */
	uint64_t store_max_bytes; /* store.max: default 20 GiB for blobs + output */
	/* retention: jobs that have ended are removed after so long; 0: keep, none is */
	usec_t retention_usec;
	char *postgres_bin; /* postgres.bin: directory with initdb and postgres, NULL =
			       find */
	/* audit.anchors: files beside the audit log that its scribe keeps checkpoints in */
	struct conf_anchor {
		char *path;
		bool is_required;
	} anchor[ANCHORS_MAX];
	size_t n_anchors;
	struct conf_pod pod;
	struct conf_broker broker;
};

void conf_defaults(struct conf *c);
void conf_done(struct conf *c);
/* The file must be ours, regular, 0600 (ERRID_START_CONFIG_MODE); missing is
 * ERR_NOT_FOUND. Syntax and schema errors are ERRID_START_CONFIG with line and hint. */
MUST_CHECK int conf_load(const char *path, struct conf *ret, struct err *err);
/* The text of that file, under the same conditions but for what it says. out has a ceiling of
 * CONF_FILE_MAX_BYTES. */
MUST_CHECK int conf_read_text(const char *path, struct buf *out, struct err *err);
/* The parser alone: of a text that is in no file. */
MUST_CHECK int conf_parse(const char *text, size_t len, struct conf *ret,
			  struct err *err);

/* ---- one key, for who changes it in the text (flat.c) ---- */
/* Every value that a text of the right shape names, "tomb.slots=8" a line, with the entries of lists
 * numbered ("ward.0.host=..."), in the order of the schema: what two texts differ in. */
MUST_CHECK int conf_flatten(const char *text, size_t len, struct buf *out,
			    struct err *err);
/* Of two texts as conf_flatten() wrote them: the name of a key in which they differ, other than those of
 * the lists `but` (NULL at its end); allocated. NULL: there is none. */
char *conf_flat_differs(const char *a, const char *b, const char *const *but);
/* Is this dotted name one of a single value? ERRID_CORE_USAGE with what it is, or what was perhaps
 * meant. */
MUST_CHECK int conf_key_check(const char *key, struct err *err);

/* A commented file with every key at its default, for 'lych config init'. */
const char *conf_template(void);

#endif
