/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * See paths.h.
 */
#include "sandbox/contract/paths.h"

#include <stddef.h>
#include <string.h>

const char *const paths_system[] = {"/usr",   "/bin",	"/sbin",   "/lib",
				    "/lib32", "/lib64", "/libx32", NULL};

/* Reviewed one by one: configuration that programs read at start, public on every host.
 */
const char *const paths_etc_public[] = {
	"/etc/ld.so.cache",
	"/etc/ld.so.conf",
	"/etc/ld.so.conf.d",
	"/etc/alternatives",
	"/etc/ssl/certs",
	"/etc/ssl/openssl.cnf",
	"/etc/ca-certificates.conf",
	"/etc/localtime",
	"/etc/timezone",
	"/etc/mime.types",
	"/etc/magic",
	"/etc/magic.mime",
	"/etc/protocols",
	"/etc/services",
	"/etc/rpc",
	"/etc/host.conf",
	"/etc/gai.conf",
	"/etc/locale.alias",
	"/etc/debian_version",
	"/etc/os-release",
	"/etc/lsb-release",
	"/etc/terminfo",
	"/etc/inputrc",
	"/etc/fonts",
	"/etc/perl",
	"/etc/python3",
	"/etc/python3.11",
	"/etc/python3.12",
	"/etc/python3.13",
	"/etc/java-17-openjdk",
	"/etc/java-21-openjdk",
	"/etc/java-25-openjdk",
	"/etc/chromium.d",
	NULL,
};

const char *const paths_etc_floor[] = {"/etc/passwd",	   "/etc/group",
				       "/etc/hosts",	   "/etc/nsswitch.conf",
				       "/etc/resolv.conf", NULL};

const char *const paths_proc_floor[] = {
	"/proc/cpuinfo",
	"/proc/filesystems",
	"/proc/loadavg",
	"/proc/meminfo",
	"/proc/stat",
	"/proc/uptime",
	"/proc/version",
	"/proc/sys/kernel/cap_last_cap",
	"/proc/sys/kernel/ngroups_max",
	"/proc/sys/kernel/osrelease",
	"/proc/sys/kernel/pid_max",
	"/proc/sys/kernel/random/uuid",
	"/proc/sys/vm/overcommit_memory",
	NULL,
};

const char *const paths_dev_plain[] = {"/dev/null", "/dev/zero", "/dev/full", NULL};
const char *const paths_dev_terminal[] = {"/dev/tty", NULL};
const char *const paths_dev_random[] = {"/dev/random", "/dev/urandom", NULL};

bool paths_is_below(const char *path, const char *top)
{
	size_t len = strlen(top);

	return strncmp(path, top, len) == 0 && (path[len] == '\0' || path[len] == '/');
}
