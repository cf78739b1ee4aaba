/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb, the files' parent and the file worker.
 * Messages between the tomb and its file workers (tomb/files/files.h): one SOCK_SEQPACKET pair a
 * worker, fixed structs in host byte order (the worker is a fork of the tomb), one request at
 * a time. Each request is answered by any number of FILES_BUSY and one FILES_DONE or
 * FILES_FAILED.
 *
 * What a worker answers is read like a stranger's: it walks trees that jobs made.
 */
#ifndef LYCH_TOMB_FILES_FILES_WIRE_H
#define LYCH_TOMB_FILES_FILES_WIRE_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/proto/payload.h"
#include "common/proto/wire.h"
#include "tomb/files/harvest.h"
#include <stddef.h>
#include <stdint.h>

#define FILES_JOB_SIZE 48  /* "42.1" and a NUL */
#define FILES_NAME_SIZE 32 /* "stdout", "file-7", "12" */
#define FILES_FDS_MAX 2

enum files_op {
	/* The job's folder with work/, its spool, and two empty files of that: answered
	 * with stdout's and stderr's descriptors, for reading and writing. */
	FILES_MAKE,
	/* Payload: files_put_add(). Answered, where `name` is set, with that file of the
	 * spool for reading. */
	FILES_PLACE,
	FILES_NEW,  /* an empty file of the spool, for reading and writing */
	FILES_OPEN, /* a file of the spool, for reading */
	/* Payload: the globs, each ended by NUL. Copies what they name out of work/ into
	 * artifacts/JOB and quarantine/JOB; answered with a payload, files_harvest_read(). */
	FILES_HARVEST,
	FILES_COPY, /* the copy `name` of artifacts/JOB, for reading */
	/* Removes the job's folder, spool and copies. What is in quarantine stays. */
	FILES_CLEAN,
	FILES_OP_MAX_
};

struct files_request {
	uint32_t op;
	uint32_t payload_bytes; /* 0: none */
	char job[FILES_JOB_SIZE];
	char name[FILES_NAME_SIZE]; /* "": none */
};

enum files_word {
	FILES_READY, /* once, after its walls: the first word of a worker and of the parent */
	FILES_BUSY, /* still at it */
	FILES_DONE,
	FILES_FAILED,
	FILES_WORD_MAX_
};

struct files_reply {
	uint32_t word;
	uint32_t payload_bytes;
	struct err err; /* FILES_FAILED */
};

/* false: not a reply that a worker of ours would send. Cuts the text where it ends. */
MUST_CHECK bool files_reply_is_sound(struct files_reply *r, size_t bytes);

/* ---- what is placed */

enum files_where {
	FILES_NEW_DIR,	 /* an empty directory of work/; one that is there is refused */
	FILES_IN_WORK,	 /* data as a file below work/ */
	FILES_FROM_BLOB, /* a copy of the file `data` of the spool, below work/ */
	FILES_IN_SPOOL,	 /* data as a new file of the spool */
	FILES_WHERE_MAX_
};

struct files_put {
	enum files_where where;
	unsigned mode; /* 0644 or 0755; of the spool always 0600 */
	const char *path, *data;
	size_t path_len, data_len;
};

void files_put_add(struct buf *b, const struct files_put *p);
/* The next one, its strings where they lie in the payload. 1; 0: no more; -1: no list. */
MUST_CHECK int files_put_next(struct wire *r, struct files_put *ret);

/* ---- what was harvested */

void files_harvest_write(struct buf *b, const struct harvest *h);
/* ret: empty before; harvest_done() after success. ERR_UPSTREAM: no list that a harvest
 * within its caps makes. */
MUST_CHECK int files_harvest_read(const char *data, size_t len, struct harvest *ret,
				  struct err *err);

#endif
