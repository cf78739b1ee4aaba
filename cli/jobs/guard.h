/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * What may go into a job. Theory of operation:
 *
 *  - Whoever calls lych run, a person in a hurry or an agent, names a file or a tree; a job
 *    is then given a copy, and what it is given it may send wherever the ward lets it.
 *  - What keeps secrets (sensitive.h) is refused when it is named itself, by --file or --dir,
 *    and left out and named on stderr when it lies in a tree. --include says that it is meant.
 *  - What is judged is what was opened: its real path by the descriptor, all of its
 *    components, and its bytes. Links on the way change nothing.
 *  - The home directory, and what holds it, is copied only with --home; Lychgate's own
 *    directories never. Inside a tree both are known by device and inode.
 *
 * It is no wall: who calls it could copy the file under another name first. It is there so
 * that nothing goes in by mistake.
 */
#ifndef LYCH_CLI_JOBS_GUARD_H
#define LYCH_CLI_JOBS_GUARD_H

#include "cli/base/tar.h"
#include "common/attr.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>

/* Patterns: as in .gitignore, without '!': a name at any depth, or with a '/' a path from the top;
 * with a '/' behind it directories only; '*', '?', and '**' that crosses '/'. */
struct guard_wish {
	const char *const *exclude, *const *include; /* borrowed */
	size_t n_exclude, n_include;
	bool git;  /* of trees: what git would track */
	bool home; /* the home directory is meant */
};

struct guard;
MUST_CHECK int guard_new(const struct guard_wish *wish, struct guard **ret,
			 struct err *err);
void guard_free(struct guard *g);
static inline void guard_free_p(struct guard **g)
{
	guard_free(*g);
}
#define cleanup_guard __attribute__((cleanup(guard_free_p)))

/* May this file go in? path: as it was written; fd: what it led to. ERRID_SPEC_SECRET. */
MUST_CHECK int guard_file(struct guard *g, const char *path, int fd, struct err *err);
/* May this tree? In the order of tar_add(), with its dir, dest and descriptor. */
MUST_CHECK int guard_tree(struct guard *g, const char *dir, const char *dest, int fd,
			  struct err *err);
/* A tar_want_fn (arg: the guard): tells on stderr what it leaves out, but for what the wish says. */
MUST_CHECK int guard_want(const struct tar_entry *e, enum tar_verdict *ret, void *arg,
			  struct err *err);
/* Afterwards: how to have what was left out, if something was. */
void guard_tell_more(const struct guard *g);
/* One line on stderr: "left out: PATH: WHY". A tar_skip_fn. */
void guard_tell(const char *path, const char *why, void *arg);

/* For tests: does a pattern mean this path, or a directory above it? */
bool guard_pattern_means(const char *pattern, const char *path, bool is_dir);

#endif
