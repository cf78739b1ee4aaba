/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts inside on System V objects of the host (threat 58). */
#include "tests/escape/probe/probe.h"

#include <errno.h>
#include <stdio.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

int sysv_shm_foreign(void)
{
	return answer_of(shmget((key_t)target_number("ipc_key"), 0, 0));
}

int sysv_shm_attach(void)
{
	return answer_of((long)shmat((int)target_number("shm"), NULL, 0));
}

int sysv_shm_remove(void)
{
	return answer_of(shmctl((int)target_number("shm"), IPC_RMID, NULL));
}

int sysv_shm_new(void)
{
	return allowed_or_errno(
		shmget((key_t)target_number("ipc_key") + 1, 4096, IPC_CREAT | 0600));
}

int sysv_shm_huge(void)
{
	return answer_of(shmget(IPC_PRIVATE, 2 << 20, IPC_CREAT | SHM_HUGETLB | 0600));
}

int sysv_shm_list(void)
{
	struct shmid_ds s;

	for (int i = 0; i < 4096; i++)
		if (shmctl(i, 15 /* SHM_STAT_ANY */, &s) >= 0 ||
		    shmctl(i, IPC_STAT, &s) >= 0)
			return GOT_THROUGH;
	return HELD;
}

int sysv_ipc_bounds(void)
{
	static const char *const names[] = {"shmmax", "shmall", "shmmni", "sem",
					    "msgmni"};
	int answer = HELD;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[64];

		(void)snprintf(path, sizeof(path), "/proc/sys/kernel/%s", names[i]);
		answer = write_outside(path);
		if (answer != EACCES)
			return answer;
	}
	return answer;
}

int sysv_sem_foreign(void)
{
	return answer_of(semget((key_t)target_number("ipc_key"), 0, 0));
}

int sysv_sem_remove(void)
{
	return answer_of(semctl((int)target_number("sem"), 0, IPC_RMID));
}

int sysv_msg_foreign(void)
{
	return answer_of(msgget((key_t)target_number("ipc_key"), 0));
}

int sysv_msg_read(void)
{
	struct {
		long type;
		char text[64];
	} m;

	return answer_of(
		msgrcv((int)target_number("msg"), &m, sizeof(m.text), 0, IPC_NOWAIT));
}
