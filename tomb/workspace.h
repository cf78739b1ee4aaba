/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job's folder: jobs/<id>.<epoch>/{work,spool}. Only work enters the sandbox; from the
 * unpacking on it is the job's, so everything below it is reached by openat2 only.
 */
#ifndef LYCH_TOMB_WORKSPACE_H
#define LYCH_TOMB_WORKSPACE_H

#include "common/attr.h"
#include "common/err.h"
#include "tomb/queue.h"
#include "tomb/spec.h"

struct workspace {
	char name[48];	    /* "42.1" */
	char work_name[56]; /* "42.1/work" */
	int jobs_fd;	    /* borrowed */
	int work_fd, spool_fd;
	struct fs_removal *removal; /* under way */
};

void workspace_init(struct workspace *w);
MUST_CHECK int workspace_make(struct workspace *w, int jobs_fd,
			      const struct lease_key *key, struct err *err);
/* A new file in spool/, read-write. */
MUST_CHECK int workspace_spool(const struct workspace *w, const char *name,
			       struct err *err);
/* The script and the files into work/. Blobs lie in spool/ as "file-<i>". */
MUST_CHECK int workspace_place(const struct workspace *w, const struct tomb_spec *s,
			       struct err *err);
/* One file of ours, below work/, in place of what is there. */
MUST_CHECK int workspace_put(const struct workspace *w, const char *path,
			     const void *data, size_t len, struct err *err);
/* Close and remove the folder, a bounded part of it a call. 1: call again; 0: gone. */
MUST_CHECK int workspace_remove(struct workspace *w, struct err *err);
void workspace_done(struct workspace *w); /* close only */

/* At start: folders of earlier boots. Processes that still use one are killed first and
 * waited for; ERR_CONFLICT when they do not die. Before confinement: it reads /proc. */
MUST_CHECK int workspace_remove_stale(int jobs_fd, const char *jobs_path,
				      unsigned *ret_removed, struct err *err);

#endif
