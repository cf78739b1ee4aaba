/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The files of jobs that the tomb put aside: which there are, and the bytes of one. The tomb wrote
 * them, and what the job made is in them: every name, number and link there is hostile.
 */
#ifndef LYCH_CLI_JOBS_QUARANTINE_H
#define LYCH_CLI_JOBS_QUARANTINE_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/id.h"
#include <stddef.h>
#include <stdint.h>

/* What one job may have there; a larger one is damaged. */
#define QUARANTINE_FILE_MAX ((size_t)64 << 20)

struct held_file {
	job_id_t job;
	int64_t epoch; /* of the attempt that left it */
	uint64_t n;    /* its number there */
	uint64_t size;
	char *path, *why, *sha256;
};

struct quarantine {
	int fd;			/* the tomb's folder */
	struct held_file *file; /* by job, attempt and number */
	size_t n;
	/* Folders without a manifest that can be read, by name; they are told, not hidden. */
	char **odd;
	size_t n_odd;
};

/* data: the data directory. Nothing there is nothing held. only: of this job, 0: of all. */
MUST_CHECK int quarantine_read(const char *data, job_id_t only, struct quarantine *ret,
			       struct err *err);
void quarantine_done(struct quarantine *q);
#define cleanup_quarantine __attribute__((cleanup(quarantine_done)))

/* The file of that number in the job's last attempt that has one; ERR_NOT_FOUND. */
MUST_CHECK int quarantine_find(const struct quarantine *q, job_id_t job, uint64_t n,
			       const struct held_file **ret, struct err *err);
/* Its bytes, compared with its size and sha256: ERRID_STORE_HASH. out is not initialised. */
MUST_CHECK int quarantine_bytes(const struct quarantine *q, const struct held_file *f,
				struct buf *out, struct err *err);

#endif
