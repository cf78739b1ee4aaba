/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the job.
 * What a job does not see below /proc, in full.
 *
 * The /proc of a pid namespace shows the job's processes only, but the rest of it is the
 * host's: the names of the user's keys, the boot options, disks, drivers, input devices with
 * their addresses, interrupts, locks of everybody. Programs need some ten of these files, so
 * proc's own subset=pid is no way out, and Landlock can't tell a file of its root from the
 * directories of processes, which come and go. So what nobody reviewed is covered, as in a
 * container, by something empty: a name that a newer kernel or a driver brings is covered too.
 *
 * What is left uncovered describes the kernel, its drivers, the processors and the machine's
 * load, which are no secret here (docs/SANDBOX.md), or is the job's own. Each cover is a mount
 * in each start.
 *
 * Done by the job before it gives its rights away, not by whoever makes the root: a spawner's
 * own /proc has to stay whole, or the kernel gives its sandboxes none but of processes
 * ("mount too revealing").
 */
#include "sandbox/contract/sandbox.h"

#include "common/cleanup.h"
#include "sandbox/contract/paths.h"
#include "sandbox/walls/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct names { /* in order */
	const char *const *list;
	size_t n;
};
static const char *const top_public[] = {
	"acpi",	       "buddyinfo",
	"cgroups",     "config.gz",
	"consoles",    "cpuinfo",
	"crypto",      "devices",
	"dma",	       "execdomains",
	"filesystems", "iomem",
	"ioports",     "irq",
	"kallsyms",    "loadavg",
	"meminfo",     "misc",
	"modules",     "mounts",
	"mtrr",	       "net",
	"pressure",    "schedstat",
	"self",	       "softirqs",
	"stat",	       "sys",
	"sysvipc",     "thread-self",
	"tty",	       "uptime",
	"version",     "version_signature",
	"vmstat",      "zoneinfo",
};
static const char *const sys_public[] = {
	"abi", "crypto", "debug", "dev", "fs", "kernel", "net", "user", "vm",
};
/* Single names in what is public. The id of a boot is a machine's name until the next one. */
static const char *const also[] = {
	"/proc/sys/kernel/random/boot_id",
	"/proc/sys/kernel/spl",
};

static int by_name(const void *a, const void *b)
{
	return strcmp(a, *(const char *const *)b);
}

/* Covers path; one that is not there any more, or that we could not read either, is nothing
 * to cover. */
static int cover(const char *path, struct err *err)
{
	struct stat st;
	bool dir;

	if (stat(path, &st) < 0)
		return errno == ENOENT || errno == EACCES
			       ? 0
			       : mount_failed(err, "stat", path);
	dir = S_ISDIR(st.st_mode);
	if (!(st.st_mode & (dir ? S_IXOTH : S_IROTH)))
		return 0;
	if (mount(dir ? PATH_NOTHING_DIR : PATH_NOTHING, path, NULL, MS_BIND, NULL) < 0)
		return errno == ENOENT ? 0 : mount_failed(err, "cover", path);
	return 0;
}

struct entry { /* as getdents64(2) has it */
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

static bool is_public(const char *name, const struct names *public)
{
	return name[0] == '.' || (name[0] >= '0' && name[0] <= '9') ||
	       bsearch(name, public->list, public->n, sizeof(*public->list), by_name);
}

/* Every name of a directory but these, and those of processes. */
static OWN_FRAME int cover_others(const char *top, const struct names *public,
				  struct err *err)
{
	cleanup_close int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_Alignas(struct entry) char buf[4096];
	char path[sizeof("/proc/sys/") + NAME_MAX];
	long len;

	while ((len = fd < 0 ? -1 : syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0)
		for (long at = 0; at < len;) {
			const struct entry *e = (const void *)(buf + at);

			at += e->len;
			if (is_public(e->name, public))
				continue;
			(void)snprintf(path, sizeof(path), "%s/%s", top, e->name);
			if (cover(path, err) < 0)
				return -1;
		}
	return len < 0 ? mount_failed(err, "list", top) : 0;
}

/* An outer filter may say yes to a mount and do nothing. */
static int check(struct err *err)
{
	struct stat keys, nothing;

	if (stat("/proc/keys", &keys) < 0)
		return errno == ENOENT ? 0 : mount_failed(err, "stat", "/proc/keys");
	if (stat(PATH_NOTHING, &nothing) < 0)
		return mount_failed(err, "stat", PATH_NOTHING);
	if (keys.st_dev != nothing.st_dev || keys.st_ino != nothing.st_ino)
		return err_set_id(err, ERRID_SANDBOX_ROOT, "/proc/keys is not covered");
	return 0;
}

int root_cover_proc(struct err *err)
{
	const struct names top = {top_public, ARRAY_SIZE(top_public)};
	const struct names sys = {sys_public, ARRAY_SIZE(sys_public)};
	struct stat st;

	if (cover_others("/proc", &top, err) < 0)
		return -1;
	/* A /proc of processes only has nothing else. */
	if (stat("/proc/sys", &st) < 0)
		return errno == ENOENT ? 0 : mount_failed(err, "stat", "/proc/sys");
	if (cover_others("/proc/sys", &sys, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(also); i++)
		if (cover(also[i], err) < 0)
			return -1;
	return check(err);
}
