/* SPDX-License-Identifier: Apache-2.0 */
/* A process of the same uid, System V objects and a key: all as they were. */
#include "tests/escape/probe/probe.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define SECRET "in shared memory"
#define KEY_SESSION (-3)
#define KEYCTL_READ 11
#define KEYCTL_REVOKE 3

static pid_t victim;
static struct settings {
	struct rlimit limits[RLIM_NLIMITS];
	cpu_set_t cpus;
	int nice, policy;
	long io;
} before;

static int settings_of(pid_t pid, struct settings *s)
{
	memset(s, 0, sizeof(*s));
	for (int r = 0; r < (int)RLIM_NLIMITS; r++)
		if (prlimit(pid, (enum __rlimit_resource)r, NULL, &s->limits[r]) < 0)
			return -1;
	if (sched_getaffinity(pid, sizeof(s->cpus), &s->cpus) < 0)
		return -1;
	s->nice = getpriority(PRIO_PROCESS, (id_t)pid);
	s->policy = sched_getscheduler(pid);
	s->io = syscall(SYS_ioprio_get, 1, pid);
	return 0;
}

/*
 * In a PID namespace numbers begin anew. The victim's is one that no process of a job comes
 * to, or an attempt on it might reach the job's own: where numbers are low (in a container
 * that has just begun) some thousand are used up first.
 */
static pid_t fork_beyond_the_jobs(void)
{
	enum { BEYOND = 4096 };

	for (;;) {
		pid_t pid = fork();

		if (pid <= 0 || pid >= BEYOND)
			return pid;
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
}

static int start_victim(void)
{
	victim = fork_beyond_the_jobs();
	if (victim == 0) {
		/* A signal ends it; its group is its own. */
		(void)setpgid(0, 0);
		for (int s = 1; s < 32; s++)
			(void)signal(s, SIG_DFL);
		for (;;)
			(void)pause();
	}
	if (victim < 0)
		return -1;
	(void)setpgid(victim, victim);
	target_set("victim_pid", "%d", victim);
	if (settings_of(victim, &before) < 0)
		return -1;
	target_set("core_max", "%d", before.limits[RLIMIT_CORE].rlim_max != 0);
	return 0;
}

static int victim_unharmed(void)
{
	struct settings after;
	int alive = waitpid(victim, NULL, WNOHANG | WUNTRACED | WCONTINUED) == 0;
	int same = alive && settings_of(victim, &after) == 0 &&
		   memcmp(&before, &after, sizeof(before)) == 0;

	if (alive) {
		(void)kill(victim, SIGKILL);
		(void)waitpid(victim, NULL, 0);
	}
	return same;
}

/* ---- System V ---- */

static int shm = -1, sem = -1, msg = -1;
static key_t ipc_key;

static int make_objects(void)
{
	struct {
		long type;
		char text[sizeof(SECRET)];
	} m = {1, SECRET};
	char *p;

	ipc_key = (key_t)(0x10000000 | getpid() << 1);
	shm = shmget(ipc_key, 4096, IPC_CREAT | IPC_EXCL | 0600);
	sem = semget(ipc_key, 1, IPC_CREAT | IPC_EXCL | 0600);
	msg = msgget(ipc_key, IPC_CREAT | IPC_EXCL | 0600);
	if (shm < 0 || sem < 0 || msg < 0 || msgsnd(msg, &m, sizeof(m.text), 0) < 0)
		return -1;
	p = shmat(shm, NULL, 0);
	if (p == (void *)-1)
		return -1;
	memcpy(p, SECRET, sizeof(SECRET));
	(void)shmdt(p);
	target_set("ipc_key", "%d", ipc_key);
	target_set("shm", "%d", shm);
	target_set("sem", "%d", sem);
	target_set("msg", "%d", msg);
	return 0;
}

static int objects_unharmed(void)
{
	struct shmid_ds s = {0};
	struct msqid_ds q = {0};
	int ok = shmget(ipc_key + 1, 0, 0) < 0 && shmctl(shm, IPC_STAT, &s) == 0 &&
		 s.shm_lpid == getpid() && msgctl(msg, IPC_STAT, &q) == 0 &&
		 q.msg_qnum == 1 && semctl(sem, 0, GETVAL) == 0;

	(void)shmctl(shm, IPC_RMID, NULL);
	(void)semctl(sem, 0, IPC_RMID);
	(void)msgctl(msg, IPC_RMID, NULL);
	return ok;
}

/* ---- a key; a container may have none, and then there is nothing to take ---- */

static long key = -1;

static int make_key(void)
{
	key = syscall(SYS_add_key, "user", "lych-probe-victim", SECRET, sizeof(SECRET),
		      KEY_SESSION);
	target_set("key", "%ld", key);
	return key >= 0 || errno == EPERM || errno == ENOSYS || errno == EACCES ? 0 : -1;
}

static int key_unharmed(void)
{
	char text[64];
	int ok;

	if (key < 0)
		return 1;
	ok = syscall(SYS_keyctl, KEYCTL_READ, key, text, sizeof(text)) ==
		     (long)sizeof(SECRET) &&
	     memcmp(text, SECRET, sizeof(SECRET)) == 0;
	(void)syscall(SYS_keyctl, KEYCTL_REVOKE, key);
	return ok;
}

static const struct victim all[] = {
	{"the victim lives, its limits, priority and CPUs are as they were", start_victim,
	 victim_unharmed, NULL},
	{"System V objects are as they were, and there is no new one", make_objects,
	 objects_unharmed, NULL},
	{"the key is as it was", make_key, key_unharmed, NULL},
};
const struct victims victims_processes = {all, sizeof(all) / sizeof(all[0])};
