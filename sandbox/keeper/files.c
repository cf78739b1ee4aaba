/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * What the job has on the disk. A look may have to wait for the job, for its
 * neighbours on the file system, or for the disk itself; the meter goes on meanwhile, and judges
 * by what was added to the file system how long that may last (sample.c).
 */
#include "sandbox/keeper/keep.h"

#define DISK_ENTRIES_AT_ONCE 16
/* A tree is walked so often though nothing seems to be added to it. */
#define DISK_ROUND_USEC USEC_PER_SEC
/* What is given by fallocate(2) is counted by then. */
#define GIVEN_USEC (500 * USEC_PER_MSEC)
#define LOOK_MAX_USEC (100 * USEC_PER_MSEC)
#define LOOK_SLOW_USEC (250 * USEC_PER_MSEC)
#define LOOK_COST_FACTOR 10
/* Not so the first: with a whole round behind it a short job needs no walk at its end. */
#define LOOKS_AT_ONCE 4
/* Of one look, for the job's calls. */
#define ANSWERING_MAX_USEC (4 * USEC_PER_MSEC)
/* So many rounds in a row with a directory that can't be opened. */
#define CLOSED_ROUNDS 5

/* The job does not wait for the end of a look with its questions, as long as these do not
 * keep us from it. */
static void answer_meanwhile(struct keep *k)
{
	usec_t start = clock_boot_usec();

	if (k->answering >= ANSWERING_MAX_USEC)
		return;
	notify_meanwhile(&k->notify, k->status_fd);
	k->answering += clock_boot_usec() - start;
}

void files_note(struct keep *k, uint64_t bytes)
{
	if (bytes > atomic_load(&k->watch->disk_peak))
		atomic_store(&k->watch->disk_peak, bytes);
}

/* Where the file system tells no growth, what was given since the round before the last whole one
 * stands for it: what came while a round went on is in it or not, and what has no name waits for
 * the meter, too. */
struct room files_room(void *keep)
{
	struct keep *k = keep;

	disk_see_growth(&k->disk);
	return room_of(&(struct room_seen){.limit = k->spec->disk_bytes,
					   .total = k->disk.total,
					   .total_unlinked = k->total_unlinked,
					   .partial = disk_bytes(&k->disk),
					   .unlinked = k->unlinked,
					   .given = k->given_whole,
					   .maybe = k->disk.sees_growth
							    ? disk_added(&k->disk)
							    : k->given[0] + k->given[1]});
}

void files_given(void *keep, uint64_t asked, uint64_t grew)
{
	struct keep *k = keep;

	k->given[0] += asked > grew ? asked : grew;
	k->given_whole += grew;
}

static void forget_given(struct keep *k, usec_t now)
{
	if (now < k->given_since + GIVEN_USEC)
		return;
	k->given[1] = k->given[0];
	k->given[0] = 0;
	k->given_since = now;
}

static bool walk_disk(struct keep *k)
{
	bool done = false;

	for (unsigned n = 0; n < DISK_ENTRIES_A_STEP && !done;
	     n += DISK_ENTRIES_AT_ONCE) {
		done = disk_step(&k->disk, DISK_ENTRIES_AT_ONCE);
		answer_meanwhile(k);
	}
	if (done) {
		atomic_store(&k->watch->disk_total, k->disk.total);
		atomic_fetch_add(&k->watch->disk_rounds, 1);
		k->total_unlinked = k->unlinked;
		k->given_whole = 0;
		forget_given(k, clock_boot_usec());
	}
	return done;
}

/* What may be in use by now. */
static uint64_t check_disk(struct keep *k)
{
	uint64_t unlinked = atomic_load(&k->watch->unlinked), bytes;
	bool begin = disk_at_start(&k->disk);
	usec_t now = clock_boot_usec();

	disk_see_growth(&k->disk);
	if (begin && now < k->next_round &&
	    (disk_is_still(&k->disk) || disk_is_within(&k->disk, k->spec->disk_bytes))) {
		bytes = k->disk.total;
	} else {
		if (begin) {
			k->unlinked = unlinked;
			k->next_round = now + DISK_ROUND_USEC;
		}
		bytes = walk_disk(k) ? k->disk.total : disk_bytes(&k->disk);
	}
	bytes += k->unlinked;
	/* A round over many files takes its time. What has no name by now may have been
	 * counted by it in this round, so it is not added, but it stands by itself. */
	if (unlinked > bytes)
		bytes = unlinked;
	files_note(k, bytes);
	if (bytes > k->spec->disk_bytes)
		keep_over(k, SPAWN_END_DISK, "disk bytes", bytes, k->spec->disk_bytes);
	else if (k->disk.foreign)
		keep_verdict(k, SPAWN_END_DISK,
			     "a directory on another device can't be supervised");
	else if (k->disk.too_deep)
		keep_verdict(k, SPAWN_END_DISK, DISK_TOO_DEEP);
	else if (k->disk.closed_rounds >= CLOSED_ROUNDS)
		keep_verdict(k, SPAWN_END_DISK, "a directory that keeps itself closed");
	atomic_store(&k->watch->disk_looked, clock_boot_usec());
	return bytes + disk_added(&k->disk);
}

void files_look(struct keep *k)
{
	usec_t start = clock_boot_usec(), pause, cost;
	uint64_t disk;

	k->answering = 0;
	notify_stay_apart(&k->notify, true);
	disk = check_disk(k);
	notify_stay_apart(&k->notify, false);
	pause = pace_room_usec(disk, k->spec->disk_bytes);
	if (pause > LOOK_MAX_USEC)
		pause = LOOK_MAX_USEC;
	cost = (clock_boot_usec() - start - k->answering) * LOOK_COST_FACTOR;
	if (k->n_looks++ < LOOKS_AT_ONCE && !disk_at_start(&k->disk))
		pause = PACE_MIN_USEC;
	else if (cost > pause)
		pause = cost < LOOK_SLOW_USEC ? cost : LOOK_SLOW_USEC;
	if (pause < PACE_MIN_USEC)
		pause = PACE_MIN_USEC;
	k->next_look = clock_boot_usec() + pause;
}

/* A large file that has a name. It may lose it, and be mapped or parked then. */
void files_tell_named(void *keep, uint64_t dev, uint64_t ino, uint64_t bytes)
{
	struct watch *w = ((struct keep *)keep)->watch;
	uint32_t n = atomic_load(&w->n_named);

	w->named[n % WATCH_NAMED_MAX] = (struct watch_named){dev, ino, bytes};
	atomic_store(&w->n_named, n + 1);
}
