/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper and the job.
 * Privileges and Landlock.
 *
 * Capabilities: in grade full the job's user namespace gave its first process all of
 * them; they go from every set, and the securebits make sure that no exec and no setuid
 * brings one back. In floor there are none to begin with, and without CAP_SETPCAP the
 * bounding set cannot be changed: no_new_privs is what keeps set-user-ID programs and
 * file capabilities from mattering. Both end with the same question to the kernel: is
 * anything left?
 *
 * Landlock stands in both grades. In full it is drawn over the private root, a second
 * wall behind the mounts. In floor it is the only wall around files: system paths, single
 * nodes of /proc and /dev (never the trees: /proc shows others' command lines, /dev is
 * full of ioctls), a list of public files in /etc, and what the spec grants. No TCP port
 * is ever granted; in full with the loopback network TCP is left to the network
 * namespace, which has nothing but its own lo.
 */
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/landlock.h"
#include "common/proto/broker_proto.h"
#include "sandbox/contract/paths.h"
#include "sandbox/contract/sandbox.h"
#include "sandbox/walls/caps.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SECUREBITS_ALL                                                                   \
	(SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |                 \
	 SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |                       \
	 SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

#define NODE (LL_FS_READ_FILE | LL_FS_WRITE_FILE)

static int drop_bounding(struct err *err)
{
	for (int c = 0;; c++) {
		if (prctl(PR_CAPBSET_DROP, c, 0, 0, 0) < 0)
			return c > CAP_CHECKPOINT_RESTORE &&
					       prctl(PR_CAPBSET_READ, c, 0, 0, 0) < 0
				       ? 0 /* the kernel's last was before */
				       : err_sys_id(err, ERRID_SANDBOX_CAPS,
						    "drop capability %d", c);
		if (prctl(PR_CAPBSET_READ, c, 0, 0, 0) != 0)
			return err_set_id(err, ERRID_SANDBOX_CAPS, "capability %d stayed",
					  c);
	}
}

int walls_drop_caps(struct err *err)
{
	static const int none[] = {-1};

	if (geteuid() == 0 || getuid() == 0)
		return err_set_id(err, ERRID_CORE_ROOT, "a job would run as root");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return err_sys_id(err, ERRID_SANDBOX_CAPS, "clear ambient capabilities");
	if (caps_has(CAP_SETPCAP)) {
		if (drop_bounding(err) < 0)
			return -1;
		if (prctl(PR_SET_SECUREBITS, SECUREBITS_ALL, 0, 0, 0) < 0)
			return err_sys_id(err, ERRID_SANDBOX_CAPS, "securebits");
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys_id(err, ERRID_SANDBOX_CAPS, "no_new_privs");
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return err_set_id(err, ERRID_SANDBOX_CAPS, "no_new_privs did not stay");
	return caps_keep_only(none, err);
}

/* A path that this host may not have. Present but not grantable is an error. */
static int allow_if_there(struct landlock_set *set, const char *path, uint64_t rights,
			  struct err *err)
{
	cleanup_close int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, "open %s", path);
	return landlock_allow_fd(set, fd, rights, err) < 0 ? err_wrap(err, "%s", path)
							   : 0;
}

static int allow_list(struct landlock_set *set, const char *const *paths, uint64_t rights,
		      struct err *err)
{
	for (; *paths; paths++)
		if (allow_if_there(set, *paths, rights, err) < 0)
			return -1;
	return 0;
}

/* A merged /usr: what leads into it is granted with it. */
static bool leads_into_usr(const char *path)
{
	char to[16];
	ssize_t n = readlink(path, to, sizeof(to));

	return n > 4 && n < (ssize_t)sizeof(to) && memcmp(to, "usr/", 4) == 0 &&
	       !memchr(to + 4, '/', (size_t)n - 4) && to[4] != '.';
}

static int allow_system(struct landlock_set *set, struct err *err)
{
	for (const char *const *p = paths_system; *p; p++)
		if (!leads_into_usr(*p) && allow_if_there(set, *p, LL_FS_ROX, err) < 0)
			return -1;
	return 0;
}

static int allow_mounts(struct landlock_set *set, const struct sbx_spec *spec,
			struct err *err)
{
	for (size_t i = 0; i < spec->n_mounts; i++) {
		const struct sbx_mount *m = &spec->mounts[i];
		uint64_t rights = m->kind == MOUNT_RW	 ? LL_FS_RW | LL_FS_EXECUTE
				  : m->kind == MOUNT_ROX ? LL_FS_ROX
							 : LL_FS_RO;

		cleanup_close int fd =
			fs_open_judged(m->path, 0, ERRID_SANDBOX_LANDLOCK, err);

		if (fd < 0 || landlock_allow_fd(set, fd, rights, err) < 0)
			return err_wrap(err, "to grant it: %s", m->path);
	}
	return 0;
}

static int allow_tools(struct landlock_set *set, const struct sbx_spec *spec,
		       struct err *err)
{
	if (!spec->tools)
		return 0;
	return landlock_allow_path(set,
				   spec->grade == GRADE_FULL ? BROKER_TOOLS : spec->tools,
				   LL_FS_ROX, err);
}

static int rules_full(struct landlock_set *set, struct err *err)
{
	/* Listing the private root shows nothing; the canary in it stays unreadable. */
	if (landlock_allow_path(set, "/", LL_FS_READ_DIR, err) < 0 ||
	    landlock_allow_path(set, "/etc", LL_FS_RO, err) < 0 ||
	    landlock_allow_path(set, "/proc", LL_FS_RO, err) < 0 ||
	    landlock_allow_path(set, "/tmp", LL_FS_RW | LL_FS_EXECUTE, err) < 0 ||
	    landlock_allow_path(set, "/dev/shm", LL_FS_RW | LL_FS_EXECUTE, err) < 0 ||
	    landlock_allow_path(set, PATH_PTS, LL_FS_READ_DIR | NODE | LL_FS_IOCTL_DEV,
				err) < 0 ||
	    allow_list(set, paths_dev_terminal, NODE | LL_FS_IOCTL_DEV, err) < 0)
		return -1;
	return 0;
}

static int rules_floor(struct landlock_set *set, struct err *err)
{
	if (allow_list(set, paths_etc_public, LL_FS_RO, err) < 0 ||
	    allow_list(set, paths_etc_floor, LL_FS_RO, err) < 0 ||
	    allow_list(set, paths_proc_floor, LL_FS_READ_FILE, err) < 0)
		return -1;
	return 0;
}

int walls_landlock_system(enum sbx_grade grade, enum sbx_net net,
			  struct landlock_set *ret, struct err *err)
{
	bool full = grade == GRADE_FULL;
	bool no_ports = !full || net == NET_NONE;

	if (landlock_begin(ret, no_ports, true, true, true, err) < 0)
		return -1;
	if (allow_system(ret, err) == 0 &&
	    (full ? rules_full(ret, err) : rules_floor(ret, err)) == 0 &&
	    allow_list(ret, paths_dev_plain, NODE | LL_FS_IOCTL_DEV, err) == 0 &&
	    allow_list(ret, paths_dev_random, NODE, err) == 0)
		return 0;
	landlock_done(ret);
	return -1;
}

int walls_landlock_spec(const struct sbx_spec *spec, struct landlock_set *set,
			struct err *err)
{
	if (allow_tools(set, spec, err) < 0)
		return -1;
	return allow_mounts(set, spec, err);
}

int walls_landlock_workspace(const struct sbx_spec *spec, struct landlock_set *set,
			     struct err *err)
{
	uint64_t rights = spec->workspace_ro ? LL_FS_ROX : LL_FS_RW | LL_FS_EXECUTE;

	if (!spec->workspace)
		return 0;
	if (spec->grade == GRADE_FULL)
		return landlock_allow_path(set, PATH_WORK, rights, err);
	/* The directory that the parent opened and judged, not its name. */
	return landlock_allow_fd(set, spec->workspace_fd, rights, err);
}
