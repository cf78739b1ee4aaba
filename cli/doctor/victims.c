/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See victims.h.
 */
#include "cli/doctor/victims.h"

#include "cli/base/litter.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/id.h"
#include "common/mem.h"
#include "common/str.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static const char secret_text[] = "doctor's key: nobody's to read\n";

static int listen_unix(const char *path, bool abstract, struct err *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	cleanup_close int fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	size_t n = strlen(path);

	if (fd < 0)
		return err_sys(err, "socket");
	if (n + 1 >= sizeof(sa.sun_path))
		return err_set_id(err, ERRID_START_SOCKET, "%s: too long for a socket",
				  path);
	memcpy(sa.sun_path + (abstract ? 1 : 0), path, n);
	if (bind(fd, (const struct sockaddr *)&sa,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1)) < 0 ||
	    listen(fd, 8) < 0)
		return err_sys(err, "listen on %s", path);
	return TAKE_FD(fd);
}

static int listen_inet(int type, unsigned *ret_port, struct err *err)
{
	struct sockaddr_in sa = {.sin_family = AF_INET};
	socklen_t len = sizeof(sa);
	cleanup_close int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    (type == SOCK_STREAM && listen(fd, 8) < 0) ||
	    getsockname(fd, (struct sockaddr *)&sa, &len) < 0)
		return err_sys(err, "listen on the loopback");
	*ret_port = ntohs(sa.sin_port);
	return TAKE_FD(fd);
}

static pid_t start_waiter(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	for (;;)
		(void)pause();
}

char *victims_name(const char *home)
{
	static const struct litter l = {".lych-doctor-", 16, "", true, false};
	unsigned char raw[8];
	char hex[17];

	litter_sweep(home, &l);
	random_bytes(raw, sizeof(raw));
	hex_encode(raw, sizeof(raw), hex);
	return xasprintf("%s/.lych-doctor-%s", home, hex);
}

int victims_make(const char *dir, struct victims *ret, struct err *err)
{
	struct victims v = {.fd_path = -1, .fd_abstract = -1, .fd_tcp = -1, .fd_udp = -1};
	int fd;

	v.dir = xstrdup(dir);
	(void)snprintf(v.abstract, sizeof(v.abstract), "%.39s", strrchr(dir, '.') + 1);
	v.secret = xasprintf("%s/key", v.dir);
	v.work = xasprintf("%s/work", v.dir);
	v.path = xasprintf("%s/s", v.dir);
	if (mkdir(v.dir, 0700) < 0 || mkdir(v.work, 0700) < 0) {
		(void)err_sys(err, "mkdir %s", v.dir);
		goto fail;
	}
	fd = open(v.secret, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || fs_write_all(fd, secret_text, strlen(secret_text), err) < 0 ||
	    fstat(fd, &v.before) < 0) {
		(void)err_sys(err, "%s", v.secret);
		fd_close(&fd);
		goto fail;
	}
	(void)close(fd);
	v.fd_path = listen_unix(v.path, false, err);
	v.fd_abstract = v.fd_path < 0 ? -1 : listen_unix(v.abstract, true, err);
	v.fd_tcp = v.fd_abstract < 0 ? -1 : listen_inet(SOCK_STREAM, &v.tcp, err);
	v.fd_udp = v.fd_tcp < 0 ? -1 : listen_inet(SOCK_DGRAM, &v.udp, err);
	if (v.fd_udp < 0)
		goto fail;
	v.pid = start_waiter();
	if (v.pid < 0) {
		(void)err_sys(err, "fork");
		goto fail;
	}
	*ret = v;
	return 0;
fail:
	victims_done(&v);
	return -1;
}

static const char *judge_file(struct victims *v, bool known_touch)
{
	cleanup_free char *text = NULL;
	cleanup_dir DIR *d = opendir(v->dir);
	struct err ignored = ERR_INIT;
	const struct dirent *e;
	unsigned entries = 0;
	struct stat st;
	size_t len;

	if (lstat(v->secret, &st) < 0)
		return "the key is gone";
	if (st.st_mode != v->before.st_mode || st.st_nlink != 1 ||
	    st.st_ino != v->before.st_ino)
		return "the key's mode or links changed";
	if (!known_touch && (st.st_mtim.tv_sec != v->before.st_mtim.tv_sec ||
			     st.st_mtim.tv_nsec != v->before.st_mtim.tv_nsec))
		return "the key's time stamp changed";
	v->before.st_mtim = st.st_mtim;
	if (fs_read_file(AT_FDCWD, v->secret, 4096, &text, &len, &ignored) < 0 ||
	    !str_eq(text, secret_text))
		return "the key's bytes changed";
	while (d && (e = readdir(d)))
		entries += e->d_name[0] != '.';
	return entries == 3 ? NULL : "a file was planted beside the key";
}

static const char *judge_process(const struct victims *v)
{
	cpu_set_t now, ours;
	struct rlimit limit, mine;

	if (waitpid(v->pid, NULL, WNOHANG) != 0)
		return "the waiting process was killed";
	if (getpriority(PRIO_PROCESS, (id_t)v->pid) != getpriority(PRIO_PROCESS, 0))
		return "its priority changed";
	if (prlimit(v->pid, RLIMIT_NOFILE, NULL, &limit) < 0 ||
	    getrlimit(RLIMIT_NOFILE, &mine) < 0 || limit.rlim_cur != mine.rlim_cur)
		return "its limits changed";
	if (sched_getaffinity(v->pid, sizeof(now), &now) < 0 ||
	    sched_getaffinity(0, sizeof(ours), &ours) < 0 || !CPU_EQUAL(&now, &ours))
		return "its processors changed";
	return NULL;
}

const char *victims_judge(struct victims *v, bool known_touch)
{
	const int listeners[] = {v->fd_path, v->fd_abstract, v->fd_tcp};
	const char *why = judge_file(v, known_touch);
	char byte;

	if (why)
		return why;
	for (size_t i = 0; i < ARRAY_SIZE(listeners); i++) {
		cleanup_close int fd = accept4(listeners[i], NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0)
			return "a listener outside was reached";
	}
	if (recv(v->fd_udp, &byte, 1, MSG_DONTWAIT) >= 0)
		return "a datagram came out";
	return judge_process(v);
}

void victims_remove(const char *dir)
{
	const char *name = strrchr(dir, '/');
	cleanup_free char *parent = xstrndup(dir, (size_t)(name - dir));
	cleanup_close int home =
		open(parent[0] ? parent : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err ignored = ERR_INIT;

	if (home >= 0)
		(void)!fs_remove_beneath(home, name + 1, &ignored);
}

void victims_done(struct victims *v)
{

	if (v->pid > 0) {
		(void)kill(v->pid, SIGKILL);
		(void)waitpid(v->pid, NULL, 0);
	}
	fd_close(&v->fd_path);
	fd_close(&v->fd_abstract);
	fd_close(&v->fd_tcp);
	fd_close(&v->fd_udp);
	if (v->dir)
		victims_remove(v->dir);
	free(v->dir);
	free(v->secret);
	free(v->work);
	free(v->path);
	*v = (struct victims){
		.fd_path = -1, .fd_abstract = -1, .fd_tcp = -1, .fd_udp = -1};
}
