/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * What of the database is content, and so in an archive: statements of our own for psql,
 * one argument each, in the order of the sections (copy_text.h). Nothing of an archive
 * becomes part of one.
 *
 * The other tables belong to the installation, and a restored one makes its own:
 * schema_version, tomb (which generation of a tomb's secrets counts), worker_queue (which
 * tombs there are), vessel_owner (which vessel runs).
 * And so does the schema lych_anchor, whose rows are of a log that goes on: an archive's ends
 * before them.
 */
#ifndef LYCH_CLI_BACKUP_CONTENT_H
#define LYCH_CLI_BACKUP_CONTENT_H

#include "common/attr.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The schema of the first archives ever made, the oldest that can be restored (the first
 * that migrate makes), and the newest whose tables are known here. Whoever adds a migration
 * raises the last, and says in content.c what becomes of a new table. */
#define CONTENT_SCHEMA_EVER 14
#define CONTENT_SCHEMA_FIRST 18
#define CONTENT_SCHEMA 20

#define CONTENT_STATEMENTS_MAX 64
struct content_script {
	const char *statement[CONTENT_STATEMENTS_MAX + 1]; /* NULL-terminated */
	size_t n;
};
/* One session that reads one snapshot and writes the sections to its stdout. */
void content_save(unsigned schema, struct content_script *ret);
/* One transaction, as the tables' owner, that empties them and reads the sections from its
 * stdin, into a database that has just been migrated to that schema. */
void content_load(unsigned schema, struct content_script *ret);
/* How many sections these have: a table each, and the last numbers that were given out. */
unsigned content_sections(unsigned schema);
/* The section of the jobs. */
#define CONTENT_JOBS 0

/* When the newest schema is reached: a new numbering of the audit outbox. held: no job of
 * it may begin by itself, each that had not ended is quarantined. */
void content_finish(bool held, struct content_script *ret);
/* How many jobs have not ended: a query that answers a number. */
extern const char content_unended[];
/* A number again: 0, or which promise the rows break that no constraint states, and which
 * row does. */
extern const char content_broken[];
/* That number in words, "job, row 3, class: ..."; the caller frees it. */
char *content_broken_why(uint64_t number);

/* Every table by name, for who compares them with the catalogue: NULL at the end. */
const char *content_table(unsigned schema, size_t i);
const char *content_left_out(size_t i);

#endif
