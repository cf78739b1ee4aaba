/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the meter.
 * What a job keeps alive without a process that maps or holds it: see hidden.c.
 * One sample is hidden_begin(), what the walk over the tree meets, hidden_end().
 */
#ifndef LYCH_SANDBOX_KEEPER_HIDDEN_H
#define LYCH_SANDBOX_KEEPER_HIDDEN_H

#include "common/clock.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define HIDDEN_KNOWN_MAX 256
#define HIDDEN_MAPPED_MAX 512
#define HIDDEN_SOCKETS_MAX 4096
#define HIDDEN_GROWN_MAX 64
/* An object is remembered from this size on. */
#define HIDDEN_KNOWN_BYTES ((uint64_t)1 << 20)

struct hidden;
struct inode_set;
struct shared_most;

struct hidden_sum {
	uint64_t memory_bytes, file_bytes;
	uint64_t guessed_bytes; /* of memory_bytes */
	bool watch;		/* look again soon */
};

enum hidden_how { HIDDEN_MEMORY, HIDDEN_UNLINKED, HIDDEN_NAMED };

/* shm_dev: the kernel's own tmpfs. tmp_fd, shm_fd: mounts of the job's own, or -1. diag_fd:
 * diag.h, of the job's network namespace (borrowed), or -1. */
MUST_CHECK struct hidden *hidden_new(uint64_t shm_dev, int tmp_fd, int shm_fd,
				     int diag_fd, struct err *err);
void hidden_free(struct hidden *h);
void hidden_set_work(struct hidden *h, uint64_t work_dev);
void hidden_begin(struct hidden *h);
/* An object was met with its size: through a descriptor (memory, or a file without a
 * name), or by its name. */
void hidden_note(struct hidden *h, uint64_t dev, uint64_t ino, uint64_t bytes,
		 enum hidden_how how);
/* A pipe, a socket or an anonymous inode behind descriptor `name` of a task; info: its
 * fdinfo directory. What the kernel keeps for it, but for what hidden_begin() listed. */
uint64_t hidden_fd(struct hidden *h, int pidfd, int info, const char *name,
		   const struct stat *st);
/* So many descriptors are in the queue of one socket. */
void hidden_park(struct hidden *h, unsigned n);
/* How many lines of a file of /proc begin so. */
uint64_t hidden_count(int fd, const char *prefix);
/* A mapping of one process, a line of its maps (first: of an object that no line was of in this round); then
 * the end of that process. */
void hidden_map(struct hidden *h, const char *line, bool first);
void hidden_maps_end(struct hidden *h);
/* What can be hidden at most, as far as the machine's own numbers tell. */
struct hidden_missing {
	uint64_t memory, files; /* of memory what this finds is still part */
	/* Shared memory, by the time that the round began: how much has come that nothing behind a
	 * descriptor explains; how much of it the processes show as theirs. */
	uint64_t shmem, shown;
	const struct shared_most *asked; /* NULL: nobody counts what is asked for */
};
/* held: every object that a descriptor showed in this round. */
void hidden_end(struct hidden *h, const struct inode_set *held,
		const struct hidden_missing *missing, struct hidden_sum *ret);

/* Pure parts. */
/* Device and inode out of a line of maps, by its fields; false: it is of no file. */
bool hidden_map_file(const char *line, uint64_t *dev, uint64_t *ino);
/* Is it of an object that was made by a shared mapping without a file? As long as that, it can be had by no
 * descriptor. The device is to be the kernel's own. */
bool hidden_map_is_zero(const char *line);
/* Is it of a System V segment? Those are counted by their list: sysvipc.h. The device as above. */
bool hidden_map_is_sysv(const char *line);
/* Device, inode and range out of a line of maps; false: none of ours. */
bool hidden_parse_map(const char *line, uint64_t *dev, uint64_t *ino, uint64_t *bytes);

#endif
