/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The two places where values lie: embedded mode's files and Podman's secret store. The
 * caller names one; nothing guesses. Values are wiped by whoever holds them.
 */
#ifndef LYCH_CLI_SECRET_SECRET_H
#define LYCH_CLI_SECRET_SECRET_H

#include "cli/base/paths.h"
#include "common/attr.h"
#include "common/err.h"
#include "secrets/manifest.h"
#include <stdbool.h>
#include <stddef.h>

struct secret_value {
	char s[SECRET_VALUE_MAX_BYTES + 1];
	size_t len;
};
void secret_value_wipe(struct secret_value *v);
#define cleanup_secret_value __attribute__((cleanup(secret_value_wipe)))
/* Printable ASCII on one line, of min to SECRET_VALUE_MAX_BYTES: ERRID_SECRET_VALUE. */
MUST_CHECK int secret_value_check(const struct secret_value *v, size_t min,
				  struct err *err);
/* The same of one that is issued by others (ROTATE_GIVEN), and what its egress worker takes no key with.
 * is_local: only a server on this machine is told, so it may have any length. */
MUST_CHECK int secret_key_check(const struct secret_value *v, bool is_local,
				struct err *err);
void secret_value_generate(struct secret_value *ret);

struct secret_store;
struct secret_store_ops {
	const char *name; /* "files" */
	/* on_name for each value that is there, known or not; kind: how it is kept. */
	int (*list)(struct secret_store *s,
		    void (*on_name)(const char *name, const char *kind, void *arg),
		    void *arg, struct err *err);
	/* ERRID_SECRET_MISSING; ERRID_SECRET_VALUE or _FILE when it is not acceptable. */
	int (*read)(struct secret_store *s, const char *name, struct secret_value *ret,
		    struct err *err);
	/* ERRID_SECRET_EXISTS unless replace. */
	int (*write)(struct secret_store *s, const char *name,
		     const struct secret_value *v, bool replace, struct err *err);
	/* ERRID_SECRET_MISSING */
	int (*remove)(struct secret_store *s, const char *name, struct err *err);
};
struct secret_store {
	const struct secret_store_ops *ops;
	const struct paths *paths;
	char *where; /* for people */
	int dirfd;   /* files */
	char *podman, *systemctl;
	char **env;
};
/* "files" or "podman". */
MUST_CHECK int secret_store_open(const char *name, const struct paths *p,
				 struct secret_store *ret, struct err *err);
void secret_store_close(struct secret_store *s);
#define cleanup_secret_store __attribute__((cleanup(secret_store_close)))
extern const struct secret_store_ops secret_files, secret_podman;
MUST_CHECK int secret_podman_open(struct secret_store *s, struct err *err);
/* `systemctl --user` with these arguments (NULL-terminated) succeeded. */
MUST_CHECK int secret_systemctl(struct secret_store *s, const char *const *args,
				struct err *err);

/* Prints what the store has, and with check what is wrong with each value; ERRID_SECRET_CHECK
 * when something is. */
MUST_CHECK int secret_look(struct secret_store *s, bool check, bool json,
			   struct err *err);

/* The value is replaced and everything that must follow is done or, when nothing runs,
 * left to the next start. *ret_note: what was done, for people; a constant. */
MUST_CHECK int secret_rotate(struct secret_store *s, const struct secret_info *info,
			     const char *name, const char **ret_note, struct err *err);

/* The next generation of one tomb's secrets, and what must follow. */
MUST_CHECK int secret_rotate_tomb(struct secret_store *s, const char *tomb,
				  const char **ret_note, struct err *err);
/* Of every tomb of the store. */
MUST_CHECK int secret_rotate_tombs(struct secret_store *s, const char **ret_note,
				   struct err *err);

/* The value beside an owner's secret while the server is told. */
#define SECRET_NEXT_SUFFIX ".next"

#endif
