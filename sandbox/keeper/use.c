/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the meter.
 * What a hostile process tree uses, through /proc.
 *
 * What counts as memory: anonymous pages, swap and page tables of every
 * process, shared anonymous memory, memfds (also those that nobody has mapped), System V
 * objects (sysvipc.c), the private tmpfs mounts, and what the kernel keeps for the job:
 * descriptors, sockets, mappings, filters. Mapped files do not count: they are the page cache's.
 *
 * The cheap bound counts pages shared after fork() once for every process. Only
 * when it passes the limit are proportional sizes read (use_exact.c), which walk page tables,
 * and not again before so much could have been filled that it matters.
 */
#include "sandbox/keeper/use.h"

#include "common/attr.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "sandbox/keeper/tree_parts.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

/* A program for seccomp, as the job gave it and as the kernel runs it, at its largest. */
#define FILTER_BYTES ((uint64_t)160 << 10)
/* An inode of a tmpfs, with its name. */
#define TMPFS_INODE_BYTES 1024
/* As sample.c: so much can be filled meanwhile. */
#define FILL_BYTES_PER_USEC 4096
/* Not told apart for so long: what the bound says is what counts. On a busy machine later, where
 * so little of the machine's memory went meanwhile that the job has at most twice its limit. */
#define DOUBT_USEC USEC_PER_SEC
#define DOUBT_BUSY_USEC (10 * USEC_PER_SEC)
/* Gone from the machine's memory, and not known of the job: a thorough round looks for it. */
#define MISSING_BYTES ((uint64_t)64 << 20)
/* Such a round that is not whole by then has been held up. */
#define HELD_UP_USEC (2 * USEC_PER_SEC)
/* By then already, where the kernel's memory grew in it by more than the job may have. */
#define HELD_UP_GROWN_USEC (500 * USEC_PER_MSEC)

static uint64_t kib(const char *text, const char *name)
{
	return tree_status_bytes(text, name);
}

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

bool use_parse_status(const char *text, struct use_pages *ret)
{
	if (!strstr(text, "\nVmRSS:"))
		return false;
	*ret = (struct use_pages){
		.anon = kib(text, "RssAnon"),
		.shmem = kib(text, "RssShmem"),
		.swap = kib(text, "VmSwap"),
		.tables = kib(text, "VmPTE"),
		.huge = kib(text, "HugetlbPages"),
		.size = kib(text, "VmSize"),
		.filters = (unsigned)(kib(text, "Seccomp_filters") / 1024),
	};
	return true;
}

static bool read_pages(const struct use *u, const char *path, struct use_pages *ret)
{
	char text[TREE_STATUS_MAX];

	return tree_read(u->tree->proc_fd, path, text, sizeof(text)) > 0 &&
	       use_parse_status(text, ret);
}

bool use_pages_of(const struct use *u, pid_t pid, unsigned threads, struct use_pages *ret)
{
	cleanup_dir DIR *tasks = NULL;
	struct dirent *e;
	char path[320];
	bool found;

	(void)snprintf(path, sizeof(path), "%d/status", pid);
	found = read_pages(u, path, ret);
	if (found || threads <= 1)
		return found;
	(void)snprintf(path, sizeof(path), "%d/task", pid);
	tasks = tree_open_dir(u->tree->proc_fd, path);
	while (tasks && !found && (e = readdir(tasks)))
		found = e->d_name[0] != '.' &&
			str_fmt(path, sizeof(path), "%d/task/%s/status", pid,
				e->d_name) == 0 &&
			read_pages(u, path, ret);
	return found;
}

void use_meanwhile(const struct use *u)
{
	if (u->meanwhile)
		u->meanwhile(u->meanwhile_arg);
}

static uint64_t max_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

unsigned use_filters(const struct use *u, const struct use_pages *p)
{
	return p->filters > u->own_filters ? p->filters - u->own_filters : 0;
}

uint64_t use_filters_made(const struct use *u)
{
	return u->filters_made ? atomic_load(u->filters_made) : UINT64_MAX;
}

/* Tasks that were forked have the same ones: there are no more than were made. */
static uint64_t filter_bytes(const struct use *u, uint64_t first)
{
	uint64_t found = first + max_of(u->last.thread_filters, u->now.thread_filters);
	uint64_t made = use_filters_made(u);

	return (found < made ? found : made) * FILTER_BYTES;
}

uint64_t use_bytes_of(const struct use_pages *v)
{
	return v->anon + v->shmem + v->swap + v->tables + v->huge;
}

/* As who waits for a child of vfork(2) does. */
static bool is_suspended(const struct use *u, pid_t pid)
{
	char path[40], text[TREE_STATUS_MAX];

	(void)snprintf(path, sizeof(path), "%d/status", pid);
	return tree_read(u->tree->proc_fd, path, text, sizeof(text)) > 0 &&
	       strstr(text, "\nState:\tD");
}

/*
 * A child of vfork(2) until it executes, and its like: one address space, which is counted with
 * the parent. Asked at once, for such a child is soon another or gone, and would count twice.
 *
 * Where kcmp(2) is refused (a container's filter; floor, of what is not dumpable) it may be so when the
 * parent waits and has the very same numbers. One child of each: that is then in doubt, and no more.
 */
static bool shares_memory(struct use *u, size_t at, const struct use_pages *v)
{
	struct tree_proc *p = &u->tree->proc[at];

	if (!(p->flags & PF_FORKNOEXEC))
		return false;
	for (size_t i = 0; i < u->tree->n; i++) {
		struct tree_proc *o = &u->tree->proc[i];
		long differ;

		if (o->pid != p->ppid)
			continue;
		/* The list is by number, and numbers begin anew: the parent may be still to come. */
		if (!o->member || (i < at && !o->pages))
			return false;
		differ = syscall(SYS_kcmp, o->pid, p->pid, KCMP_VM, 0UL, 0UL);
		if (differ < 0 && errno != ESRCH && !o->in_doubt &&
		    o->pages == use_bytes_of(v) && o->size == v->size &&
		    is_suspended(u, o->pid))
			o->in_doubt = p->may_share = true;
		return differ == 0;
	}
	return false;
}

/* The cheap half: an upper bound of what is mapped. */
static uint64_t add_pages(struct use *u, struct use_sum *sum)
{
	long hz = sysconf(_SC_CLK_TCK);
	uint64_t ticks = 0, bound = 0, filters = 0;

	u->largest_shmem = u->shmem = 0;
	for (size_t i = 0; i < u->tree->n; i++) {
		struct tree_proc *p = &u->tree->proc[i];

		p->pages = p->size = 0;
		p->shares = p->may_share = p->in_doubt = false;
	}
	for (size_t i = 0; i < u->tree->n; i++) {
		struct tree_proc *p = &u->tree->proc[i];
		struct use_pages v;

		if (!p->member)
			continue;
		sum->processes += p->threads ? p->threads : 1;
		ticks += p->cpu_ticks;
		if (tree_is_dead(p) || !use_pages_of(u, p->pid, p->threads, &v))
			continue;
		filters += use_filters(u, &v);
		p->shares = shares_memory(u, i, &v);
		if (p->shares)
			continue;
		p->pages = use_bytes_of(&v);
		p->size = v.size;
		bound += p->pages;
		u->largest_shmem = max_of(u->largest_shmem, v.shmem);
		u->shmem += v.shmem;
		use_meanwhile(u);
	}
	sum->memory_bytes += filter_bytes(u, filters);
	sum->cpu_usec = ticks * USEC_PER_SEC / (uint64_t)(hz > 0 ? hz : 100);
	return bound;
}

static uint64_t tmpfs_bytes(int fd)
{
	struct statvfs v;

	if (fd < 0 || fstatvfs(fd, &v) < 0)
		return 0;
	return (uint64_t)(v.f_blocks - v.f_bfree) * v.f_frsize +
	       (uint64_t)(v.f_files - v.f_ffree) * TMPFS_INODE_BYTES;
}

/* The last whole round, or what the one that goes on has found, where that is more. */
static struct use_found found_so_far(const struct use *u)
{
	const struct use_found *a = &u->last, *b = &u->now;

	return (struct use_found){
		.object_bytes = max_of(a->object_bytes, b->object_bytes),
		.kernel_bytes = max_of(a->kernel_bytes, b->kernel_bytes),
		.hidden_bytes = a->hidden_bytes,
		.guessed_bytes = a->guessed_bytes,
		.unlinked_bytes = max_of(a->unlinked_bytes, b->unlinked_bytes),
		.unreadable = a->unreadable,
		.locks = max_of(a->locks, b->locks),
		.watch = a->watch,
	};
}

static uint64_t beyond(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

uint64_t use_missing(const struct use *u)
{
	uint64_t known =
		max_of(u->now.object_bytes + u->ipc.shared_bytes, u->largest_shmem) +
		tmpfs_bytes(u->tmp_fd) + tmpfs_bytes(u->shm_fd) + u->now.kernel_bytes +
		u->ipc.kernel_bytes;
	struct meminfo now;

	if (meminfo_read(u->meminfo_fd, &now) < 0)
		return UINT64_MAX;
	return beyond(beyond(now.shmem, u->base.shmem) +
			      beyond(now.kernel, u->base.kernel),
		      known);
}

uint64_t use_missing_kernel(const struct use *u)
{
	struct meminfo now;

	if (meminfo_read(u->meminfo_fd, &now) < 0)
		return UINT64_MAX;
	return beyond(beyond(now.kernel, u->base.kernel),
		      u->now.kernel_bytes + u->ipc.kernel_bytes);
}

/* Memory that left the machine's since it was last looked for, or came to the kernel's, beyond what is known of
 * the job. The kernel's is asked too: what others give back meanwhile would hide it in the other. */
static bool is_missing(const struct use *u, const struct meminfo *now, uint64_t known)
{
	uint64_t gone = beyond(u->seen_available, now->available);
	uint64_t came = beyond(now->kernel, u->seen_kernel);

	return max_of(gone, came) > beyond(known, u->seen_bytes) + MISSING_BYTES;
}

static void begin_round(struct use *u, const struct meminfo *now, uint64_t known,
			bool thorough)
{
	u->thorough = thorough;
	u->round_began = clock_boot_usec();
	u->begun_shmem = now->shmem;
	u->begun_kernel = now->kernel;
	u->begun_tmpfs = tmpfs_bytes(u->tmp_fd) + tmpfs_bytes(u->shm_fd);
	u->begun_shown = u->shmem;
	u->begun_ipc = u->ipc.shared_bytes;
	u->now = (struct use_found){0};
	/* What went by and by is missed, too: only a thorough round starts anew. */
	if (!thorough)
		return;
	u->seen_available = now->available;
	u->seen_kernel = now->kernel;
	u->seen_bytes = known;
}

/* While a round counts a million things, as many more can be made. */
static bool is_held_up(const struct use *u, const struct meminfo *now, uint64_t limit)
{
	usec_t since = clock_boot_usec() - u->round_began;

	if (!u->walk || !u->thorough)
		return false;
	return since > HELD_UP_USEC || (limit && since > HELD_UP_GROWN_USEC &&
					beyond(now->kernel, u->begun_kernel) > limit);
}

/* The other half: a slice of a round. known: what the job is known to use. */
static void look_behind(struct use *u, uint64_t limit, uint64_t known,
			struct use_sum *sum)
{
	struct meminfo now = {.available = u->seen_available, .kernel = u->seen_kernel};
	bool missing;

	/* Unreadable, nothing is missing; it was read when the job began. */
	(void)!meminfo_read(u->meminfo_fd, &now);
	missing = is_missing(u, &now, known);
	if (!u->walk)
		begin_round(u, &now, known, missing);
	u->thorough |= missing;
	if (use_walk_step(u)) {
		u->last = u->now;
		u->now = (struct use_found){0};
		u->rounds++;
	}
	sum->watch = u->last.watch || u->thorough || !u->rounds;
	sum->going = u->walk;
	sum->hurry = u->walk && u->thorough;
	sum->rounds = u->rounds;
	sum->held_up = is_held_up(u, &now, limit);
	if (!u->walk)
		u->thorough = false;
}

/* Of the machine, in memory and swap. */
static uint64_t machine_free(const struct use *u, uint64_t unreadable)
{
	struct meminfo now;

	return meminfo_read(u->meminfo_fd, &now) < 0 ? unreadable
						     : now.available + now.swap;
}

bool use_is_late(const struct use *u, usec_t now)
{
	return u->doubt_since && now >= u->doubt_since + DOUBT_USEC;
}

static bool doubt_is_over(struct use *u, uint64_t limit, usec_t now)
{
	if (!u->doubt_since) {
		u->doubt_since = now;
		u->doubt_free = machine_free(u, UINT64_MAX);
	}
	if (!use_is_late(u, now))
		return false;
	return now >= u->doubt_since + DOUBT_BUSY_USEC ||
	       beyond(u->doubt_free, machine_free(u, 0)) > limit;
}

/* others: what counts once, whoever has it mapped. */
static void tell_apart(struct use *u, uint64_t limit, uint64_t others, uint64_t bound,
		       struct use_sum *sum)
{
	usec_t now = clock_boot_usec();
	uint64_t grown = beyond(bound, u->exact_bound);
	uint64_t filled = (now - u->exact_at) * FILL_BYTES_PER_USEC;
	struct use_exact_sum exact;

	if (u->exact_at && others + u->exact_bytes + grown + filled <= limit) {
		sum->memory_bytes = others + u->exact_bytes + grown;
		u->doubt_since = 0;
		return;
	}
	/* Between the two nobody knows: told apart anew. */
	if (use_exact_step(u, &exact) &&
	    (others + exact.most <= limit || others + exact.least > limit)) {
		u->exact_bytes = exact.most;
		u->exact_bound = bound;
		u->exact_at = clock_boot_usec();
		u->doubt_since = 0;
		sum->memory_bytes = others + u->exact_bytes;
		return;
	}
	sum->settled = sum->doubted = doubt_is_over(u, limit, now);
}

int use_look(struct use *u, uint64_t memory_limit, struct use_sum *ret, struct err *err)
{
	struct use_sum sum = {.settled = true};
	struct use_found f;
	uint64_t bound, others, ipc;

	if (tree_scan(u->tree, err) < 0)
		return -1;
	bound = add_pages(u, &sum);
	if (u->tree->grade == GRADE_FULL && sysvipc_look(sum.processes, &u->ipc, err) < 0)
		return -1;
	ipc = u->ipc.shared_bytes + u->ipc.swapped_bytes + u->ipc.kernel_bytes;
	others = sum.memory_bytes + tmpfs_bytes(u->tmp_fd) + tmpfs_bytes(u->shm_fd) + ipc;
	f = found_so_far(u);
	look_behind(u, memory_limit,
		    others + bound + f.object_bytes + f.kernel_bytes + f.hidden_bytes,
		    &sum);
	f = found_so_far(u);
	others += f.object_bytes + f.kernel_bytes + f.hidden_bytes;
	sum.memory_bytes = others + bound;
	sum.unowned_bytes = f.hidden_bytes + f.kernel_bytes + ipc;
	sum.guessed_bytes = f.guessed_bytes;
	sum.unlinked_bytes = f.unlinked_bytes;
	sum.unreadable = f.unreadable;
	sum.locks = f.locks;
	if (memory_limit && sum.memory_bytes > memory_limit && others <= memory_limit) {
		tell_apart(u, memory_limit, others, bound, &sum);
	} else {
		use_exact_done(u);
		u->doubt_since = 0;
	}
	*ret = sum;
	return 0;
}

void use_note_file(struct use *u, uint64_t dev, uint64_t ino, uint64_t bytes)
{
	if (u->hidden)
		hidden_note(u->hidden, dev, ino, bytes, HIDDEN_NAMED);
}

/* The filters that are on whoever reads this are on the job too, and one of its own making. */
static unsigned count_filters(const struct use *u)
{
	struct use_pages own = {0};

	return read_pages(u, "self/status", &own) ? own.filters + 1 : 1;
}

int use_init(struct use *u, struct tree *t, int tmp_fd, int shm_fd, int meminfo_fd,
	     int diag_fd, struct err *err)
{
	*u = (struct use){
		.tree = t, .tmp_fd = tmp_fd, .shm_fd = shm_fd, .meminfo_fd = meminfo_fd};
	if (meminfo_read(meminfo_fd, &u->base) < 0)
		return err_set_id(err, ERRID_SANDBOX_LIMIT,
				  "/proc/meminfo can't be read: nothing could bound what "
				  "is hidden");
	u->seen_available = u->base.available;
	u->seen_kernel = u->base.kernel;
	u->own_filters = count_filters(u);
	u->hidden = hidden_new(t->shm_dev, tmp_fd, shm_fd, diag_fd, err);
	return u->hidden ? 0 : -1;
}

int use_set_work(struct use *u, int work_fd, struct err *err)
{
	struct stat st;

	if (fstat(work_fd, &st) < 0)
		return err_sys(err, "stat the workspace");
	u->work_dev = st.st_dev;
	u->has_work = true;
	hidden_set_work(u->hidden, st.st_dev);
	return 0;
}
