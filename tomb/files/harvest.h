/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the file worker.
 * What a job leaves behind, taken out of its workspace after the last of its processes
 * is dead: by directory descriptor, never through a link or a mount, regular files with
 * one name only, within caps on count, size, depth and on how much is looked at at all.
 * Nothing but a regular file is ever opened. Files are copied out (their size is what was
 * copied; modes, owners, ACLs and extended attributes stay behind) and hashed in the same
 * pass. What the trusted side would obey by its name (common/text/hazard.h) is put aside;
 * names that differ only where some file systems do not look are refused together. A file
 * worker does it, in steps, between which it says that it is still at it.
 */
#ifndef LYCH_TOMB_FILES_HARVEST_H
#define LYCH_TOMB_FILES_HARVEST_H

#include "common/attr.h"
#include "common/err.h"
#include "common/id.h"
#include "common/proto.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HARVEST_DEPTH_MAX 32
#define HARVEST_PATH_MAX 512
#define HARVEST_NAMED_MAX                                                                \
	(HARVEST_PATH_MAX + 256 + 2) /* of what was refused, with a NUL */
#define HARVEST_LISTED_MAX 64	     /* refused and quarantined ones that are named */

struct harvest_caps {
	unsigned files;	      /* delivered */
	uint64_t file_bytes;  /* of one file */
	uint64_t total_bytes; /* of all that are delivered */
	unsigned walked;      /* directory entries looked at */
	unsigned held_alike;  /* copies in quarantine for one and the same reason */
	uint64_t held_bytes;  /* of all copies in quarantine */
};
extern const struct harvest_caps harvest_caps_default;

struct harvest_item {
	char *path; /* as the job named it; may be cut and is not UTF-8 when refused */
	char *why;  /* refused or quarantined; else NULL */
	uint64_t size;
	char sha256[SHA256_HEX_SIZE];
	char *class; /* kept: hazard_class(); else NULL */
	unsigned n;  /* the name of its copy: "<n>" */
};

struct harvest_list {
	struct harvest_item *item;
	size_t n, cap;
};

struct harvest {
	struct harvest_list kept, refused, held;
	size_t refused_total, held_total; /* also those that are not listed */
	struct harvest_walk *walk;
};

/* All borrowed until harvest_done(): work_fd (the workspace), kept_fd and held_fd (empty
 * directories for the copies). */
MUST_CHECK int harvest_begin(struct harvest *h, int work_fd, int kept_fd, int held_fd,
			     const char *const *globs, size_t n_globs,
			     const struct harvest_caps *caps, struct err *err);
/* 1: call again; 0: finished, lists sorted by path; -1: the tomb's own failure. */
MUST_CHECK int harvest_step(struct harvest *h, struct err *err);
/* kept[i] is not delivered after all. */
void harvest_reject(struct harvest *h, size_t i, const char *why);
void harvest_done(struct harvest *h);

#endif
