/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper and the meter.
 * Enumerating a hostile process tree through /proc. What it uses: use.c.
 */
#include "sandbox/keeper/tree.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "sandbox/keeper/tree_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define TREE_PROCS_MAX 65536
#define SCANNED_AT_ONCE 16

/* Of the kernel's internal tmpfs, as long as the machine runs; no device is 0. */
static uint64_t shm_dev;

uint64_t tree_take_u64(const char **p)
{
	uint64_t v = 0;

	while (**p == ' ' || **p == '\t')
		(*p)++;
	while (**p >= '0' && **p <= '9') {
		v = v * 10 + (uint64_t)(**p - '0');
		(*p)++;
	}
	return v;
}

static void skip_field(const char **p)
{
	while (**p == ' ')
		(*p)++;
	while (**p && **p != ' ')
		(*p)++;
}

/* "pid (comm) S ppid ...": comm may hold blanks and parentheses, so look for the last
 * one. */
int tree_parse_stat(const char *line, struct tree_proc *ret)
{
	const char *p = line;
	const char *close = strrchr(line, ')');
	struct tree_proc r = {0};

	if (!close || close[1] != ' ' || !close[2] || close[3] != ' ')
		return -1;
	r.pid = (pid_t)tree_take_u64(&p);
	r.state = close[2];
	p = close + 3;
	r.ppid = (pid_t)tree_take_u64(&p); /* 4 */
	for (int i = 5; i <= 8; i++)
		skip_field(&p);
	r.flags = tree_take_u64(&p); /* 9 */
	for (int i = 10; i <= 13; i++)
		skip_field(&p);
	for (int i = 14; i <= 17; i++) /* utime stime cutime cstime */
		r.cpu_ticks += tree_take_u64(&p);
	for (int i = 18; i <= 19; i++)
		skip_field(&p);
	r.threads = (unsigned)tree_take_u64(&p); /* 20 */
	skip_field(&p);
	r.start = tree_take_u64(&p); /* 22 */
	if (r.pid <= 0 || !*p)
		return -1;
	*ret = r;
	return 0;
}

ssize_t tree_read(int dir, const char *path, char *out, size_t size)
{
	cleanup_close int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;

	if (fd < 0)
		return -1;
	while (len < size - 1) {
		ssize_t n = read(fd, out + len, size - 1 - len);

		if (n < 0)
			return -1;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	out[len] = '\0';
	return (ssize_t)len;
}

/* An empty /proc, or that of another pid namespace, would show a job that never grows and
 * never ends. */
static int shows_us(const struct tree *t, struct err *err)
{
	char name[32];
	ssize_t n = readlinkat(t->proc_fd, "self", name, sizeof(name) - 1);
	uint64_t pid;

	name[n > 0 ? n : 0] = '\0';
	if (n <= 0 || parse_u64(name, 1, INT32_MAX, &pid, NULL) < 0 ||
	    (pid_t)pid != t->self)
		return err_set_id(err, ERRID_SANDBOX_LIMIT,
				  "/proc does not show this process: nothing could be "
				  "supervised");
	return 0;
}

int tree_learn(struct err *err)
{
	cleanup_close int probe = -1;
	struct stat st;

	if (shm_dev)
		return 0;
	probe = memfd_create("probe", MFD_CLOEXEC);
	if (probe < 0 || fstat(probe, &st) < 0)
		return err_sys(err, "memfd_create");
	shm_dev = st.st_dev;
	return 0;
}

int tree_init(struct tree *t, enum sbx_grade grade, pid_t guard, int proc_fd,
	      struct err *err)
{
	*t = (struct tree){.grade = grade, .proc_fd = -1, .guard = guard};
	t->self = getpid();
	if (tree_learn(err) < 0)
		return -1;
	t->shm_dev = shm_dev;
	t->proc_fd = proc_fd >= 0 ? fcntl(proc_fd, F_DUPFD_CLOEXEC, 3)
				  : open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->proc_fd < 0)
		return err_sys(err, "open /proc");
	return shows_us(t, err);
}

void tree_done(struct tree *t)
{
	fd_close(&t->proc_fd);
	free(t->proc);
	t->proc = NULL;
	inode_set_done(&t->older);
}

static void mark_descendants(struct tree *t)
{
	pid_t top = t->guard ? t->guard : t->self;
	bool again = true;

	while (again) {
		again = false;
		for (size_t i = 0; i < t->n; i++) {
			struct tree_proc *p = &t->proc[i];

			if (p->member || p->pid == top)
				continue;
			if (p->ppid == top)
				p->member = true;
			for (size_t k = 0; k < t->n && !p->member; k++)
				if (t->proc[k].member && t->proc[k].pid == p->ppid)
					p->member = true;
			again |= p->member;
		}
	}
}

DIR *tree_open_dir(int dir, const char *path)
{
	int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d;

	if (fd < 0)
		return NULL;
	d = fdopendir(fd);
	if (!d)
		fd_close(&fd);
	return d;
}

bool tree_has_executed(const struct tree *t, pid_t pid)
{
	char path[32], line[1024];
	struct tree_proc p;

	(void)snprintf(path, sizeof(path), "%d/stat", pid);
	return tree_read(t->proc_fd, path, line, sizeof(line)) > 0 &&
	       tree_parse_stat(line, &p) == 0 && !(p.flags & PF_FORKNOEXEC);
}

/* Lets the caller do what cannot wait. */
static void tree_meanwhile(const struct tree *t)
{
	if (t->meanwhile)
		t->meanwhile(t->meanwhile_arg);
}

bool tree_is_dead(const struct tree_proc *p)
{
	return p->state == 'Z' && p->threads <= 1;
}

/*
 * In floor /proc shows the whole machine, and most of it was there before the keeper: none
 * of that can be its descendant, ever. Such a process is known again by its number and by
 * the inode of its directory, which the kernel gives up with the process (proc_flush_pid in
 * kernel/exit.c); one that got another meanwhile is only read again.
 */
static bool is_older(const struct tree *t, uint64_t pid, uint64_t ino)
{
	return t->grade == GRADE_FLOOR && inode_set_has(&t->older, pid, ino);
}

static void remember_older(struct tree *t)
{
	uint64_t since = 0;

	for (size_t i = 0; i < t->n; i++)
		if (t->proc[i].pid == t->self)
			since = t->proc[i].start;
	for (size_t i = 0; i < t->n; i++) {
		const struct tree_proc *p = &t->proc[i];

		/* 1: the listing did not know it */
		if (p->start < since && p->ino > 1)
			(void)inode_set_add(&t->older, (uint64_t)p->pid, p->ino);
	}
}

int tree_scan(struct tree *t, struct err *err)
{
	cleanup_dir DIR *d = tree_open_dir(t->proc_fd, ".");
	struct dirent *e;
	int members = 0;

	if (!d)
		return err_sys(err, "open the job's /proc");
	t->n = 0;
	while ((e = readdir(d))) {
		char path[300], line[1024];
		struct tree_proc p;
		uint64_t pid;

		if (t->n >= TREE_PROCS_MAX ||
		    parse_u64(e->d_name, 1, INT32_MAX, &pid, NULL) < 0 ||
		    is_older(t, pid, e->d_ino))
			continue;
		if (str_fmt(path, sizeof(path), "%s/stat", e->d_name) < 0 ||
		    tree_read(t->proc_fd, path, line, sizeof(line)) <= 0 ||
		    tree_parse_stat(line, &p) < 0)
			continue; /* gone meanwhile */
		if (t->n == t->cap) {
			t->cap = t->cap ? t->cap * 2 : 64;
			t->proc = xreallocarray(t->proc, t->cap, sizeof(*t->proc));
		}
		p.ino = e->d_ino;
		p.member = t->grade == GRADE_FULL && p.pid != t->self &&
			   p.pid != t->guard && p.pid != t->meter;
		t->proc[t->n++] = p;
		if (t->n % SCANNED_AT_ONCE == 0)
			tree_meanwhile(t);
	}
	if (t->grade == GRADE_FLOOR) {
		mark_descendants(t);
		remember_older(t);
	}
	for (size_t i = 0; i < t->n; i++)
		members += t->proc[i].member;
	return members;
}

/* Only the process that was scanned, never another one that got its number meanwhile. */
bool tree_signal_one(struct tree *t, const struct tree_proc *p, int signo)
{
	cleanup_close int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	char path[32], line[1024];
	struct tree_proc now;

	if (fd < 0 || str_fmt(path, sizeof(path), "%d/stat", p->pid) < 0 ||
	    tree_read(t->proc_fd, path, line, sizeof(line)) <= 0 ||
	    tree_parse_stat(line, &now) < 0 || now.start != p->start)
		return false;
	return syscall(SYS_pidfd_send_signal, fd, signo, NULL, 0) == 0;
}

int tree_count_uid_tasks(uid_t uid, unsigned *ret, struct err *err)
{
	cleanup_dir DIR *d = opendir("/proc");
	struct dirent *e;
	unsigned n = 0;

	if (!d)
		return err_sys(err, "open /proc");
	while ((e = readdir(d))) {
		char path[300], text[TREE_STATUS_MAX];
		const char *p;

		if (e->d_name[0] < '1' || e->d_name[0] > '9' ||
		    str_fmt(path, sizeof(path), "%s/status", e->d_name) < 0 ||
		    tree_read(dirfd(d), path, text, sizeof(text)) <= 0)
			continue;
		p = strstr(text, "\nUid:");
		if (!p)
			continue;
		p += 5;
		if (tree_take_u64(&p) != uid)
			continue;
		p = strstr(text, "\nThreads:");
		if (!p)
			continue;
		p += 9;
		n += (unsigned)tree_take_u64(&p);
	}
	*ret = n;
	return 0;
}
