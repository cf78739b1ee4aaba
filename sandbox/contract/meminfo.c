/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner and the keeper.
 * The spawner builds nothing in advance when memory is short.
 */
#include "sandbox/contract/meminfo.h"

#include "common/cleanup.h"
#include "common/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEMINFO_MAX 4096

static bool no_huge_shmem; /* read once, where the host's /sys is; forks inherit it */

bool meminfo_has_huge_shmem(void)
{
	return !no_huge_shmem;
}

bool meminfo_parse_huge(const char *text)
{
	return !strstr(text, "[never]") && !strstr(text, "[deny]") &&
	       !strstr(text, "[inherit]");
}

static bool says_huge(int dir, const char *path)
{
	cleanup_close int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	char text[128];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	/* Not every size has one. */
	return n < 0 && errno == ENOENT ? false : meminfo_parse_huge(text);
}

/* "inherit" is what the first file says. */
static bool may_be_huge(void)
{
	cleanup_close int dir = open("/sys/kernel/mm/transparent_hugepage",
				     O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *sizes = NULL;
	struct dirent *e;
	char path[300];

	if (dir < 0 || faccessat(dir, "shmem_enabled", R_OK, 0) < 0 ||
	    says_huge(dir, "shmem_enabled"))
		return true;
	sizes = fdopendir(fcntl(dir, F_DUPFD_CLOEXEC, 3));
	while (sizes && (e = readdir(sizes)))
		if (str_starts(e->d_name, "hugepages-") &&
		    str_fmt(path, sizeof(path), "%s/shmem_enabled", e->d_name) == 0 &&
		    says_huge(dir, path))
			return true;
	return !sizes;
}

int meminfo_open(struct err *err)
{
	int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);

	no_huge_shmem = !may_be_huge();
	return fd < 0 ? err_sys_id(err, ERRID_SANDBOX_LIMIT, "open /proc/meminfo") : fd;
}

static int take(const char *text, const char *name, uint64_t *ret)
{
	const char *p = text;

	while (p && !str_starts(p, name)) {
		p = strchr(p, '\n');
		if (p)
			p++;
	}
	if (!p)
		return -1;
	*ret = strtoull(p + strlen(name), NULL, 10) * 1024;
	return 0;
}

int meminfo_parse(const char *text, struct meminfo *ret)
{
	return take(text, "MemAvailable:", &ret->available) < 0 ||
			       take(text, "SwapFree:", &ret->swap) < 0 ||
			       take(text, "Shmem:", &ret->shmem) < 0 ||
			       take(text, "SUnreclaim:", &ret->kernel) < 0
		       ? -1
		       : 0;
}

int meminfo_read(int fd, struct meminfo *ret)
{
	char text[MEMINFO_MAX];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return -1;
	text[n] = '\0';
	return meminfo_parse(text, ret);
}
