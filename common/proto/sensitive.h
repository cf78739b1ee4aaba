/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * What keeps secrets, by its name, by where it is and by what it holds: the one list for all
 * that a person might show to a job (what pod.mounts shares, what lych run copies in), and for
 * what no hint of a sandbox ever offers. The rows (sensitive_table.c) are data, and
 * docs/INPUTS.md is written from them.
 *
 * It errs on the wide side: what is left out is named, and a person can say that it is meant.
 * A secret under a name, and in a form, that nobody expects is not found.
 */
#ifndef LYCH_COMMON_PROTO_SENSITIVE_H
#define LYCH_COMMON_PROTO_SENSITIVE_H

#include <stdbool.h>
#include <stddef.h>

enum sensitive_kind {
	SENSITIVE_NAME, /* a file or directory of this name, wherever it is */
	SENSITIVE_FILE, /* a file of this name: directories of it are in many libraries */
	SENSITIVE_BEGIN,  /* a file or directory whose name begins with this */
	SENSITIVE_END,	  /* ... whose name ends with this, and is longer */
	SENSITIVE_PLACE,  /* ... whose path ends with these components */
	SENSITIVE_BELOW,  /* ... the last of which is longer */
	SENSITIVE_SYSTEM, /* this very path of the machine */
	SENSITIVE_PUBLIC, /* the name of an example: in the list for no other row */
	SENSITIVE_KIND_MAX_
};

struct sensitive {
	enum sensitive_kind kind;
	const char *name; /* in lower case: cases are not told apart */
	const char *what; /* what is kept there, for people */
};
extern const struct sensitive sensitive_table[];
extern const size_t sensitive_table_len;

/* Is the last component of the first len bytes of this path in the list? NULL: no. Where a '/' follows
 * them it is a directory's; where none does, it is not known what it is. */
const struct sensitive *sensitive_entry(const char *path, size_t len);
/* The same of each component from the first on, with a '/' at the end for a directory; *ret_len: the bytes up to the end of it. */
const struct sensitive *sensitive_path(const char *path, size_t *ret_len);

/* How much of the beginning of a file sensitive_content() wants. */
#define SENSITIVE_HEAD_BYTES ((size_t)64 << 10)
/* What a file with this path holds that its name does not say: a private key, a token. NULL:
 * nothing that is known. */
const char *sensitive_content(const char *path, const char *head, size_t len);
/* The same of a variable of somebody's environment: a private key, or a URL with a password. */
const char *sensitive_value(const char *name, const char *value);

#endif
