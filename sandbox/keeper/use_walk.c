/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the meter.
 * One round over what the job's processes hold, in slices. Each process has
 * its descriptor tables read (threads may have tables of their own; one that is shared is read
 * once) and its mappings counted. Two things a job could hide behind are looked through: a thread
 * group whose leader has exited (its /proc/PID shows neither memory nor descriptors; the tasks
 * do), and a thread with a descriptor table of its own. What belongs to no process at all is the
 * matter of hidden.c.
 *
 * A process may end, and its number be given to another, between two slices: what is read then
 * is some process of the job all the same.
 */
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "sandbox/keeper/tree_parts.h"
#include "sandbox/keeper/use.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

#define SLICE_USEC (4 * USEC_PER_MSEC)
/* A thorough round is in a hurry. */
#define SLICE_THOROUGH_USEC (20 * USEC_PER_MSEC)
#define ENTRIES_AT_ONCE 8
/* vm_area_struct, its part of the tree, what finds its pages; of a file the open file too. */
#define MAPPING_BYTES 384
#define FILE_MAPPING_BYTES 512
/* The structures behind a descriptor: the open file, what it remembers; the name and inode that
 * it keeps in memory, once for all that have it open. */
#define FILE_BYTES 512
#define INODE_BYTES 1536
/* Of a directory, the entries that come next. */
#define DIRECTORY_BYTES 16384
/* Of one of /proc, what was read of it: a page or some. What is told of a descriptor may have a line
 * for each of its locks. */
#define PROC_FILE_BYTES 16384
#define PROC_FDINFO_BYTES ((uint64_t)16 << 20)
#define MAPS_CHUNK 65536
#define MAPS_LINE_MAX 4608 /* a path, escaped as it may be, and the numbers before it */
/* Of one mapping and one process that was forked on the way to it; what is not asked about. */
#define ANCESTOR_BYTES 64
#define ANCESTORS_FREE ((uint64_t)32 << 20)
#define TABLES_MAX 64
/* So many filters, at their largest, are some megabytes. */
#define FILTERS_FEW 32
#define PATH_BYTES 340

struct use_walk {
	struct inode_set seen; /* of this round: objects behind descriptors */
	struct inode_set held; /* files that are open or mapped */
	struct visit {
		pid_t pid;
		bool threaded, forked;
	} *visit;
	size_t n, at;
	/* of the process that is visited */
	DIR *tasks;		 /* threaded: what is left of its threads */
	pid_t table[TABLES_MAX]; /* tasks whose tables were read */
	unsigned n_tables;
	bool mapped;	/* its mappings are counted, or being counted */
	int maps;	/* -1: not being read */
	size_t carried; /* of a line that the last chunk cut */
	/* of the table that is read */
	DIR *fds;
	char path[PATH_BYTES];
	pid_t task;
	int info, pidfd;
};

static char lines[MAPS_LINE_MAX + MAPS_CHUNK]; /* one thread, one round */

static void close_table(struct use_walk *w)
{
	if (w->fds)
		(void)closedir(w->fds);
	w->fds = NULL;
	fd_close(&w->info);
	fd_close(&w->pidfd);
}

static void leave(struct use_walk *w)
{
	close_table(w);
	if (w->tasks)
		(void)closedir(w->tasks);
	w->tasks = NULL;
	fd_close(&w->maps);
	w->carried = 0;
	w->n_tables = 0;
	w->mapped = false;
}

static void use_walk_done(struct use *u)
{
	struct use_walk *w = u->walk;

	if (!w)
		return;
	leave(w);
	inode_set_done(&w->seen);
	inode_set_done(&w->held);
	free(w->visit);
	free(w);
	u->walk = NULL;
}

static struct use_walk *begin(struct use *u)
{
	struct use_walk *w = xcalloc(1, sizeof(*w));

	w->info = w->pidfd = w->maps = -1;
	w->visit = xreallocarray(NULL, u->tree->n + 1, sizeof(*w->visit));
	for (size_t i = 0; i < u->tree->n; i++) {
		const struct tree_proc *p = &u->tree->proc[i];

		if (p->member && !tree_is_dead(p))
			w->visit[w->n++] = (struct visit){p->pid, p->threads > 1,
							  p->flags & PF_FORKNOEXEC};
	}
	hidden_begin(u->hidden);
	return w;
}

/* ---- descriptors --------------------------------------------------------------------- */

/* A descriptor of what is no file: the kernel's memory behind it. */
static void measure_other(struct use *u, struct use_walk *w, const char *name,
			  const struct stat *st)
{
	char path[PATH_BYTES + 8];

	/* All anonymous inodes are one: these are counted each. */
	if ((st->st_mode & S_IFMT) && !inode_set_add(&w->seen, st->st_dev, st->st_ino))
		return;
	if (w->info < 0 && str_fmt(path, sizeof(path), "%sinfo", w->path) == 0)
		w->info = openat(u->tree->proc_fd, path,
				 O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->pidfd < 0)
		w->pidfd = (int)syscall(SYS_pidfd_open, w->task,
					w->visit[w->at].threaded ? PIDFD_THREAD : 0);
	if (w->info >= 0)
		u->now.kernel_bytes += hidden_fd(u->hidden, w->pidfd, w->info, name, st);
}

static void count_locks(struct use *u, const struct use_walk *w, const char *name)
{
	char path[PATH_BYTES + 300];
	cleanup_close int fd = -1;

	if (str_fmt(path, sizeof(path), "%sinfo/%s", w->path, name) == 0)
		fd = openat(u->tree->proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		u->now.locks += hidden_count(fd, "lock:");
}

/* A file of the kernel's own; they look empty. */
static uint64_t proc_bytes(const struct use_walk *w, const char *name,
			   const struct stat *st)
{
	char path[64];
	ssize_t n = -1;

	if (st->st_size == 0 && st->st_blocks == 0)
		n = readlinkat(dirfd(w->fds), name, path, sizeof(path) - 1);
	if (n <= 0)
		return 0;
	path[n] = '\0';
	if (!str_starts(path, "/proc/"))
		return 0;
	return strstr(path, "/fdinfo/") ? PROC_FDINFO_BYTES : PROC_FILE_BYTES;
}

static uint64_t held_bytes(struct use_walk *w, uint64_t dev, uint64_t ino)
{
	return inode_set_add(&w->held, dev, ino) ? INODE_BYTES : 0;
}

/* What a descriptor keeps alive without a name is counted once. */
static void measure_file(struct use *u, struct use_walk *w, const char *name,
			 const struct stat *st)
{
	uint64_t bytes = (uint64_t)st->st_blocks * 512;
	bool memory = st->st_dev == u->tree->shm_dev;

	u->now.kernel_bytes += FILE_BYTES + held_bytes(w, st->st_dev, st->st_ino) +
			       proc_bytes(w, name, st);
	if (u->thorough)
		count_locks(u, w, name);
	if (!memory && !(u->has_work && st->st_nlink == 0 && st->st_dev == u->work_dev))
		return;
	if (inode_set_add(&w->seen, st->st_dev, st->st_ino))
		*(memory ? &u->now.object_bytes : &u->now.unlinked_bytes) += bytes;
	hidden_note(u->hidden, st->st_dev, st->st_ino, bytes,
		    memory ? HIDDEN_MEMORY : HIDDEN_UNLINKED);
}

static void read_table(struct use *u, struct use_walk *w)
{
	for (unsigned i = 0; i < ENTRIES_AT_ONCE; i++) {
		struct dirent *e = readdir(w->fds);
		struct stat st;

		if (!e) {
			close_table(w);
			return;
		}
		if (e->d_name[0] == '.' || fstatat(dirfd(w->fds), e->d_name, &st, 0) < 0)
			continue;
		if (S_ISREG(st.st_mode))
			measure_file(u, w, e->d_name, &st);
		else if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) ||
			 !(st.st_mode & S_IFMT))
			measure_other(u, w, e->d_name, &st);
		else
			u->now.kernel_bytes +=
				FILE_BYTES + held_bytes(w, st.st_dev, st.st_ino) +
				(S_ISDIR(st.st_mode) ? DIRECTORY_BYTES : 0);
	}
}

static void open_table(struct use *u, struct use_walk *w, pid_t task)
{
	w->task = task;
	w->fds = tree_open_dir(u->tree->proc_fd, w->path);
	if (!w->fds && (errno == EACCES || errno == EPERM))
		u->now.unreadable++;
	if (w->n_tables < TABLES_MAX)
		w->table[w->n_tables++] = task;
}

/* ---- mappings ------------------------------------------------------------------------ */

static void open_maps(struct use *u, struct use_walk *w, const char *dir)
{
	char path[PATH_BYTES];

	w->mapped = true;
	if (str_fmt(path, sizeof(path), "%s/maps", dir) < 0)
		return;
	w->maps = openat(u->tree->proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (w->maps < 0 && (errno == EACCES || errno == EPERM))
		u->now.unreadable++;
}

static void read_maps(struct use *u, struct use_walk *w)
{
	static const char gone[] = " (deleted)";
	const size_t tail = sizeof(gone) - 1;
	ssize_t n = read(w->maps, lines + w->carried, MAPS_CHUNK);
	char *at = lines, *end;

	if (n <= 0) {
		hidden_maps_end(u->hidden);
		fd_close(&w->maps);
		w->carried = 0;
		return;
	}
	end = lines + w->carried + n;
	for (char *nl; (nl = memchr(at, '\n', (size_t)(end - at))); at = nl + 1) {
		uint64_t dev, ino;
		bool first = false;

		*nl = '\0';
		u->now.forked_mappings += w->visit[w->at].forked;
		if (hidden_map_file(at, &dev, &ino)) {
			first = inode_set_add(&w->held, dev, ino);
			u->now.kernel_bytes +=
				FILE_MAPPING_BYTES + (first ? (uint64_t)INODE_BYTES : 0);
		} else {
			u->now.kernel_bytes += MAPPING_BYTES;
		}
		if ((size_t)(nl - at) > tail && memcmp(nl - tail, gone, tail) == 0)
			hidden_map(u->hidden, at, first);
	}
	/* A line longer than any of the kernel's: cut, and counted as it is. */
	w->carried = (size_t)(end - at) < MAPS_LINE_MAX ? (size_t)(end - at) : 0;
	memmove(lines, at, w->carried);
}

/* ---- processes ----------------------------------------------------------------------- */

static bool is_alive(const struct use *u, const char *dir)
{
	char path[PATH_BYTES], text[TREE_STATUS_MAX];
	struct use_pages v;

	return str_fmt(path, sizeof(path), "%s/status", dir) == 0 &&
	       tree_read(u->tree->proc_fd, path, text, sizeof(text)) > 0 &&
	       use_parse_status(text, &v);
}

/* Where kcmp(2) is refused (a container's filter) each thread's table is read. */
static bool is_shared(const struct use_walk *w, pid_t task)
{
	for (unsigned i = 0; i < w->n_tables; i++)
		if (syscall(SYS_kcmp, w->table[i], task, KCMP_FILES, 0UL, 0UL) == 0)
			return true;
	return false;
}

/* Where a job has made many, each of its threads is asked for its own. */
static void count_filters(struct use *u, const char *dir)
{
	char path[PATH_BYTES], text[TREE_STATUS_MAX];
	struct use_pages v;

	if (str_fmt(path, sizeof(path), "%s/status", dir) == 0 &&
	    tree_read(u->tree->proc_fd, path, text, sizeof(text)) > 0 &&
	    use_parse_status(text, &v))
		u->now.thread_filters += use_filters(u, &v);
}

/* false: it has no more. */
static bool next_task(struct use *u, struct use_walk *w)
{
	bool many = use_filters_made(u) > FILTERS_FEW;
	pid_t pid = w->visit[w->at].pid;
	struct dirent *e;
	char dir[64];
	uint64_t tid;

	while ((e = readdir(w->tasks))) {
		if (parse_u64(e->d_name, 1, INT32_MAX, &tid, NULL) < 0)
			continue;
		(void)snprintf(dir, sizeof(dir), "%d/task/%d", pid, (int)tid);
		if (many && (pid_t)tid != pid)
			count_filters(u, dir);
		if (is_shared(w, (pid_t)tid))
			continue;
		/* One that has exited holds nothing, and may not be looked at. */
		if (!is_alive(u, dir))
			continue;
		if (!w->mapped)
			open_maps(u, w, dir);
		(void)snprintf(w->path, sizeof(w->path), "%s/fd", dir);
		open_table(u, w, (pid_t)tid);
		return true;
	}
	return false;
}

static void visit(struct use *u, struct use_walk *w)
{
	const struct visit *v = &w->visit[w->at];
	char dir[32];

	(void)snprintf(dir, sizeof(dir), "%d", v->pid);
	if (v->threaded) {
		(void)snprintf(w->path, sizeof(w->path), "%s/task", dir);
		w->tasks = tree_open_dir(u->tree->proc_fd, w->path);
		return;
	}
	if (!is_alive(u, dir))
		return;
	open_maps(u, w, dir);
	(void)snprintf(w->path, sizeof(w->path), "%s/fd", dir);
	open_table(u, w, v->pid);
}

/* The next small part of the round; false: there is none. */
static bool advance(struct use *u, struct use_walk *w, bool *visited)
{
	if (w->at == w->n)
		return false;
	if (w->maps >= 0) {
		read_maps(u, w);
	} else if (w->fds) {
		read_table(u, w);
	} else if (!*visited) {
		visit(u, w);
		*visited = true;
	} else if (!w->tasks || !next_task(u, w)) {
		leave(w);
		w->at++;
		*visited = false;
		use_meanwhile(u);
	}
	return true;
}

/*
 * A page that is shared since a fork is found from every process that may have it: each mapping
 * of a process that executed nothing since has an entry for each of its ancestors, the ended ones
 * too as long as there are others of theirs. Nobody tells how many ancestors: no more than there are such
 * processes, and all together no more than the kernel's memory grew by. A pool of workers has one.
 */
static uint64_t guess_ancestors(const struct use *u)
{
	uint64_t most = u->now.forked_mappings * u->now.forked * ANCESTOR_BYTES;
	uint64_t missing;

	if (most <= ANCESTORS_FREE)
		return 0;
	missing = use_missing_kernel(u);
	most = most < missing ? most : missing;
	return most > ANCESTORS_FREE ? most - ANCESTORS_FREE : 0;
}

static void finish(struct use *u, struct use_walk *w)
{
	struct inode_set was = u->seen;
	struct hidden_missing missing = {.memory = use_missing(u),
					 .files = u->files_grown,
					 .shown = u->begun_shown};
	struct shared_most most;
	struct hidden_sum sum;
	uint64_t guessed, known = u->base.shmem + u->begun_tmpfs + u->begun_ipc +
				  u->now.object_bytes;

	for (size_t i = 0; i < w->n; i++)
		u->now.forked += w->visit[i].forked;
	guessed = guess_ancestors(u);

	missing.shmem = u->begun_shmem > known ? u->begun_shmem - known : 0;
	if (u->shared_maps) {
		most = shared_maps_most(u->shared_maps);
		missing.asked = &most;
	}
	hidden_end(u->hidden, &w->seen, &missing, &sum);
	u->now.hidden_bytes = sum.memory_bytes + guessed;
	u->now.guessed_bytes = sum.guessed_bytes + guessed;
	u->now.unlinked_bytes += sum.file_bytes;
	u->now.watch = sum.watch;
	u->seen = w->seen;
	w->seen = was;
	use_walk_done(u);
}

bool use_walk_step(struct use *u)
{
	usec_t until =
		clock_boot_usec() + (u->thorough ? SLICE_THOROUGH_USEC : SLICE_USEC);
	struct use_walk *w = u->walk;
	bool visited;

	if (!w)
		w = u->walk = begin(u);
	visited = w->tasks || w->fds || w->maps >= 0 || w->n_tables;
	while (advance(u, w, &visited))
		if (clock_boot_usec() >= until)
			return false;
	finish(u, w);
	return true;
}
