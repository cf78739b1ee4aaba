/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Enumerating and measuring a hostile process tree through /proc.
 *
 * What counts as memory: anonymous pages, swap and page tables of every
 * process, shared anonymous memory, memfds (also those that nobody has mapped)
 * and the private tmpfs mounts. Mapped files do not count: they are the page
 * cache's. Two things a job could hide behind are looked through: a thread
 * group whose leader has exited (its /proc/PID shows neither memory nor
 * descriptors; the tasks do), and a thread with a descriptor table of its own.
 * What belongs to no process at all is the matter of hidden.c.
 *
 * The cheap bound counts pages shared after fork() once for every process. Only
 * when it passes the limit are proportional sizes read, which walk page tables.
 */
#include "sandbox/tree.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "sandbox/hidden.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#define STATUS_MAX 8192
#define TREE_PROCS_MAX 65536
#define SCANNED_AT_ONCE 16
/* Of the kernel's task flags, shown in /proc/PID/stat: forked, but did not exec. */
#define PF_FORKNOEXEC 0x40
#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

/* Of the kernel's internal tmpfs, as long as the machine runs; no device is 0. */
static uint64_t shm_dev;

void inode_set_reset(struct inode_set *s)
{
	s->n = 0;
	if (s->slot)
		memset(s->slot, 0, s->cap * sizeof(*s->slot));
}

void inode_set_done(struct inode_set *s)
{
	free(s->slot);
	*s = (struct inode_set){0};
}

static size_t inode_slot(const struct inode_set *s, uint64_t dev, uint64_t ino)
{
	uint64_t h = (ino ^ (dev << 32)) * 0x9e3779b97f4a7c15ULL;
	size_t i = (size_t)(h >> 20) & (s->cap - 1);

	while (s->slot[i].ino && (s->slot[i].ino != ino || s->slot[i].dev != dev))
		i = (i + 1) & (s->cap - 1);
	return i;
}

bool inode_set_has(const struct inode_set *s, uint64_t dev, uint64_t ino)
{
	return s->cap && s->slot[inode_slot(s, dev, ino)].ino;
}

bool inode_set_add(struct inode_set *s, uint64_t dev, uint64_t ino)
{
	size_t i;

	if (!ino)
		return true;
	if (inode_set_has(s, dev, ino))
		return false;
	if (s->n * 2 >= s->cap) {
		struct inode_set bigger = {.cap = s->cap ? s->cap * 2 : 64};

		if (s->n >= INODE_SET_MAX)
			return true;
		bigger.slot = xcalloc(bigger.cap, sizeof(*bigger.slot));
		for (size_t k = 0; k < s->cap; k++) {
			if (!s->slot[k].ino)
				continue;
			bigger.slot[inode_slot(&bigger, s->slot[k].dev, s->slot[k].ino)] =
				s->slot[k];
			bigger.n++;
		}
		free(s->slot);
		*s = bigger;
	}
	i = inode_slot(s, dev, ino);
	s->slot[i] = (struct inode_key){.dev = dev, .ino = ino};
	s->n++;
	return true;
}

/* Our own numbers in kernel text: digits end at the first other byte. */
static uint64_t take_u64(const char **p)
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
	r.pid = (pid_t)take_u64(&p);
	r.state = close[2];
	p = close + 3;
	r.ppid = (pid_t)take_u64(&p); /* 4 */
	for (int i = 5; i <= 8; i++)
		skip_field(&p);
	r.flags = take_u64(&p); /* 9 */
	for (int i = 10; i <= 13; i++)
		skip_field(&p);
	for (int i = 14; i <= 17; i++) /* utime stime cutime cstime */
		r.cpu_ticks += take_u64(&p);
	for (int i = 18; i <= 19; i++)
		skip_field(&p);
	r.threads = (unsigned)take_u64(&p); /* 20 */
	skip_field(&p);
	r.start = take_u64(&p); /* 22 */
	if (r.pid <= 0 || !*p)
		return -1;
	*ret = r;
	return 0;
}

uint64_t tree_status_bytes(const char *text, const char *name)
{
	size_t len = strlen(name);
	const char *p = text;

	while (p && *p) {
		if (strncmp(p, name, len) == 0 && p[len] == ':') {
			p += len + 1;
			return take_u64(&p) * 1024;
		}
		p = strchr(p, '\n');
		if (p)
			p++;
	}
	return 0;
}

/* Read a small /proc file; the length, or -1 with errno. */
static ssize_t read_proc(int dir, const char *path, char *out, size_t size)
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

int tree_init(struct tree *t, enum sbx_grade grade, int proc_fd, int tmp_fd, int shm_fd,
	      struct err *err)
{
	*t = (struct tree){
		.grade = grade, .proc_fd = -1, .tmp_fd = tmp_fd, .shm_fd = shm_fd};
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

int tree_set_work(struct tree *t, int work_fd, struct err *err)
{
	struct stat st;

	if (fstat(work_fd, &st) < 0)
		return err_sys(err, "stat the workspace");
	t->work_dev = st.st_dev;
	t->has_work = true;
	return 0;
}

void tree_done(struct tree *t)
{
	fd_close(&t->proc_fd);
	free(t->proc);
	t->proc = NULL;
	inode_set_done(&t->seen);
	free(t->hidden);
	t->hidden = NULL;
}

static void mark_descendants(struct tree *t)
{
	bool again = true;

	while (again) {
		again = false;
		for (size_t i = 0; i < t->n; i++) {
			struct tree_proc *p = &t->proc[i];

			if (p->member || p->pid == t->self)
				continue;
			if (p->ppid == t->self)
				p->member = true;
			for (size_t k = 0; k < t->n && !p->member; k++)
				if (t->proc[k].member && t->proc[k].pid == p->ppid)
					p->member = true;
			again |= p->member;
		}
	}
}

static DIR *open_dir_at(int dir, const char *path)
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
	return read_proc(t->proc_fd, path, line, sizeof(line)) > 0 &&
	       tree_parse_stat(line, &p) == 0 && !(p.flags & PF_FORKNOEXEC);
}

static void meanwhile(const struct tree *t)
{
	if (t->meanwhile)
		t->meanwhile(t->meanwhile_arg);
}

int tree_scan(struct tree *t, struct err *err)
{
	cleanup_dir DIR *d = open_dir_at(t->proc_fd, ".");
	struct dirent *e;
	int members = 0;

	if (!d)
		return err_sys(err, "open the job's /proc");
	t->n = 0;
	while ((e = readdir(d))) {
		char path[300], line[1024];
		struct tree_proc p;

		if (e->d_name[0] < '1' || e->d_name[0] > '9' || t->n >= TREE_PROCS_MAX)
			continue;
		if (str_fmt(path, sizeof(path), "%s/stat", e->d_name) < 0 ||
		    read_proc(t->proc_fd, path, line, sizeof(line)) <= 0 ||
		    tree_parse_stat(line, &p) < 0)
			continue; /* gone meanwhile */
		if (t->n == t->cap) {
			t->cap = t->cap ? t->cap * 2 : 64;
			t->proc = xreallocarray(t->proc, t->cap, sizeof(*t->proc));
		}
		p.member = t->grade == GRADE_FULL && p.pid != t->self;
		t->proc[t->n++] = p;
		if (t->n % SCANNED_AT_ONCE == 0)
			meanwhile(t);
	}
	if (t->grade == GRADE_FLOOR)
		mark_descendants(t);
	for (size_t i = 0; i < t->n; i++)
		members += t->proc[i].member;
	return members;
}

void tree_note_file(struct tree *t, uint64_t dev, uint64_t ino, uint64_t bytes)
{
	if (t->hidden)
		hidden_note(t->hidden, dev, ino, bytes, HIDDEN_NAMED);
}

/* Where one descriptor table is seen; opened when something asks for it. */
struct task_fds {
	const char *path;
	pid_t task;
	bool thread;
	int info, pidfd;
};

/* A descriptor of what is no file: the kernel's memory behind it. */
static void measure_other(struct tree *t, struct task_fds *f, const char *name,
			  const struct stat *st)
{
	char path[340];

	/* All anonymous inodes are one: these are counted each. */
	if ((st->st_mode & S_IFMT) && !inode_set_add(&t->seen, st->st_dev, st->st_ino))
		return;
	if (f->info < 0 && str_fmt(path, sizeof(path), "%sinfo", f->path) == 0)
		f->info = openat(t->proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->pidfd < 0)
		f->pidfd = (int)syscall(SYS_pidfd_open, f->task,
					f->thread ? PIDFD_THREAD : 0);
	if (f->info >= 0)
		hidden_fd(t->hidden, f->pidfd, f->info, name, st);
}

/* One descriptor table. What a descriptor keeps alive without a name is counted once. */
static void measure_fds(struct tree *t, struct task_fds f, struct tree_use *use)
{
	cleanup_dir DIR *d = open_dir_at(t->proc_fd, f.path);
	cleanup_close int info = -1, pidfd = -1;
	struct dirent *e;
	struct stat st;

	if (!d) {
		if (errno == EACCES || errno == EPERM)
			use->unreadable++;
		return;
	}
	f.info = f.pidfd = -1;
	while ((e = readdir(d))) {
		uint64_t bytes;

		if (e->d_name[0] == '.' || fstatat(dirfd(d), e->d_name, &st, 0) < 0)
			continue;
		if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) ||
		    !(st.st_mode & S_IFMT)) {
			measure_other(t, &f, e->d_name, &st);
			info = f.info;
			pidfd = f.pidfd;
		}
		if (!S_ISREG(st.st_mode))
			continue;
		bytes = (uint64_t)st.st_blocks * 512;
		if (st.st_dev == t->shm_dev) {
			if (inode_set_add(&t->seen, st.st_dev, st.st_ino))
				use->memory_bytes += bytes;
			hidden_note(t->hidden, st.st_dev, st.st_ino, bytes,
				    HIDDEN_MEMORY);
		} else if (t->has_work && st.st_nlink == 0 && st.st_dev == t->work_dev) {
			if (inode_set_add(&t->seen, st.st_dev, st.st_ino))
				use->unlinked_bytes += bytes;
			hidden_note(t->hidden, st.st_dev, st.st_ino, bytes,
				    HIDDEN_UNLINKED);
		}
	}
}

static void measure_maps(struct tree *t, const char *path, struct tree_use *use)
{
	int fd = openat(t->proc_fd, path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		hidden_maps(t->hidden, fd);
	else if (errno == EACCES || errno == EPERM)
		use->unreadable++;
}

/* Memory of one process; false when this task has no memory of its own left (exited
 * leader). */
static bool measure_status(struct tree *t, const char *path, uint64_t *memory)
{
	char text[STATUS_MAX];

	if (read_proc(t->proc_fd, path, text, sizeof(text)) <= 0 ||
	    !strstr(text, "VmRSS:"))
		return false;
	*memory += tree_status_bytes(text, "RssAnon") +
		   tree_status_bytes(text, "RssShmem") +
		   tree_status_bytes(text, "VmSwap") + tree_status_bytes(text, "VmPTE") +
		   tree_status_bytes(text, "HugetlbPages");
	return true;
}

/* Exited, but not the last of its threads: those live on behind it. */
static bool is_dead(const struct tree_proc *p)
{
	return p->state == 'Z' && p->threads <= 1;
}

static void measure_proc(struct tree *t, const struct tree_proc *p, uint64_t *mapped,
			 struct tree_use *use)
{
	cleanup_dir DIR *tasks = NULL;
	struct dirent *e;
	char path[320];
	bool found, maps = false;
	uint64_t tid;

	(void)snprintf(path, sizeof(path), "%d/status", p->pid);
	found = measure_status(t, path, mapped);
	if (p->threads <= 1) {
		if (!found)
			return; /* a zombie */
		(void)snprintf(path, sizeof(path), "%d/fd", p->pid);
		measure_fds(t, (struct task_fds){.path = path, .task = p->pid}, use);
		(void)snprintf(path, sizeof(path), "%d/maps", p->pid);
		measure_maps(t, path, use);
		return;
	}
	(void)snprintf(path, sizeof(path), "%d/task", p->pid);
	tasks = open_dir_at(t->proc_fd, path);
	while (tasks && (e = readdir(tasks))) {
		uint64_t memory = 0;

		if (e->d_name[0] == '.' ||
		    str_fmt(path, sizeof(path), "%d/task/%s/status", p->pid, e->d_name) <
			    0 ||
		    !measure_status(t, path, &memory))
			continue; /* this one has exited: it holds nothing and may not be
				     looked at */
		if (!found)
			*mapped += memory; /* all threads have the same */
		found = true;
		if (!maps && str_fmt(path, sizeof(path), "%d/task/%s/maps", p->pid,
				     e->d_name) == 0)
			measure_maps(t, path, use);
		maps = true;
		if (parse_u64(e->d_name, 1, INT32_MAX, &tid, NULL) == 0 &&
		    str_fmt(path, sizeof(path), "%d/task/%s/fd", p->pid, e->d_name) == 0)
			measure_fds(t,
				    (struct task_fds){.path = path,
						      .task = (pid_t)tid,
						      .thread = true},
				    use);
	}
}

static uint64_t tmpfs_bytes(int fd)
{
	struct statvfs v;

	if (fd < 0 || fstatvfs(fd, &v) < 0)
		return 0;
	return (uint64_t)(v.f_blocks - v.f_bfree) * v.f_frsize;
}

/*
 * Proportional shared anonymous memory of one process: mappings of the kernel's
 * own tmpfs whose object was not already counted through a descriptor.
 */
static uint64_t exact_shmem(struct tree *t, const char *path)
{
	int fd = openat(t->proc_fd, path, O_RDONLY | O_CLOEXEC);
	cleanup_file FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
	cleanup_free char *line = NULL;
	size_t size = 0;
	uint64_t sum = 0;
	bool counts = false;

	if (!f) {
		fd_close(&fd);
		return 0;
	}
	while (getline(&line, &size, f) > 0) {
		unsigned major_nr, minor_nr;
		uint64_t ino;

		if (sscanf(line, "%*x-%*x %*s %*x %x:%x %" SCNu64, &major_nr, &minor_nr,
			   &ino) == 3) {
			counts = makedev(major_nr, minor_nr) == t->shm_dev && ino &&
				 !inode_set_has(&t->seen, t->shm_dev, ino);
		} else if (counts && str_starts(line, "Pss:")) {
			const char *p = line + 4;

			sum += take_u64(&p) * 1024;
		}
	}
	return sum;
}

static uint64_t exact_task(struct tree *t, const char *dir, bool *ret_found)
{
	char path[340], text[STATUS_MAX];
	uint64_t sum;

	(void)snprintf(path, sizeof(path), "%s/smaps_rollup", dir);
	*ret_found = read_proc(t->proc_fd, path, text, sizeof(text)) > 0;
	if (!*ret_found)
		return 0;
	sum = tree_status_bytes(text, "Pss_Anon") + tree_status_bytes(text, "SwapPss") +
	      tree_status_bytes(text, "Shared_Hugetlb") +
	      tree_status_bytes(text, "Private_Hugetlb");
	(void)snprintf(path, sizeof(path), "%s/status", dir);
	if (read_proc(t->proc_fd, path, text, sizeof(text)) > 0)
		sum += tree_status_bytes(text, "VmPTE");
	(void)snprintf(path, sizeof(path), "%s/smaps", dir);
	return sum + exact_shmem(t, path);
}

static uint64_t exact_proc(struct tree *t, const struct tree_proc *p)
{
	cleanup_dir DIR *tasks = NULL;
	struct dirent *e;
	char path[320];
	bool found;
	uint64_t sum;

	(void)snprintf(path, sizeof(path), "%d", p->pid);
	sum = exact_task(t, path, &found);
	if (found)
		return sum;
	(void)snprintf(path, sizeof(path), "%d/task", p->pid);
	tasks = open_dir_at(t->proc_fd, path);
	while (tasks && !found && (e = readdir(tasks)))
		if (e->d_name[0] != '.' &&
		    str_fmt(path, sizeof(path), "%d/task/%s", p->pid, e->d_name) == 0)
			sum = exact_task(t, path, &found);
	/* Neither readable nor gone: the bound stands for it. */
	if (!found) {
		sum = 0;
		(void)snprintf(path, sizeof(path), "%d/status", p->pid);
		(void)measure_status(t, path, &sum);
	}
	return sum;
}

int tree_measure(struct tree *t, uint64_t memory_limit, struct tree_use *ret,
		 struct err *err)
{
	struct tree_use use = {0};
	uint64_t ticks = 0, mapped = 0;
	long hz = sysconf(_SC_CLK_TCK);
	struct hidden_sum unowned;

	if (tree_scan(t, err) < 0)
		return -1;
	inode_set_reset(&t->seen);
	if (!t->hidden)
		t->hidden = hidden_new(t->shm_dev, t->work_dev, t->tmp_fd, t->shm_fd);
	hidden_begin(t->hidden, t->proc_fd, t->grade == GRADE_FULL);
	/* Objects: counted once, whoever maps them. */
	use.memory_bytes = tmpfs_bytes(t->tmp_fd) + tmpfs_bytes(t->shm_fd);
	for (size_t i = 0; i < t->n; i++) {
		const struct tree_proc *p = &t->proc[i];

		if (!p->member)
			continue;
		use.processes += p->threads ? p->threads : 1;
		ticks += p->cpu_ticks;
		if (!is_dead(p))
			measure_proc(t, p, &mapped, &use);
		meanwhile(t);
	}
	hidden_end(t->hidden, &t->seen, &unowned);
	use.memory_bytes += unowned.memory_bytes;
	use.unowned_bytes = unowned.memory_bytes;
	use.unlinked_bytes += unowned.file_bytes;
	use.watch = unowned.watch;
	if (memory_limit && use.memory_bytes + mapped > memory_limit) {
		mapped = 0;
		for (size_t i = 0; i < t->n; i++)
			if (t->proc[i].member && !is_dead(&t->proc[i]))
				mapped += exact_proc(t, &t->proc[i]);
	}
	use.memory_bytes += mapped;
	use.cpu_usec = ticks * USEC_PER_SEC / (uint64_t)(hz > 0 ? hz : 100);
	*ret = use;
	return 0;
}

/* Only the process that was scanned, never another one that got its number meanwhile. */
bool tree_signal_one(struct tree *t, const struct tree_proc *p, int signo)
{
	cleanup_close int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	char path[32], line[1024];
	struct tree_proc now;

	if (fd < 0 || str_fmt(path, sizeof(path), "%d/stat", p->pid) < 0 ||
	    read_proc(t->proc_fd, path, line, sizeof(line)) <= 0 ||
	    tree_parse_stat(line, &now) < 0 || now.start != p->start)
		return false;
	return syscall(SYS_pidfd_send_signal, fd, signo, NULL, 0) == 0;
}

unsigned tree_signal(struct tree *t, int signo)
{
	unsigned n = 0;
	struct err err = ERR_INIT;

	if (t->grade == GRADE_FULL && t->self == 1) {
		int members = tree_scan(t, &err);

		/* pid 1 of the namespace: everything else in it, at one stroke. */
		return kill(-1, signo) == 0 && members > 0 ? (unsigned)members : 0;
	}
	if (tree_scan(t, &err) < 0)
		return 0;
	for (size_t i = 0; i < t->n; i++)
		if (t->proc[i].member && !is_dead(&t->proc[i]))
			n += tree_signal_one(t, &t->proc[i], signo);
	return n;
}

int tree_count_uid_tasks(uid_t uid, unsigned *ret, struct err *err)
{
	cleanup_dir DIR *d = opendir("/proc");
	struct dirent *e;
	unsigned n = 0;

	if (!d)
		return err_sys(err, "open /proc");
	while ((e = readdir(d))) {
		char path[300], text[STATUS_MAX];
		const char *p;

		if (e->d_name[0] < '1' || e->d_name[0] > '9' ||
		    str_fmt(path, sizeof(path), "%s/status", e->d_name) < 0 ||
		    read_proc(dirfd(d), path, text, sizeof(text)) <= 0)
			continue;
		p = strstr(text, "\nUid:");
		if (!p)
			continue;
		p += 5;
		if (take_u64(&p) != uid)
			continue;
		p = strstr(text, "\nThreads:");
		if (!p)
			continue;
		p += 9;
		n += (unsigned)take_u64(&p);
	}
	*ret = n;
	return 0;
}
