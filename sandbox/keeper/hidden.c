/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the meter.
 * Memory and disk that no process owns. Without a cgroup nobody counts them, and
 * a job that sets out to hide could hold the machine's whole memory in them:
 *
 *	in the kernel	 pipe buffers, socket buffers, epoll items. Looked at through
 *			 a copy of the descriptor (pidfd_getfd), which changes nothing
 *			 for the job; a pipe with something in it costs its capacity.
 *	remnants	 an object of which one page is still mapped and no descriptor
 *			 is left (a memfd, shared anonymous memory, an unlinked file):
 *			 the kernel keeps it whole and shows the page. What is missing of
 *			 the largest size that was ever seen of it counts on.
 *	parked		 descriptors in the queue of a unix socket (SCM_RIGHTS): fdinfo
 *			 says how many, not which. What was known, is nowhere any more,
 *			 and could be parked, counts on. A socket that is parked itself
 *			 shows only in the list of its network namespace.
 *
 * What was made and hidden between two looks has no known size. But the machine's shared
 * memory has grown by it: what came in that time, and nothing else explains, belongs to the
 * place that is new. And hiding places are few: a handful are free, since real work has them
 * too (a shared mapping without its descriptor; a message just being passed); each further
 * one that stays costs a flat amount, and while there are any the next look comes soon. A
 * place that is a shared mapping without a file holds no more than was asked for when it was
 * made (shared_maps.h): neither is charged to it beyond that, for others' memory grows too.
 * docs/SANDBOX.md says what can be hidden all the same.
 */
#include "sandbox/keeper/hidden_priv.h"

#include "common/attr.h"
#include "common/cleanup.h"
#include "common/str.h"
#include "sandbox/contract/shared_maps.h"
#include "sandbox/keeper/diag.h"
#include "sandbox/keeper/inode_set.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* Hiding places that cost nothing, and what each further one costs at most. */
#define PLACES_FREE 8
#define PLACE_BYTES ((uint64_t)32 << 20)
/* A parked socket can hold as many descriptors as a job may have. */
#define PLACES_OF_A_SOCKET 24
/* From so many on we look often. */
#define PLACES_WATCHED 4
/* Longer than a message waits for its reader. */
#define CROWDED_USEC (200 * USEC_PER_MSEC)
#define PIPE_BYTES_UNKNOWN ((uint64_t)64 << 10)
/* The structures behind a descriptor: file, inode, name, and what it is of. */
#define SOCKET_BYTES 4096
#define PIPE_BYTES 3072
#define ANON_BYTES 1024
/* An event that waits is some times as large as what will be read of it. */
#define EVENT_TIMES 5
#define EPOLL_ITEM_BYTES 256
/* With the inode that it holds in memory. */
#define INOTIFY_WATCH_BYTES 1280
#define COUNT_CHUNK 65536
#define INFO_MAX 512 /* what comes first: flags, and the descriptors in a socket */

/* Mapped, not allocated: zeroing some hundred kilobytes of lists, which most jobs never fill,
 * meant a page fault for each page in the middle of every start. */
struct hidden *hidden_new(uint64_t shm_dev, int tmp_fd, int shm_fd, int diag_fd,
			  struct err *err)
{
	struct hidden *h = mmap(NULL, sizeof(*h), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cleanup_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct stat st;

	if (h == MAP_FAILED) {
		(void)err_sys(err, "memory for what the job hides");
		return NULL;
	}
	h->shm_dev = shm_dev;
	h->diag_fd = diag_fd;
	h->queue = diag_queue_bytes();
	if (fd >= 0 && fstat(fd, &st) == 0)
		h->sock_dev = st.st_dev;
	if (tmp_fd >= 0 && fstat(tmp_fd, &st) == 0)
		h->tmp_dev[0] = st.st_dev;
	if (shm_fd >= 0 && fstat(shm_fd, &st) == 0)
		h->tmp_dev[1] = st.st_dev;
	return h;
}

void hidden_free(struct hidden *h)
{
	if (!h)
		return;
	inode_set_done(&h->udp);
	(void)munmap(h, sizeof(*h));
}

void hidden_set_work(struct hidden *h, uint64_t work_dev)
{
	h->work_dev = work_dev;
}

/* ---- what is known ------------------------------------------------------------ */

static struct hidden_known *known_find(struct hidden *h, uint64_t dev, uint64_t ino,
				       bool file)
{
	for (unsigned i = 0; i < h->n_known; i++) {
		struct hidden_known *k = &h->known[i];

		/* The device of a mapped file is not always the one that stat tells. */
		if (k->ino == ino && k->file == file && (file || k->dev == dev))
			return k;
	}
	return NULL;
}

void hidden_note(struct hidden *h, uint64_t dev, uint64_t ino, uint64_t bytes,
		 enum hidden_how how)
{
	bool file = how != HIDDEN_MEMORY;
	struct hidden_known *k = known_find(h, dev, ino, file);

	if (!k && bytes < HIDDEN_KNOWN_BYTES)
		return;
	if (!k && h->n_known < HIDDEN_KNOWN_MAX)
		k = &h->known[h->n_known++];
	if (!k) {
		k = &h->known[0];
		for (unsigned i = 1; i < h->n_known; i++)
			if (h->known[i].round < k->round)
				k = &h->known[i];
	}
	*k = (struct hidden_known){.dev = dev,
				   .ino = ino,
				   .bytes = bytes,
				   .round = h->round,
				   .file = file,
				   .named = how == HIDDEN_NAMED};
}

/* ---- sockets that nobody holds ------------------------------------------------- */

static void list_one(void *arg, int family, uint64_t ino)
{
	struct hidden *h = arg;

	if (family != AF_UNIX) {
		(void)inode_set_add(&h->udp, 0, ino);
		return;
	}
	h->list_full |= h->n_listed == HIDDEN_SOCKETS_MAX;
	if (!h->list_full)
		h->listed[h->n_listed++] = ino;
}

/* Before the descriptors are read: one that is made meanwhile is not in the list. */
static void list_sockets(struct hidden *h)
{
	struct diag_sum sum;

	if (h->diag_fd < 0)
		return;
	if (diag_look(h->diag_fd, h->queue, list_one, h, &sum) < 0)
		h->list_full =
			true; /* it could at the start: too much for one of its answers */
	else
		h->socket_bytes = sum.bytes;
}

/* In two looks in a row: a connection that is just ending is not parked. */
static unsigned count_unheld(struct hidden *h, const struct inode_set *held)
{
	static uint64_t now[HIDDEN_SOCKETS_MAX];
	unsigned n = 0, twice = h->list_full; /* more than can be told apart */

	for (unsigned i = 0; i < h->n_listed; i++) {
		if (inode_set_has(held, h->sock_dev, h->listed[i]))
			continue;
		twice += hidden_among(h->unheld, h->n_unheld, h->listed[i]);
		now[n++] = h->listed[i];
	}
	memcpy(h->unheld, now, n * sizeof(now[0]));
	h->n_unheld = n;
	return twice;
}

void hidden_begin(struct hidden *h)
{
	h->round++;
	h->socket_bytes = 0;
	h->n_mapped = h->n_zero = h->more_zero = 0;
	h->n_listed = 0;
	h->list_full = false;
	h->parked = 0;
	inode_set_reset(&h->udp);
	list_sockets(h);
}

void hidden_park(struct hidden *h, unsigned n)
{
	h->parked += n;
}

/* ---- descriptors ------------------------------------------------------------------ */

uint64_t hidden_count(int fd, const char *prefix)
{
	static char text[COUNT_CHUNK]; /* one thread, and too large for a stack */
	size_t len = strlen(prefix), matched = 0;
	bool at_start = true;
	uint64_t count = 0;
	ssize_t n;

	while ((n = read(fd, text, sizeof(text))) > 0)
		for (const char *p = text; p < text + n; p++) {
			if (at_start && matched < len && *p == prefix[matched]) {
				count += ++matched == len;
				continue;
			}
			at_start = *p == '\n';
			matched = 0;
		}
	return count;
}

/* Its beginning; "" when it is gone. */
static void read_info(int info, const char *name, char *out, size_t size)
{
	cleanup_close int fd = openat(info, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	out[n > 0 ? n : 0] = '\0';
}

static uint64_t count_info(int info, const char *name, const char *prefix)
{
	cleanup_close int fd = openat(info, name, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? 0 : hidden_count(fd, prefix);
}

static uint64_t info_number(const char *text, const char *name)
{
	const char *p = strstr(text, name);

	return p ? strtoull(p + strlen(name), NULL, 10) : 0;
}

static int copy_fd(int pidfd, const char *name)
{
	uint64_t nr;

	if (parse_u64(name, 0, INT32_MAX, &nr, NULL) < 0)
		return -1;
	return (int)syscall(SYS_pidfd_getfd, pidfd, (int)nr, 0);
}

static uint64_t pipe_bytes(int fd)
{
	int in = 0, size;

	if (ioctl(fd, FIONREAD, &in) < 0 || !in)
		return 0;
	size = fcntl(fd, F_GETPIPE_SZ);
	return size > 0 ? (uint64_t)size : PIPE_BYTES_UNKNOWN;
}

static uint64_t socket_bytes(const struct hidden *h, int fd)
{
	uint32_t m[SK_MEMINFO_VARS] = {0};
	int type = 0, domain = 0, in = 0;
	socklen_t len = sizeof(m);
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};
	uint64_t sum;

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, m, &len) < 0)
		return h->queue;
	sum = (uint64_t)m[SK_MEMINFO_RMEM_ALLOC] +
	      (uint64_t)m[SK_MEMINFO_OPTMEM] * DIAG_OPTIONS_TIMES + m[SK_MEMINFO_BACKLOG];
	sum += m[SK_MEMINFO_WMEM_ALLOC] > m[SK_MEMINFO_WMEM_QUEUED]
		       ? m[SK_MEMINFO_WMEM_ALLOC]
		       : m[SK_MEMINFO_WMEM_QUEUED];
	/* What waits in a unix socket is charged to its sender, who may be gone. */
	len = sizeof(domain);
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0 ||
	    domain != AF_UNIX || ioctl(fd, SIOCINQ, &in) < 0 || in <= 0)
		return sum;
	len = sizeof(type);
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
	    (type == SOCK_DGRAM || (poll(&p, 1, 0) > 0 && (p.revents & POLLRDHUP))))
		sum += h->queue;
	return sum;
}

/* Only of a stream of the internet: unix sockets were told by their inodes. */
static bool is_tcp(int fd)
{
	int protocol = 0;
	socklen_t len = sizeof(protocol);

	return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) == 0 &&
	       protocol == IPPROTO_TCP;
}

static uint64_t measure_socket(struct hidden *h, int pidfd, int info, const char *name,
			       const struct stat *st)
{
	cleanup_close int fd = -1;
	char text[INFO_MAX];

	read_info(info, name, text, sizeof(text));
	hidden_park(h, (unsigned)info_number(text, "scm_fds:"));
	if (h->diag_fd >= 0 && (hidden_among(h->listed, h->n_listed, st->st_ino) ||
				inode_set_has(&h->udp, 0, st->st_ino)))
		return SOCKET_BYTES;
	fd = copy_fd(pidfd, name);
	/* Closed meanwhile, or under another number: the namespace's list has what it holds. */
	if (fd < 0 && errno == EBADF && h->diag_fd >= 0)
		return 0;
	if (fd < 0)
		return SOCKET_BYTES + h->queue;
	if (h->diag_fd >= 0 && is_tcp(fd))
		return SOCKET_BYTES;
	return SOCKET_BYTES + socket_bytes(h, fd);
}

/* Of an inotify instance; the others have no such number. */
static uint64_t events_bytes(int pidfd, const char *name)
{
	cleanup_close int fd = copy_fd(pidfd, name);
	int in = 0;

	return fd >= 0 && ioctl(fd, FIONREAD, &in) == 0 && in > 0
		       ? (uint64_t)in * EVENT_TIMES
		       : 0;
}

uint64_t hidden_fd(struct hidden *h, int pidfd, int info, const char *name,
		   const struct stat *st)
{
	if (S_ISFIFO(st->st_mode)) {
		cleanup_close int fd = copy_fd(pidfd, name);

		return PIPE_BYTES + (fd < 0 ? PIPE_BYTES_UNKNOWN : pipe_bytes(fd));
	}
	if (S_ISSOCK(st->st_mode))
		return measure_socket(h, pidfd, info, name, st);
	/* An anonymous inode: epoll, inotify, eventfd ... */
	return ANON_BYTES + count_info(info, name, "tfd:") * EPOLL_ITEM_BYTES +
	       count_info(info, name, "inotify wd:") * INOTIFY_WATCH_BYTES +
	       events_bytes(pidfd, name);
}

/* ---- mappings ----------------------------------------------------------------------- */

static void map_add(struct hidden *h, const struct hidden_mapped *seen, bool first)
{
	struct hidden_mapped *m = NULL;

	for (unsigned i = 0; i < h->n_mapped && !m; i++)
		if (h->mapped[i].ino == seen->ino && h->mapped[i].dev == seen->dev)
			m = &h->mapped[i];
	if (!m) {
		/* Small ones may be many. They leave room for those that can be of any size. */
		if (seen->zero && h->n_zero == HIDDEN_MAPPED_MAX / 2) {
			h->more_zero += first;
			return;
		}
		if (h->n_mapped == HIDDEN_MAPPED_MAX)
			return; /* that many places are beyond any limit already */
		h->n_zero += seen->zero;
		m = &h->mapped[h->n_mapped++];
		*m = *seen;
		m->now = 0;
	}
	m->now += seen->now;
}

void hidden_map(struct hidden *h, const char *line, bool first)
{
	struct hidden_mapped m = {0};

	if (!hidden_parse_map(line, &m.dev, &m.ino, &m.now) || m.dev == h->tmp_dev[0] ||
	    m.dev == h->tmp_dev[1])
		return;
	m.file = m.dev != h->shm_dev;
	if (!m.file && hidden_map_is_sysv(line))
		return;
	m.zero = !m.file && hidden_map_is_zero(line);
	map_add(h, &m, first);
}

void hidden_maps_end(struct hidden *h)
{
	for (unsigned i = 0; i < h->n_mapped; i++) {
		struct hidden_mapped *m = &h->mapped[i];

		if (m->now > m->bytes)
			m->bytes = m->now;
		m->now = 0;
	}
}

/* ---- the sum ------------------------------------------------------------------------ */

/* Of each kind, so many hide something. */
struct places {
	unsigned files, memory, zero;
};

/* What is mapped without a descriptor: the part of it that no mapping shows. */
static void sum_remnants(struct hidden *h, const struct inode_set *held,
			 struct hidden_sum *sum, struct places *places)
{
	for (unsigned i = 0; i < h->n_mapped; i++) {
		struct hidden_mapped *m = &h->mapped[i];
		struct hidden_known *k = known_find(h, m->dev, m->ino, m->file);

		m->held = inode_set_has(held, m->file ? h->work_dev : m->dev, m->ino);
		if (m->held)
			continue;
		(*(m->file   ? &places->files
		   : m->zero ? &places->zero
			     : &places->memory))++;
		if (k && m->file) {
			sum->file_bytes += k->bytes;
			k->round = h->round;
		} else if (k && k->bytes > m->bytes) {
			sum->memory_bytes += k->bytes - m->bytes;
			k->round = h->round;
		} else if (m->file) {
			sum->file_bytes += m->bytes;
		} else {
			hidden_note(h, m->dev, m->ino, m->bytes, HIDDEN_MEMORY);
		}
	}
}

static int by_size(const void *a, const void *b)
{
	const struct hidden_known *x = a, *y = b;

	return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : 0;
}

/* What is nowhere any more is gone, or parked: as many of the largest as there are
 * parked descriptors; the rest is forgotten. */
static void sum_parked(struct hidden *h, unsigned parked, struct hidden_sum *sum)
{
	unsigned n = 0, kept = 0;

	qsort(h->known, h->n_known, sizeof(h->known[0]), by_size);
	for (unsigned i = 0; i < h->n_known; i++) {
		struct hidden_known k = h->known[i];
		bool nowhere = k.round != h->round && !k.named;

		if (nowhere && n == parked)
			continue;
		if (nowhere) {
			n++;
			*(k.file ? &sum->file_bytes : &sum->memory_bytes) += k.bytes;
		}
		h->known[kept++] = k;
	}
	h->n_known = kept;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What each place may hold at most, and all together no more than is missing. zero: those that hold no
 * more than was asked for when they were made. */
static uint64_t guess(unsigned places, unsigned zero, const struct shared_most *asked,
		      uint64_t missing)
{
	const struct shared_most any = {PLACE_BYTES, UINT64_MAX, 0};
	uint64_t most = hidden_beyond(places, PLACES_FREE) * PLACE_BYTES;
	uint64_t beyond = hidden_beyond(zero, hidden_beyond(PLACES_FREE, places));

	if (!asked)
		asked = &any;
	most += least(beyond * least(PLACE_BYTES, asked->each),
		      shared_maps_add_up(asked->all, beyond * asked->small));
	return least(most, missing);
}

void hidden_end(struct hidden *h, const struct inode_set *held,
		const struct hidden_missing *missing, struct hidden_sum *ret)
{
	struct hidden_sum sum = {.memory_bytes = h->socket_bytes};
	struct places places = {.zero = h->more_zero};
	unsigned parked, all;
	uint64_t more;

	parked = h->parked + PLACES_OF_A_SOCKET * count_unheld(h, held);
	sum_remnants(h, held, &sum, &places);
	sum_parked(h, parked, &sum);
	hidden_sum_growth(h, missing, parked, &sum);
	all = places.files + places.memory + places.zero + parked;
	sum.watch = parked || all > PLACES_WATCHED;
	if (all <= PLACES_FREE)
		h->crowded_since = 0;
	else if (!h->crowded_since)
		h->crowded_since = clock_boot_usec();
	else if (clock_boot_usec() - h->crowded_since >= CROWDED_USEC) {
		/* Parked descriptors can be either: they count as both. */
		more = guess(places.memory + parked, places.zero, missing->asked,
			     hidden_beyond(missing->memory, sum.memory_bytes));
		sum.guessed_bytes += more;
		sum.memory_bytes += more;
		sum.file_bytes += guess(places.files + parked, 0, NULL,
					hidden_beyond(missing->files, sum.file_bytes));
	}
	*ret = sum;
}
