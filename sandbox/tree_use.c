/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a hostile process tree uses, through /proc.
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
#include "common/str.h"
#include "sandbox/hidden.h"
#include "sandbox/tree_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

uint64_t tree_status_bytes(const char *text, const char *name)
{
	size_t len = strlen(name);
	const char *p = text;

	while (p && *p) {
		if (strncmp(p, name, len) == 0 && p[len] == ':') {
			p += len + 1;
			return tree_take_u64(&p) * 1024;
		}
		p = strchr(p, '\n');
		if (p)
			p++;
	}
	return 0;
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
	cleanup_dir DIR *d = tree_open_dir(t->proc_fd, f.path);
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
	char text[TREE_STATUS_MAX];

	if (tree_read(t->proc_fd, path, text, sizeof(text)) <= 0 ||
	    !strstr(text, "VmRSS:"))
		return false;
	*memory += tree_status_bytes(text, "RssAnon") +
		   tree_status_bytes(text, "RssShmem") +
		   tree_status_bytes(text, "VmSwap") + tree_status_bytes(text, "VmPTE") +
		   tree_status_bytes(text, "HugetlbPages");
	return true;
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
	tasks = tree_open_dir(t->proc_fd, path);
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

			sum += tree_take_u64(&p) * 1024;
		}
	}
	return sum;
}

static uint64_t exact_task(struct tree *t, const char *dir, bool *ret_found)
{
	char path[340], text[TREE_STATUS_MAX];
	uint64_t sum;

	(void)snprintf(path, sizeof(path), "%s/smaps_rollup", dir);
	*ret_found = tree_read(t->proc_fd, path, text, sizeof(text)) > 0;
	if (!*ret_found)
		return 0;
	sum = tree_status_bytes(text, "Pss_Anon") + tree_status_bytes(text, "SwapPss") +
	      tree_status_bytes(text, "Shared_Hugetlb") +
	      tree_status_bytes(text, "Private_Hugetlb");
	(void)snprintf(path, sizeof(path), "%s/status", dir);
	if (tree_read(t->proc_fd, path, text, sizeof(text)) > 0)
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
	tasks = tree_open_dir(t->proc_fd, path);
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
		if (!tree_is_dead(p))
			measure_proc(t, p, &mapped, &use);
		tree_meanwhile(t);
	}
	hidden_end(t->hidden, &t->seen, &unowned);
	use.memory_bytes += unowned.memory_bytes;
	use.unowned_bytes = unowned.memory_bytes;
	use.unlinked_bytes += unowned.file_bytes;
	use.watch = unowned.watch;
	if (memory_limit && use.memory_bytes + mapped > memory_limit) {
		mapped = 0;
		for (size_t i = 0; i < t->n; i++)
			if (t->proc[i].member && !tree_is_dead(&t->proc[i]))
				mapped += exact_proc(t, &t->proc[i]);
	}
	use.memory_bytes += mapped;
	use.cpu_usec = ticks * USEC_PER_SEC / (uint64_t)(hz > 0 ? hz : 100);
	*ret = use;
	return 0;
}
