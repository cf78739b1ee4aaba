/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See landlock.h.
 */
#include "common/landlock.h"
#include "common/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The kernel's ABI; as far as we fill it (ABI 6 added `scoped`, ABI 10 what is logged).
 */
struct ll_ruleset_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};

struct ll_path_beneath_attr {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

#define LL_CREATE_VERSION 1u
#define LL_RULE_PATH_BENEATH 1
#define LL_NET_BIND_TCP (1ULL << 0)
#define LL_NET_CONNECT_TCP (1ULL << 1)
#define LL_NET_BIND_UDP (1ULL << 2)
#define LL_NET_CONNECT_SEND_UDP (1ULL << 3)
#define LL_SCOPE_ABSTRACT_UNIX (1ULL << 0)
#define LL_SCOPE_SIGNAL (1ULL << 1)

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

int landlock_require(int *ret_abi, struct err *err)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LL_CREATE_VERSION);
	struct utsname u;

	if (uname(&u) < 0)
		return err_sys(err, "uname");
	if (abi < 0) {
		bool absent = errno == ENOSYS;

		return err_sys_id(err, ERRID_SANDBOX_LANDLOCK,
				  absent ? "Landlock is not in this kernel (%s)"
					 : "Landlock is switched off or refused (%s)",
				  u.release);
	}
	if (abi < LL_ABI_REQUIRED)
		return err_set_id(
			err, ERRID_SANDBOX_KERNEL,
			"Landlock ABI %ld of kernel %s is below %d (Linux 6.12)", abi,
			u.release, LL_ABI_REQUIRED);
	*ret_abi = (int)abi;
	return 0;
}

int landlock_begin(struct landlock_set *set, bool handle_ports, bool scope_signals,
		   bool scope_abstract, bool scope_unix, struct err *err)
{
	/* Every access right up to ABI 8 exists since ABI 5, the scopes since 6. */
	struct ll_ruleset_attr attr = {
		.handled_access_fs = LL_FS_ALL,
		.handled_access_net =
			handle_ports ? LL_NET_BIND_TCP | LL_NET_CONNECT_TCP : 0,
		.scoped = (scope_signals ? LL_SCOPE_SIGNAL : 0) |
			  (scope_abstract ? LL_SCOPE_ABSTRACT_UNIX : 0),
	};
	int abi;
	long fd;

	*set = (struct landlock_set){.fd = -1};
	if (landlock_require(&abi, err) < 0)
		return -1;
	if (scope_unix && abi >= LL_ABI_RESOLVE_UNIX)
		attr.handled_access_fs |= LL_FS_RESOLVE_UNIX;
	if (handle_ports && abi >= LL_ABI_UDP)
		attr.handled_access_net |= LL_NET_BIND_UDP | LL_NET_CONNECT_SEND_UDP;
	fd = syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (fd < 0)
		return err_sys_id(err, ERRID_SANDBOX_LANDLOCK, "landlock_create_ruleset");
	*set = (struct landlock_set){
		.fd = (int)fd, .abi = abi, .handled_fs = attr.handled_access_fs};
	return 0;
}

int landlock_allow_fd(struct landlock_set *set, int path_fd, uint64_t rights,
		      struct err *err)
{
	struct ll_path_beneath_attr rule = {.parent_fd = path_fd};
	struct stat st;

	assert((rights & ~set->handled_fs) == 0);
	if (fstat(path_fd, &st) < 0)
		return err_sys_id(err, ERRID_SANDBOX_LANDLOCK, "stat a granted path");
	rule.allowed_access = S_ISDIR(st.st_mode) ? rights : rights & LL_FS_FILE;
	if (rule.allowed_access == 0)
		return 0;
	if (syscall(SYS_landlock_add_rule, set->fd, LL_RULE_PATH_BENEATH, &rule, 0) < 0)
		return err_sys_id(err, ERRID_SANDBOX_LANDLOCK, "landlock_add_rule");
	return 0;
}

int landlock_allow_path(struct landlock_set *set, const char *path, uint64_t rights,
			struct err *err)
{
	cleanup_close int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return err_sys_id(err, ERRID_SANDBOX_LANDLOCK,
				  "open '%.200s' to grant it", path);
	if (landlock_allow_fd(set, fd, rights, err) < 0)
		return err_wrap(err, "'%.200s'", path);
	return 0;
}

int landlock_enforce(struct landlock_set *set, struct err *err)
{
	long r;

	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return err_set_id(err, ERRID_SANDBOX_LANDLOCK, "no_new_privs is not set");
	r = syscall(SYS_landlock_restrict_self, set->fd, 0);
	if (r < 0)
		return err_sys_id(err, ERRID_SANDBOX_LANDLOCK, "landlock_restrict_self");
	landlock_done(set);
	return 0;
}

int landlock_scope_signals(struct err *err)
{
	/* Every domain denies links and renames from one directory to another, unless it
	 * handles that right and grants it. */
	const struct ll_ruleset_attr attr = {.handled_access_fs = LL_FS_REFER,
					     .scoped = LL_SCOPE_SIGNAL};
	struct landlock_set set = {.fd = -1, .handled_fs = LL_FS_REFER};

	if (landlock_require(&set.abi, err) < 0)
		return -1;
	set.fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (set.fd < 0)
		return err_sys_id(err, ERRID_SANDBOX_LANDLOCK, "landlock_create_ruleset");
	if (landlock_allow_path(&set, "/", LL_FS_REFER, err) == 0 &&
	    landlock_enforce(&set, err) == 0)
		return 0;
	landlock_done(&set);
	return -1;
}

void landlock_done(struct landlock_set *set)
{
	fd_close(&set->fd);
}
