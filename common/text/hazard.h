/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Names that the trusted side obeys. The hand-off is where sandboxes are escaped in
 * practice: a job leaves a file that git, an editor, an agent, a shell or an interpreter
 * later runs or believes, without anybody having asked for it. The table
 * (hazard_table.c) is data, reviewed row by row, and docs/QUARANTINE.md is written from
 * it. It is asked twice: by the tomb, which puts such files aside, and by the vessel,
 * which lists artifacts for people and does not believe the tomb.
 *
 * It errs on the wide side: what is held can still be looked at by a person. What is
 * only ever run on purpose (a Makefile, setup.py, a script) is not in it.
 */
#ifndef LYCH_COMMON_TEXT_HAZARD_H
#define LYCH_COMMON_TEXT_HAZARD_H

#include <stdbool.h>
#include <stddef.h>

enum hazard_kind {
	HAZARD_DIR,    /* everything below a directory of this name, wherever it is */
	HAZARD_FILE,   /* a file of this name, wherever it is */
	HAZARD_EXACT,  /* the same, upper and lower case told apart */
	HAZARD_STEM,   /* a file of this name, with or without an ending */
	HAZARD_SUFFIX, /* a file with this ending */
	HAZARD_KIND_MAX_
};

struct hazard {
	enum hazard_kind kind;
	const char *name; /* lower case (but EXACT); may have several components */
	const char *why;
};
extern const struct hazard hazard_table[];
extern const size_t hazard_table_len;

/*
 * NULL, or why this relative path (path_check_relative() holds) is not handed over. Names
 * are compared as the most forgiving file system would: case, invisible characters,
 * trailing dots and blanks, streams after a colon and backslashes do not matter.
 */
const char *hazard_of(const char *path);
/* Does every character of it show as what it is? No C1 controls, no marks that reorder or
 * hide text, no second kinds of line ends. */
bool hazard_is_plain(const char *path);
/* The name under which the most forgiving file system would keep it: two paths with the
 * same key are one file there. The caller frees. */
char *hazard_key(const char *path);

/* How the first bytes of a file begin decides what it is called: "program" when the
 * kernel or a person's click would run it, else "file". */
const char *hazard_class(const void *head, size_t len);

#endif
