/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Which directories of the user's may be mounted into the tomb's container. Theory of
 * operation:
 *
 *  - codex.yaml asks (pod.mounts); mount-allowlist.json, which no container ever sees,
 *    allows. Without that file nothing is mounted. A wish that is not allowed is refused,
 *    never narrowed in silence: who asks for writing gets it or an error.
 *  - Symbolic links are resolved first, and everything is judged by the real path, which
 *    is also what the unit names: a link that is turned later changes nothing.
 *  - Some places are refused whatever the list says: what is, holds or lies in a place of
 *    secrets, of this program, of the system, the home directory and all above it.
 *  - The whole tree is looked through for names that keep secrets (no list of roots can
 *    know what lies in them), and for private keys and tokens by content. A tree that cannot be
 *    looked through to its end is refused.
 *
 * What is put into a shared directory afterwards is not seen: docs/THREAT_MODEL.md.
 * mount_allowlist_parse() reads outside bytes: fuzz_allowlist.c.
 */
#ifndef LYCH_CLI_POD_MOUNTS_H
#define LYCH_CLI_POD_MOUNTS_H

#include "common/attr.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>

/* NanoClaw's format: {"allowedRoots": [{"path", "allowReadWrite", "description"}],
 * "blockedPatterns": [...], "nonMainReadOnly": bool}. Other keys are refused. */
struct mount_allowlist {
	struct mount_root {
		char *path; /* as it was written, "~" expanded */
		bool read_write;
	} *root;
	size_t n_roots;
	char **blocked; /* a path component that contains one is refused, in any case */
	size_t n_blocked;
	bool read_only; /* nonMainReadOnly: every job is a stranger here */
};

struct mount_wish {
	char *path; /* as it was written; "~/" is the home directory */
	bool read_write;
};

struct mount_world {
	const char *home;
	const char *const *own; /* further directories of ours, NULL-terminated */
};

/* ERRID_BIND_ALLOWLIST. */
MUST_CHECK int mount_allowlist_parse(const char *text, size_t len, const char *home,
				     struct mount_allowlist *ret, struct err *err);
/* The file must be yours or root's, and so must each directory above it. */
MUST_CHECK int mount_allowlist_load(const char *path, const char *home,
				    struct mount_allowlist *ret, struct err *err);
void mount_allowlist_done(struct mount_allowlist *l);
#define cleanup_allowlist __attribute__((cleanup(mount_allowlist_done)))

/* The real path of one wish (caller frees): ERRID_BIND_MOUNT or _VALUE with the reason. */
MUST_CHECK int mount_check(const struct mount_world *w, const struct mount_allowlist *l,
			   const struct mount_wish *wish, char **ret_real,
			   struct err *err);
/* No real path may be, or lie in, another: ERRID_BIND_MOUNT. */
MUST_CHECK int mounts_check_overlap(char *const *real, size_t n, struct err *err);

#endif
