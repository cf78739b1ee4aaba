/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb and the file worker.
 * A job's folder jobs/<id>.<epoch>/work, which enters the sandbox: from the unpacking on it is
 * the job's, so everything below it is reached by openat2 only. And its spool
 * spool/<id>.<epoch>/, which never does: inputs on their way in, output on its way out. They
 * may lie on two file systems, so that a job that fills its own does not stop its output. Used
 * by the file workers: each of these calls may wait for whoever holds a directory.
 */
#ifndef LYCH_TOMB_FILES_WORKSPACE_H
#define LYCH_TOMB_FILES_WORKSPACE_H

#include "common/attr.h"
#include "common/err.h"
#include "tomb/files/files_wire.h"

struct workspace {
	int work_fd, spool_fd;
};

/* A folder that is there is not of this attempt, and is refused. */
MUST_CHECK int workspace_make(int jobs_fd, int spools_fd, const char *job,
			      struct err *err);
/* ret: workspace_done() after success. */
MUST_CHECK int workspace_open(struct workspace *ret, int jobs_fd, int spools_fd,
			      const char *job, struct err *err);
void workspace_done(struct workspace *w);
/* A new file of the spool, read-write. */
MUST_CHECK int workspace_spool(const struct workspace *w, const char *name,
			       struct err *err);
/* One file, below work/ in place of what is there; what leads to it is not followed. Or a
 * directory, which must not be there. */
MUST_CHECK int workspace_put(const struct workspace *w, const struct files_put *p,
			     struct err *err);

/* At start: folders of earlier boots, and nothing else: what has no such name is refused
 * (ERRID_START_JOBS), for the directory may be one that somebody named. Processes that still use one are killed first and
 * waited for; ERR_CONFLICT when they do not die. Before confinement: it reads /proc. */
MUST_CHECK int workspace_remove_stale(int jobs_fd, const char *jobs_path,
				      unsigned *ret_removed, struct err *err);

#endif
