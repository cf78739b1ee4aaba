/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * lych-vessel's own wall.
 *
 * Theory of operation. Everything that the vessel needs from elsewhere it has opened before
 * (main.c has the order). From here on it has its data directory, the directories of its own
 * sockets, in which it may make and remove those, and the way to PostgreSQL's and the
 * scribe's. Then it tries what must be out of reach: the secrets, and the data that lie
 * beside its own. What it can reach of that ends the start.
 */
#include "vessel/walls.h"

#include "common/landlock.h"
#include "common/mem.h"
#include "common/str.h"

#include <limits.h>
#include <sys/stat.h>

/* What lies beside our data directory and is not ours: must be out of reach. */
static size_t neighbours(const struct options *opt, char (*paths)[PATH_MAX], size_t max)
{
	static const char *const names[] = {"phylactery", "tomb", "audit"};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names) && n < max; i++) {
		struct stat st;

		if (str_fmt(paths[n], PATH_MAX, "%s/../%s", opt->data, names[i]) == 0 &&
		    stat(paths[n], &st) == 0)
			n++;
	}
	return n;
}

int vessel_confine(const struct options *opt, struct confine_report *walls,
		   struct err *err)
{
	static const uint64_t own_sockets =
		LL_FS_READ_DIR | LL_FS_REMOVE_FILE | LL_FS_MAKE_SOCK;
	const struct confine_path paths[] = {
		{opt->data, LL_FS_RO | LL_FS_WRITE_FILE | LL_FS_TRUNCATE |
				    LL_FS_MAKE_DIR | LL_FS_MAKE_REG | LL_FS_REMOVE_DIR |
				    LL_FS_REMOVE_FILE | LL_FS_REFER},
		{opt->api_dir, own_sockets},
		{opt->work_dir, own_sockets},
		{opt->pg_dir, LL_FS_READ_DIR},
		{opt->audit_dir, LL_FS_READ_DIR},
	};
	const struct confine_policy policy = {
		.name = "vessel",
		.paths = paths,
		.n_paths = ARRAY_SIZE(paths),
		.private_root = !opt->starter.unrooted,
		.unrooted = opt->starter.unrooted,
		.may_dial = opt->starter.unrooted,
		.may_listen = true, /* a tomb may remove its sockets (sockets.c) */
		.api_socket = opt->api_socket,
		.may_make_unix_sockets = true,
	};
	char beside[3][PATH_MAX];
	const char *foreign[ARRAY_SIZE(beside) + 2] = {opt->secrets};
	size_t n = neighbours(opt, beside, ARRAY_SIZE(beside));

	for (size_t i = 0; i < n; i++)
		foreign[i + 1] = beside[i];
	if (confine_self(&policy, err) < 0)
		return -1;
	return confine_selftest(&policy, foreign, walls, err);
}
