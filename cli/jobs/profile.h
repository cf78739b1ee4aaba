/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Profiles: options of lych-sandbox kept in a file. Whoever could write one could open a
 * hole, so a file is believed only when nobody but its owner (the user or root) can change
 * it or any directory above it, and when the sandbox that it describes cannot write there.
 *
 *	# a comment; blank lines count for nothing
 *	--include base
 *	--network none
 *	--ro ~/.cargo
 *	--rw .
 *
 * One option a line, as on the command line, "--name value" or "--name=value"; the value
 * is the rest of the line without the blanks around it. There is no quoting, no variable
 * and no continuation. A path is absolute, ~ or below ~/ (the home directory), or exactly
 * "." (where lych was started), which is refused where that would show the home directory.
 * --include NAME takes another profile in, which may not include any further.
 */
#ifndef LYCH_CLI_JOBS_PROFILE_H
#define LYCH_CLI_JOBS_PROFILE_H

#include "common/attr.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>

enum option_kind { OPTION_WORD, OPTION_PATH, OPTION_FLAG };

struct option_info {
	const char *name;
	enum option_kind kind;
	bool repeats;
};
/* An option or limit of lych-sandbox by its name of len bytes; NULL: there is none. */
const struct option_info *option_find(const char *name, size_t len);

/* Options in the order in which they came; a later one replaces an earlier one of the
 * same meaning, and what is given on the command line replaces both. */
struct option_list {
	struct option_given {
		const struct option_info *info;
		char *value; /* NULL for a flag */
	} *item;
	size_t n;
};

struct profile_world {
	const char *home, *cwd;
	const char *user_dir, *system_dir; /* where profiles are looked for by NAME */
	/* the files that were read, by every name that led there, for profile_check_grants() */
	char **file;
	size_t n_files;
};

/* true: it replaced one. */
bool option_list_add(struct option_list *l, const struct option_info *info,
		     const char *value);
void option_list_done(struct option_list *l);

/* A NAME ([A-Za-z0-9][A-Za-z0-9._-]*), or a FILE (with a '/'). ERRID_SPEC_PROFILE; a key
 * that is none: ERRID_SPEC_KEY. Both name file and line. */
MUST_CHECK int profile_read(struct profile_world *w, const char *which,
			    struct option_list *l, struct err *err);
/* The text of the one that this means, found and believed as there; caller frees both. ERRID_SPEC_PROFILE. */
MUST_CHECK int profile_text(struct profile_world *w, const char *which, char **ret_real,
			    char **ret_text, size_t *ret_len, struct err *err);
/* No file that was read may lie where the job could write. */
MUST_CHECK int profile_check_grants(const struct profile_world *w,
				    const struct option_list *l, struct err *err);
void profile_world_done(struct profile_world *w);

#endif
