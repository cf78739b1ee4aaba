/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See litter.h. The directory may be one that everybody writes to.
 */
#include "cli/base/litter.h"

#include "common/cleanup.h"
#include "common/err.h"
#include "common/fs.h"
#include "common/str.h"
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OLD_SEC 3600

static bool has_name(const struct litter *l, const char *name)
{
	size_t before = strlen(l->before);

	if (!str_starts(name, l->before) ||
	    strlen(name) != before + l->letters + strlen(l->after) ||
	    !str_eq(name + before + l->letters, l->after))
		return false;
	for (size_t i = 0; i < l->letters; i++)
		if (!isalnum((unsigned char)name[before + i]))
			return false;
	return true;
}

static bool is_left(const struct litter *l, int dirfd, const char *name)
{
	struct stat st;

	return has_name(l, name) && fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_uid == getuid() &&
	       (l->is_dir ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode)) &&
	       (l->is_worse || st.st_mtim.tv_sec < time(NULL) - OLD_SEC);
}

void litter_sweep(const char *dir, const struct litter *l)
{
	cleanup_dir DIR *d = opendir(dir);
	struct err ignored = ERR_INIT;
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (is_left(l, dirfd(d), e->d_name))
			(void)!fs_remove_beneath(dirfd(d), e->d_name, &ignored);
}
