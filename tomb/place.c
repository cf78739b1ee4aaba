/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See place.h.
 */
#include "tomb/place.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/mountinfo.h"
#include "common/proto.h"
#include "common/str.h"
#include "tomb/files/workspace.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

/* A directory of ours: its path, made when it is missing. */
static int make_sub(const struct place *p, const char *data, const char *name,
		    char path[PATH_MAX], struct err *err)
{
	if (str_fmt(path, PATH_MAX, "%s/%s", data, name) < 0)
		return err_set(err, ERR_INVALID, "%s: too long", data);
	return mkdirat(p->data_fd, name, 0700) < 0 && errno != EEXIST
		       ? err_sys(err, "make %s", path)
		       : 0;
}

/* Of whoever starts us. */
static void take_word(struct place *p)
{
	cleanup_free char *word = NULL;
	struct err ignored = ERR_INIT;
	size_t len;

	if (fs_read_file(p->data_fd, TOMB_GONE_FILE, 16, &word, &len, &ignored) < 0)
		word = NULL;
	if (unlinkat(p->data_fd, TOMB_GONE_FILE, 0) < 0 || !word)
		return;
	p->blameless = str_eq(word, TOMB_GONE_HOUSE);
	p->proved = p->blameless || str_eq(word, TOMB_GONE_ALONE);
}

int place_open(struct place *p, const char *data, bool jobs_apart, struct err *err)
{
	char real[PATH_MAX];
	pid_t holder = 0;
	unsigned stale = 0;

	if (fs_mkdir_all(data, 0700, err) < 0)
		return -1;
	if (!realpath(data, real))
		return err_sys(err, "%s", data);
	p->data_fd = open(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p->data_fd < 0)
		return err_sys(err, "open %s", real);
	p->lock_fd = fs_open_beneath(p->data_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW,
				     0600, err);
	if (p->lock_fd < 0)
		return -1;
	if (fs_lock(p->lock_fd, &holder, err) < 0)
		return err_wrap(err, "%s (held by process %d)", real, (int)holder);
	take_word(p);
	/* What was on its way to the vessel: those jobs are run or reported again. */
	if (fs_remove_beneath(p->data_fd, "artifacts", err) < 0 ||
	    fs_remove_beneath(p->data_fd, "spool", err) < 0 ||
	    make_sub(p, real, "spool", p->spool_path, err) < 0 ||
	    make_sub(p, real, "jobs", p->jobs_path, err) < 0 ||
	    make_sub(p, real, "artifacts", p->artifacts_path, err) < 0 ||
	    make_sub(p, real, "quarantine", p->quarantine_path, err) < 0)
		return -1;
	if (jobs_apart && mountinfo_check_own(p->jobs_path, err) < 0)
		return -1;
	/* Perhaps a mount, which the others are not. */
	p->jobs_fd = open(p->jobs_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p->jobs_fd < 0)
		return err_sys(err, "open %s", p->jobs_path);
	if (workspace_remove_stale(p->jobs_fd, p->jobs_path, &stale, err) < 0)
		return -1;
	if (stale)
		log_info("removed %u job folders of an earlier run", stale);
	return 0;
}

void place_close(struct place *p)
{
	fd_close(&p->jobs_fd);
	fd_close(&p->data_fd);
	fd_close(&p->lock_fd);
}
