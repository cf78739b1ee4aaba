/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner.
 * The spawner's own walls, and where it stands behind them.
 *
 * Grade full has two mount namespaces. The jobs namespace holds a private root with the
 * jobs directory and the cgroup directory, nothing else of the user's. The template
 * namespace was split off it and holds the root that every sandbox starts from, without
 * either of them: a keeper is cloned from here and inherits no mount that would have to
 * be taken away again. The spawner stands in the template and steps into the jobs
 * namespace only to clone a workspace (a mount can be cloned in its own namespace only),
 * or to start the keeper of a spec that the template does not fit.
 */
#include "sandbox/spawner/serve.h"

#include "common/cleanup.h"
#include "common/landlock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "sandbox/contract/paths.h"
#include "sandbox/walls/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>

#define SPAWNER_TMP_BYTES ((uint64_t)1 << 20)

static int wall_full(const char *jobs_dir, const char *cgroup_dir, const char *tools_dir,
		     struct err *err)
{
	struct sbx_mount mounts[3] = {{MOUNT_RW, NULL}};
	struct sbx_root root = {-1, -1, -1, -1};
	cleanup_free char *jobs = xstrdup(jobs_dir);
	cleanup_free char *cgroup = cgroup_dir ? xstrdup(cgroup_dir) : NULL;
	cleanup_free char *tools = tools_dir ? xstrdup(tools_dir) : NULL;
	char hostname[] = "spawner";
	struct sbx_spec spec;
	int r;

	sbx_spec_init(&spec);
	mounts[spec.n_mounts++].path = jobs;
	if (cgroup)
		mounts[spec.n_mounts++] = (struct sbx_mount){MOUNT_RW, cgroup};
	if (tools)
		mounts[spec.n_mounts++] = (struct sbx_mount){MOUNT_ROX, tools};
	spec.net = NET_NONE;
	spec.tmp_bytes = SPAWNER_TMP_BYTES;
	spec.mounts = mounts;
	spec.hostname = hostname;
	r = root_build(&spec, &root, err);
	fd_close(&root.proc_fd);
	fd_close(&root.tmp_fd);
	fd_close(&root.shm_fd);
	fd_close(&root.work_fd);
	return r;
}

/* Signals stay inside the domain: keepers and jobs are in it or below it. */
static int wall_floor(const char *jobs_dir, const char *cgroup, const char *tools,
		      struct err *err)
{
	const uint64_t node = LL_FS_READ_FILE | LL_FS_WRITE_FILE | LL_FS_IOCTL_DEV;
	static const char *const own[] = {"/etc", NULL};
	/* The keepers write their jobs' oom_score_adj. What else a uid may write there is of
	 * its own processes, and looks into none without ptrace, which the domain scopes. */
	static const char *const proc[] = {"/proc", NULL};
	const struct {
		const char *const *paths;
		uint64_t rights;
	} lists[] = {
		{paths_system, LL_FS_ROX},
		{own, LL_FS_RO},
		{proc, LL_FS_RO | LL_FS_WRITE_FILE},
		{paths_dev_plain, node},
		{paths_dev_random, node},
	};
	struct landlock_set set;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_sys(err, "prctl");
	if (landlock_begin(&set, true, true, true, true, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (const char *const *p = lists[i].paths; *p; p++)
			if (access(*p, F_OK) == 0 &&
			    landlock_allow_path(&set, *p, lists[i].rights, err) < 0)
				goto fail;
	if (landlock_allow_path(&set, jobs_dir, LL_FS_RW | LL_FS_EXECUTE, err) < 0 ||
	    (cgroup && landlock_allow_path(&set, cgroup, LL_FS_RW, err) < 0) ||
	    (tools && landlock_allow_path(&set, tools, LL_FS_ROX, err) < 0))
		goto fail;
	if (landlock_enforce(&set, err) < 0)
		return err_wrap(err, "the spawner's own Landlock");
	/* In full the identity maps of the keepers need it dumpable; nobody inside sees
	 * it there. */
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? err_sys(err, "PR_SET_DUMPABLE")
						      : 0;
fail:
	landlock_done(&set);
	return err_wrap(err, "the spawner's own Landlock");
}

static int open_dir(const char *path, int flags, struct err *err)
{
	int fd = open(path, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_sys(err, "open %s", path) : fd;
}

static int open_places(struct spawner_place *p, const char *jobs_dir, const char *cgroup,
		       struct err *err)
{
	p->jobs_fd = open_dir(jobs_dir, O_PATH, err);
	if (p->jobs_fd < 0)
		return -1;
	p->cgroup_fd = cgroup ? open_dir(cgroup, O_RDONLY, err) : -1;
	return cgroup && p->cgroup_fd < 0 ? -1 : 0;
}

static int open_mount_ns(struct err *err)
{
	int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? err_sys_id(err, ERRID_SANDBOX_NS, "open the mount namespace")
		      : fd;
}

static int split_template(struct spawner_place *p, struct err *err)
{
	char hostname[] = SBX_HOSTNAME;
	struct sbx_spec shape;

	sbx_spec_init(&shape);
	shape.hostname = hostname;
	shape.tools = p->tools;
	p->jobs_ns = open_mount_ns(err);
	if (p->jobs_ns < 0)
		return -1;
	if (unshare(CLONE_NEWNS) < 0)
		return err_sys_id(err, ERRID_SANDBOX_NS, "split off the template");
	if (root_template(&shape, err) < 0)
		return err_wrap(err, "the template");
	p->template_ns = open_mount_ns(err);
	return p->template_ns < 0 ? -1 : 0;
}

int spawner_wall_in(struct spawner_place *p, const char *jobs_dir, const char *cgroup,
		    struct err *err)
{
	if (landlock_require(&p->landlock_abi, err) < 0)
		return -1;
	p->jobs_dir = jobs_dir;
	if (p->grade == GRADE_FLOOR)
		return wall_floor(jobs_dir, cgroup, p->tools, err) < 0
			       ? -1
			       : open_places(p, jobs_dir, cgroup, err);
	if (wall_full(jobs_dir, cgroup, p->tools, err) < 0 ||
	    open_places(p, jobs_dir, cgroup, err) < 0)
		return -1;
	return split_template(p, err);
}

bool spawner_template_fits(const struct sbx_spec *spec)
{
	return spec->n_mounts == 0 && !spec->hostname_chosen &&
	       str_eq(spec->hostname, SBX_HOSTNAME);
}

int spawner_enter_jobs(const struct spawner_place *p, struct err *err)
{
	if (setns(p->jobs_ns, CLONE_NEWNS) < 0)
		return err_sys_id(err, ERRID_SANDBOX_NS, "enter the jobs namespace");
	return 0;
}

void spawner_leave_jobs(const struct spawner_place *p)
{
	struct err err = ERR_INIT;

	if (setns(p->template_ns, CLONE_NEWNS) == 0)
		return;
	(void)err_sys_id(&err, ERRID_SANDBOX_NS, "return to the template");
	log_err(LOG_ERROR_, "the spawner ends", &err);
	_exit(EXIT_SETUP);
}

int spawner_clone_workspace(const struct spawner_place *p, const struct sbx_spec *spec,
			    struct err *err)
{
	int fd;

	if (spawner_enter_jobs(p, err) < 0)
		return -1;
	fd = mount_clone(spec->workspace_fd, "",
			 spec->workspace_ro ? ATTR_SEALED : ATTR_OWN, err);
	spawner_leave_jobs(p);
	return fd < 0 ? err_wrap(err, "workspace") : fd;
}
