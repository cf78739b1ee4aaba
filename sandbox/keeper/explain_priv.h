/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * Shared by the files of --explain: the questions that a job's calls become, and what is
 * known of the sandbox to answer them.
 */
#ifndef LYCH_SANDBOX_KEEPER_EXPLAIN_PRIV_H
#define LYCH_SANDBOX_KEEPER_EXPLAIN_PRIV_H

#include "sandbox/explain/grants.h"
#include "sandbox/keeper/notify.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define PENDING_MAX 64
#define TMPFS_MAX 64
#define GRANT_TEXT sizeof(((struct spawn_denied *)0)->grant)

/* What a call is about to do with one path. */
enum access {
	ACCESS_OPEN, /* read, write or both; may create */
	ACCESS_EXEC,
	ACCESS_CREATE, /* a name that is not there yet */
	ACCESS_REMOVE, /* one that is */
	ACCESS_LOOK,   /* is it there? No wall but absence answers that */
};

struct question {
	int nr, base; /* base: O_PATH of the directory that path starts from, -1 */
	pid_t pid;
	enum access access;
	unsigned need; /* GRANT_* */
	bool creates, nofollow;
	char *path;
};

struct explain {
	struct grants_table grants;
	/* devices; full: of the root, /tmp and /dev/shm; floor: of all that are mounted */
	uint64_t tmpfs[TMPFS_MAX];
	size_t n_tmpfs;
	struct question pending[PENDING_MAX];
	unsigned n_pending;
};

/* explain_judge.c */
/* O_PATH of what a path leads to, if the kernel has it at hand; -1 and errno, EAGAIN: it has
 * not, look again later. */
int explain_look(const struct notify *n, int base, const char *path, bool nofollow);
bool explain_attributes(int fd, struct statx *ret);
bool explain_real_path(const struct notify *n, int fd, char *out, size_t size);
/* Tells which wall is in the way, if one is. false: not cached, look again later. */
bool explain_judge(struct notify *n, const struct question *q);
/* The same of the caller's own directory of /proc, by the name "self" or "thread-self": floor
 * grants no directory there. Nothing has to be waited for. */
void explain_judge_self(struct notify *n, const struct seccomp_notif *req,
			const struct question *q);
/* The number by which statx() and mountinfo name a device. */
static inline uint64_t explain_device(uint32_t major, uint32_t minor)
{
	return (uint64_t)major << 32 | minor;
}

#endif
