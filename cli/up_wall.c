/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tomb's wall in embedded mode. Theory of operation:
 *
 * In a pod a container stands around the tomb; on a bare workstation this file
 * makes that wall. The supervisor starts `lych _tomb` (inside a delegated scope
 * where a systemd user manager runs). That process
 *
 *  1. in a scope: moves itself to a leaf, turns the controllers on and makes the
 *     group that jobs get (up_cgroup.c: or says why this scope can't keep limits);
 *  2. proves that the tomb before is dead, with all that it started, and leaves
 *     word of it for the next one (up_gone.c);
 *  3. clones a child into new user, mount, pid, network, ipc and uts namespaces,
 *     the calling uid mapped to itself and nothing else mapped, records who that
 *     is, and only then lets it go on;
 *  4. stays outside as its guard: passes SIGTERM on, ends with the child's code,
 *     and takes the child with it when it dies.
 *
 * The child takes a clone of every tree that it may see (open_tree) *before* it
 * puts anything in place, moves those clones into an empty tmpfs, pivots into it
 * and detaches the old root. What was not cloned does not exist there: no home,
 * no api socket, no user bus, no vessel data, no other secret. Then it drops every
 * capability, sets no_new_privs and executes lych-tomb as pid 1. It stays dumpable
 * across that exec (an ordinary one), since the spawner has to write uid maps.
 *
 * Whatever fails here ends the child with 78 before the exec: no wall, no tomb.
 */
#include "cli/cmd.h"
#include "cli/proc.h"
#include "cli/up.h"
#include "cli/up_gone.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/net/tomb_secret.h"
#include "common/proto.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define OWN_DB TOMB_SECRET_DB_OF TOMB_NAME
#define OWN_WORK TOMB_SECRET_WORK_OF TOMB_NAME
#define NEW_ROOT "/tmp" /* only a place to mount on; hidden again by the pivot */

struct wall {
	char *data, *work, *secrets, *tomb, *sandbox, *tools;
	char *pg; /* NULL: it claims through the vessel, and has no database in its root */
	char *slots, *grade, *queue;
	char *cgroup; /* NULL: no delegated group */
	char *record; /* who the tomb is: up_gone.c */
	bool scope, ready;
};

enum tree_kind {
	TREE_RO,  /* system path: read-only, no devices, no setuid */
	TREE_RW,  /* a directory of the tomb's own */
	TREE_DEV, /* one device node */
	TREE_CGROUP,
};

struct tree {
	const char *from;
	const char *to; /* below the new root */
	enum tree_kind kind;
	bool optional;
	int fd;
	bool is_dir;
};

static int write_text(const char *path, const char *text, struct err *err)
{
	cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);
	size_t len = strlen(text);

	if (fd < 0)
		return err_sys(err, "open %s", path);
	if (write(fd, text, len) != (ssize_t)len)
		return err_sys(err, "write %s", path);
	return 0;
}

static int map_self(uid_t uid, gid_t gid, struct err *err)
{
	char line[64];

	if (str_fmt(line, sizeof(line), "%u %u 1\n", uid, uid) < 0 ||
	    write_text("/proc/self/setgroups", "deny", err) < 0 ||
	    write_text("/proc/self/uid_map", line, err) < 0)
		return err_wrap(err, "user namespace");
	if (str_fmt(line, sizeof(line), "%u %u 1\n", gid, gid) < 0 ||
	    write_text("/proc/self/gid_map", line, err) < 0)
		return err_wrap(err, "user namespace");
	return 0;
}

/* ---- the root ------------------------------------------------------------- */

static int tree_take(struct tree *t, struct err *err)
{
	struct mount_attr attr = {0};
	struct stat st;

	t->fd = open_tree(AT_FDCWD, t->from,
			  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
				  AT_SYMLINK_NOFOLLOW);
	if (t->fd < 0) {
		if (errno == ENOENT && t->optional)
			return 0;
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "open_tree %s", t->from);
	}
	if (fstat(t->fd, &st) < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "stat %s", t->from);
	if (S_ISLNK(st.st_mode))
		return err_set_id(err, ERRID_SANDBOX_ROOT, "%s is a symlink", t->from);
	t->is_dir = S_ISDIR(st.st_mode);
	switch (t->kind) {
	case TREE_RO:
		attr.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
		break;
	case TREE_RW:
	case TREE_CGROUP:
		attr.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
		break;
	case TREE_DEV:
		attr.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
		break;
	default:
		return err_set(err, ERR_INTERNAL, "tree kind");
	}
	/* jobs run what they build: the work folders live below the tomb's data */
	if (t->kind == TREE_RW && str_eq(t->to, "/lych/tomb"))
		attr.attr_set &= ~(unsigned long long)MOUNT_ATTR_NOEXEC;
	attr.propagation = MS_PRIVATE;
	if (mount_setattr(t->fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) <
	    0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "mount_setattr %s", t->from);
	return 0;
}

/* Make the place (parents exist already or are made), then move the clone there. */
static int tree_place(const struct tree *t, struct err *err)
{
	char path[PATH_MAX];

	if (t->fd < 0)
		return 0;
	if (str_fmt(path, sizeof(path), NEW_ROOT "%s", t->to) < 0)
		return err_set_id(err, ERRID_SANDBOX_ROOT, "%s: too long", t->to);
	if (t->is_dir) {
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return err_sys_id(err, ERRID_SANDBOX_ROOT, "mkdir %s", t->to);
	} else {
		int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		if (fd < 0)
			return err_sys_id(err, ERRID_SANDBOX_ROOT, "make %s", t->to);
		(void)close(fd);
	}
	if (move_mount(t->fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "move_mount %s", t->to);
	return 0;
}

/* /bin, /lib … are links into /usr on a merged system, directories on others. */
static int system_links(char link[6][64], struct tree *extra, size_t *n_extra,
			struct err *err)
{
	static const char *const names[6] = {"/bin",   "/sbin",	 "/lib",
					     "/lib64", "/lib32", "/libx32"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct stat st;
		ssize_t n;

		link[i][0] = '\0';
		if (lstat(names[i], &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode)) {
			extra[*n_extra] = (struct tree){.from = names[i],
							.to = names[i],
							.kind = TREE_RO,
							.fd = -1};
			if (tree_take(&extra[(*n_extra)++], err) < 0)
				return -1;
			continue;
		}
		n = readlink(names[i], link[i], 63);
		if (n < 0)
			return err_sys_id(err, ERRID_SANDBOX_ROOT, "readlink %s",
					  names[i]);
		link[i][n] = '\0';
	}
	return 0;
}

static int make_links(char link[6][64], struct err *err)
{
	static const char *const names[6] = {"bin",   "sbin",  "lib",
					     "lib64", "lib32", "libx32"};
	static const char *const dev[][2] = {{"/proc/self/fd", "dev/fd"},
					     {"/proc/self/fd/0", "dev/stdin"},
					     {"/proc/self/fd/1", "dev/stdout"},
					     {"/proc/self/fd/2", "dev/stderr"}};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (link[i][0] && symlink(link[i], names[i]) < 0)
			return err_sys_id(err, ERRID_SANDBOX_ROOT, "symlink /%s",
					  names[i]);
	for (size_t i = 0; i < ARRAY_SIZE(dev); i++)
		if (symlink(dev[i][0], dev[i][1]) < 0)
			return err_sys_id(err, ERRID_SANDBOX_ROOT, "symlink /%s",
					  dev[i][1]);
	return 0;
}

static int enter_root(struct err *err)
{
	struct mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					    MOUNT_ATTR_NODEV};

	if (mount("proc", NEW_ROOT "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  NULL) < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT,
				  "mount /proc (a masked /proc outside makes the kernel "
				  "refuse it)");
	if (mount("tmpfs", NEW_ROOT "/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "size=4m,mode=0700") < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "mount /tmp");
	if (chdir(NEW_ROOT) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "pivot_root");
	if (umount2(".", MNT_DETACH) < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "detach the old root");
	if (chdir("/") < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "chdir /");
	if (mount_setattr(AT_FDCWD, "/", 0, &ro, sizeof(ro)) < 0 ||
	    mount_setattr(AT_FDCWD, "/lych/secrets", 0, &ro, sizeof(ro)) < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "make the root read-only");
	return 0;
}

static int build_root(const struct wall *w, struct err *err)
{
	cleanup_free char *db = xasprintf("%s/" OWN_DB, w->secrets);
	cleanup_free char *work = xasprintf("%s/" OWN_WORK, w->secrets);
	struct tree trees[] = {
		{"/usr", "/usr", TREE_RO, false, -1, true},
		{"/etc", "/etc", TREE_RO, false, -1, true},
		{"/dev/null", "/dev/null", TREE_DEV, false, -1, false},
		{"/dev/zero", "/dev/zero", TREE_DEV, false, -1, false},
		{"/dev/full", "/dev/full", TREE_DEV, false, -1, false},
		{"/dev/random", "/dev/random", TREE_DEV, false, -1, false},
		{"/dev/urandom", "/dev/urandom", TREE_DEV, false, -1, false},
		{w->data, "/lych/tomb", TREE_RW, false, -1, true},
		{w->work, "/lych/work", TREE_RW, false, -1, true},
		{work, "/lych/secrets/" OWN_WORK, TREE_RO, false, -1, false},
		{w->tomb, "/lych/bin/lych-tomb", TREE_RO, false, -1, false},
		{w->sandbox, "/lych/bin/lych-sandbox", TREE_RO, false, -1, false},
		{w->tools, "/lych/bin/tools", TREE_RO, false, -1, true},
		{0}, /* what some tombs have and others have not */
		{0},
		{0},
	};
	static const char *const dirs[] = {"proc", "dev",      "tmp",
					   "lych", "lych/bin", "lych/secrets"};
	struct tree extra[6];
	char link[6][64];
	size_t n_extra = 0, n = ARRAY_SIZE(trees) - 3;

	if (w->pg) {
		trees[n++] = (struct tree){w->pg, "/lych/pg", TREE_RO, false, -1, true};
		trees[n++] = (struct tree){
			db, "/lych/secrets/" OWN_DB, TREE_RO, false, -1, false};
	}
	if (w->cgroup)
		trees[n++] = (struct tree){
			w->cgroup, "/lych/cgroup", TREE_CGROUP, true, -1, true};
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys_id(err, ERRID_SANDBOX_NS, "make mounts private");
	for (size_t i = 0; i < n; i++)
		if (tree_take(&trees[i], err) < 0)
			return -1;
	if (w->cgroup && trees[n - 1].fd < 0)
		return err_set_id(err, ERRID_SANDBOX_CGROUP, "%s is gone", w->cgroup);
	if (system_links(link, extra, &n_extra, err) < 0)
		return -1;
	if (mount("tmpfs", NEW_ROOT, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=0755") <
	    0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "mount the new root");
	if (chdir(NEW_ROOT) < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "chdir");
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdir(dirs[i], 0755) < 0)
			return err_sys_id(err, ERRID_SANDBOX_ROOT, "mkdir /%s", dirs[i]);
	if (mount("tmpfs", "lych/secrets", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "size=64k,mode=0700") < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "mount /lych/secrets");
	for (size_t i = 0; i < n; i++)
		if (tree_place(&trees[i], err) < 0)
			return -1;
	for (size_t i = 0; i < n_extra; i++)
		if (tree_place(&extra[i], err) < 0)
			return -1;
	if (make_links(link, err) < 0)
		return -1;
	return enter_root(err);
}

/* ---- the child ------------------------------------------------------------ */

static int drop_everything(struct err *err)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};

	for (unsigned long cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
			return err_sys_id(err, ERRID_SANDBOX_CAPS, "bounding set");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
	    syscall(SYS_capset, &h, none) < 0)
		return err_sys_id(err, ERRID_SANDBOX_CAPS, "capset");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys_id(err, ERRID_SANDBOX_CAPS, "no_new_privs");
	return 0;
}

NORETURN static void wall_child(const struct wall *w, uid_t uid, gid_t gid, int alive)
{
	struct err err = ERR_INIT;
	struct pollfd guard = {.fd = alive, .events = POLLIN};
	sigset_t none;
	cleanup_env char **env = proc_env();
	const char *argv[28];
	size_t n = 0;
	char go;

	if (read(alive, &go, 1) != 1)
		_exit(EXIT_SETUP); /* the guard ended before it had recorded us */
	argv[n++] = "lych-tomb";
	argv[n++] = "--name";
	argv[n++] = TOMB_NAME;
	argv[n++] = "--data";
	argv[n++] = "/lych/tomb";
	argv[n++] = "--work-dir";
	argv[n++] = "/lych/work";
	argv[n++] = "--queue";
	argv[n++] = w->queue;
	if (w->pg) {
		argv[n++] = "--pg-dir";
		argv[n++] = "/lych/pg";
	}
	argv[n++] = "--secrets";
	argv[n++] = "/lych/secrets";
	argv[n++] = "--sandbox";
	argv[n++] = "/lych/bin/lych-sandbox";
	argv[n++] = "--slots";
	argv[n++] = w->slots;
	argv[n++] = "--grade";
	argv[n++] = w->grade;
	if (w->cgroup) {
		argv[n++] = "--cgroup";
		argv[n++] = "/lych/cgroup";
	}
	if (w->ready) {
		argv[n++] = "--ready-fd";
		argv[n++] = "3";
	}
	argv[n] = NULL;
	if (map_self(uid, gid, &err) < 0 || build_root(w, &err) < 0 ||
	    drop_everything(&err) < 0)
		goto fail;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || poll(&guard, 1, 0) != 0) {
		(void)err_set_id(&err, ERRID_START_CONFINE, "the tomb's guard is gone");
		goto fail;
	}
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (syscall(SYS_close_range, w->ready ? 4 : 3, ~0U, 0) < 0) {
		(void)err_sys(&err, "close_range");
		goto fail;
	}
	execve("/lych/bin/lych-tomb", (char *const *)(uintptr_t)argv, env);
	(void)err_sys_id(&err, ERRID_START_TOOL, "exec lych-tomb");
fail:
	log_err(LOG_ERROR_, "the tomb's wall cannot stand; the tomb is not started",
		&err);
	_exit(EXIT_SETUP);
}

/* ---- the guard ------------------------------------------------------------ */

/* The starter hears on the ready pipe why there are no cgroup limits. */
static int tell_reason(const struct wall *w, const char *reason, struct err *err)
{
	cleanup_free char *line = xasprintf(UP_NO_CGROUP "%s\n", reason);

	log_kv(LOG_INFO_, "limits are kept without cgroups", "reason", reason, NULL);
	return w->ready ? fs_write_all(PROC_READY_FD, line, strlen(line), err) : 0;
}

static int choose_limits(struct wall *w, struct err *err)
{
	cleanup_free char *reason = NULL;

	if (!w->scope)
		return 0;
	if (up_cgroup_prepare(&w->cgroup, &reason, err) < 0)
		return -1;
	return reason ? tell_reason(w, reason, err) : 0;
}

static int guard_loop(pid_t child, const sigset_t *mask, struct err *err)
{
	cleanup_close int sfd = signalfd(-1, mask, SFD_CLOEXEC);
	int status;

	if (sfd < 0)
		return err_sys(err, "signalfd");
	for (;;) {
		struct signalfd_siginfo si;
		pid_t got = waitpid(child, &status, WNOHANG);

		if (got == child)
			return WIFEXITED(status) ? WEXITSTATUS(status)
						 : 128 + WTERMSIG(status);
		if (read(sfd, &si, sizeof(si)) != (ssize_t)sizeof(si))
			continue;
		if (si.ssi_signo != SIGCHLD)
			(void)kill(child, SIGTERM);
	}
}

/* Before there is a new one. A proof that cannot be had or told costs a wait: the leases
 * run out. But a record must never name one who is not the last. */
static int settle_before(const struct wall *w, struct err *err)
{
	struct err told = ERR_INIT;
	const char *word = gone_prove(w->record);

	if (gone_tell(w->data, word, &told) < 0)
		log_err(LOG_WARN_, "the leases of an earlier tomb will run out", &told);
	return gone_forget(w->record, err);
}

static void let_go(const struct wall *w, pid_t pid, int alive)
{
	struct err err = ERR_INIT;

	if (gone_record(w->record, pid, getppid(), &err) < 0)
		log_err(LOG_WARN_, "if this tomb dies its leases will run out", &err);
	(void)signal(SIGPIPE, SIG_IGN); /* it may have ended already */
	(void)!write(alive, "", 1);
}

static int guard_run(struct wall *w, struct err *err)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	int alive[2];
	sigset_t mask;
	long pid;

	if (choose_limits(w, err) < 0 || settle_before(w, err) < 0)
		return -1;
	if (pipe2(alive, O_CLOEXEC) < 0)
		return err_sys(err, "pipe");
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
		return err_sys(err, "sigprocmask");
	pid = syscall(SYS_clone,
		      CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
			      CLONE_NEWIPC | CLONE_NEWUTS | SIGCHLD,
		      NULL, NULL, NULL, NULL);
	if (pid < 0)
		return err_sys_id(err,
				  errno == EPERM || errno == ENOSPC ? ERRID_SANDBOX_USERNS
								    : ERRID_SANDBOX_NS,
				  "namespaces of the tomb");
	if (pid == 0) {
		(void)close(alive[1]);
		wall_child(w, uid, gid, alive[0]);
	}
	(void)close(alive[0]);
	let_go(w, (pid_t)pid, alive[1]);
	if (w->ready)
		(void)close(PROC_READY_FD);
	return guard_loop((pid_t)pid, &mask, err);
}

int cmd_tomb_wall(int argc, char **argv)
{
	static const struct option options[] = {
		{"data", required_argument, NULL, 'd'},
		{"work", required_argument, NULL, 'w'},
		{"queue", required_argument, NULL, 'q'},
		{"pg", required_argument, NULL, 'p'},
		{"secrets", required_argument, NULL, 's'},
		{"tomb", required_argument, NULL, 't'},
		{"sandbox", required_argument, NULL, 'x'},
		{"tools", required_argument, NULL, 'o'},
		{"slots", required_argument, NULL, 'n'},
		{"grade", required_argument, NULL, 'g'},
		{"scope", no_argument, NULL, 'c'},
		{"ready", no_argument, NULL, 'r'},
		{"record", required_argument, NULL, 'b'},
		{NULL, 0, NULL, 0},
	};
	enum queue_door door = DOOR_MAX_;
	struct wall w = {0};
	struct err err = ERR_INIT;
	int c, code;

	log_init("tomb-wall", LOG_INFO_);
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'd':
			w.data = optarg;
			break;
		case 'w':
			w.work = optarg;
			break;
		case 'q':
			w.queue = optarg;
			break;
		case 'p':
			w.pg = optarg;
			break;
		case 's':
			w.secrets = optarg;
			break;
		case 't':
			w.tomb = optarg;
			break;
		case 'x':
			w.sandbox = optarg;
			break;
		case 'o':
			w.tools = optarg;
			break;
		case 'n':
			w.slots = optarg;
			break;
		case 'g':
			w.grade = optarg;
			break;
		case 'c':
			w.scope = true;
			break;
		case 'r':
			w.ready = true;
			break;
		case 'b':
			w.record = optarg;
			break;
		default:
			return EXIT_USAGE;
		}
	}
	if (!w.data || !w.work || !w.secrets || !w.tomb || !w.sandbox || !w.tools ||
	    !w.slots || !w.grade || !w.record || !w.queue ||
	    !queue_door_from_name(w.queue, &door) ||
	    (door == DOOR_POSTGRES) != (w.pg != NULL))
		return EXIT_USAGE;
	code = guard_run(&w, &err);
	if (code < 0) {
		log_err(LOG_ERROR_,
			"the tomb's wall cannot stand; the tomb is not started", &err);
		return EXIT_SETUP;
	}
	free(w.cgroup);
	return code;
}
