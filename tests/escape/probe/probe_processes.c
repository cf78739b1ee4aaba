/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section C: processes, signals, System V objects and keys. The targets are a process of
 * the same uid outside and the job's own keeper.
 */
#include "tests/escape/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define IOPRIO_PROCESS 1
#define IOPRIO_IDLE 0x6000
#define KEY_SESSION (-3)
#define KEY_USER (-4)

static pid_t victim(void)
{
	return (pid_t)target_number("victim_pid");
}

/* ---- 52: signals ---- */

static int kill_victim(void)
{
	return answer_of(kill(victim(), SIGKILL));
}
static int kill_victim_group(void)
{
	return answer_of(kill(-victim(), SIGKILL));
}
static int signal_keeper(void)
{
	return answer_of(kill(keeper_pid(), SIGCONT));
}
static int tgkill_victim(void)
{
	return answer_of(syscall(SYS_tgkill, victim(), victim(), SIGKILL));
}
static int tkill_victim(void)
{
	return answer_of(syscall(SYS_tkill, victim(), SIGKILL));
}
static int queue_victim(void)
{
	siginfo_t si = {.si_code = SI_QUEUE};

	return answer_of(syscall(SYS_rt_sigqueueinfo, victim(), SIGKILL, &si));
}
static int pidfd_victim(void)
{
	int fd = (int)syscall(SYS_pidfd_open, victim(), 0);

	return fd < 0 ? errno
		      : answer_of(syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0));
}
/* SIGUSR1 ends the victim; inside it is ignored. */
static int signal_everybody(void)
{
	(void)kill(-1, SIGUSR1);
	return HELD;
}
static int signal_own_group(void)
{
	(void)kill(0, SIGUSR1);
	return HELD;
}
static int signal_by_owner(pid_t pid)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0 || fcntl(p[0], F_SETSIG, SIGUSR1) < 0 ||
	    fcntl(p[0], F_SETFL, O_ASYNC) < 0)
		return NO_ANSWER;
	if (fcntl(p[0], F_SETOWN, pid) < 0)
		return errno;
	return write(p[1], "x", 1) == 1 ? HELD : NO_ANSWER;
}
static int owner_victim(void)
{
	return signal_by_owner(victim());
}
static int owner_keeper(void)
{
	return signal_by_owner(keeper_pid());
}
/* A child whose end is told by a signal of choice, to a parent of choice. */
static int exit_signal(void)
{
	long pid = syscall(SYS_clone, (unsigned long)(CLONE_PARENT | SIGUSR1), NULL, NULL,
			   NULL, 0UL);

	if (pid == 0)
		_exit(0);
	return pid < 0 ? errno : HELD;
}

/* ---- 53, 54: another's memory and descriptors ---- */

static int attach(pid_t pid, int how)
{
	return answer_of(ptrace((enum __ptrace_request)how, pid, NULL, NULL));
}
static int attach_victim(void)
{
	return attach(victim(), PTRACE_ATTACH);
}
static int seize_victim(void)
{
	return attach(victim(), PTRACE_SEIZE);
}
static int attach_keeper(void)
{
	return attach(keeper_pid(), PTRACE_ATTACH);
}
static int trace_me(void)
{
	return answer_of(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}
static int memory_of(pid_t pid, int write_it)
{
	static char c[8];
	struct iovec l = {c, sizeof(c)}, r = {c, sizeof(c)};

	return answer_of(write_it ? process_vm_writev(pid, &l, 1, &r, 1, 0)
				  : process_vm_readv(pid, &l, 1, &r, 1, 0));
}
static int read_victim_memory(void)
{
	return memory_of(victim(), 0);
}
static int write_victim_memory(void)
{
	return memory_of(victim(), 1);
}
static int read_keeper_memory(void)
{
	return memory_of(keeper_pid(), 0);
}
static int steal_fd(void)
{
	return answer_of(syscall(SYS_pidfd_getfd, 0, 0, 0));
}
static int compare(void)
{
	return answer_of(syscall(SYS_kcmp, victim(), getpid(), 0, 0, 0));
}
static int advise_victim(void)
{
	return answer_of(syscall(SYS_process_madvise, 0, NULL, 0, 0, 0));
}
static int move_pages_of_victim(void)
{
	return answer_of(syscall(SYS_move_pages, victim(), 0UL, NULL, NULL, NULL, 0));
}
static int proc_of(pid_t pid)
{
	static const char *const names[] = {
		"mem",	   "environ", "maps",	"root/etc/passwd", "cwd",    "fd/0",
		"cmdline", "stat",    "exe",	"ns/net",	   "fdinfo", "auxv",
		"io",	   "task",    "status", "mounts",	   "stack",  NULL};
	char path[PATH_MAX];
	int worst = ENOENT;

	for (const char *const *n = names; *n; n++) {
		int got;

		(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, *n);
		got = read_outside(path);
		if (got == GOT_THROUGH) {
			(void)fprintf(stderr, "%s\n", path);
			return got;
		}
		if (got != ENOENT)
			worst = got;
	}
	return worst;
}
static int proc_victim(void)
{
	return proc_of(victim());
}
static int proc_keeper(void)
{
	return proc_of(keeper_pid());
}

/* ---- 55-57: another's limits and priority, more of one's own ---- */

static int limit_of(pid_t pid)
{
	struct rlimit now;

	return answer_of(prlimit(pid, RLIMIT_NOFILE, NULL, &now));
}
static int get_limit_victim(void)
{
	return limit_of(victim());
}
static int set_limit(pid_t pid)
{
	struct rlimit l = {0, 0};

	return answer_of(prlimit(pid, RLIMIT_CPU, &l, NULL));
}
static int set_limit_victim(void)
{
	return set_limit(victim());
}
static int set_limit_keeper(void)
{
	return set_limit(keeper_pid());
}
static int nice_victim(void)
{
	return answer_of(setpriority(PRIO_PROCESS, (id_t)victim(), 19));
}
static int nice_self(void)
{
	if (setpriority(PRIO_PROCESS, (id_t)getpid(), 7) < 0 ||
	    getpriority(PRIO_PROCESS, 0) != 7)
		return errno;
	if (setpriority(PRIO_PROCESS, (id_t)getpid(), 0) == 0 || errno != EACCES)
		return GOT_THROUGH;
	return HELD;
}
static int nice_keeper(void)
{
	return answer_of(setpriority(PRIO_PROCESS, (id_t)keeper_pid(), 19));
}
static int nice_group(void)
{
	return answer_of(setpriority(PRIO_PGRP, (id_t)victim(), 19));
}
static int nice_user(void)
{
	return answer_of(setpriority(PRIO_USER, 0, 19));
}
static int io_nice_victim(void)
{
	return answer_of(syscall(SYS_ioprio_set, IOPRIO_PROCESS, victim(), IOPRIO_IDLE));
}
static int schedule_victim(void)
{
	struct sched_param p = {0};

	return answer_of(sched_setscheduler(victim(), SCHED_IDLE, &p));
}
static int affinity_victim(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	return answer_of(sched_setaffinity(victim(), sizeof(one), &one));
}
static int ask_about_victim(void)
{
	cpu_set_t set;

	return allowed_or_errno(sched_getaffinity(victim(), sizeof(set), &set));
}
/* The call may work; what counts is what one has afterwards. */
static int widen_affinity(void)
{
	cpu_set_t was, now;

	memset(&now, 0xff, sizeof(now));
	if (sched_getaffinity(0, sizeof(was), &was) < 0)
		return NO_ANSWER;
	(void)sched_setaffinity(0, sizeof(now), &now);
	if (sched_getaffinity(0, sizeof(now), &now) < 0)
		return NO_ANSWER;
	return CPU_EQUAL(&was, &now) ? HELD : GOT_THROUGH;
}
static int nicer(void)
{
	return answer_of(setpriority(PRIO_PROCESS, 0, -5));
}
static int realtime(void)
{
	struct sched_param p = {.sched_priority = 1};

	return answer_of(sched_setscheduler(0, SCHED_FIFO, &p));
}
static int deadline(void)
{
	struct {
		unsigned size, policy;
		unsigned long long flags;
		int nice;
		unsigned priority;
		unsigned long long runtime, deadline, period;
	} a = {.size = 48,
	       .policy = 6,
	       .runtime = 1000000,
	       .deadline = 10000000,
	       .period = 10000000};

	return answer_of(syscall(SYS_sched_setattr, 0, &a, 0));
}
/* Whose weight is next to nothing holds a lock for as long as others want the processor. */
static int idle(void)
{
	struct sched_param p = {0};

	return answer_of(sched_setscheduler(0, SCHED_IDLE, &p));
}
/* As short a slice as the guard's. */
static int short_slice(void)
{
	struct {
		unsigned size, policy;
		unsigned long long flags;
		int nice;
		unsigned priority;
		unsigned long long runtime, deadline, period;
	} a = {.size = 48, .runtime = 100000};

	return answer_of(syscall(SYS_sched_setattr, 0, &a, 0));
}
static int spare_oneself(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY);

	return fd < 0 ? errno : answer_of(write(fd, "0", 1));
}
static int first_for_oom(void)
{
	char text[16] = "";
	int fd = open("/proc/self/oom_score_adj", O_RDONLY);

	if (fd < 0)
		return errno;
	return read(fd, text, sizeof(text) - 1) > 0 && strcmp(text, "1000\n") == 0
		       ? HELD
		       : GOT_THROUGH;
}
static int io_realtime(void)
{
	return answer_of(syscall(SYS_ioprio_set, IOPRIO_PROCESS, 0, 0x2000));
}
static int raise_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return NO_ANSWER;
	l.rlim_max++;
	return answer_of(setrlimit(RLIMIT_NOFILE, &l));
}
/* Only with a limit of 1 is no handler of the host started; a job that asks for another
 * believes that it has it. */
static int core_dumps(void)
{
	struct rlimit l = {0, 0}, old;

	if (setrlimit(RLIMIT_CORE, &l) < 0 || syscall(SYS_setrlimit, RLIMIT_CORE, &l) < 0)
		return errno;
	if (prlimit(0, RLIMIT_CORE, &l, &old) == 0 || errno != EPERM)
		return GOT_THROUGH;
	/* it may have been 0 before us, where no handler is told of it */
	return getrlimit(RLIMIT_CORE, &l) == 0 && l.rlim_max == l.rlim_cur &&
			       l.rlim_max == (rlim_t)(target_number("core_max") != 0)
		       ? HELD
		       : GOT_THROUGH;
}
static int hide(void)
{
	return answer_of(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
}

/* ---- 58, 59: queues and keys; System V objects: probe_sysv.c ---- */

static int posix_queue(void)
{
	long fd = syscall(SYS_mq_open, target("unique"), O_RDWR | O_CREAT | O_CLOEXEC,
			  0600, NULL);

	return answer_of(fd);
}
static int keyring_id(void)
{
	return answer_of(syscall(SYS_keyctl, 0, KEY_SESSION, 0));
}
static int key_read(void)
{
	char text[64];

	return answer_of(
		syscall(SYS_keyctl, 11, target_number("key"), text, sizeof(text)));
}
static int key_add(void)
{
	return answer_of(syscall(SYS_add_key, "user", "lych-probe", "x", 1, KEY_USER));
}
static int key_request(void)
{
	return answer_of(syscall(SYS_request_key, "user", "lych-probe", NULL, KEY_USER));
}
static int key_link(void)
{
	return answer_of(syscall(SYS_keyctl, 8, KEY_USER, KEY_SESSION));
}

/* clang-format off */
#define DENIED {EPERM}, {EPERM}
#define NOBODY {ESRCH}, {EPERM}
#define EDGES "tests/escape/edges.sh"
#define LIFECYCLE "tests/integration/daemons/lifecycle.sh"

static const struct probe probes[] = {
	{"52", "kill a process of the same uid outside", kill_victim, NOBODY},
	{"52b", "kill its group", kill_victim_group, NOBODY},
	{"52c", "tgkill it", tgkill_victim, NOBODY},
	{"52d", "tkill it", tkill_victim, NOBODY},
	{"52e", "rt_sigqueueinfo to it", queue_victim, NOBODY},
	{"52f", "pidfd_send_signal to it", pidfd_victim, {ESRCH}, {ENOSYS}},
	{"52g", "signal the keeper", signal_keeper, DENIED},
	{"52h", "kill(-1)", signal_everybody, {HELD}, {HELD}, "reaches the job itself"},
	{"52i", "kill(0)", signal_own_group, {HELD}, {HELD}, "reaches the job itself"},
	{"52j", "F_SETOWN and O_ASYNC: SIGIO to it", owner_victim, {ESRCH}, {HELD, EPERM},
	 "nothing arrives"},
	{"52k", "the same to the keeper", owner_keeper, {HELD, EPERM}, {HELD, EPERM},
	 "nothing arrives"},
	{"52l", "an exit signal of choice to the keeper", exit_signal, {HELD}, {HELD},
	 "nothing arrives"},
	{"53", "ptrace ATTACH", attach_victim, DENIED},
	{"53b", "ptrace SEIZE", seize_victim, DENIED},
	{"53c", "ptrace ATTACH to the keeper", attach_keeper, DENIED},
	{"53d", "ptrace TRACEME", trace_me, DENIED},
	{"54", "process_vm_readv", read_victim_memory, DENIED},
	{"54b", "process_vm_writev", write_victim_memory, DENIED},
	{"54c", "process_vm_readv of the keeper", read_keeper_memory, DENIED},
	{"54d", "pidfd_getfd", steal_fd, DENIED},
	{"54e", "kcmp", compare, DENIED},
	{"54f", "process_madvise", advise_victim, DENIED},
	{"54g", "move_pages", move_pages_of_victim, DENIED},
	{"54h", "/proc/PID/ mem, environ, maps, root, cwd, fd, cmdline, ns", proc_victim,
	 {ENOENT}, {EACCES}},
	/* EPERM: once the keeper has looked there itself */
	{"54i", "the same of the keeper", proc_keeper, {ENOENT, EACCES, EPERM}, {EACCES}},
	{"55", "prlimit: read another's limits", get_limit_victim, DENIED},
	{"55b", "prlimit: set them", set_limit_victim, DENIED},
	{"55c", "prlimit: set the keeper's", set_limit_keeper, DENIED},
	{"56", "setpriority", nice_victim, NOBODY},
	{"56j", "its own priority by its number, and back", nice_self, {HELD}, {HELD},
	 "it gets nicer; EACCES for the way back"},
	{"56b", "setpriority of the keeper", nice_keeper, DENIED},
	{"56c", "setpriority of a group", nice_group, DENIED},
	{"56d", "setpriority of the whole user", nice_user, DENIED},
	{"56e", "ioprio_set", io_nice_victim, DENIED},
	{"56f", "sched_setscheduler", schedule_victim, DENIED},
	{"56g", "sched_setaffinity", affinity_victim, NOBODY},
	{"56h", "sched_getaffinity, getpriority, getsid: ask only", ask_about_victim,
	 {ESRCH}, {ALLOWED},
	 "floor: that a pid exists and how it is scheduled can be seen"},
	{"56i", "more CPUs for oneself", widen_affinity, {HELD}, {HELD}},
	{"57", "nice -5", nicer, {EACCES, EPERM}, {EACCES, EPERM}},
	{"57b", "SCHED_FIFO", realtime, DENIED},
	{"57c", "SCHED_DEADLINE", deadline, DENIED},
	{"57d", "real-time I/O priority", io_realtime, DENIED},
	{"57h", "SCHED_IDLE", idle, DENIED},
	{"57i", "a shorter slice of the processor", short_slice, DENIED},
	{"57j", "not to be the first when memory runs out", spare_oneself, {EACCES},
	 {EACCES}},
	{"57l", "its oom_score_adj is 1000", first_for_oom, {HELD}, {EACCES},
	 "judged from outside by tests/escape/hold.py"},
	{"57e", "raise a hard limit", raise_limit, DENIED},
	{"57f", "core dumps, and the host's handler for them", core_dumps, {HELD}, {HELD},
	 "RLIMIT_CORE stays 1"},
	ELSEWHERE("57k", "core dumps with a hard limit of 0 and a handler",
	 "exit 78, SANDBOX-007", "tests/escape/leaks.sh", "a core handler"),
	{"57g", "hide from the supervision (not dumpable)", hide, DENIED},
	{"58", "shmget of a foreign key", sysv_shm_foreign, {ENOENT}, {EPERM}},
	{"58b", "shmat of a foreign segment", sysv_shm_attach, {EINVAL}, {EPERM}},
	{"58c", "IPC_RMID of a foreign segment", sysv_shm_remove, {EINVAL}, {EPERM}},
	{"58j", "list the segments of all", sysv_shm_list, {HELD}, {HELD}},
	{"58d", "a new segment with a key of the host", sysv_shm_new, {ALLOWED}, {EPERM},
	 "full: in its own ipc namespace"},
	{"58k", "a segment of huge pages", sysv_shm_huge, DENIED},
	{"58l", "the bounds of the namespace: shmmax, shmall, sem, msgmni", sysv_ipc_bounds, {EACCES},
	 {EACCES}},
	{"58e", "semget of a foreign key", sysv_sem_foreign, {ENOENT}, {EPERM}},
	{"58f", "IPC_RMID of foreign semaphores", sysv_sem_remove, {EINVAL}, {EPERM}},
	{"58g", "msgget of a foreign key", sysv_msg_foreign, {ENOENT}, {EPERM}},
	{"58h", "msgrcv from a foreign queue", sysv_msg_read, {EINVAL}, {EPERM}},
	ELSEWHERE("58m", "the same key in two jobs at once; objects left behind",
		  "full: each has its own, gone with the job", "tests/escape/sysvipc.sh", "left behind"),
	ELSEWHERE("58n", "memory in segments, semaphores, undo lists, messages of no process",
		  "ended: oom (full only)", LIFECYCLE, "segments semaphores undo messages"),
	{"58i", "a POSIX message queue", posix_queue, {EMFILE}, {EPERM}},
	{"59", "keyctl: the session keyring", keyring_id, DENIED},
	{"59b", "keyctl: read an inherited key", key_read, DENIED},
	{"59c", "add_key", key_add, DENIED},
	{"59d", "request_key", key_request, DENIED},
	{"59e", "keyctl: link a keyring", key_link, DENIED},
	ELSEWHERE("60", "daemonise, outlive the main process", "dead, counted as a stray",
	 LIFECYCLE, "exited orphan"),
	ELSEWHERE("61", "outlive SIGKILL of the supervisor", "dead", LIFECYCLE,
	 "kill -9 of a keeper"),
	ELSEWHERE("62", "ignore every signal", "SIGKILL after the grace, timeout",
	 LIFECYCLE, "timeout deaf"),
	ELSEWHERE("62b", "stopped processes", "SIGKILL, timeout", LIFECYCLE,
	 "timeout stop"),
	ELSEWHERE("63", "a grandchild that keeps stdout", "the end does not wait for it",
	 LIFECYCLE, "stdout held by a grandchild"),
	ELSEWHERE("64", "fork bomb", "ended: processes; a neighbour forks as it likes",
	 LIFECYCLE, "processes bomb"),
	ELSEWHERE("64b", "thread bomb", "ended: processes", LIFECYCLE,
	 "processes threads"),
	ELSEWHERE("65", "100,000 zombies", "reaped", "tests/soak/unruly_jobs.sh",
	 "zombies 100000"),
	ELSEWHERE("66", "kill the supervision from inside", "it keeps time", LIFECYCLE,
	 "timeout regicide"),
	{"66b", "signal, stop, trace, limit, renice, re-pin the guard", attack_guard, {HELD},
	 {HELD}},
	{"66c", "the same of the keeper", attack_keeper, {HELD}, {HELD}},
	{"66e", "the same of the meter", attack_meter, {HELD}, {HELD}},
	ELSEWHERE("66d", "hold locks that the supervision wants, beside 240 burners",
		  "ended within a second of the decision",
		  "tests/escape/guard.sh", "hold.py"),
	ELSEWHERE("68", "started with SIGCHLD ignored, signals blocked", "works", EDGES,
		  "every signal blocked"),
	ELSEWHERE("68b", "started as process 1", "works", EDGES, "as process 1"),
};
/* clang-format on */

const struct section section_processes = {'C', "Processes, signals, IPC", probes,
					  sizeof(probes) / sizeof(probes[0])};
