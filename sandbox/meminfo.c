/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in the keeper, and in the spawner, which builds nothing ahead when memory is short. */
#include "sandbox/meminfo.h"

#include "common/str.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEMINFO_MAX 4096

int meminfo_open(struct err *err)
{
	int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);

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
