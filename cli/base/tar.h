/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Directories as one stream of tar bytes (ustar, pax records for long names).
 * Regular files, directories and symlinks that stay inside; owners are left out, modes
 * are 0644/0755, entries are sorted: the same tree gives the same bytes. Nothing
 * is followed: every step is openat2 beneath the top, and a link is only read. What of
 * it all is taken the caller decides, entry by entry.
 */
#ifndef LYCH_CLI_BASE_TAR_H
#define LYCH_CLI_BASE_TAR_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct tar;

struct tar_stats {
	uint64_t files, dirs, links, bytes;
	uint64_t skipped; /* sockets, FIFOs, devices, links that lead out */
};

/* Called for each entry that cannot be taken. */
typedef void tar_skip_fn(const char *path, const char *why, void *arg);

enum tar_verdict {
	TAR_TAKE,
	TAR_LEAVE, /* with all that is below it */
	TAR_BELOW, /* a directory: only if something below it is taken */
};

struct tar_entry {
	size_t tree;	  /* 0 is what was added first */
	const char *path; /* relative to the top of its tree */
	const char *name; /* in the archive */
	const struct stat *st;
	int fd; /* of a regular file: for pread(); else O_PATH */
};
/* Called for each entry that can be taken. */
typedef int tar_want_fn(const struct tar_entry *e, enum tar_verdict *ret, void *arg,
			struct err *err);

/* want NULL: everything. */
struct tar *tar_new(tar_want_fn *want, tar_skip_fn *skip, void *arg) MUST_CHECK;
/* dest: where its contents are in the archive, path_check_relative() holds; NULL: at the top.
 * *ret_top (may be NULL): the directory, borrowed. */
MUST_CHECK int tar_add(struct tar *t, const char *dir, const char *dest, int *ret_top,
		       struct err *err);
/* client_source: fills buf; *ret_len 0 at the end. */
MUST_CHECK int tar_read(void *buf, size_t size, size_t *ret_len, void *tar,
			struct err *err);
const struct tar_stats *tar_stats(const struct tar *t);
void tar_close(struct tar *t);

/* Does a link at `path` (relative to the top) with this target stay inside? For tests
 * too. */
bool tar_link_is_inside(const char *path, const char *target);

#endif
