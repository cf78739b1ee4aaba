/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * What git would track of a directory: what is in its index, and what is new and not ignored.
 * git itself is asked, since nobody else reads .gitignore as it does. The tree may be the work
 * of an agent, and a repository's configuration can name programs (a monitor of files, filters,
 * hooks, the ways to a remote): so git is never shown it. It gets an empty repository that is
 * made here, with the index, the objects, info/exclude and the files of the real one. Your own configuration,
 * with your own file of ignored names, counts.
 */
#ifndef LYCH_CLI_JOBS_GIT_LIST_H
#define LYCH_CLI_JOBS_GIT_LIST_H

#include "common/attr.h"
#include "common/err.h"
#include <stdbool.h>

struct git_list;
/* dir: a real path. ERRID_SPEC_TREE: no repository, or one that cannot be read so. */
MUST_CHECK int git_list_read(const char *dir, struct git_list **ret, struct err *err);
void git_list_free(struct git_list *l);
/* path: relative to dir. A repository within the repository is one entry, a directory. */
bool git_list_has(const struct git_list *l, const char *path);
bool git_list_has_below(const struct git_list *l, const char *path);

#endif
