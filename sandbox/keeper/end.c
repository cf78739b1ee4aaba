/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * What is looked at once more when a job ends.
 *
 * It begins before the job is reaped. When the listener of its filter hangs up, every
 * process that the filter was on is on its way through the kernel's exit, and none of them
 * executes anything any more (seccomp_filter_release() in do_exit(), Linux 6.11): nothing
 * can be added to the disk.
 */
#include "sandbox/keeper/keep.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

/* Added since the last whole round, by the job or by others: so much is counted as the job's
 * rather than looked for, when all the job's files would have to be looked at for it. */
#define NEARLY_BYTES ((uint64_t)16 << 20)

/* Within its limit, whatever renames hid from the running walk: all that anybody added while
 * the job ran is more than that. And nearly known without another walk. */
static bool is_known(struct keep *k)
{
	disk_see_growth(&k->disk);
	return disk_is_within(&k->disk, k->spec->disk_bytes) &&
	       disk_added(&k->disk) <= NEARLY_BYTES;
}

/* Nothing moves any more: what renames hid from the running walk is found now. */
static void look_at_disk(struct keep *k)
{
	char text[SPAWN_TEXT_MAX];

	if (is_known(k)) {
		files_note(k, k->disk.total + disk_added(&k->disk));
		return;
	}
	disk_start_over(&k->disk);
	while (!disk_at_start(&k->disk))
		(void)disk_step(&k->disk, DISK_ENTRIES_A_STEP);
	while (!disk_step(&k->disk, DISK_ENTRIES_A_STEP))
		;
	files_note(k, k->disk.total);
	if (k->disk.foreign)
		keep_verdict(k, SPAWN_END_DISK,
			     "a directory on another device can't be supervised");
	if (k->disk.too_deep)
		keep_verdict(k, SPAWN_END_DISK, DISK_TOO_DEEP);
	if (k->disk.total <= k->spec->disk_bytes)
		return;
	(void)snprintf(text, sizeof(text), "disk bytes: %llu of %llu",
		       (unsigned long long)k->disk.total,
		       (unsigned long long)k->spec->disk_bytes);
	keep_verdict(k, SPAWN_END_DISK, text);
}

void last_look(struct keep *k)
{
	/* Of a job that did not end by itself nobody asks any more. */
	if (!atomic_load(&k->watch->judged) && !atomic_load(&k->watch->ended))
		look_at_disk(k);
	notify_explain_again(&k->notify, true);
	/* Only while it is empty, as what the job left in it is the job's, and in use by no
	 * other job of this workspace. */
	if (k->made_tmpdir && flock(k->tmpdir_fd, LOCK_EX | LOCK_NB) == 0)
		(void)unlinkat(k->spec->workspace_fd, SBX_TMPDIR, AT_REMOVEDIR);
}
