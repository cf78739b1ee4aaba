/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See fs.h.
 */
#include "common/fs.h"
#include "common/cleanup.h"
#include "common/id.h"
#include "common/mem.h"
#include "common/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FLOCK_TRIES 50
#define FLOCK_PAUSE_NSEC 20000000

int fs_open_beneath(int dirfd, const char *path, int flags, mode_t mode, struct err *err)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)flags | O_CLOEXEC,
		.mode = (flags & O_CREAT) ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
			   RESOLVE_NO_XDEV,
	};
	long fd;

	do
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	if (fd < 0)
		return err_sys(err, "open '%.200s'", path);
	return (int)fd;
}

int fs_open_dir(const char *path, struct err *err)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_sys(err, "open directory '%.200s'", path);
	return fd;
}

int fs_open_judged(const char *path, int flags, enum err_id id, struct err *err)
{
	cleanup_close int fd = open(path, flags | O_PATH | O_CLOEXEC);
	char link[64], is[PATH_MAX];
	ssize_t n = -1;

	if (fd >= 0) {
		(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, is, sizeof(is));
	}
	if (n < 0)
		return err_sys_id(err, id, "open '%.200s'", path);
	if ((size_t)n != strlen(path) || memcmp(is, path, (size_t)n) != 0) {
		errno = ELOOP;
		return err_sys_id(err, id, "open '%.200s': it is another place by now",
				  path);
	}
	return TAKE_FD(fd);
}

int fs_mkdir_beneath(int dirfd, const char *path, mode_t mode, struct err *err)
{
	cleanup_free char *copy = xstrdup(path);
	cleanup_close int at = -1, made = -1;
	char *p = copy;

	if (path_check_relative(path, strlen(path), err) < 0)
		return -1;
	for (;;) {
		char *slash = strchr(p, '/');
		int next, parent = at >= 0 ? at : dirfd;

		if (slash)
			*slash = '\0';
		if (mkdirat(parent, p, mode) < 0 && errno != EEXIST)
			return err_sys(err, "make directory '%.200s'", path);
		if (!slash)
			break;
		next = fs_open_beneath(parent, p, O_PATH | O_DIRECTORY, 0, err);
		if (next < 0)
			return -1;
		fd_close(&at);
		at = next;
		p = slash + 1;
	}
	/* What stands there must be a directory, and not by way of a link. */
	made = fs_open_beneath(at >= 0 ? at : dirfd, p, O_PATH | O_DIRECTORY, 0, err);
	return made < 0 ? -1 : 0;
}

int fs_mkdir_all(const char *path, mode_t mode, struct err *err)
{
	cleanup_free char *copy = xstrdup(path);

	for (char *p = copy + 1; *copy; p++) {
		bool end = *p == '\0';

		if (!end && *p != '/')
			continue;
		*p = '\0';
		if (mkdir(copy, mode) < 0 && errno != EEXIST)
			return err_sys(err, "make directory '%.200s'", copy);
		if (end)
			break;
		*p = '/';
	}
	{
		struct stat st;

		if (stat(path, &st) < 0)
			return err_sys(err, "stat '%.200s'", path);
		if (!S_ISDIR(st.st_mode))
			return err_set_id(err, ERRID_CORE_NO_DIR,
					  "'%.200s' is not a directory", path);
	}
	return 0;
}

int fs_read_file(int dirfd, const char *path, size_t max, char **ret, size_t *ret_len,
		 struct err *err)
{
	cleanup_close int fd =
		openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	cleanup_free char *data = NULL;
	struct stat st;
	size_t len = 0;

	if (fd < 0) {
		if (errno == ENOENT)
			return err_sys_id(err, ERRID_CORE_NO_FILE, "open '%.200s'", path);
		return err_sys(err, "open '%.200s'", path);
	}
	if (fstat(fd, &st) < 0)
		return err_sys(err, "stat '%.200s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set_id(err, ERRID_CORE_FILE_KIND,
				  "'%.200s' is not a regular file", path);
	data = xmalloc(max + 2);
	while (len <= max) {
		ssize_t n = read(fd, data + len, max + 1 - len);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return err_sys(err, "read '%.200s'", path);
		}
		if (n == 0)
			break;
		len += (size_t)n;
	}
	if (len > max)
		return err_set_id(err, ERRID_CORE_TOO_LARGE,
				  "'%.200s' has more than %zu bytes", path, max);
	data[len] = '\0';
	*ret = TAKE_PTR(data);
	if (ret_len)
		*ret_len = len;
	return 0;
}

int fs_fill_stdio(struct err *err)
{
	int fd;

	do {
		/* a write to a stdout that was closed fails: what nobody got was not said */
		bool is_stdout = fcntl(STDIN_FILENO, F_GETFD) >= 0 &&
				 fcntl(STDOUT_FILENO, F_GETFD) < 0;

		fd = open("/dev/null", (is_stdout ? O_RDONLY : O_RDWR) | O_CLOEXEC);
		if (fd < 0)
			return err_sys(err, "open /dev/null");
		if (fd <= STDERR_FILENO && fcntl(fd, F_SETFD, 0) < 0)
			return err_sys(err, "fcntl");
	} while (fd <= STDERR_FILENO);
	(void)close(fd);
	return 0;
}

void fs_raise_nofile(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
		r.rlim_cur = r.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &r);
	}
}

int fs_write_all(int fd, const void *data, size_t len, struct err *err)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return err_sys(err, "write");
		}
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static int write_temporary(int dirfd, const char *tmp, const void *data, size_t len,
			   mode_t mode, struct err *err)
{
	cleanup_close int fd = openat(
		dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);

	if (fd < 0)
		return err_sys(err, "create '%.200s'", tmp);
	if (fchmod(fd, mode) < 0)
		return err_sys(err, "chmod '%.200s'", tmp);
	if (fs_write_all(fd, data, len, err) < 0)
		return err_wrap(err, "'%.200s'", tmp);
	if (fsync(fd) < 0)
		return err_sys(err, "fsync '%.200s'", tmp);
	return 0;
}

int fs_write_atomic(int dirfd, const char *name, const void *data, size_t len,
		    mode_t mode, struct err *err)
{
	cleanup_close int dir = -1;
	struct request_id rid;
	char tmp[300];
	const char *slash = strrchr(name, '/');

	request_id_new(&random_real, &rid);
	if (str_fmt(tmp, sizeof(tmp), "%s.%s.tmp", name, rid.s) < 0)
		return err_set(err, ERR_INVALID, "name too long: '%.100s'", name);
	if (write_temporary(dirfd, tmp, data, len, mode, err) < 0) {
		(void)unlinkat(dirfd, tmp, 0);
		return -1;
	}
	if (renameat(dirfd, tmp, dirfd, name) < 0) {
		(void)err_sys(err, "rename to '%.200s'", name);
		(void)unlinkat(dirfd, tmp, 0);
		return -1;
	}
	if (slash) {
		cleanup_free char *parent = xstrndup(name, (size_t)(slash - name) + 1);

		dir = openat(dirfd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	} else {
		dir = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (dir < 0 || fsync(dir) < 0)
		return err_sys(err, "fsync the directory of '%.200s'", name);
	return 0;
}

int fs_read_secret(int dirfd, const char *name, char *out, size_t size, struct err *err)
{
	cleanup_close int fd =
		openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	ssize_t n;

	if (fd < 0 && errno == ENOENT)
		return err_set_id(err, ERRID_SECRET_MISSING, "secret '%.80s' is missing",
				  name);
	if (fd < 0)
		return err_sys_id(err, ERRID_SECRET_FILE, "open secret '%.80s'", name);
	if (fstat(fd, &st) < 0)
		return err_sys_id(err, ERRID_SECRET_FILE, "stat secret '%.80s'", name);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		return err_set_id(
			err, ERRID_SECRET_FILE,
			"secret '%.80s' must be a regular file of uid %u with mode 0600",
			name, (unsigned)geteuid());
	n = read(fd, out, size);
	if (n < 0)
		return err_sys_id(err, ERRID_SECRET_FILE, "read secret '%.80s'", name);
	if (n > 0 && out[n - 1] == '\n')
		n--;
	if (n == 0 || (size_t)n >= size || memchr(out, '\0', (size_t)n)) {
		explicit_bzero(out, size);
		return err_set_id(err, ERRID_SECRET_FILE,
				  "secret '%.80s' is empty or too long", name);
	}
	out[n] = '\0';
	return 0;
}

int fs_lock(int fd, pid_t *ret_holder, struct err *err)
{
	struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	pid_t holder = 0;

	if (fcntl(fd, F_SETLK, &fl) == 0)
		return 0;
	if (errno != EACCES && errno != EAGAIN)
		return err_sys(err, "lock");
	if (fs_lock_holder(fd, &holder, err) < 0)
		return -1;
	if (ret_holder)
		*ret_holder = holder;
	return err_set_id(err, ERRID_START_LOCKED, "locked by process %d", (int)holder);
}

int fs_flock_soon(int fd)
{
	const struct timespec pause = {.tv_nsec = FLOCK_PAUSE_NSEC};

	for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
		if ((errno != EWOULDBLOCK && errno != EINTR) || i == FLOCK_TRIES)
			return -1;
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

int fs_lock_holder(int fd, pid_t *ret, struct err *err)
{
	struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (fcntl(fd, F_GETLK, &fl) < 0)
		return err_sys(err, "query the lock");
	*ret = fl.l_type == F_UNLCK ? 0 : fl.l_pid;
	return 0;
}

int fs_move_file(int from_dir, const char *from, int to_dir, const char *to,
		 struct err *err)
{
	struct request_id rid;
	char tmp[64];

	if (linkat(from_dir, from, to_dir, to, 0) < 0) {
		if (errno != EEXIST)
			return err_sys(err, "place '%.200s'", to);
		request_id_new(&random_real, &rid);
		if (str_fmt(tmp, sizeof(tmp), ".mv-%s", rid.s) < 0 ||
		    linkat(from_dir, from, to_dir, tmp, 0) < 0)
			return err_sys(err, "place '%.200s'", to);
		if (renameat(to_dir, tmp, to_dir, to) < 0) {
			(void)err_sys(err, "replace '%.200s'", to);
			(void)unlinkat(to_dir, tmp, 0);
			return -1;
		}
		/* Of one file that has both names already a rename takes neither. */
		(void)unlinkat(to_dir, tmp, 0);
	}
	if (unlinkat(from_dir, from, 0) < 0)
		return err_sys(err, "remove '%.200s'", from);
	return 0;
}
