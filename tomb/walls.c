/* SPDX-License-Identifier: Apache-2.0 */
#include "tomb/walls.h"

#include "common/landlock.h"
#include "common/str.h"
#include <limits.h>

int tomb_confine(const struct tomb_options *opt, struct confine_report *walls,
		 struct err *err)
{
	const struct confine_path paths[3] = {
		{opt->data, LL_FS_RO | LL_FS_WRITE_FILE | LL_FS_TRUNCATE |
				    LL_FS_MAKE_DIR | LL_FS_MAKE_REG | LL_FS_REMOVE_DIR |
				    LL_FS_REMOVE_FILE | LL_FS_REFER},
		{opt->work_dir, LL_FS_READ_DIR | LL_FS_REMOVE_FILE},
		{opt->pg_dir, LL_FS_READ_DIR},
	};
	const struct confine_policy policy = {
		.name = "tomb",
		.paths = paths,
		.n_paths = opt->pg_dir ? 3 : 2,
		.private_root = true,
		.may_make_unix_sockets = true,
	};
	char beside[4][PATH_MAX];
	const char *foreign[6] = {opt->secrets};
	static const char *const names[] = {"vessel", "phylactery", "audit"};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (str_fmt(beside[n], PATH_MAX, "%s/../%s", opt->data, names[i]) < 0)
			continue;
		foreign[n + 1] = beside[n];
		n++;
	}
	/* Landlock (ABI 7) has no say over connect() to a socket's path: what keeps the
	 * owner's socket out of reach is the root of our own, whatever the jobs' grade.
	 */
	if (str_fmt(beside[n], PATH_MAX, "%s/../api/vessel.sock", opt->work_dir) == 0)
		foreign[n + 1] = beside[n];
	if (confine_self(&policy, err) < 0)
		return -1;
	return confine_selftest(&policy, foreign, walls, err);
}
