/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Where a user's Lychgate lives (docs/PROTOCOL.md "Programs and files").
 */
#ifndef LYCH_CLI_BASE_PATHS_H
#define LYCH_CLI_BASE_PATHS_H

#include "common/attr.h"
#include "common/err.h"

struct paths {
	char *home;
	char *data; /* $LYCHGATE_DATA, $XDG_DATA_HOME/lychgate or ~/.local/share/lychgate
		     */
	char *runtime;	      /* $XDG_RUNTIME_DIR/lychgate or <data>/run */
	char *runtime_parent; /* $XDG_RUNTIME_DIR, NULL without */
	char *api_dir, *work_dir, *pg_dir, *audit_dir;
	char *api_sock;
	char *config; /* $XDG_CONFIG_HOME/lychgate/codex.yaml or ~/.config/... */
};

/* Only reads the environment; makes nothing. */
MUST_CHECK int paths_resolve(struct paths *ret, struct err *err);
void paths_done(struct paths *p);
#define cleanup_paths __attribute__((cleanup(paths_done)))

/* Where codex.yaml and what belongs beside it lie; caller frees. */
char *paths_config_dir(const struct paths *p);

/* Make what is missing (0700) and check what is there: ours, 0700, no symlink, no program's
 * file in the data directory (ERRID_START_DATA), sockets' paths not too long for sun_path
 * (ERRID_START_SOCKET). */
MUST_CHECK int paths_make(const struct paths *p, struct err *err);
/* The data directory alone; one that is not there is fine. */
MUST_CHECK int paths_check_data(const struct paths *p, struct err *err);
/* One of our programs: beside this one, else in ../libexec/lychgate. *ret must be NULL
 * before; caller frees. */
MUST_CHECK int paths_program(const char *name, char **ret, struct err *err);
/* What `make install` put in PREFIX/lib/lychgate beside PREFIX/bin/lych: "profiles",
 * "quadlet/sovereign". It may not be there. Caller frees. */
MUST_CHECK int paths_installed(const char *name, char **ret, struct err *err);
/* Of real, absolute paths: is it top, or below it? */
bool path_is_below(const char *path, const char *top);
/* This very program. */
MUST_CHECK int paths_self(char **ret, struct err *err);

#endif
