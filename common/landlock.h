/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Landlock by raw system calls (Debian 12's <linux/landlock.h> stops at ABI 2).
 * Constants follow Documentation/userspace-api/landlock.rst. Every access right
 * of the ABI that the kernel reports (up to the newest one we know) is handled,
 * so whatever is not granted is refused; a rule that cannot be added is an error.
 */
#ifndef LYCH_COMMON_LANDLOCK_H
#define LYCH_COMMON_LANDLOCK_H

#include "common/attr.h"
#include "common/err.h"
#include <stdbool.h>
#include <stdint.h>

#define LL_ABI_REQUIRED 6 /* scopes: Linux 6.12 */
#define LL_ABI_KNOWN 10
#define LL_ABI_RESOLVE_UNIX 9
#define LL_ABI_UDP 10

#define LL_FS_EXECUTE (1ULL << 0)
#define LL_FS_WRITE_FILE (1ULL << 1)
#define LL_FS_READ_FILE (1ULL << 2)
#define LL_FS_READ_DIR (1ULL << 3)
#define LL_FS_REMOVE_DIR (1ULL << 4)
#define LL_FS_REMOVE_FILE (1ULL << 5)
#define LL_FS_MAKE_CHAR (1ULL << 6)
#define LL_FS_MAKE_DIR (1ULL << 7)
#define LL_FS_MAKE_REG (1ULL << 8)
#define LL_FS_MAKE_SOCK (1ULL << 9)
#define LL_FS_MAKE_FIFO (1ULL << 10)
#define LL_FS_MAKE_BLOCK (1ULL << 11)
#define LL_FS_MAKE_SYM (1ULL << 12)
#define LL_FS_REFER (1ULL << 13)
#define LL_FS_TRUNCATE (1ULL << 14)
#define LL_FS_IOCTL_DEV (1ULL << 15)
#define LL_FS_ALL ((1ULL << 16) - 1)
/* ABI 9; not in the sets: it is handled by scope_unix and never granted. */
#define LL_FS_RESOLVE_UNIX (1ULL << 16)

/* Handy sets. */
#define LL_FS_RO (LL_FS_READ_FILE | LL_FS_READ_DIR)
#define LL_FS_ROX (LL_FS_RO | LL_FS_EXECUTE)
#define LL_FS_RW                                                                         \
	(LL_FS_RO | LL_FS_WRITE_FILE | LL_FS_TRUNCATE | LL_FS_REMOVE_DIR |               \
	 LL_FS_REMOVE_FILE | LL_FS_MAKE_DIR | LL_FS_MAKE_REG | LL_FS_MAKE_SOCK |         \
	 LL_FS_MAKE_FIFO | LL_FS_MAKE_SYM | LL_FS_REFER)
/* What may be granted on something that is not a directory. */
#define LL_FS_FILE                                                                       \
	(LL_FS_EXECUTE | LL_FS_WRITE_FILE | LL_FS_READ_FILE | LL_FS_TRUNCATE |           \
	 LL_FS_IOCTL_DEV)

struct landlock_set {
	int fd;	 /* the ruleset, O_CLOEXEC */
	int abi; /* what the kernel has */
	uint64_t handled_fs;
};

/* The ABI of this kernel. Below LL_ABI_REQUIRED, or no Landlock at all:
 * ERRID_SANDBOX_KERNEL / ERRID_SANDBOX_LANDLOCK, with the kernel's release named. */
MUST_CHECK int landlock_require(int *ret_abi, struct err *err);
/*
 * handle_ports: also handle TCP, and from ABI 10 UDP, bind and connect (no port is
 * ever granted).
 * scope_signals, scope_abstract: ABI 6 scopes. A process that must be able to
 * kill others leaves scope_signals off and says why where it does so.
 * scope_unix: from ABI 9, no connection to a pathname socket that was made outside of
 * this domain. Below ABI 9 the kernel can't: never the only wall.
 */
MUST_CHECK int landlock_begin(struct landlock_set *set, bool handle_ports,
			      bool scope_signals, bool scope_abstract, bool scope_unix,
			      struct err *err);
/* In one go, no_new_privs set: this process, and what it forks, can signal nobody but those; a
 * domain of theirs is below it. No file and no port is touched by it. */
MUST_CHECK int landlock_scope_signals(struct err *err);
/* rights outside LL_FS_FILE are dropped from a non-directory. */
MUST_CHECK int landlock_allow_fd(struct landlock_set *set, int path_fd, uint64_t rights,
				 struct err *err);
/* Opens O_PATH|O_CLOEXEC (following symlinks: these are our own constants). */
MUST_CHECK int landlock_allow_path(struct landlock_set *set, const char *path,
				   uint64_t rights, struct err *err);
/* no_new_privs must be set. Closes the ruleset. */
MUST_CHECK int landlock_enforce(struct landlock_set *set, struct err *err);
void landlock_done(struct landlock_set *set);

#endif
