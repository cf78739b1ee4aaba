/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper and the meter.
 * See sysvipc.h.
 *
 * kernel.shmall and its like would bound these objects, but they belong to id 0 of the user
 * namespace, which ours does not map: nobody here may set them. So they stay at the kernel's
 * defaults, and what there is counts as the job's memory.
 *
 * Semaphores can be undone when a task ends: then the kernel keeps a note of each set for
 * each such task, and nothing tells how many it keeps. What all of them could have at most counts.
 */
#include "sandbox/contract/sysvipc.h"

#include "common/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>

/* With the file, inode and name behind a segment. */
#define SEGMENT_BYTES 2048
#define SET_BYTES 512
#define SEMAPHORE_BYTES 64 /* a line of the processor's cache */
#define QUEUE_BYTES 512
/* Its head; and what it is rounded up to, which is less than twice as much, and less than a half of a page more. */
#define MESSAGE_BYTES 96
#define MESSAGE_ROUNDED 2048
/* A note of what is to be undone, and two bytes for each semaphore of the set. */
#define UNDO_BYTES 96
#define UNDO_SEMAPHORE_BYTES 2

union semun { /* semctl(2): to be defined by the caller */
	int val;
	struct seminfo *info;
};

static uint64_t message_bytes(const struct sysvipc_counts *c)
{
	uint64_t rounded = c->messages * MESSAGE_ROUNDED;

	return c->messages * MESSAGE_BYTES + c->message_bytes +
	       (rounded < c->message_bytes ? rounded : c->message_bytes);
}

uint64_t sysvipc_kernel_bytes(const struct sysvipc_counts *c, unsigned tasks)
{
	uint64_t undo = c->sets * UNDO_BYTES + c->semaphores * UNDO_SEMAPHORE_BYTES;

	return c->segments * SEGMENT_BYTES + c->sets * SET_BYTES +
	       c->semaphores * SEMAPHORE_BYTES + c->queues * QUEUE_BYTES +
	       message_bytes(c) + undo * tasks;
}

/* A kernel that is built without them has none. */
static int check_count(int r, const char *what, struct err *err)
{
	if (r >= 0 || errno == ENOSYS)
		return 0;
	return err_sys_id(err, ERRID_SANDBOX_NS, "count the System V objects (%s)", what);
}

int sysvipc_look(unsigned tasks, struct sysvipc_sum *ret, struct err *err)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct shm_info shm = {0};
	struct seminfo sem = {0};
	struct msginfo msg = {0};
	struct sysvipc_counts c;

	if (check_count(shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&shm), "shmctl",
			err) < 0 ||
	    check_count(semctl(0, 0, SEM_INFO, (union semun){.info = &sem}), "semctl",
			err) < 0 ||
	    check_count(msgctl(0, MSG_INFO, (struct msqid_ds *)(void *)&msg), "msgctl",
			err) < 0)
		return -1;
	/* The kernel's own words for them: an int each, which holds any number that memory allows. */
	c = (struct sysvipc_counts){.segments = (unsigned)shm.used_ids,
				    .sets = (unsigned)sem.semusz,
				    .semaphores = (unsigned)sem.semaem,
				    .queues = (unsigned)msg.msgpool,
				    .messages = (unsigned)msg.msgmap,
				    .message_bytes = (unsigned)msg.msgtql};
	*ret = (struct sysvipc_sum){.shared_bytes = shm.shm_rss * page,
				    .swapped_bytes = shm.shm_swp * page,
				    .kernel_bytes = sysvipc_kernel_bytes(&c, tasks)};
	return 0;
}

/* Whose namespace it is, the kernel tells only to whom it is below. */
static int check_owner(int proc_fd, struct err *err)
{
	cleanup_close int ipc = openat(proc_fd, "self/ns/ipc", O_RDONLY | O_CLOEXEC);
	cleanup_close int owner = ipc < 0 ? -1 : ioctl(ipc, NS_GET_USERNS);
	struct stat is, own;

	if (owner < 0 || fstat(owner, &is) < 0 ||
	    fstatat(proc_fd, "self/ns/user", &own, 0) < 0)
		return err_sys_id(err, ERRID_SANDBOX_NS, "whose ipc namespace it is");
	if (is.st_ino != own.st_ino || is.st_dev != own.st_dev)
		return err_set_id(err, ERRID_SANDBOX_NS,
				  "the ipc namespace is not the job's own");
	return 0;
}

int sysvipc_check(int proc_fd, struct err *err)
{
	struct sysvipc_sum sum;

	if (check_owner(proc_fd, err) < 0)
		return -1;
	return sysvipc_look(0, &sum, err);
}
