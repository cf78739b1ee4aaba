/* SPDX-License-Identifier: Apache-2.0 */
/* System V objects: of no process, and there until somebody removes them. */
#include "tests/escape/unruly/unruly.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEGMENT_MIB 16
#define SHARED_MIB 100
#define SET_SEMAPHORES 32000
#define UNDOERS 100
#define TEXT_BYTES 8192

/* Filled, and in no process's memory. */
static int segments(void)
{
	for (;;) {
		int id = shmget(IPC_PRIVATE, SEGMENT_MIB * MIB, IPC_CREAT | 0600);
		char *p = id < 0 ? NULL : shmat(id, NULL, 0);

		if (id < 0 || p == (void *)-1)
			return 50;
		memset(p, 1, SEGMENT_MIB * MIB);
		if (shmdt(p) < 0)
			return 51;
	}
}

static int semaphores(void)
{
	while (semget(IPC_PRIVATE, SET_SEMAPHORES, IPC_CREAT | 0600) >= 0)
		;
	return 52;
}

/* The kernel notes for each task and set what is to be undone. */
static int undo(void)
{
	struct sembuf up = {.sem_op = 1, .sem_flg = SEM_UNDO};

	for (int i = 1; i < UNDOERS && fork() != 0; i++)
		;
	for (key_t key = 1;; key++) {
		int id = semget(key, SET_SEMAPHORES, IPC_CREAT | 0600);

		if (id < 0 || semop(id, &up, 1) < 0)
			return 53;
	}
}

static int messages(void)
{
	static struct {
		long type;
		char text[TEXT_BYTES];
	} m = {.type = 1};

	for (;;) {
		int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);

		if (id < 0)
			return 54;
		while (msgsnd(id, &m, sizeof(m.text), IPC_NOWAIT) == 0)
			;
		if (errno != EAGAIN)
			return 55;
	}
}

/* arg: what of */
int act_sysv(const char *arg)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} kinds[] = {{"segments", segments},
		     {"semaphores", semaphores},
		     {"undo", undo},
		     {"messages", messages}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(arg, kinds[i].name) == 0)
			return kinds[i].run();
	return 56;
}

/* A segment that four have and fill counts once. */
int act_sysvshare(const char *arg)
{
	int id = shmget(IPC_PRIVATE, SHARED_MIB * MIB, IPC_CREAT | 0600);
	char *p = id < 0 ? NULL : shmat(id, NULL, 0);

	(void)arg;
	if (id < 0 || p == (void *)-1 || shmctl(id, IPC_RMID, NULL) < 0)
		return 57;
	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			memset(p, i, SHARED_MIB * MIB);
			(void)sleep(1);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	return 0;
}
