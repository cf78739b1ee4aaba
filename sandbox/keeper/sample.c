/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the meter.
 * One look at what the job's processes use, against its limits. How often:
 * pace.h.
 */
#include "sandbox/keeper/keep.h"

/* Standing at the process limit this long is a bomb, not a peak. */
#define AT_LIMIT_USEC (200 * USEC_PER_MSEC)
/* So many samples in a row with a process that hides what it holds. */
#define HIDING_SAMPLES 5
/* The keeper looks at the files ten times a second; a disk may make it wait. Without knowing what was added
 * there is nothing that excuses it. */
#define FILES_LATE_USEC USEC_PER_SEC
#define FILES_BLIND_USEC (10 * USEC_PER_SEC)
/* Some 20 MB of the kernel's memory, which no cgroup counts; programs have a handful. */
#define LOCKS_MAX 100000

void keep_over(struct keep *k, enum spawn_end how, const char *what, uint64_t is,
	       uint64_t limit)
{
	char text[SPAWN_TEXT_MAX];

	(void)snprintf(text, sizeof(text), "%s: %llu of %llu", what,
		       (unsigned long long)is, (unsigned long long)limit);
	keep_verdict(k, how, text);
}

static void check_processes(struct keep *k, unsigned n, usec_t now)
{
	if (n > atomic_load(&k->watch->processes_peak))
		atomic_store(&k->watch->processes_peak, n);
	if (n < k->spec->processes) {
		k->at_limit_since = 0;
		return;
	}
	if (!k->at_limit_since)
		k->at_limit_since = now;
	/* One process with a limit of one is no bomb. */
	if (n > 1 && now - k->at_limit_since >= AT_LIMIT_USEC)
		keep_over(k, SPAWN_END_PROCESSES, "processes", n, k->spec->processes);
}

static void check_memory(struct keep *k, const struct use_sum *use)
{
	uint64_t limit = k->spec->memory_bytes, is = use->memory_bytes;
	char text[SPAWN_TEXT_MAX];

	if (!use->settled)
		return;
	if (is > atomic_load(&k->watch->memory_peak))
		atomic_store(&k->watch->memory_peak, is);
	if (is <= limit)
		return;
	(void)snprintf(text, sizeof(text), "memory bytes%s%s: %llu of %llu",
		       use->unowned_bytes > limit / 2 ? ", most of them of no process"
						      : "",
		       use->doubted ? ", what is shared not told apart in time" : "",
		       (unsigned long long)is, (unsigned long long)limit);
	if (use->guessed_bytes)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
			       " (%llu of them guessed)",
			       (unsigned long long)use->guessed_bytes);
	keep_verdict(k, SPAWN_END_OOM, text);
}

static void check_objects(struct keep *k, const struct use_sum *use)
{
	if (use->locks > LOCKS_MAX)
		keep_over(k, SPAWN_END_OBJECTS, "byte-range locks", use->locks,
			  LOCKS_MAX);
	if (use->held_up)
		keep_verdict(k, SPAWN_END_UNMEASURED,
			     "memory went faster than could be told whose it is");
	if (use->rounds != k->rounds)
		k->hiding = use->unreadable ? k->hiding + 1 : 0;
	k->rounds = use->rounds;
	if (k->hiding >= HIDING_SAMPLES)
		keep_verdict(k, SPAWN_END_OOM,
			     "a process hides the files and memory that it holds");
}

/* Where the keeper is held by a file, or has too many to count: what anybody added to the file system tells
 * whether the limit can have been passed meanwhile. */
static void check_files(struct keep *k, usec_t now)
{
	usec_t looked = atomic_load(&k->watch->disk_looked);
	unsigned rounds = atomic_load(&k->watch->disk_rounds);
	uint64_t most = atomic_load(&k->watch->disk_total);

	disk_see_growth(&k->disk);
	k->use.files_grown = k->disk.sees_growth ? k->disk.grown : UINT64_MAX;
	if (rounds != k->disk_rounds) {
		k->disk_rounds = rounds;
		k->grown_before = k->grown_round;
		k->grown_round = k->disk.grown;
	}
	if (!looked || now < looked + FILES_LATE_USEC)
		return;
	most += k->disk.grown - k->grown_before;
	if (k->disk.sees_growth ? most > k->spec->disk_bytes
				: now > looked + FILES_BLIND_USEC)
		keep_verdict(k, SPAWN_END_UNMEASURED,
			     "what it has on the disk could not be counted in time");
}

/* Large files that have a name, met by the keeper since we last asked. */
static void hear_named(struct keep *k)
{
	uint32_t n = atomic_load(&k->watch->n_named);

	if (n - k->named_heard > WATCH_NAMED_MAX)
		k->named_heard = n - WATCH_NAMED_MAX;
	for (; k->named_heard != n; k->named_heard++) {
		const struct watch_named *f =
			&k->watch->named[k->named_heard % WATCH_NAMED_MAX];

		use_note_file(&k->use, f->dev, f->ino, f->bytes);
	}
}

static void check_cpu(struct keep *k, const struct use_sum *use)
{
	uint64_t cpu = use->cpu_usec + atomic_load(&k->watch->reaped_cpu_usec);

	if (k->spec->cpu_sec && cpu > k->spec->cpu_sec * USEC_PER_SEC)
		keep_over(k, SPAWN_END_CPU, "CPU seconds", cpu / USEC_PER_SEC,
			  k->spec->cpu_sec);
}

/* What the person is shown of a job that passes a limit. */
static void note_sample(struct keep *k, const struct use_sum *use)
{
	struct watch *w = k->watch;
	uint32_t n = atomic_load(&w->n_samples);
	uint64_t kib = use->memory_bytes >> 10;

	w->sample_kib[n % SPAWN_SAMPLES_MAX] =
		kib < UINT32_MAX ? (uint32_t)kib : UINT32_MAX;
	w->sample_processes[n % SPAWN_SAMPLES_MAX] = use->processes;
	atomic_store(&w->n_samples, n + 1);
}

void keep_sample(struct keep *k)
{
	usec_t start = clock_boot_usec(), now;
	struct err err = ERR_INIT;
	struct use_sum use;

	hear_named(k);
	if (use_look(&k->use, k->spec->memory_bytes, &use, &err) < 0) {
		keep_verdict(k, SPAWN_END_UNMEASURED,
			     "the job's processes can no longer be listed");
		return;
	}
	atomic_store(&k->watch->unlinked, use.unlinked_bytes);
	if (use.settled)
		note_sample(k, &use);
	check_memory(k, &use);
	check_objects(k, &use);
	check_processes(k, use.processes, start);
	check_files(k, start);
	check_cpu(k, &use);
	if (limits_cgroup_value(&k->limits, "memory.events", "oom_kill"))
		keep_verdict(k, SPAWN_END_OOM, "memory.max of the cgroup");
	now = clock_boot_usec();
	k->next_sample =
		now + pace_rest_usec(&k->pace, &use, k->spec->memory_bytes, start, now);
}
