/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * A backup as one tar file (ustar, regular files only). Every byte of it is determined by
 * names and contents: a header is what we would write for that name and size, padding is
 * zero, names are those that a backup has and come in one order, each once, and the last
 * entry, MANIFEST, lists length and sha256 of all the others. So any change of any bit,
 * and any cut, is seen by reading it once. Its last line is the seal (backup_key.h) of all
 * lines before it, and so of all files: it says who made the archive.
 */
#ifndef LYCH_CLI_BACKUP_ARCHIVE_H
#define LYCH_CLI_BACKUP_ARCHIVE_H

#include "cli/backup/backup_key.h"
#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include <stddef.h>
#include <stdint.h>

#define ARCHIVE_INFO "BACKUP.json"
#define ARCHIVE_DATABASE "database.copy"
#define ARCHIVE_CONFIG "config/codex.yaml"
#define ARCHIVE_PRIVATE "vessel/private"

#define ARCHIVE_FORMAT 2

struct archive_writer {
	int fd; /* borrowed */
	struct buf manifest;
	uint64_t files, bytes;
};
void archive_begin(struct archive_writer *w, int fd);
void archive_done(struct archive_writer *w);
MUST_CHECK int archive_add(struct archive_writer *w, const char *name, const void *data,
			   size_t len, struct err *err);
/* The bytes that a file has now: what is appended meanwhile stays out. */
MUST_CHECK int archive_add_file(struct archive_writer *w, const char *name, int dirfd,
				const char *path, struct err *err);
/* Every regular file below dirfd/path, sorted, as prefix/...; one with a name that no
 * archive has is ERRID_BACKUP_FAILED. */
MUST_CHECK int archive_add_tree(struct archive_writer *w, const char *prefix, int dirfd,
				const char *path, struct err *err);
MUST_CHECK int archive_end(struct archive_writer *w, const struct backup_key *key,
			   struct err *err);

/*
 * Reads and checks all of it: ERRID_BACKUP_DAMAGED. Any callback may be NULL. on_seal comes
 * when all of it is known to be whole: which key it is sealed with, the seal, and what was
 * sealed; without a seal id and seal are NULL. What it returns is what archive_read does.
 */
struct archive_reader {
	int (*on_file)(const char *name, uint64_t size, void *arg, struct err *err);
	int (*on_data)(const void *data, size_t len, void *arg, struct err *err);
	int (*on_file_end)(const char *name, void *arg, struct err *err);
	int (*on_seal)(const char *id, const char *seal, const void *data, size_t len,
		       void *arg, struct err *err);
	void *arg;
};
MUST_CHECK int archive_read(int fd, const struct archive_reader *r, struct err *err);

#endif
