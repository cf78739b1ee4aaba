/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job keeps alive without a process that maps or holds it: see hidden.c.
 * One sample is hidden_begin(), what the walk over the tree meets, hidden_end().
 */
#ifndef LYCH_SANDBOX_HIDDEN_H
#define LYCH_SANDBOX_HIDDEN_H

#include "common/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define HIDDEN_KNOWN_MAX 256
#define HIDDEN_MAPPED_MAX 512
#define HIDDEN_SOCKETS_MAX 4096
/* An object is remembered from this size on. */
#define HIDDEN_KNOWN_BYTES ((uint64_t)1 << 20)

struct inode_set;

/* An object that was once seen with its true size: through a descriptor or by name. */
struct hidden_known {
	uint64_t dev, ino, bytes;
	unsigned round; /* the last sample that met it */
	bool file;	/* of the workspace's file system, else memory */
	bool named;	/* met by name: it is counted there */
};

/* An object that is mapped, and not held by a descriptor. */
struct hidden_mapped {
	uint64_t dev, ino, bytes; /* the most that one process maps of it */
	uint64_t now;		  /* of the process being read */
	bool file;
};

struct hidden {
	uint64_t shm_dev, work_dev, sock_dev;
	uint64_t tmp_dev[2]; /* measured as a whole, by statvfs */
	unsigned round;
	struct hidden_known known[HIDDEN_KNOWN_MAX];
	unsigned n_known;
	struct hidden_mapped mapped[HIDDEN_MAPPED_MAX];
	unsigned n_mapped;
	uint64_t kernel_bytes; /* pipes, sockets, epoll items, descriptors */
	unsigned parked;       /* descriptors in the queues of sockets */
	uint64_t listed[HIDDEN_SOCKETS_MAX]; /* sockets of the namespace */
	unsigned n_listed;
	bool list_full;
	uint64_t unheld[HIDDEN_SOCKETS_MAX]; /* those that nobody held, last time */
	unsigned n_unheld;
	usec_t crowded_since; /* more hiding places than are free; 0: not now */
};

struct hidden_sum {
	uint64_t memory_bytes, file_bytes;
	bool watch; /* look again soon */
};

enum hidden_how { HIDDEN_MEMORY, HIDDEN_UNLINKED, HIDDEN_NAMED };

/* shm_dev: the kernel's own tmpfs. tmp_fd, shm_fd: mounts of the job's own, or -1. */
struct hidden *hidden_new(uint64_t shm_dev, uint64_t work_dev, int tmp_fd, int shm_fd);
/* proc_fd: the job's /proc. own_net: the keeper is in the job's network namespace. */
void hidden_begin(struct hidden *h, int proc_fd, bool own_net);
/* An object was met with its size: through a descriptor (memory, or a file without a
 * name), or by its name. */
void hidden_note(struct hidden *h, uint64_t dev, uint64_t ino, uint64_t bytes,
		 enum hidden_how how);
/* A pipe, a socket or an anonymous inode behind descriptor `name` of a task; info: its
 * fdinfo directory. */
void hidden_fd(struct hidden *h, int pidfd, int info, const char *name,
	       const struct stat *st);
/* The maps of one process; takes the descriptor. */
void hidden_maps(struct hidden *h, int maps_fd);
/* held: every object that a descriptor showed in this sample. */
void hidden_end(struct hidden *h, const struct inode_set *held, struct hidden_sum *ret);

/* Pure parts. */
unsigned hidden_count_lines(const char *text, const char *prefix);
/* "00:01", an inode and a range out of a line of maps; false: none of ours. */
bool hidden_parse_map(const char *line, uint64_t *dev, uint64_t *ino, uint64_t *bytes,
		      bool *deleted);

#endif
