/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The starter: the logs of its parts. What can be made to write into one (a login that is
 * refused, a thousand times a second) must not fill the disk, so a log that grew large is kept
 * once beside itself and begins anew, at a start and while its part runs.
 */
#include "cli/local/supervise_priv.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/mem.h"
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#define LOG_MAX_BYTES ((off_t)16 << 20)
#define LOOK_USEC (10 * USEC_PER_SEC)

int part_log_open(const struct super *u, enum part_id id, off_t *ret_from,
		  struct err *err)
{
	cleanup_free char *path = part_log_path(u, id);
	struct stat st;

	if (stat(path, &st) == 0 && st.st_size > LOG_MAX_BYTES) {
		cleanup_free char *old = xasprintf("%s.1", path);

		if (rename(path, old) < 0)
			return err_sys(err, "rename %s", path);
	}
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "open %s", path);
	*ret_from = st.st_size;
	return fd;
}

/* Its bytes go to the other file as far as that has room. */
static void keep(int fd, off_t size, const char *path)
{
	cleanup_free char *old = xasprintf("%s.1", path);
	cleanup_close int to =
		open(old, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	off_t at = 0;

	while (to >= 0 && at < size)
		if (sendfile(to, fd, &at, (size_t)(size - at)) <= 0)
			return;
}

/* The part goes on writing into the same file, at its end: what it writes between the copy
 * and the cut is lost. */
static void trim(struct super *u, enum part_id id)
{
	cleanup_free char *path = part_log_path(u, id);
	cleanup_close int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= LOG_MAX_BYTES)
		return;
	keep(fd, st.st_size, path);
	if (ftruncate(fd, 0) == 0)
		u->part[id].log_from = 0;
}

void part_logs_trim(struct super *u)
{
	usec_t now = clock_boot_usec();

	if (now < u->logs_again)
		return;
	u->logs_again = now + LOOK_USEC;
	for (int i = 0; i < PART_MAX; i++)
		trim(u, (enum part_id)i);
}
