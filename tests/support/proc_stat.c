/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/proc_stat.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

pid_t proc_parent(pid_t pid, char name[64])
{
	char path[64], text[512] = "", *close_;
	cleanup_close int fd = -1;
	pid_t parent = 0;

	cr_assert_eq(str_fmt(path, sizeof(path), "/proc/%d/stat", pid), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return 0;
	close_ = strrchr(text, ')');
	cr_assert_eq(sscanf(close_ + 2, "%*c %d", &parent), 1);
	close_[1] = '\0';
	cr_assert_eq(str_copy(name, 64, strchr(text, '(')), 0);
	return parent;
}

pid_t grandchild_named(const char *name)
{
	cleanup_dir DIR *d = opendir("/proc");
	struct dirent *e;

	cr_assert_not_null(d);
	while ((e = readdir(d))) {
		char its[64], above[64];
		uint64_t pid;
		pid_t parent;

		if (parse_u64(e->d_name, 2, INT32_MAX, &pid, NULL) < 0)
			continue;
		parent = proc_parent((pid_t)pid, its);
		if (parent > 0 && str_eq(its, name) &&
		    proc_parent(parent, above) == getpid())
			return (pid_t)pid;
	}
	return -1;
}

long proc_rss_kib(pid_t pid)
{
	char path[64], text[256] = "";
	long pages = 0;
	cleanup_close int fd = -1;

	cr_assert_eq(str_fmt(path, sizeof(path), "/proc/%d/statm", pid), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	cr_assert_eq(sscanf(text, "%*d %ld", &pages), 1);
	return pages * 4;
}
