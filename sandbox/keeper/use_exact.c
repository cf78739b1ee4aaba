/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the meter.
 * The memory of each process by its share of every page (the kernel walks
 * its page tables for it), a few processes at a look. Address spaces that processes share count
 * once.
 *
 * Processes end meanwhile. What one shared is then counted with others, who may have been asked
 * before or after: so a round has two results. At least: the shares of those that are still there,
 * none of which can have been too large. At most: the bound of each that went too, whose
 * memory a child may have that the round does not know; where no process came, nobody has it. And so
 * those whose memory may be their parent's (shares_memory()).
 */
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "sandbox/keeper/tree_parts.h"
#include "sandbox/keeper/use.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

/* Of our own work at a look; where others have the processors, that takes a multiple of it. */
#define SLICE_USEC (20 * USEC_PER_MSEC)
#define SLICE_MOST_USEC (200 * USEC_PER_MSEC)
/* So many slices at a look that comes late: the rest of the look is work too, and the job waits for its verdict. */
#define SLICES_LATE 5

struct use_exact {
	struct one {
		pid_t pid;
		unsigned threads;
		uint64_t pages, size;
		uint64_t found; /* bytes; of one that was gone, 0 */
		bool may_share;
	} *one;
	size_t n, at;
};

void use_exact_done(struct use *u)
{
	if (u->exact)
		free(u->exact->one);
	free(u->exact);
	u->exact = NULL;
}

static struct use_exact *begin(const struct use *u)
{
	struct use_exact *x = xcalloc(1, sizeof(*x));

	x->one = xreallocarray(NULL, u->tree->n + 1, sizeof(*x->one));
	for (size_t i = 0; i < u->tree->n; i++) {
		const struct tree_proc *p = &u->tree->proc[i];

		if (p->member && !p->shares && !tree_is_dead(p))
			x->one[x->n++] = (struct one){.pid = p->pid,
						      .threads = p->threads,
						      .pages = p->pages,
						      .size = p->size,
						      .may_share = p->may_share};
	}
	return x;
}

/*
 * Proportional shared anonymous memory of one process: mappings of the kernel's
 * own tmpfs whose object was not already counted through a descriptor, or as a System V segment.
 */
static uint64_t sum_shmem(const struct use *u, FILE *f)
{
	cleanup_free char *line = NULL;
	size_t size = 0;
	uint64_t sum = 0;
	bool counts = false;

	while (getline(&line, &size, f) > 0) {
		unsigned major_nr, minor_nr;
		uint64_t ino;

		if (sscanf(line, "%*x-%*x %*s %*x %x:%x %" SCNu64, &major_nr, &minor_nr,
			   &ino) == 3) {
			counts = makedev(major_nr, minor_nr) == u->tree->shm_dev && ino &&
				 !inode_set_has(&u->seen, u->tree->shm_dev, ino) &&
				 !hidden_map_is_sysv(line);
		} else if (counts && str_starts(line, "Pss:")) {
			const char *p = line + 4;

			sum += tree_take_u64(&p) * 1024;
		}
	}
	return sum;
}

static uint64_t exact_shmem(const struct use *u, const char *path)
{
	int fd = openat(u->tree->proc_fd, path, O_RDONLY | O_CLOEXEC);
	cleanup_file FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;

	if (!f) {
		fd_close(&fd);
		return 0;
	}
	return sum_shmem(u, f);
}

static uint64_t exact_task(const struct use *u, const char *dir, bool *ret_found)
{
	char path[340], text[TREE_STATUS_MAX];
	struct use_pages v;
	uint64_t sum;

	(void)snprintf(path, sizeof(path), "%s/smaps_rollup", dir);
	*ret_found = tree_read(u->tree->proc_fd, path, text, sizeof(text)) > 0;
	if (!*ret_found)
		return 0;
	sum = tree_status_bytes(text, "Pss_Anon") + tree_status_bytes(text, "SwapPss") +
	      tree_status_bytes(text, "Shared_Hugetlb") +
	      tree_status_bytes(text, "Private_Hugetlb");
	(void)snprintf(path, sizeof(path), "%s/status", dir);
	if (tree_read(u->tree->proc_fd, path, text, sizeof(text)) > 0 &&
	    use_parse_status(text, &v)) {
		sum += v.tables;
		if (v.shmem == 0) /* a second walk of the page tables for nothing */
			return sum;
	}
	(void)snprintf(path, sizeof(path), "%s/smaps", dir);
	return sum + exact_shmem(u, path);
}

/* Bytes; 0 when it is gone. One that is not readable counts as its bound. */
static uint64_t exact_process(const struct use *u, const struct one *p)
{
	cleanup_dir DIR *tasks = NULL;
	struct use_pages v;
	struct dirent *e;
	char path[320];
	bool found;
	uint64_t sum;

	(void)snprintf(path, sizeof(path), "%d", p->pid);
	sum = exact_task(u, path, &found);
	if (found)
		return sum;
	(void)snprintf(path, sizeof(path), "%d/task", p->pid);
	tasks = tree_open_dir(u->tree->proc_fd, path);
	while (tasks && !found && (e = readdir(tasks)))
		if (e->d_name[0] != '.' &&
		    str_fmt(path, sizeof(path), "%d/task/%s", p->pid, e->d_name) == 0)
			sum = exact_task(u, path, &found);
	if (found)
		return sum;
	return use_pages_of(u, p->pid, p->threads, &v) ? use_bytes_of(&v) : 0;
}

/* One that was counted has the very same. Only asked where the numbers are the same. */
static bool is_counted(const struct use_exact *x, const struct one *p)
{
	for (size_t i = 0; i < x->at; i++) {
		const struct one *o = &x->one[i];

		if (o->pages == p->pages && o->size == p->size &&
		    syscall(SYS_kcmp, o->pid, p->pid, KCMP_VM, 0UL, 0UL) == 0)
			return true;
	}
	return false;
}

static bool is_known(const struct use_exact *x, pid_t pid)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->one[i].pid == pid)
			return true;
	return false;
}

/* Has one come since the round began, who may have what another one left? Looked for now: one that
 * forks and ends all the time has come since the last list was made. */
static bool has_newcomer(const struct use *u, const struct use_exact *x)
{
	struct err ignored = ERR_INIT;

	if (tree_scan(u->tree, &ignored) < 0)
		return true;
	for (size_t i = 0; i < u->tree->n; i++) {
		const struct tree_proc *p = &u->tree->proc[i];

		if (p->member && !tree_is_dead(p) && !is_known(x, p->pid))
			return true;
	}
	return false;
}

static struct use_exact_sum sum_up(const struct use *u, const struct use_exact *x)
{
	struct use_exact_sum s = {0};
	uint64_t gone_found = 0, gone_pages = 0, doubtful = 0;
	bool is_gone = false;
	struct use_pages v;

	for (size_t i = 0; i < x->n; i++) {
		const struct one *p = &x->one[i];

		if (use_pages_of(u, p->pid, p->threads, &v)) {
			*(p->may_share ? &doubtful : &s.least) += p->found;
		} else {
			is_gone = true;
			gone_found += p->found;
			gone_pages += p->pages;
		}
	}
	s.most = s.least + doubtful;
	if (is_gone)
		s.most += has_newcomer(u, x) ? gone_pages : gone_found;
	return s;
}

bool use_exact_step(struct use *u, struct use_exact_sum *ret)
{
	unsigned slices = use_is_late(u, clock_boot_usec()) ? SLICES_LATE : 1;
	usec_t until = clock_thread_usec() + slices * SLICE_USEC;
	usec_t at_most = clock_boot_usec() + slices * SLICE_MOST_USEC;
	struct use_exact *x = u->exact;

	if (!x)
		x = u->exact = begin(u);
	for (; x->at < x->n; x->at++) {
		struct one *p = &x->one[x->at];

		if (clock_thread_usec() >= until || clock_boot_usec() >= at_most)
			return false;
		if (!is_counted(x, p))
			p->found = exact_process(u, p);
		use_meanwhile(u);
	}
	*ret = sum_up(u, x);
	use_exact_done(u);
	return true;
}
