/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * See grants.h.
 */
#include "sandbox/explain/grants.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/proto/broker_proto.h"
#include "common/str.h"
#include "sandbox/contract/paths.h"

#include <fcntl.h>
#include <limits.h>

static void add(struct grants_table *t, const char *path, unsigned rights)
{
	cleanup_free char *real = realpath(path, NULL);

	if (!real)
		return;
	t->g = xreallocarray(t->g, t->n + 1, sizeof(*t->g));
	t->g[t->n++] = (struct grant){TAKE_PTR(real), rights};
}

static void add_list(struct grants_table *t, const char *const *paths, unsigned rights)
{
	for (; *paths; paths++)
		add(t, *paths, rights);
}

void grants_collect(struct grants_table *t, const struct sbx_spec *spec)
{
	const unsigned ro = GRANT_READ | GRANT_LIST, rox = ro | GRANT_EXEC,
		       all = rox | GRANT_WRITE;
	bool full = spec->grade == GRADE_FULL;

	*t = (struct grants_table){.grade = spec->grade};
	add_list(t, paths_system, rox);
	add_list(t, paths_dev_plain, GRANT_READ | GRANT_WRITE);
	add_list(t, paths_dev_random, GRANT_READ | GRANT_WRITE);
	if (full) {
		add_list(t, paths_dev_terminal, GRANT_READ | GRANT_WRITE);
		add(t, PATH_PTS, GRANT_READ | GRANT_WRITE | GRANT_LIST);
		add(t, "/etc", ro);
		add(t, "/proc", ro);
		add(t, "/tmp", all);
		add(t, "/dev/shm", all);
	} else {
		add_list(t, paths_etc_public, ro);
		add_list(t, paths_etc_floor, ro);
		add_list(t, paths_proc_floor, GRANT_READ);
	}
	if (spec->tools)
		add(t, full ? BROKER_TOOLS : spec->tools, rox);
	for (size_t i = 0; i < spec->n_mounts; i++)
		add(t, spec->mounts[i].path,
		    spec->mounts[i].kind == MOUNT_RW	? all
		    : spec->mounts[i].kind == MOUNT_ROX ? rox
							: ro);
	if (!spec->workspace)
		return;
	t->workspace_at = xstrdup(spec->workspace);
	t->workspace = full ? xstrdup(PATH_WORK) : realpath(spec->workspace, NULL);
	add(t, full ? PATH_WORK : spec->workspace, spec->workspace_ro ? rox : all);
}

unsigned grants_on(const struct grants_table *t, const char *real)
{
	/* In full every directory of the private root may be listed. */
	unsigned rights = t->grade == GRADE_FULL ? GRANT_LIST : 0;
	size_t deepest = 0;
	unsigned innermost = 0;

	for (size_t i = 0; i < t->n; i++) {
		size_t len = strlen(t->g[i].real);

		if (!paths_is_below(real, t->g[i].real))
			continue;
		rights |= t->g[i].rights;
		/* In full the innermost mount says whether it can be written or executed. */
		if (len >= deepest) {
			deepest = len;
			innermost = t->g[i].rights;
		}
	}
	if (t->grade == GRADE_FULL)
		rights &= innermost | GRANT_READ | GRANT_LIST;
	return rights;
}

/* What --ro, --rox and --rw take: spec.c. */
static bool may_be_granted(const char *path)
{
	static const char *const trees[] = {"/proc", "/sys",	 "/dev",
					    "/run",  "/var/run", "/work"};
	static const char *const exact[] = {"/", "/tmp", "/etc", "/var"};

	for (size_t i = 0; i < ARRAY_SIZE(trees); i++)
		if (paths_is_below(path, trees[i]))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(exact); i++)
		if (str_eq(path, exact[i]))
			return false;
	return path[0] == '/' &&
	       path_check_relative(path + 1, strlen(path + 1), NULL) == 0;
}

/* Of the person who started it: they are not shown in floor, and full has its own. */
static bool is_terminal(const char *path)
{
	return str_eq(path, "/dev/ptmx") || str_eq(path, "/dev/tty") ||
	       paths_is_below(path, PATH_PTS);
}

const char *grants_below_self(const char *path)
{
	static const char *const own[] = {"/proc/self", "/proc/thread-self"};

	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		if (!paths_is_below(path, own[i]))
			continue;
		path += strlen(own[i]);
		while (*path == '/')
			path++;
		return *path ? path : ".";
	}
	return NULL;
}

/* Full has one of its own; in floor it would be the machine's, and nothing grants it. */
static bool is_own_in_full(const char *path, unsigned right)
{
	static const char *const own[] = {"/tmp", "/dev/shm"};

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (str_eq(path, own[i]))
			return true;
	return right == GRANT_READ && (str_eq(path, "/proc") || grants_below_self(path));
}

void grants_option(const struct grants_table *t, const char *real, unsigned right,
		   char *out, size_t size)
{
	const char *option = right == GRANT_WRITE  ? "--rw"
			     : right == GRANT_EXEC ? "--rox"
						   : "--ro";

	out[0] = '\0';
	if (t->grade == GRADE_FLOOR &&
	    (is_terminal(real) || is_own_in_full(real, right))) {
		(void)snprintf(out, size, "--grade full");
		return;
	}
	if (t->workspace && paths_is_below(real, t->workspace)) {
		if (right != GRANT_WRITE)
			return;
		option = "--workspace";
		real = t->workspace_at;
	} else if (!may_be_granted(real)) {
		return;
	}
	if (str_fmt(out, size, "%s %s", option, real) < 0)
		out[0] = '\0';
}
