/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * See spec_mounts.h.
 */
#include "sandbox/spec_mounts.h"

#include "sandbox/contract/paths.h"

#include <stdlib.h>

static int mount_by_path(const void *a, const void *b)
{
	return strcmp(((const struct sbx_mount *)a)->path,
		      ((const struct sbx_mount *)b)->path);
}

static int mount_rank(enum sbx_mount_kind kind)
{
	static const int rank[] = {[MOUNT_RO] = 0, [MOUNT_ROX] = 1, [MOUNT_RW] = 2};

	return rank[kind];
}

/*
 * A path may lie below another one. In full the mounts nest, parents first (and so they
 * are sorted here: the other way round the parent would cover the stricter child).
 * Landlock only adds rights, so in floor a stricter path below a freer one would be no
 * wall; nor would it be one below the workspace, which has a second name in full. Both
 * are refused.
 */
static int check_nesting(const struct sbx_spec *s, struct err *err)
{
	for (size_t i = 0; i < s->n_mounts; i++) {
		const struct sbx_mount *in = &s->mounts[i];

		if (s->workspace && !s->workspace_ro && in->kind != MOUNT_RW &&
		    paths_is_below(in->path, s->workspace))
			return err_set_id(err, ERRID_SPEC_PATH,
					  "%s lies in the workspace, which is writable",
					  in->path);
		for (size_t k = 0; s->grade == GRADE_FLOOR && k < s->n_mounts; k++)
			if (mount_rank(in->kind) < mount_rank(s->mounts[k].kind) &&
			    paths_is_below(in->path, s->mounts[k].path))
				return err_set_id(err, ERRID_SPEC_PATH,
						  "%s lies in %s, which grants more",
						  in->path, s->mounts[k].path);
		if (s->grade == GRADE_FLOOR && s->workspace && s->workspace_ro &&
		    in->kind == MOUNT_RW && paths_is_below(s->workspace, in->path))
			return err_set_id(err, ERRID_SPEC_PATH,
					  "the read-only workspace lies in %s", in->path);
	}
	return 0;
}

/*
 * The system's own trees are shown to every job, read-only and executable. To show one of them (or
 * what lies in it) for reading adds nothing; as a mount of its own it would take away that its
 * programs can be executed, which nobody means who asks for more. In a tree that is to be written it is
 * the stricter one.
 */
static bool adds_nothing(const struct sbx_spec *s, size_t at)
{
	const struct sbx_mount *m = &s->mounts[at];
	bool is_shown = false;

	if (m->kind == MOUNT_RW ||
	    (s->workspace && !s->workspace_ro && paths_is_below(m->path, s->workspace)))
		return false;
	for (const char *const *p = paths_system; *p; p++)
		is_shown |= paths_is_below(m->path, *p);
	for (size_t k = 0; k < s->n_mounts; k++)
		if (s->mounts[k].kind == MOUNT_RW &&
		    paths_is_below(m->path, s->mounts[k].path))
			return false;
	return is_shown;
}

static void leave_out(struct sbx_spec *s)
{
	for (size_t i = s->n_mounts; i-- > 0;) {
		struct sbx_mount *m = &s->mounts[i];

		if (!adds_nothing(s, i))
			continue;
		free(m->path);
		memmove(m, m + 1, (--s->n_mounts - i) * sizeof(*m));
	}
}

int spec_mounts_judge(struct sbx_spec *s, struct err *err)
{
	if (s->n_mounts)
		qsort(s->mounts, s->n_mounts, sizeof(*s->mounts), mount_by_path);
	leave_out(s);
	return check_nesting(s, err);
}
