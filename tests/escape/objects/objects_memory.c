/* SPDX-License-Identifier: Apache-2.0 */
/* Runs inside: mappings, threads, timers, filters, rules. */
#include "tests/escape/objects/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/landlock.h>
#include <linux/mempolicy.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- memory ----------------------------------------------------------------------------- */

static void make_mappings(void)
{
	for (;;) {
		char *p = mmap(NULL, (size_t)4096 * 4096, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (p == MAP_FAILED)
			return;
		for (size_t i = 0; i < 4096; i += 2)
			if (mprotect(p + i * 4096, 4096, PROT_READ) < 0)
				return;
	}
}

static void make_page_tables(void)
{
	const size_t gib = (size_t)1 << 30;

	for (int i = 0; i < 4096; i++) {
		char *p = mmap(NULL, gib, PROT_READ,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (p == MAP_FAILED)
			return;
		(void)madvise(p, gib, MADV_NOHUGEPAGE);
		for (size_t at = 0; at < gib; at += (size_t)2 << 20)
			(void)*(volatile char *)(p + at);
	}
}

static void *sleeper(void *arg)
{
	(void)pause();
	return arg;
}

static void make_threads(void)
{
	pthread_attr_t a;
	pthread_t t;

	(void)pthread_attr_init(&a);
	(void)pthread_attr_setstacksize(&a, 65536);
	while (pthread_create(&t, &a, sleeper, NULL) == 0)
		;
}

static void make_timers(void)
{
	struct sigevent e = {.sigev_notify = SIGEV_NONE};
	timer_t t;

	while (timer_create(CLOCK_MONOTONIC, &e, &t) == 0)
		;
}

static void make_signals(void)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	while (sigqueue(getpid(), SIGRTMIN, (union sigval){0}) == 0)
		;
}

/* ---- filters and rules --------------------------------------------------------------------- */

static void make_filters(void)
{
	static struct sock_filter code[4096];
	struct sock_fprog prog = {.len = 4096, .filter = code};

	for (size_t i = 0; i < 4095; i++)
		code[i] = (struct sock_filter){BPF_LD | BPF_W | BPF_ABS, 0, 0, 0};
	code[4095] = (struct sock_filter){BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
	while (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) == 0)
		;
}

static int ruleset(void)
{
	const uint64_t attr[] = {4 /* read files */};

	return (int)syscall(444, attr, sizeof(attr), 0);
}

static void add_rules(int set, int n)
{
	char name[64];

	for (int i = 0; i < n; i++) {
		struct {
			uint64_t access;
			int32_t fd;
		} __attribute__((packed)) rule = {.access = 4};
		long r;

		(void)snprintf(name, sizeof(name), "ruled.%d.%d", who, i);
		rule.fd = open(name, O_RDWR | O_CREAT, 0600);
		r = syscall(445, set, 1, &rule, 0);
		(void)close(rule.fd);
		if (r < 0)
			return;
		made++;
	}
}

static void make_rules(void)
{
	add_rules(ruleset(), MANY);
}

/* Each process a domain of its own, with all the rules. */
static void make_domains(void)
{
	int set = ruleset();

	add_rules(set, 20000);
	for (;;) {
		pid_t pid = fork();

		if (pid < 0)
			return;
		if (pid == 0) {
			for (int i = 0; i < 16; i++)
				(void)syscall(446, set, 0);
			(void)pause();
		}
	}
}

static void make_futex_hash(void)
{
	for (unsigned long n = 1ul << 31; n; n >>= 1)
		(void)prctl(78 /* PR_FUTEX_HASH */, 1, n, 0);
}

/* ---- what hangs on mappings and threads ---------------------------------------------- */

/* Each with a name of its own. */
static void make_mapping_names(void)
{
	char name[80];

	for (;; made++) {
		char *p = mmap(NULL, 8192, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		(void)snprintf(name, sizeof(name), "%070lu.%d", made, who);
		if (p == MAP_FAILED ||
		    prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, p, 4096, name) < 0)
			return;
	}
}

#define GENERATIONS 140 /* the limit for processes is another one */
#define THREADS 120

/* A page that was written before a fork is looked up from every generation: each has an entry
 * for each mapping of each one before it. */
static void make_generations(bool all_live)
{
	const size_t n = 500;
	char *p;

	if (who != 0)
		return;
	p = mmap(NULL, n * 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		 0);
	for (size_t i = 0; p != MAP_FAILED && i < n; i++) {
		p[i * 8192] = 1;
		if (mprotect(p + i * 8192 + 4096, 4096, PROT_NONE) < 0)
			return;
	}
	for (; made < GENERATIONS; made++) {
		pid_t pid = fork();

		if (pid < 0)
			return;
		if (pid != 0 && all_live)
			(void)pause();
		if (pid != 0) {
			/* one that stays keeps what is above it */
			pid = fork();
			if (pid == 0)
				(void)pause();
			_exit(0);
		}
		for (size_t i = 0; i < n; i++)
			p[i * 8192]++;
	}
}

static void make_live_generations(void)
{
	make_generations(true);
}

static void make_dead_generations(void)
{
	make_generations(false);
}

/* A policy for each page of a file: the file keeps it when it is mapped no more. */
static void make_policies(void)
{
	const size_t whole = (size_t)32 << 20;
	unsigned long node = 1;

	for (;;) {
		int fd = (int)memfd_create("x", 0);
		char *p = fd < 0 || ftruncate(fd, (off_t)whole) < 0
				  ? MAP_FAILED
				  : mmap(NULL, whole, PROT_READ, MAP_SHARED, fd, 0);

		if (p == MAP_FAILED)
			return;
		for (size_t at = 0; at < whole; at += 8192, made++)
			if (syscall(SYS_mbind, p + at, 4096, MPOL_BIND, &node,
				    sizeof(node) * 8, 0) < 0)
				return;
		(void)munmap(p, whole);
	}
}

/* One page of what was written stays mapped, and no descriptor. */
static void make_remnants(bool anonymous)
{
	const size_t whole = (size_t)16 << 20;

	for (;; made++) {
		int fd = anonymous ? -1 : (int)memfd_create("x", 0);
		char *p;

		for (size_t at = 0; fd >= 0 && at < whole; at += BLOCK_BYTES)
			(void)!write(fd, block, BLOCK_BYTES);
		p = mmap(NULL, anonymous ? whole : 4096, PROT_READ | PROT_WRITE,
			 MAP_SHARED | (anonymous ? MAP_ANONYMOUS : 0), fd, 0);
		(void)close(fd);
		if (p == MAP_FAILED)
			return;
		if (anonymous) {
			memset(p, 1, whole);
			(void)munmap(p + 4096, whole - 4096);
		}
	}
}

static void make_memfd_remnants(void)
{
	make_remnants(false);
}

static void make_anonymous_remnants(void)
{
	make_remnants(true);
}

/* As long as nobody is told of, and as many as there may be mappings. */
static void make_small_remnants(void)
{
	const size_t whole = ((size_t)128 << 10) - 4096;

	for (;; made++) {
		char *p = mmap(NULL, whole, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return;
		memset(p, 1, whole);
		(void)munmap(p + 4096, whole - 4096);
	}
}

/* They look like nothing at first, and are filled later, by another mapping of the same object. */
static void make_regrown_remnants(void)
{
	const size_t whole = (size_t)16 << 20;
	char *p[64];

	for (size_t i = 0; i < 64; i++) {
		p[i] = mmap(NULL, whole, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (p[i] == MAP_FAILED)
			return;
		(void)munmap(p[i] + 4096, whole - 4096);
	}
	(void)usleep(500000);
	for (size_t i = 0; i < 64; i++, made++) {
		char *q = mremap(p[i], 0, whole, MREMAP_MAYMOVE);

		if (q == MAP_FAILED)
			return;
		memset(q, 1, whole);
		(void)munmap(q, whole);
	}
	(void)pause();
}

/* A huge page for an object of one small page. */
static void make_huge_remnants(void)
{
	const size_t huge = (size_t)2 << 20;
	char *room = mmap(NULL, 2 * huge, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *at = (char *)(((uintptr_t)room + huge - 1) & ~(huge - 1));

	for (;; made++) {
		char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return;
		*p = 1;
		if (mremap(p, 0, huge, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED)
			return;
		(void)madvise(at, huge, 25 /* MADV_COLLAPSE */);
	}
}

static void *filtered(void *arg)
{
	make_filters();
	(void)pause();
	return arg;
}

/* Each thread has its own; the process shows those of its first. */
static void make_thread_filters(void)
{
	pthread_attr_t a;
	pthread_t t;

	(void)pthread_attr_init(&a);
	(void)pthread_attr_setstacksize(&a, 65536);
	while (who == 0 && made < THREADS && pthread_create(&t, &a, filtered, NULL) == 0)
		made++;
}

const struct object_kind objects_of_memory[] = {
	{"mappings", make_mappings, "both",
	 "384 bytes each, 512 of a file; the kernel's bound for a process "
	 "(`max_map_count`)",
	 "156 MiB"},
	{"mapping-names", make_mapping_names, "both",
	 "384 bytes a mapping, its name in it", ""},
	{"live-generations", make_live_generations, "both",
	 "64 bytes for each mapping and process that was forked on the way to it, beyond "
	 "32 MiB, as far as the kernel's memory grew",
	 "191 MiB"},
	{"dead-generations", make_dead_generations, "both", "the same", ""},
	{"policies", make_policies, "both", "refused (`mbind`): EPERM", ""},
	{"memfd-remnants", make_memfd_remnants, "both",
	 "the largest size that was seen; what came while it did; from the ninth on 32 "
	 "MiB each as far as the machine's memory grew",
	 ""},
	{"shared-remnants", make_anonymous_remnants, "both",
	 "the same, and no more than was asked for when it was mapped", ""},
	{"small-remnants", make_small_remnants, "both",
	 "the same; below 128 KiB nobody is told what was asked for, each is taken to "
	 "have so much",
	 ""},
	{"regrown-remnants", make_regrown_remnants, "both", "the same", "134 MiB"},
	{"huge-remnants", make_huge_remnants, "both",
	 "the same, and 2 MiB more for each from the first MADV_COLLAPSE on", "149 MiB"},
	{"page-tables", make_page_tables, "both", "by the process's VmPTE", "148 MiB"},
	{"threads", make_threads, "both", "processes (256)", ""},
	{"timers", make_timers, "both", "RLIMIT_SIGPENDING", ""},
	{"signals", make_signals, "both", "RLIMIT_SIGPENDING", ""},
	{"filters", make_filters, "both",
	 "160 KiB each, no more than the job made; the kernel's bound for a thread", ""},
	{"thread-filters", make_thread_filters, "both", "the same, of each thread", ""},
	{"landlock-rules", make_rules, "both", "4,096 for the job, then EPERM", ""},
	{"landlock-domains", make_domains, "both", "64 for the job, then EPERM", ""},
	{"futex-hash", make_futex_hash, "both", "refused (`prctl`): EPERM", ""},
	{0},
};
