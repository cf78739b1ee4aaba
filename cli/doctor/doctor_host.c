/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The host's own policies. What they do is tried; what they are called is told with it,
 * since the name is what a person can look up and change.
 */
#include "cli/doctor/doctor.h"

#include "cli/base/paths.h"
#include "cli/base/podman.h"
#include "cli/local/up.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/landlock.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#define WHERE "host"
#define SUB_IDS_WANTED 65536

/* The first line of a small file (caller frees); NULL: there is none. */
static char *read_line(const char *path)
{
	struct err ignored = ERR_INIT;
	char *text = NULL;
	size_t len;

	if (fs_read_file(AT_FDCWD, path, 65536, &text, &len, &ignored) < 0)
		return NULL;
	text[strcspn(text, "\n")] = '\0';
	return text;
}

#define ALL_NAMESPACES                                                                   \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |      \
	 CLONE_NEWUTS)

/* errno of making these, and of a mount in them where that is asked for; 0: it works. Ubuntu's
 * AppArmor lets them be made, and gives no right in them. */
static int try_namespaces(int flags, bool mounts)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		if (unshare(flags) < 0 ||
		    (mounts && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
			_exit(errno);
		_exit(0);
	}
	if (pid < 0)
		return errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

int doctor_try_userns(void)
{
	return try_namespaces(ALL_NAMESPACES, true);
}

#define APPARMOR_KNOB "kernel.apparmor_restrict_unprivileged_userns"

/* That of this installation, where it is one. */
static void say_profile(struct doctor_lines *d)
{
	struct err ignored = ERR_INIT;
	cleanup_free char *path = NULL;

	if (paths_installed("apparmor/lychgate", &path, &ignored) == 0 &&
	    access(path, R_OK) == 0)
		doctor_next(d, FAIL,
			    "sudo install -m 0644 \"%s\" /etc/apparmor.d/lychgate && "
			    "sudo apparmor_parser -r /etc/apparmor.d/lychgate",
			    path);
}

/* Each can be the reason of a refusal; what counts is the attempt. */
static void examine_userns(struct doctor_lines *d, bool unrooted)
{
	const enum verdict refused = unrooted ? KNOWN : FAIL;
	static const struct {
		const char *name, *path, *bad;
	} knobs[] = {
		{APPARMOR_KNOB, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
		 "1"},
		{"kernel.unprivileged_userns_clone",
		 "/proc/sys/kernel/unprivileged_userns_clone", "0"},
		{"user.max_user_namespaces", "/proc/sys/user/max_user_namespaces", "0"},
	};
	int e = try_namespaces(CLONE_NEWUSER | CLONE_NEWNS, true);

	for (size_t i = 0; i < ARRAY_SIZE(knobs); i++) {
		cleanup_free char *value = read_line(knobs[i].path);
		bool bad = value && str_eq(value, knobs[i].bad);
		bool profile = bad && e && str_eq(knobs[i].name, APPARMOR_KNOB);
		cleanup_free char *text = xasprintf(
			"%s%s%s%s", value ? value : "not there",
			!bad ? ""
			: e  ? ": it refuses user namespaces"
			     : ": this program is exempt",
			profile ? "; load PREFIX/lib/lychgate/apparmor/lychgate" : "",
			bad && e ? " (docs/OPERATIONS.md)" : "");

		doctor_line(d, WHERE, knobs[i].name, text, bad && e ? refused : NOTE);
		if (profile && !unrooted)
			say_profile(d);
	}
	doctor_line(d, WHERE, "mount in a user namespace",
		    e ? strerrorname_np(e) : "allowed", e ? refused : PASS);
	if (unrooted)
		doctor_line(d, WHERE, "a private root for the daemons",
			    "none: daemons: no_private_root (docs/SANDBOX.md)", KNOWN);
	else if (e)
		doctor_line(d, WHERE, "a private root for the daemons",
			    "not possible here: allow user namespaces, or say "
			    "daemons: no_private_root",
			    FAIL);
}

static void examine_lsm(struct doctor_lines *d)
{
	cleanup_free char *enforce = read_line("/sys/fs/selinux/enforce");
	cleanup_free char *apparmor =
		read_line("/sys/module/apparmor/parameters/enabled");
	cleanup_free char *label = read_line("/proc/self/attr/current");
	bool has_apparmor = apparmor && str_eq(apparmor, "Y");
	cleanup_free char *as = label && label[0]
					? xasprintf(", this program as %.100s", label)
					: xstrdup("");
	cleanup_free char *selinux_text =
		xasprintf("%s%s",
			  !enforce ? "not there"
			  : str_eq(enforce, "1")
				  ? "enforcing: in the pod container_t may refuse the "
				    "sandbox its mounts (docs/OPERATIONS.md)"
				  : "permissive",
			  enforce ? as : "");
	cleanup_free char *apparmor_text =
		xasprintf("%s%s", has_apparmor ? "enabled" : "not there",
			  has_apparmor && !enforce ? as : "");

	doctor_line(d, WHERE, "SELinux", selinux_text, NOTE);
	doctor_line(d, WHERE, "AppArmor", apparmor_text, NOTE);
}

/* ---- what rootless containers need ------------------------------------------ */

/* The ids that a file like /etc/subuid gives to a user, by name or number. */
static uint64_t sub_ids(const char *path, const char *user)
{
	struct err ignored = ERR_INIT;
	cleanup_free char *text = NULL;
	char number[32];
	uint64_t sum = 0;
	size_t len;

	(void)snprintf(number, sizeof(number), "%u", getuid());
	if (fs_read_file(AT_FDCWD, path, (size_t)1 << 20, &text, &len, &ignored) < 0)
		return 0;
	for (char *at = text, *next; at && *at; at = next) {
		char *first, *count;
		uint64_t n = 0;

		next = strchr(at, '\n');
		if (next)
			*next++ = '\0';
		first = strchr(at, ':');
		count = first ? strchr(first + 1, ':') : NULL;
		if (!count)
			continue;
		*first = '\0';
		if ((str_eq(at, user) || str_eq(at, number)) &&
		    parse_u64(count + 1, 1, UINT32_MAX, &n, &ignored) == 0)
			sum += n;
	}
	return sum;
}

static void examine_mapping(struct doctor_lines *d, bool has_podman)
{
	static const char *const files[] = {"/etc/subuid", "/etc/subgid"};
	static const char *const helpers[] = {"newuidmap", "newgidmap"};
	const struct passwd *pw = getpwuid(getuid());
	enum verdict missing = has_podman ? FAIL : NOTE;
	cleanup_free char *map = read_line("/proc/self/uid_map");
	char text[160];

	(void)snprintf(text, sizeof(text), "uid %u; map: %.100s", getuid(),
		       map ? map + strspn(map, " ") : "?");
	doctor_line(d, WHERE, "user namespace", text, getuid() == 0 ? FAIL : PASS);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		uint64_t n = sub_ids(files[i], pw ? pw->pw_name : "");

		(void)snprintf(text, sizeof(text), "%" PRIu64 " ids%s", n,
			       n < SUB_IDS_WANTED ? ": Podman wants 65536 (usermod "
						    "--add-subuids, --add-subgids)"
						  : "");
		doctor_line(d, WHERE, files[i], text,
			    n < SUB_IDS_WANTED ? missing : PASS);
	}
	for (size_t i = 0; i < ARRAY_SIZE(helpers); i++) {
		cleanup_free char *path = podman_find_program(helpers[i]);

		doctor_line(d, WHERE, helpers[i], path ? path : "missing: package uidmap",
			    path ? PASS : missing);
	}
}

/* Without it the user manager, and with it the pod, ends at logout. */
static void examine_linger(struct doctor_lines *d, bool has_podman)
{
	const struct passwd *pw = getpwuid(getuid());
	cleanup_free char *path =
		xasprintf("/var/lib/systemd/linger/%s", pw ? pw->pw_name : "?");
	bool lingers = access(path, F_OK) == 0;

	if (has_podman)
		doctor_line(
			d, WHERE, "linger",
			lingers ? "enabled"
				: "off: the pod ends at logout (loginctl enable-linger)",
			NOTE);
}

/* ---- the kernel -------------------------------------------------------------- */

static void examine_kernel(struct doctor_lines *d, bool unrooted)
{
	struct err err = ERR_INIT;
	struct utsname u;
	char text[160];
	unsigned action = SECCOMP_RET_KILL_PROCESS;
	int abi = 0, e;

	if (uname(&u) == 0)
		doctor_line(d, "kernel", "release", u.release, PASS);
	if (landlock_require(&abi, &err) < 0) {
		doctor_line(d, "kernel", "Landlock", err.msg, FAIL);
	} else {
		(void)snprintf(text, sizeof(text), "ABI %d (needs %d)", abi,
			       LL_ABI_REQUIRED);
		doctor_line(d, "kernel", "Landlock", text, PASS);
	}
	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0)
		doctor_line(d, "kernel", "seccomp filters", strerrorname_np(errno), FAIL);
	else
		doctor_line(d, "kernel", "seccomp filters", "available", PASS);
	e = try_namespaces(ALL_NAMESPACES, false);
	if (e)
		doctor_line(d, "kernel", "user, mount, pid, net namespaces",
			    strerrorname_np(e), unrooted ? KNOWN : FAIL);
	else
		doctor_line(d, "kernel", "user, mount, pid, net namespaces", "allowed",
			    PASS);
	const char *reason = up_no_cgroup_reason();

	doctor_line(d, "kernel", "delegated cgroup", reason ? reason : "available",
		    reason ? KNOWN : PASS);
}

/* ---- all of it ---------------------------------------------------------------- */

void doctor_host(struct doctor_lines *d, bool unrooted)
{
	cleanup_podman struct podman p = {0};
	struct err err = ERR_INIT;
	bool usable = podman_open(&p, &err) == 0;
	bool in_container = access("/run/.containerenv", F_OK) == 0;
	char text[160];

	(void)snprintf(text, sizeof(text), "%s, %s", p.version,
		       p.replaces   ? "quadlet install --replace"
		       : p.installs ? "quadlet install"
				    : "units are placed by lych");
	examine_kernel(d, unrooted);
	/* Embedded mode needs none of it. */
	doctor_line(d, WHERE, "Podman",
		    usable	? text
		    : p.program ? err.msg
				: "not there: 'lych bind' needs it",
		    !usable && p.program ? FAIL
		    : usable		 ? PASS
					 : NOTE);
	examine_userns(d, unrooted);
	examine_lsm(d);
	examine_mapping(d, usable && !in_container);
	examine_linger(d, usable && !in_container);
}
