/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See walls.h.
 */
#include "tomb/walls.h"

#include "common/landlock.h"
#include "common/str.h"
#include <limits.h>

int tomb_confine(const struct tomb_options *opt, struct confine_report *walls,
		 struct err *err)
{
	const struct confine_path paths[2] = {
		{opt->work_dir, LL_FS_READ_DIR | LL_FS_REMOVE_FILE},
		{opt->pg_dir, LL_FS_READ_DIR},
	};
	const struct confine_policy policy = {
		.name = "tomb",
		.paths = paths,
		.n_paths = opt->pg_dir ? 2 : 1,
		.private_root = !opt->starter.unrooted,
		.unrooted = opt->starter.unrooted,
		.may_dial = opt->starter.unrooted,
		.api_socket = opt->api_socket,
		.may_make_unix_sockets = true,
	};
	char beside[3][PATH_MAX];
	const char *foreign[7] = {opt->secrets, opt->data};
	static const char *const names[] = {"vessel", "phylactery", "audit"};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (str_fmt(beside[n], PATH_MAX, "%s/../%s", opt->data, names[i]) < 0)
			continue;
		foreign[n + 2] = beside[n];
		n++;
	}
	/* Landlock (ABI 7) has no say over connect() to a socket's path: what keeps the
	 * owner's socket out of reach is the root of our own, whatever the jobs' grade;
	 * without one, the filter.
	 */
	if (!opt->starter.unrooted)
		foreign[n + 2] = opt->api_socket;
	if (confine_self(&policy, err) < 0)
		return -1;
	return confine_selftest(&policy, foreign, walls, err);
}
