/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Theory of operation. A daemon calls confine_self() once, after it has opened
 * what only a free process may open (configuration, secrets, listeners; the tomb
 * has exec'd its spawner) and before it reads a byte from anybody. The order is
 * forced by the kernel: a uid_map cannot be written with dumpable 0, so the
 * private root comes first; below Landlock nothing can be mounted; the filter
 * refuses landlock and prctl, so it is last. Nothing here is optional: a step
 * that fails ends the start. (Where the owner said `daemons: no_private_root`, the
 * first step is sockets.c's look at what is open, and the filter closes the ways to
 * sockets: filter.c.)
 *
 * What remains is what the policy names. The process has no capability in any
 * namespace that owns anything, cannot gain one (no_new_privs), and cannot be
 * looked into by its own uid (dumpable 0).
 */
#include "common/confine/confine.h"
#include "common/cleanup.h"
#include "common/confine/priv.h"
#include "common/landlock.h"
#include "common/lsan.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static int refuse_any_capability(const char *who, enum err_id id, struct err *err)
{
	cap_t caps = cap_get_proc();
	cap_t none = cap_init();
	int differ = caps && none ? cap_compare(caps, none) : -1;

	if (caps)
		(void)cap_free(caps);
	if (none)
		(void)cap_free(none);
	if (differ < 0)
		return err_sys_id(err, id, "read the capabilities");
	/* An inheritable set alone gives nothing under no_new_privs and rootless
	 * containers have one. */
	if (CAP_DIFFERS(differ, CAP_EFFECTIVE) || CAP_DIFFERS(differ, CAP_PERMITTED))
		return err_set_id(err, id, "%s holds capabilities", who);
	return 0;
}

int confine_refuse_root(struct err *err)
{
	uid_t ruid, euid, suid;

	if (getresuid(&ruid, &euid, &suid) < 0)
		return err_sys_id(err, ERRID_CORE_ROOT, "read the user id");
	if (ruid == 0 || euid == 0 || suid == 0)
		return err_set_id(err, ERRID_CORE_ROOT, "the user id is 0");
	return refuse_any_capability("this process", ERRID_CORE_ROOT, err);
}

/* Only a process that holds CAP_SETPCAP (after the private root, in its own
 * namespace) can and must empty its bounding set and lock the securebits. */
static int shed_bounding_set(struct err *err)
{
	int held = cap_get_bound(CAP_SETPCAP);
	cap_t caps = cap_get_proc();
	cap_flag_value_t may = CAP_CLEAR;

	if (!caps || held < 0 ||
	    cap_get_flag(caps, CAP_SETPCAP, CAP_EFFECTIVE, &may) < 0) {
		(void)cap_free(caps);
		return err_sys_id(err, ERRID_START_CONFINE, "read the capabilities");
	}
	(void)cap_free(caps);
	if (may != CAP_SET)
		return 0;
	for (int cap = 0; cap_get_bound((cap_value_t)cap) >= 0; cap++)
		if (cap_drop_bound((cap_value_t)cap) < 0)
			return err_sys_id(err, ERRID_START_CONFINE, "drop capability %d",
					  cap);
	if (prctl(PR_SET_SECUREBITS,
		  SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
			  SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
			  SECBIT_NO_CAP_AMBIENT_RAISE |
			  SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
		  0, 0, 0) < 0)
		return err_sys_id(err, ERRID_START_CONFINE, "lock the securebits");
	return 0;
}

/* A child of a confined parent: it must be where its parent left it. */
static int check_inherited(const struct confine_policy *policy, struct err *err)
{
	struct rlimit core;

	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 ||
	    prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0 ||
	    getrlimit(RLIMIT_CORE, &core) < 0 || core.rlim_max != 0)
		return err_set_id(err, ERRID_START_CONFINE,
				  "its parent was not confined");
	return refuse_any_capability(policy->name, ERRID_START_CONFINE, err);
}

static int drop_privileges(const struct confine_policy *policy, struct err *err)
{
	struct rlimit no_core = {0, 0};
	cap_t none;
	int r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys_id(err, ERRID_START_CONFINE, "set no_new_privs");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return err_sys_id(err, ERRID_START_CONFINE,
				  "clear the ambient capabilities");
	if (shed_bounding_set(err) < 0)
		return -1;
	none = cap_init();
	r = none ? cap_set_proc(none) : -1;
	if (none)
		(void)cap_free(none);
	if (r < 0)
		return err_sys_id(err, ERRID_START_CONFINE, "drop all capabilities");
	if (refuse_any_capability(policy->name, ERRID_START_CONFINE, err) < 0)
		return -1;
	/* A core file would hold the secrets. */
	if (setrlimit(RLIMIT_CORE, &no_core) < 0)
		return err_sys_id(err, ERRID_START_CONFINE, "forbid core files");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys_id(err, ERRID_START_CONFINE, "clear dumpable");
	return 0;
}

static int fence_files(const struct confine_policy *policy, struct err *err)
{
	struct landlock_set set = {.fd = -1};
	int r;

	/* Landlock's ports are numbers whatever the address: which address it may be is
	 * decided where a connection is made.
	 * Signals and abstract sockets end at this process: it owns no child that it
	 * kills. Pathname sockets of others it needs: PostgreSQL's, the vessel's; its
	 * root shows no more. One without a root gets them from the dialer. */
	if (confine_leaves_out(policy, "landlock"))
		return 0;
	r = landlock_begin(&set, !policy->may_make_inet_sockets, true, true,
			   policy->unrooted, err);
	for (size_t i = 0; i < policy->n_paths && r == 0; i++) {
		const struct confine_path *p = &policy->paths[i];

		if (p->rights & LL_FS_EXECUTE)
			r = err_set_id(err, ERRID_START_CONFINE,
				       "%s: no daemon executes anything", p->path);
		else
			r = landlock_allow_path(&set, p->path, p->rights, err);
	}
	if (r == 0 && policy->held_dir)
		r = landlock_allow_fd(&set, *policy->held_fd, policy->held_rights, err);
	if (r == 0)
		r = landlock_enforce(&set, err);
	landlock_done(&set);
	return r;
}

/* In place of the private root: what its making does beside. */
static int leave_nothing(const struct confine_policy *policy, struct err *err)
{
	if (chdir("/") < 0)
		return err_sys_id(err, ERRID_START_CONFINE,
				  "leave the working directory");
	if (policy->below_parent)
		return 0;
	if (policy->held_dir) {
		*policy->held_fd = open(policy->held_dir,
					O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (*policy->held_fd < 0)
			return err_sys_id(err, ERRID_START_CONFINE, "open %s",
					  policy->held_dir);
	}
	return confine_check_sockets(policy, err);
}

int confine_self(const struct confine_policy *policy, struct err *err)
{
	assert(!policy->held_dir || policy->private_root || policy->unrooted);
	assert(!policy->private_root || !policy->unrooted);
	if (confine_refuse_root(err) < 0)
		return -1;
	if ((policy->private_root && confine_private_root(policy, err) < 0) ||
	    (policy->unrooted && leave_nothing(policy, err) < 0))
		return err_wrap(err, "confine %s", policy->name);
	if ((policy->below_parent ? check_inherited(policy, err)
				  : drop_privileges(policy, err)) < 0 ||
	    fence_files(policy, err) < 0)
		return err_wrap(err, "confine %s", policy->name);
	if (!confine_leaves_out(policy, "filter") && confine_filter(policy, err) < 0)
		return -1;
	lsan_turn_off();
	return 0;
}
