/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs inside: takes locks that a supervisor may want, and keeps whoever has them from the
 * processor. tests/escape/hold.py judges from outside.
 *
 *	try_hold ACT BURNERS MARK
 *
 * In the working directory it makes a file "stamps": each task writes there when it last
 * executed an instruction (CLOCK_BOOTTIME, ns), so that what lives longest can be seen from
 * outside. MARK is only there to be found in /proc/PID/cmdline.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 4096
#define BIG ((size_t)256 << 20)
#define LITTLE ((size_t)64 << 20)
#define QUEUE 150

static _Atomic uint64_t *stamp;
static _Atomic uint32_t *next_slot;

static void die(const char *what)
{
	fprintf(stderr, "try_hold: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static _Atomic uint64_t *own_slot(void)
{
	return &stamp[atomic_fetch_add(next_slot, 1) % SLOTS];
}

static void begin(void)
{
	size_t size = SLOTS * sizeof(*stamp);
	int fd = open("stamps", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		die("stamps");
	stamp = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	next_slot = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			 -1, 0);
	if (stamp == MAP_FAILED || next_slot == MAP_FAILED)
		die("mmap");
	atomic_store(own_slot(), now());
}

/* The weight that remains when SCHED_IDLE is refused. */
static void be_last(void)
{
	struct sched_param none = {0};

	if (sched_setscheduler(0, SCHED_IDLE, &none) < 0)
		(void)setpriority(PRIO_PROCESS, 0, 19);
}

static _Noreturn void burn(void)
{
	_Atomic uint64_t *s = own_slot();

	(void)signal(SIGTERM, SIG_IGN);
	for (;;)
		atomic_store(s, now());
}

static void burners(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			/* Each its own group of the scheduler, where sessions are such. */
			(void)setsid();
			burn();
		}
		if (pid < 0)
			break;
	}
}

static pthread_t thread(void *(*body)(void *), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, body, arg) != 0)
		die("a thread");
	return t;
}

/* ---- the address space ------------------------------------------------------------- */

static void *storm(void *arg)
{
	char *p = arg;
	_Atomic uint64_t *s = own_slot();

	be_last();
	for (;;) {
		for (size_t at = 0; at < LITTLE; at += 8192)
			(void)mprotect(p + at, 4096, PROT_NONE);
		(void)mprotect(p, LITTLE, PROT_READ);
		atomic_store(s, now());
	}
	return NULL;
}

static void *reprotect(void *arg)
{
	char *p = arg;
	_Atomic uint64_t *s = own_slot();

	be_last();
	for (;;) {
		(void)mprotect(p, BIG, PROT_NONE);
		(void)mprotect(p, BIG, PROT_READ);
		atomic_store(s, now());
	}
	return NULL;
}

static char *zeros(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		       -1, 0);
	volatile char sum = 0;

	if (p == MAP_FAILED)
		die("mmap");
	(void)madvise(p, size, MADV_NOHUGEPAGE);
	for (size_t at = 0; at < size; at += 4096)
		sum = (char)(sum + p[at]);
	return p;
}

static void act_storm(void)
{
	char *p = zeros(LITTLE);

	for (int i = 0; i < 4; i++)
		(void)thread(storm, p);
}

static void act_mprotect(void)
{
	(void)thread(reprotect, zeros(BIG));
}

/* exec in a vfork child waits for the address space of its parent, with the lock that
 * whoever looks at a process takes. */
static void *reexec(void *arg)
{
	(void)arg;
	for (;;) {
		pid_t pid = vfork();

		if (pid == 0) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(1);
		}
		if (pid > 0)
			(void)waitpid(pid, NULL, 0);
	}
	return NULL;
}

static void act_exec(void)
{
	act_storm();
	for (int i = 0; i < 4; i++)
		(void)thread(reexec, NULL);
}

/* ---- inodes and directories ----------------------------------------------------------- */

static _Noreturn void write_for_ever(const char *name)
{
	static char block[65536];
	int fd = open(name, O_WRONLY | O_CLOEXEC);
	_Atomic uint64_t *s = own_slot();

	(void)signal(SIGTERM, SIG_IGN);
	be_last();
	for (;;) {
		(void)!pwrite(fd, block, sizeof(block), 0);
		atomic_store(s, now());
	}
}

static void queue_for(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		die(name);
	(void)close(fd);
	for (int i = 0; i < QUEUE; i++)
		if (fork() == 0)
			write_for_ever(name);
}

/* Its directory is locked while it waits for the file. */
static _Noreturn void link_for_ever(const char *from, const char *to)
{
	_Atomic uint64_t *s = own_slot();

	(void)signal(SIGTERM, SIG_IGN);
	for (;;) {
		(void)!link(from, to);
		(void)unlink(to);
		atomic_store(s, now());
	}
}

static void act_link(void)
{
	queue_for("queued");
	if (fork() == 0)
		link_for_ever("queued", "linked");
}

/* Across directories: the file system has one lock for all of these. */
static void act_rename(void)
{
	(void)mkdir("a", 0700);
	(void)mkdir("b", 0700);
	queue_for("a/queued");
	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			_Atomic uint64_t *s = own_slot();

			(void)signal(SIGTERM, SIG_IGN);
			for (;;) {
				(void)rename("a/queued", "b/queued");
				(void)rename("b/queued", "a/queued");
				atomic_store(s, now());
			}
		}
}

static void act_directory(void)
{
	(void)mkdir("d", 0700);
	for (int i = 0; i < QUEUE; i++)
		if (fork() == 0) {
			_Atomic uint64_t *s = own_slot();
			char name[32];

			(void)signal(SIGTERM, SIG_IGN);
			be_last();
			for (unsigned k = 0;; k++) {
				(void)snprintf(name, sizeof(name), "d/%d.%u", i, k % 64);
				(void)close(
					open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
				(void)unlink(name);
				atomic_store(s, now());
			}
		}
}

/* Asks the keeper to change what 150 others write to (floor). */
static void act_metadata(void)
{
	queue_for("queued");
	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			int fd = open("queued", O_RDWR | O_CLOEXEC);
			_Atomic uint64_t *s = own_slot();

			(void)signal(SIGTERM, SIG_IGN);
			for (;;) {
				(void)fchmod(fd, 0600);
				(void)futimens(fd, NULL);
				atomic_store(s, now());
			}
		}
}

/* ---- locks of files, pipes, futexes ---------------------------------------------------- */

static void act_locks(void)
{
	int fd = open("locked", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int p[2];

	if (fd < 0 || pipe(p) < 0)
		die("locked");
	for (int i = 0; i < QUEUE; i++)
		if (fork() == 0) {
			int own = open("locked", O_RDWR | O_CLOEXEC);
			struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
			_Atomic uint64_t *s = own_slot();
			char block[4096];

			(void)signal(SIGTERM, SIG_IGN);
			be_last();
			for (;;) {
				(void)flock(own, LOCK_EX);
				l.l_type = F_WRLCK;
				(void)fcntl(own, F_SETLKW, &l);
				(void)!write(p[1], block, i % 2 ? sizeof(block) : 1);
				(void)!read(p[0], block, i % 2 ? 1 : sizeof(block));
				l.l_type = F_UNLCK;
				(void)fcntl(own, F_SETLK, &l);
				(void)flock(own, LOCK_UN);
				atomic_store(s, now());
			}
		}
}

static pthread_mutex_t *inherited;

static void *queue_up(void *arg)
{
	_Atomic uint64_t *s = own_slot();

	if (arg)
		be_last();
	for (;;) {
		(void)pthread_mutex_lock(inherited);
		atomic_store(s, now());
		(void)pthread_mutex_unlock(inherited);
	}
	return NULL;
}

/* Priority inheritance: who holds the mutex has the weight of who waits for it. */
static void act_futex(void)
{
	pthread_mutexattr_t a;

	inherited = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			 -1, 0);
	(void)pthread_mutexattr_init(&a);
	(void)pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	(void)pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	if (inherited == MAP_FAILED || pthread_mutex_init(inherited, &a) != 0)
		die("a mutex");
	for (int i = 0; i < 40; i++)
		if (fork() == 0) {
			(void)signal(SIGTERM, SIG_IGN);
			(void)thread(queue_up, NULL);
			(void)thread(queue_up, inherited);
			for (;;)
				(void)pause();
		}
}

/* Nothing is held: only many. */
static void act_burn(void)
{
}

/* What can be tried on the supervision by number, again and again: full has small ones, in
 * floor it is near its child. */
static void act_attack(void)
{
	if (fork() != 0)
		return;
	for (;;) {
		pid_t base = getppid() > 16 ? getppid() - 16 : 1;

		for (pid_t pid = base; pid < base + 16; pid++) {
			const cpu_set_t none = {0};

			if (pid == getpid() || pid == getppid())
				continue;
			(void)kill(pid, SIGSTOP);
			(void)kill(pid, SIGKILL);
			(void)syscall(SYS_tgkill, pid, pid, SIGSTOP);
			(void)setpriority(PRIO_PROCESS, (id_t)pid, 19);
			(void)sched_setaffinity(pid, sizeof(none), &none);
			(void)syscall(SYS_prlimit64, pid, RLIMIT_CPU,
				      &(struct rlimit){1, 1}, NULL);
		}
	}
}

static const struct {
	const char *name;
	void (*act)(void);
} acts[] = {
	{"storm", act_storm},	    {"mprotect", act_mprotect},
	{"exec", act_exec},	    {"link", act_link},
	{"rename", act_rename},	    {"directory", act_directory},
	{"metadata", act_metadata}, {"locks", act_locks},
	{"futex", act_futex},	    {"burn", act_burn},
	{"attack", act_attack},
};

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		if (strcmp(acts[i].name, argv[1]) != 0)
			continue;
		(void)signal(SIGTERM, SIG_IGN);
		begin();
		/* First: a fork waits for the address space that is held. */
		burners((unsigned)strtoul(argv[2], NULL, 10));
		acts[i].act();
		burn();
	}
	return 2;
}
