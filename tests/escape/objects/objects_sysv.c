/* SPDX-License-Identifier: Apache-2.0 */
/* Runs inside: System V objects. */
#include "tests/escape/objects/objects.h"

#include <errno.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#define SET_SEMAPHORES 32000
#define TEXT_BYTES 8192

static void make_segments(void)
{
	for (;;) {
		int id = shmget(IPC_PRIVATE, BLOCK_BYTES, IPC_CREAT | 0600);
		char *p = id < 0 ? NULL : shmat(id, NULL, 0);

		if (id < 0 || p == (void *)-1)
			return;
		memset(p, 1, BLOCK_BYTES);
		(void)shmdt(p);
		made++;
	}
}

static void make_empty_segments(void)
{
	while (shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) >= 0)
		made++;
}

static void make_semaphores(void)
{
	while (semget(IPC_PRIVATE, SET_SEMAPHORES, IPC_CREAT | 0600) >= 0)
		made++;
}

static void make_sets(void)
{
	while (semget(IPC_PRIVATE, 1, IPC_CREAT | 0600) >= 0)
		made++;
}

/* Each process has something to undo in the sets of all. */
static void make_undos(void)
{
	struct sembuf up = {.sem_op = 1, .sem_flg = SEM_UNDO};

	for (key_t key = 1;; key++) {
		int id = semget(key, SET_SEMAPHORES, IPC_CREAT | 0600);

		if (id < 0 || semop(id, &up, 1) < 0)
			return;
		made++;
	}
}

static void fill_queues(size_t bytes)
{
	static struct {
		long type;
		char text[TEXT_BYTES];
	} m = {.type = 1};

	for (;;) {
		int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);

		if (id < 0)
			return;
		while (msgsnd(id, &m, bytes, IPC_NOWAIT) == 0)
			made++;
		if (errno != EAGAIN)
			return;
	}
}

static void make_messages(void)
{
	fill_queues(TEXT_BYTES);
}

static void make_small_messages(void)
{
	fill_queues(0);
}

const struct object_kind objects_of_sysv[] = {
	{"sysv-segments", make_segments, "full",
	 "by the namespace's count of their pages (SHM_INFO)", ""},
	{"sysv-empty-segments", make_empty_segments, "full",
	 "the kernel's own bound for a namespace (4,096), 2 KiB each", ""},
	{"sysv-semaphores", make_semaphores, "full",
	 "by the namespace's count (SEM_INFO), 64 bytes each", ""},
	{"sysv-sets", make_sets, "full", "the same, 512 bytes each", ""},
	{"sysv-undos", make_undos, "full",
	 "what all tasks could have: 2 bytes for each of them and semaphore, 96 for each "
	 "set",
	 ""},
	{"sysv-messages", make_messages, "full",
	 "by the namespace's count (MSG_INFO), rounded up", ""},
	{"sysv-small-messages", make_small_messages, "full",
	 "the same, and 96 bytes each", ""},
	{0},
};
