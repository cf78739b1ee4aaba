/* SPDX-License-Identifier: Apache-2.0 */
#include "tomb/place.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/proto.h"
#include "common/str.h"
#include "tomb/workspace.h"
#include <fcntl.h>
#include <stdlib.h>

static int open_sub(struct place *p, const char *name, int *ret, struct err *err)
{
	if (fs_mkdir_beneath(p->data_fd, name, 0700, err) < 0)
		return -1;
	*ret = fs_open_beneath(p->data_fd, name, O_RDONLY | O_DIRECTORY, 0, err);
	return *ret < 0 ? -1 : 0;
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

int place_open(struct place *p, const char *data, struct err *err)
{
	char real[PATH_MAX];
	pid_t holder = 0;
	unsigned stale = 0;

	if (fs_mkdir_all(data, 0700, err) < 0)
		return -1;
	if (!realpath(data, real) ||
	    str_fmt(p->jobs_path, sizeof(p->jobs_path), "%s/jobs", real) < 0)
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
	if (open_sub(p, "jobs", &p->jobs_fd, err) < 0 ||
	    open_sub(p, "artifacts", &p->artifacts_fd, err) < 0 ||
	    open_sub(p, "quarantine", &p->quarantine_fd, err) < 0 ||
	    workspace_remove_stale(p->jobs_fd, p->jobs_path, &stale, err) < 0)
		return -1;
	if (stale)
		log_info("removed %u job folders of an earlier run", stale);
	/* Copies on their way to the vessel: their jobs are run or reported again. */
	if (fs_remove_beneath(p->data_fd, "artifacts", err) < 0)
		return -1;
	fd_close(&p->artifacts_fd);
	return open_sub(p, "artifacts", &p->artifacts_fd, err);
}

void place_close(struct place *p)
{
	fd_close(&p->jobs_fd);
	fd_close(&p->artifacts_fd);
	fd_close(&p->quarantine_fd);
	fd_close(&p->data_fd);
	fd_close(&p->lock_fd);
}
