/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * Calls that a limit stands before.
 *
 * fallocate(2) takes a gibibyte of disk in two milliseconds, faster than any look. The keeper
 * makes it for the job, on the job's own open file, when what is asked for is within the disk
 * limit; it may have to wait for the file's lock, as with any change that it makes. Beyond the
 * limit it is refused (ENOSPC) for what was found to be the job's, or was given to it since. What
 * was only added to the file system may be a neighbour's: it is no room, and no reason to say
 * that the disk is full. The program gets EOPNOTSUPP, upon which posix_fallocate(3) writes
 * instead, and the looks measure what it wrote. So it is with memory (a memfd, a tmpfs), which is
 * not reserved in advance: the pages would be charged to the keeper.
 *
 * Landlock rules and domains live in the kernel's memory, and a domain holds all rules of those
 * above it; programs have some dozens. The kernel goes on with a call that is still within the
 * count: what decides is how many there were, not what its arguments point to. So it is with
 * seccomp filters, which are only counted: a thread may have its own, and /proc tells how many
 * each has, not which of them are the same.
 *
 * How long a shared mapping is that is asked for is only noted too (shared_maps.h), and that pages
 * are made huge ones.
 *
 * A multicast group that a socket joins is an entry in a list of the interface, which is searched
 * under a lock that all network namespaces of the machine share, and again when the socket is closed:
 * a job that joined a hundred thousand kept everybody from making a namespace for minutes after its
 * end. Programs join a handful.
 */
#include "sandbox/keeper/notify.h"

#include "common/cleanup.h"
#include "sandbox/contract/shared_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#define RULES_MAX 4096
#define DOMAINS_MAX 64
#define GROUPS_MAX 4096
/* What takes nothing, or gives back. */
#define GIVES_BACK (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_COLLAPSE_RANGE)

/* Of the range, what the file does not seem to have yet: programs ask for the whole of a file when
 * they make it larger. One whose blocks lie elsewhere is seen by the next look at the disk. */
static uint64_t to_take(const struct stat *st, uint64_t offset, uint64_t length)
{
	uint64_t size = (uint64_t)st->st_size, end = offset + length;
	uint64_t inside = (size < end ? size : end);
	uint64_t has = (uint64_t)st->st_blocks * 512;

	inside = inside > offset ? inside - offset : 0;
	return length - (has < inside ? has : inside);
}

/* What the file got of it, which is not all when the file system had no more. */
static int give(const struct notify *n, int fd, int mode, off_t offset, off_t length,
		const struct stat *before, uint64_t take)
{
	int r = fallocate(fd, mode, offset, length) < 0 ? -errno : 0;
	struct stat after;
	uint64_t grew = 0;

	if (fstat(fd, &after) == 0 && after.st_blocks > before->st_blocks)
		grew = (uint64_t)(after.st_blocks - before->st_blocks) * 512;
	n->disk_given(n->disk_arg, take, grew);
	return r;
}

static int make_room(const struct notify *n, int fd, int mode, off_t offset, off_t length)
{
	uint64_t take;
	struct room room;
	struct statfs fs;
	struct stat st;

	if (offset < 0 || length <= 0)
		return -EINVAL;
	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISFIFO(st.st_mode) ? -ESPIPE : -ENODEV;
	if (mode & GIVES_BACK)
		return fallocate(fd, mode, offset, length) < 0 ? -errno : 0;
	if (fs.f_type == TMPFS_MAGIC)
		return -EOPNOTSUPP;
	/* The job's own rlimit, which is not ours. */
	if ((uint64_t)length > n->file_max ||
	    (uint64_t)offset > n->file_max - (uint64_t)length)
		return -EFBIG;
	take = to_take(&st, (uint64_t)offset, (uint64_t)length);
	room = n->disk_room(n->disk_arg);
	if (take > room.most)
		return -ENOSPC;
	/* Whether there is room the next look knows: until then it is written, if it must be. */
	if (take > room.least)
		return -EOPNOTSUPP;
	return give(n, fd, mode, offset, length, &st, take);
}

int notify_fallocate(struct notify *n, const struct seccomp_notif *req)
{
	cleanup_close int fd = -1;
	int r = notify_take_fd(n, req, (int)(int32_t)req->data.args[0], &fd);

	if (r < 0)
		return r == -EBADF ? r : -EOPNOTSUPP;
	if (!notify_still_waits(n, req))
		return -EINTR;
	return make_room(n, fd, (int)(int32_t)req->data.args[1], (off_t)req->data.args[2],
			 (off_t)req->data.args[3]);
}

static int count_to(struct notify *n, const struct seccomp_notif *req, unsigned *made,
		    unsigned most)
{
	if (*made >= most) {
		notify_record_call(n, req);
		return -EPERM;
	}
	(*made)++;
	return NOTIFY_GO_ON;
}

int notify_join(struct notify *n, const struct seccomp_notif *req)
{
	return count_to(n, req, &n->groups_joined, GROUPS_MAX);
}

/* What the meter charges for filters is no more than so many. */
int notify_filter(struct notify *n)
{
	atomic_fetch_add(n->filters_made, 1);
	return NOTIFY_GO_ON;
}

int notify_map(struct notify *n, const struct seccomp_notif *req)
{
	if (req->data.nr == __NR_mmap)
		shared_maps_add(n->shared_maps, req->data.args[1]);
	else
		atomic_store(&n->shared_maps->huge, true);
	return NOTIFY_GO_ON;
}

int notify_landlock(struct notify *n, const struct seccomp_notif *req)
{
	if (req->data.nr == NR_LANDLOCK_ADD_RULE)
		return count_to(n, req, &n->rules_made, RULES_MAX);
	return count_to(n, req, &n->domains_made, DOMAINS_MAX);
}
