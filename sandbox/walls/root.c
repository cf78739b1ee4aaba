/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner and the keeper.
 * The private root of grade full.
 *
 * We are pid 1 of fresh user, mount, pid, network, ipc and uts namespaces, with
 * capabilities in them only. What the job may see is cloned out of the host's tree first
 * (open_tree, always recursive: a submount that the host hides stays hidden, and less is
 * EINVAL here), made read-only, nosuid, nodev as a whole (mount_setattr), and then placed
 * in a small tmpfs of our own, by descriptor. So no path of the host is looked up again
 * once the new root exists, and a symlink that an earlier job left in a writable tree
 * cannot move a mount point: directories for mount points are walked and made with
 * RESOLVE_NO_SYMLINKS.
 *
 * The tmpfs is mounted over the host's /proc of this namespace, which nobody looks at any
 * more; pivot_root puts the host's root on top and umount takes it away with everything
 * below it. At the end the root itself is read-only.
 *
 * /proc is that of our pid namespace. The job's mount hides processes that it may not
 * trace (the keeper: hidepid); the supervision has a mount of its own, attached nowhere.
 *
 * The workspace was opened and judged by the parent (root_open_workspace), but a
 * descriptor of another mount namespace cannot be cloned here: its path is opened again
 * and must lead to the same inode.
 *
 * The spawner does the common part once: its own mount namespace *is* the template
 * (root_template), so that a sandbox inherits it with clone(CLONE_NEWNS) and adds only
 * what it has for itself (root_from_template). Nothing has to be taken away then, which
 * matters: umount waits for an RCU grace period. The workspace comes as a detached clone
 * that the spawner made (serve_mounts.c).
 */
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/kernel_files.h"
#include "common/mem.h"
#include "common/proto/broker_proto.h"
#include "common/str.h"
#include "sandbox/contract/paths.h"
#include "sandbox/contract/sandbox.h"
#include "sandbox/walls/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#define NO_DOMAIN "(none)" /* as the kernel has it without one */
#define PTS_MAX "64"

/* ---- the workspace -------------------------------------------------------- */

static int judge_workspace(int fd, const char *path, struct err *err)
{
	struct statx sx, root;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_UID | STATX_INO, &sx) < 0 ||
	    statx(AT_FDCWD, "/", 0, STATX_INO, &root) < 0)
		return err_sys_id(err, ERRID_SANDBOX_WORKSPACE, "statx %s", path);
	if (!S_ISDIR(sx.stx_mode))
		return err_set_id(err, ERRID_SANDBOX_WORKSPACE, "%s is not a directory",
				  path);
	if (sx.stx_ino == root.stx_ino && sx.stx_dev_major == root.stx_dev_major &&
	    sx.stx_dev_minor == root.stx_dev_minor)
		return err_set_id(err, ERRID_SANDBOX_WORKSPACE,
				  "%s is the root directory", path);
	if (sx.stx_uid != geteuid())
		return err_set_id(err, ERRID_SANDBOX_WORKSPACE, "%s belongs to uid %u",
				  path, sx.stx_uid);
	if ((sx.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) == 0)
		return err_set_id(err, ERRID_SANDBOX_WORKSPACE,
				  "the kernel does not say whether %s is a mount", path);
	if (sx.stx_attributes & STATX_ATTR_MOUNT_ROOT)
		return err_set_id(err, ERRID_SANDBOX_WORKSPACE,
				  "%s is a mount of its own", path);
	return kernel_files_refuse(fd, path, ERRID_SANDBOX_WORKSPACE, err);
}

static int open_workspace(const char *path, struct err *err)
{
	cleanup_close int fd = fs_open_judged(path, O_DIRECTORY | O_NOFOLLOW,
					      ERRID_SANDBOX_WORKSPACE, err);

	if (fd < 0)
		return -1;
	if (judge_workspace(fd, path, err) < 0)
		return -1;
	return TAKE_FD(fd);
}

int root_open_workspace(struct sbx_spec *spec, struct err *err)
{
	if (!spec->workspace || spec->workspace_fd >= 0)
		return 0;
	spec->workspace_fd = open_workspace(spec->workspace, err);
	if (spec->workspace_fd < 0)
		return -1;
	return kernel_files_refuse_below(spec->workspace, ERRID_SANDBOX_WORKSPACE, err);
}

static int reopen_workspace(const struct sbx_spec *spec, struct err *err)
{
	cleanup_close int fd = open_workspace(spec->workspace, err);
	struct stat a, b;

	if (fd < 0)
		return -1;
	if (spec->workspace_fd < 0)
		return err_set_id(err, ERRID_SANDBOX_WORKSPACE,
				  "%s was not opened before", spec->workspace);
	if (fstat(spec->workspace_fd, &a) < 0 || fstat(fd, &b) < 0)
		return err_sys_id(err, ERRID_SANDBOX_WORKSPACE, "fstat %s",
				  spec->workspace);
	if (a.st_dev != b.st_dev || a.st_ino != b.st_ino)
		return err_set_id(err, ERRID_SANDBOX_WORKSPACE, "%s was replaced",
				  spec->workspace);
	return TAKE_FD(fd);
}

/* ---- what the host gives --------------------------------------------------- */

/*
 * Show one path of the host at the same place: a symlink is made again (it means what it
 * means inside), a directory or file is cloned. Missing is fine: these are lists for many
 * hosts.
 */
static int show(int root_fd, const char *path, uint64_t attr, struct err *err)
{
	const char *inside = path + 1;
	cleanup_close int fd = -1;
	char target[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : mount_failed(err, "lstat", path);
	if (S_ISLNK(st.st_mode)) {
		n = readlink(path, target, sizeof(target) - 1);
		if (n < 0)
			return mount_failed(err, "readlink", path);
		target[n] = '\0';
		return symlinkat(target, root_fd, inside) < 0
			       ? mount_failed(err, "symlink", path)
			       : 0;
	}
	fd = mount_clone(AT_FDCWD, path, attr, err);
	if (fd < 0)
		return -1;
	if ((S_ISDIR(st.st_mode) ? mount_make_dir(root_fd, inside, 0755, err)
				 : mount_make_file(root_fd, inside, "", err)) < 0)
		return -1;
	return mount_place(fd, root_fd, inside, err);
}

static int show_list(int root_fd, const char *const *paths, uint64_t attr,
		     struct err *err)
{
	for (; *paths; paths++)
		if (show(root_fd, *paths, attr, err) < 0)
			return -1;
	return 0;
}

/* A container's filter may refuse sethostname (Podman's does). Its name is not the host's,
 * and the uts namespace stands: ours keeps that name then. One that the caller chose is a
 * promise. The spawner learns it with its own root, before it makes the template. */
static bool name_refused;

static int set_hostname(const struct sbx_spec *spec, struct err *err)
{
	if (sethostname(spec->hostname, strlen(spec->hostname)) == 0)
		return 0;
	name_refused = errno == EPERM && !spec->hostname_chosen;
	return name_refused ? 0 : err_sys_id(err, ERRID_SANDBOX_NS, "sethostname");
}

/* A new uts namespace begins with a copy, the host's NIS domain too; a container is given
 * that as well. */
static int hide_domain(struct err *err)
{
	struct utsname uts;

	if (setdomainname(NO_DOMAIN, strlen(NO_DOMAIN)) == 0)
		return 0;
	if (errno != EPERM)
		return err_sys_id(err, ERRID_SANDBOX_NS, "setdomainname");
	if (uname(&uts) < 0 || (uts.domainname[0] && !str_eq(uts.domainname, NO_DOMAIN)))
		return err_set_id(err, ERRID_SANDBOX_NS,
				  "the host's domain name can't be hidden: an outer "
				  "filter refuses setdomainname");
	return 0;
}

static int set_names(const struct sbx_spec *spec, struct err *err)
{
	return set_hostname(spec, err) < 0 ? -1 : hide_domain(err);
}

static const char *host_name(const struct sbx_spec *spec, struct utsname *uts)
{
	return name_refused && uname(uts) == 0 ? uts->nodename : spec->hostname;
}

static int build_etc(int root_fd, const struct sbx_spec *spec, struct err *err)
{
	static const char *const dirs[] = {"etc", "etc/ssl", NULL};
	char text[512];
	unsigned uid = getuid(), gid = getgid();
	struct utsname uts;

	for (const char *const *d = dirs; *d; d++)
		if (mount_make_dir(root_fd, *d, 0755, err) < 0)
			return -1;
	if (str_fmt(text, sizeof(text),
		    "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
		    "job:x:%u:%u:job:/tmp:/bin/sh\n"
		    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		    uid, gid) < 0 ||
	    mount_make_file(root_fd, "etc/passwd", text, err) < 0)
		return err_wrap(err, "passwd");
	if (str_fmt(text, sizeof(text), "root:x:0:\njob:x:%u:\nnogroup:x:65534:\n", gid) <
		    0 ||
	    mount_make_file(root_fd, "etc/group", text, err) < 0)
		return err_wrap(err, "group");
	if (str_fmt(text, sizeof(text),
		    "127.0.0.1 localhost %s\n::1 localhost ip6-localhost ip6-loopback\n",
		    host_name(spec, &uts)) < 0 ||
	    mount_make_file(root_fd, "etc/hosts", text, err) < 0)
		return err_wrap(err, "hosts");
	if (mount_make_file(root_fd, "etc/nsswitch.conf",
			    "passwd: files\ngroup: files\nhosts: files\nservices: files\n"
			    "protocols: files\n",
			    err) < 0 ||
	    mount_make_file(root_fd, "etc/resolv.conf", "", err) < 0 ||
	    mount_make_file(root_fd, "etc/hostname", host_name(spec, &uts), err) < 0)
		return -1;
	return show_list(root_fd, paths_etc_public, ATTR_SEALED | MOUNT_ATTR_NOEXEC, err);
}

static int build_dev(int root_fd, struct err *err)
{
	static const char *const links[][2] = {
		{"/proc/self/fd", "dev/fd"},	   {"/proc/self/fd/0", "dev/stdin"},
		{"/proc/self/fd/1", "dev/stdout"}, {"/proc/self/fd/2", "dev/stderr"},
		{"pts/ptmx", "dev/ptmx"},
	};

	/* No MOUNT_ATTR_NODEV here: these are the nodes themselves. */
	if (mount_make_dir(root_fd, "dev", 0755, err) < 0 ||
	    mount_make_dir(root_fd, "dev/shm", 0755, err) < 0 ||
	    mount_make_dir(root_fd, &PATH_PTS[1], 0755, err) < 0 ||
	    mount_make_file(root_fd, &PATH_NOTHING[1], "", err) < 0 ||
	    mount_make_dir(root_fd, &PATH_NOTHING_DIR[1], 0555, err) < 0 ||
	    show_list(root_fd, paths_dev_plain, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
		      err) < 0 ||
	    show_list(root_fd, paths_dev_terminal, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
		      err) < 0 ||
	    show_list(root_fd, paths_dev_random, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
		      err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (symlinkat(links[i][0], root_fd, links[i][1]) < 0)
			return mount_failed(err, "symlink", links[i][1]);
	return 0;
}

/* ---- what the spec grants --------------------------------------------------- */

/* The directory that holds path (relative), its parents made where they are missing. */
static int walk_parents(int root_fd, const char *path, const char **ret_name,
			struct err *err)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
			       .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
					  RESOLVE_BENEATH};
	cleanup_close int dir = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
	const char *slash;

	if (dir < 0)
		return mount_failed(err, "dup", path);
	for (; (slash = strchr(path, '/')); path = slash + 1) {
		char name[NAME_MAX + 1];
		int next;

		if (str_fmt(name, sizeof(name), "%.*s", (int)(slash - path), path) < 0)
			return err_set_id(err, ERRID_SANDBOX_ROOT, "a name is too long");
		if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST && errno != EROFS)
			return mount_failed(err, "mkdir", name);
		next = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
		if (next < 0)
			return mount_failed(err, "open", name);
		fd_close(&dir);
		dir = next;
	}
	*ret_name = path;
	return TAKE_FD(dir);
}

static int place_at(int mount_fd, int root_fd, const char *path, struct err *err)
{
	const char *name = NULL;
	cleanup_close int dir = walk_parents(root_fd, path + 1, &name, err);
	struct stat src, dst;

	if (dir < 0 || !name)
		return err_wrap(err, "mount point of %s", path);
	if (fstat(mount_fd, &src) < 0)
		return mount_failed(err, "fstat", path);
	if (fstatat(dir, name, &dst, AT_SYMLINK_NOFOLLOW) < 0) {
		if ((S_ISDIR(src.st_mode) ? mount_make_dir(dir, name, 0755, err)
					  : mount_make_file(dir, name, "", err)) < 0)
			return -1;
	} else if (S_ISLNK(dst.st_mode)) {
		return err_set_id(err, ERRID_SANDBOX_ROOT, "%s is a symlink inside",
				  path);
	}
	return mount_place(mount_fd, dir, name, err);
}

struct grants { /* clones, made while the host's tree is still in sight */
	int *mount;
	size_t n;
	int workspace;
};

static void grants_done(struct grants *g)
{
	for (size_t i = 0; i < g->n; i++)
		fd_close(&g->mount[i]);
	free(g->mount);
	fd_close(&g->workspace);
}

static int grants_clone(const struct sbx_spec *spec, struct grants *g, struct err *err)
{
	cleanup_close int work = -1;

	g->mount = xcalloc(spec->n_mounts + 1, sizeof(*g->mount));
	for (size_t i = 0; i < spec->n_mounts; i++) {
		const struct sbx_mount *m = &spec->mounts[i];
		uint64_t attr = m->kind == MOUNT_RW    ? ATTR_OWN
				: m->kind == MOUNT_ROX ? ATTR_SEALED
						       : ATTR_SEALED | MOUNT_ATTR_NOEXEC;
		cleanup_close int from =
			fs_open_judged(m->path, 0, ERRID_SANDBOX_ROOT, err);
		int fd = from < 0 ? -1 : mount_clone(from, "", attr, err);

		if (fd < 0)
			return err_wrap(err, "%s", m->path);
		g->mount[g->n++] = fd;
	}
	if (!spec->workspace)
		return 0;
	work = reopen_workspace(spec, err);
	if (work < 0)
		return -1;
	g->workspace =
		mount_clone(work, "", spec->workspace_ro ? ATTR_SEALED : ATTR_OWN, err);
	return g->workspace < 0 ? err_wrap(err, "workspace") : 0;
}

static int grants_place(const struct sbx_spec *spec, struct grants *g, int root_fd,
			struct sbx_root *ret, struct err *err)
{
	for (size_t i = 0; i < spec->n_mounts; i++)
		if (place_at(g->mount[i], root_fd, spec->mounts[i].path, err) < 0)
			return -1;
	return spec->workspace
		       ? root_place_workspace(TAKE_FD(g->workspace), root_fd, ret, err)
		       : 0;
}

/* ---- the whole --------------------------------------------------------------- */

int root_place_workspace(int mount_fd, int root_fd, struct sbx_root *ret, struct err *err)
{
	cleanup_close int fd = mount_fd;

	if (mount_place(fd, root_fd, &PATH_WORK[1], err) < 0)
		return -1;
	ret->work_fd = TAKE_FD(fd);
	return 0;
}

/* The clients of the broker. Their directory is a mount of its own by now: the spawner's
 * (serve_walls.c). */
static int show_tools(const char *tools, int root_fd, struct err *err)
{
	cleanup_close int fd = mount_clone(AT_FDCWD, tools, ATTR_SEALED, err);

	if (fd < 0)
		return -1;
	return place_at(fd, root_fd, BROKER_TOOLS, err);
}

/* What is the same for every sandbox with this host name. */
static int fill_common(const struct sbx_spec *spec, bool workspace, int root_fd,
		       struct err *err)
{
	if (show_list(root_fd, paths_system, ATTR_SEALED, err) < 0 ||
	    build_etc(root_fd, spec, err) < 0 || build_dev(root_fd, err) < 0 ||
	    mount_make_dir(root_fd, "proc", 0555, err) < 0 ||
	    mount_make_dir(root_fd, "tmp", 0755, err) < 0 ||
	    mount_make_file(root_fd, &PATH_CANARY[1], "not for you\n", err) < 0)
		return -1;
	if (spec->tools && show_tools(spec->tools, root_fd, err) < 0)
		return -1;
	return workspace ? mount_make_dir(root_fd, &PATH_WORK[1], 0755, err) : 0;
}

/* Terminals of the job's own: each mount of a devpts is one, and none shows another's. They are the job's, as
 * all that is in its user namespace; the group of a host's terminals does not exist there. A pair is some 50 KiB
 * of the kernel's, which nothing counts. */
static int place_pts(int root_fd, struct err *err)
{
	static const char *const opts[] = {"ptmxmode", "0666",	"mode", "0600",
					   "max",      PTS_MAX, NULL};
	cleanup_close int fd =
		mount_fresh("devpts", opts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);

	return fd < 0 ? -1 : mount_place(fd, root_fd, &PATH_PTS[1], err);
}

/* What every sandbox has for itself: the /proc of its pid namespace (one view for the
 * job, one attached nowhere for the supervision), its terminals, /tmp and /dev/shm. */
static int fill_private(const struct sbx_spec *spec, int root_fd, struct sbx_root *ret,
			struct err *err)
{
	cleanup_close int proc = mount_fresh_proc("4", err);

	if (proc < 0 || mount_place(proc, root_fd, "proc", err) < 0 ||
	    place_pts(root_fd, err) < 0)
		return -1;
	ret->proc_fd = mount_fresh_proc("0", err);
	if (ret->proc_fd < 0 ||
	    mount_tmpfs(root_fd, "dev/shm", spec->tmp_bytes, &ret->shm_fd, err) < 0)
		return -1;
	return mount_tmpfs(root_fd, "tmp", spec->tmp_bytes, &ret->tmp_fd, err);
}

/* The host's root goes on top of the new one and is taken away with all below it. */
static int enter_root(int root_fd, struct err *err)
{
	struct mount_attr sealed = {.attr_set = ATTR_SEALED | MOUNT_ATTR_NOEXEC};

	if (syscall(SYS_mount_setattr, root_fd, "", AT_EMPTY_PATH, &sealed,
		    sizeof(sealed)) < 0)
		return mount_failed(err, "seal", "/");
	if (fchdir(root_fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return mount_failed(err, "pivot_root", "/");
	if (umount2(".", MNT_DETACH) < 0)
		return mount_failed(err, "umount", "the host's root");
	return chdir("/") < 0 ? mount_failed(err, "chdir", "/") : 0;
}

static int loopback_up(struct err *err)
{
	cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = {.ifr_name = "lo"};

	if (fd < 0)
		return err_sys_id(err, ERRID_SANDBOX_NS, "socket for the loopback");
	ifr.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
		return err_sys_id(err, ERRID_SANDBOX_NS, "bring the loopback up");
	return 0;
}

/* An empty root, attached where nobody looks any more. */
static int begin_root(struct err *err)
{
	static const char *const opts[] = {"size", "1048576", "mode", "0755", NULL};
	cleanup_close int root_fd = -1;

	umask(022);
	root_fd = mount_fresh("tmpfs", opts, ATTR_OWN | MOUNT_ATTR_NOEXEC, err);
	if (root_fd < 0 || mount_place(root_fd, AT_FDCWD, "/proc", err) < 0)
		return -1;
	return TAKE_FD(root_fd);
}

int root_build(const struct sbx_spec *spec, struct sbx_root *ret, struct err *err)
{
	__attribute__((cleanup(grants_done))) struct grants g = {.workspace = -1};
	cleanup_close int root_fd = -1;

	*ret = (struct sbx_root){-1, -1, -1, -1};
	if (set_names(spec, err) < 0)
		return -1;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return mount_failed(err, "make private", "/");
	if (grants_clone(spec, &g, err) < 0)
		return -1;
	root_fd = begin_root(err);
	if (root_fd < 0 || fill_common(spec, spec->workspace, root_fd, err) < 0 ||
	    fill_private(spec, root_fd, ret, err) < 0 ||
	    grants_place(spec, &g, root_fd, ret, err) < 0 || enter_root(root_fd, err) < 0)
		return -1;
	return spec->net == NET_LOOPBACK ? loopback_up(err) : 0;
}

int root_template(const struct sbx_spec *spec, struct err *err)
{
	cleanup_close int root_fd = -1, proc = mount_fresh_proc("4", err);

	if (proc < 0)
		return -1;
	root_fd = begin_root(err);
	if (root_fd < 0 || fill_common(spec, true, root_fd, err) < 0 ||
	    mount_place(proc, root_fd, "proc", err) < 0)
		return -1;
	return enter_root(root_fd, err);
}

int root_from_template(const struct sbx_spec *spec, struct sbx_root *ret, struct err *err)
{
	cleanup_close int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	*ret = (struct sbx_root){-1, -1, -1, -1};
	if (root_fd < 0)
		return mount_failed(err, "open", "/");
	if (set_names(spec, err) < 0 || fill_private(spec, root_fd, ret, err) < 0)
		return -1;
	return spec->net == NET_LOOPBACK ? loopback_up(err) : 0;
}
