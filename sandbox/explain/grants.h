/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * What the walls of a job let it do with a path, worked out from the spec (--explain). This
 * tells, it does not decide: the kernel does, by the rules of walls.c and the mounts of
 * root.c, and a mistake here is a wrong sentence.
 */
#ifndef LYCH_SANDBOX_EXPLAIN_GRANTS_H
#define LYCH_SANDBOX_EXPLAIN_GRANTS_H

#include "sandbox/contract/sandbox.h"

#define GRANT_READ 1u
#define GRANT_WRITE 2u
#define GRANT_EXEC 4u
#define GRANT_LIST 8u /* a directory's names */

struct grant {
	char *real; /* as the kernel names it, in the root that the job sees */
	unsigned rights;
};

struct grants_table {
	enum sbx_grade grade;
	struct grant *g;
	size_t n;
	char *workspace;    /* where it is for the job; NULL without one */
	char *workspace_at; /* what --workspace names */
};

/* In the root that the job will see. A path of the lists that is not there is left out. */
void grants_collect(struct grants_table *t, const struct sbx_spec *spec);
/* The rights on a real path, all rules added up. */
unsigned grants_on(const struct grants_table *t, const char *real);
/* What stands behind "/proc/self" or "/proc/thread-self" in a path, "." for nothing; NULL: it is
 * another path. */
const char *grants_below_self(const char *path);
/* The smallest option that adds this right to that path; "" when none does. */
void grants_option(const struct grants_table *t, const char *real, unsigned right,
		   char *out, size_t size);

#endif
