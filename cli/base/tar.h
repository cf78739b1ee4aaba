/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * A directory as a stream of tar bytes (ustar, pax records for long names).
 * Regular files, directories and symlinks that stay inside; owners are left out, modes
 * are 0644/0755, entries are sorted: the same tree gives the same bytes. Nothing
 * is followed: every step is openat2 beneath the top, and a link is only read.
 */
#ifndef LYCH_CLI_BASE_TAR_H
#define LYCH_CLI_BASE_TAR_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tar;

struct tar_stats {
	uint64_t files, dirs, links, bytes;
	uint64_t skipped; /* sockets, FIFOs, devices, links that lead out */
};

/* Called for each entry that is left out. */
typedef void tar_skip_fn(const char *path, const char *why, void *arg);

MUST_CHECK int tar_open(const char *dir, tar_skip_fn *skip, void *arg, struct tar **ret,
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
