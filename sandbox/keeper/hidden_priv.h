/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the meter.
 * Shared by hidden*.c.
 */
#ifndef LYCH_SANDBOX_KEEPER_HIDDEN_PRIV_H
#define LYCH_SANDBOX_KEEPER_HIDDEN_PRIV_H

#include "sandbox/keeper/hidden.h"
#include "sandbox/keeper/inode_set.h"

/* An object that was once seen with its true size: through a descriptor or by name. */
struct hidden_known {
	uint64_t dev, ino, bytes;
	unsigned round; /* the last one that met it */
	bool file;	/* of the workspace's file system, else memory */
	bool named;	/* met by name: it is counted there */
};

/* An object that is mapped, and not held by a descriptor. */
struct hidden_mapped {
	uint64_t dev, ino, bytes; /* the most that one process maps of it */
	uint64_t now;		  /* of the process being read */
	bool file, held;
	bool zero; /* no descriptor of it can be had: hidden_map_is_zero() */
};

struct hidden {
	uint64_t shm_dev, work_dev, sock_dev;
	uint64_t tmp_dev[2]; /* measured as a whole, by statvfs */
	int diag_fd;
	uint64_t queue; /* diag_queue_bytes() */
	unsigned round;
	struct hidden_known known[HIDDEN_KNOWN_MAX];
	unsigned n_known;
	struct hidden_mapped mapped[HIDDEN_MAPPED_MAX];
	unsigned n_mapped;
	unsigned n_zero, more_zero;	     /* of them; beyond what there is room for */
	uint64_t socket_bytes;		     /* of all sockets of the namespace */
	unsigned parked;		     /* descriptors in the queues of sockets */
	uint64_t listed[HIDDEN_SOCKETS_MAX]; /* unix sockets of the namespace */
	unsigned n_listed;
	bool list_full;
	struct inode_set udp;		     /* of those that are listed */
	uint64_t unheld[HIDDEN_SOCKETS_MAX]; /* those that nobody held, last time */
	unsigned n_unheld;
	usec_t crowded_since; /* more hiding places than are free; 0: not now */
	/* What was mapped and not held one round ago, and two; how many were parked. A place is
	 * new for two rounds, for it may have come when one had just begun. */
	uint64_t was[2][HIDDEN_MAPPED_MAX];
	unsigned n_was[2], was_parked[2];
	uint64_t unexplained; /* of the machine's shared memory, at the last round */
	/* What came of it when a place was new. */
	struct hidden_grown {
		uint64_t ino, bytes;
	} grown[HIDDEN_GROWN_MAX];
	unsigned n_grown;
	uint64_t parked_bytes; /* what came of it with what is parked */
};

static inline bool hidden_among(const uint64_t *list, unsigned n, uint64_t v)
{
	for (unsigned i = 0; i < n; i++)
		if (list[i] == v)
			return true;
	return false;
}

static inline uint64_t hidden_beyond(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* hidden_growth.c: what came in between, and belongs to what is new. */
void hidden_sum_growth(struct hidden *h, const struct hidden_missing *missing,
		       unsigned parked, struct hidden_sum *sum);

#endif
