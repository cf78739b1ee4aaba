/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Self-confinement of the daemons (vessel, egress workers, scribe, tomb): no_new_privs, dumpable 0, no capabilities, Landlock to exactly their
 * own directories, seccomp to the calls that they need, then a self-test that
 * attempts what was just forbidden. Any failure: the daemon exits 78.
 */
#ifndef LYCH_COMMON_CONFINE_CONFINE_H
#define LYCH_COMMON_CONFINE_CONFINE_H

#include "common/attr.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct confine_path {
	const char *path;
	uint64_t rights; /* LL_FS_* of common/landlock.h */
};

struct confine_policy {
	const char *name; /* "vessel" */
	const struct confine_path *paths;
	size_t n_paths;
	/*
	 * Landlock (below ABI 9) does not stop connect() to a pathname socket, the user bus
	 * say. With private_root the process first moves to user and mount namespaces
	 * of its own whose root holds `paths` and nothing else; descriptors opened
	 * before stay as they are, the working directory becomes "/". Each path is a
	 * mount of its own: rename() between two of them is EXDEV.
	 */
	bool private_root;
	/*
	 * The owner's word `daemons: no_private_root` (docs/adr/0047), for a host that refuses
	 * user namespaces: there is no root of its own. Instead every way to a socket's path
	 * is closed (filter.c, sockets.c has the list), and the self-test tries each.
	 */
	bool unrooted;
	/* Of an unrooted one: libpq makes its socket, which is a stream, and its connect() is
	 * answered EINPROGRESS by the filter; the descriptor comes from the dialer (dial.h). */
	bool may_dial;
	/* Of an unrooted one: modes up to 0755, and by name, as of a job's directory that is to
	 * be removed; else up to 0600. Landlock has no say over modes. */
	bool may_change_modes;
	/* Of an unrooted one: it gives sockets their names anew. Else there is no listen(), and no
	 * bind() but of the network's. */
	bool may_listen;
	const char *api_socket; /* of an unrooted one: what its self-test tries first */
	bool may_make_unix_sockets; /* socket(AF_UNIX) for libpq and curl */
	/* socket(AF_INET), socket(AF_INET6): for what speaks to the network, and for its
	 * parent, since a filter and a Landlock domain bind children too */
	bool may_make_inet_sockets;
	/*
	 * It forks children that confine themselves further (below_parent): fork() as glibc
	 * makes it and no other clone, and what a child's own confinement calls; it may end
	 * them, by SIGKILL alone and as far as its Landlock scope reaches. No exec.
	 */
	bool may_fork;
	/* The process is such a child: what it inherited is checked instead of set. */
	bool below_parent;
	/*
	 * A directory outside the private root that stays readable by a descriptor alone:
	 * *held_fd is made by confine_self() (O_PATH, the caller's), held_rights as in
	 * paths. Needs private_root or unrooted. NULL: none.
	 */
	const char *held_dir;
	uint64_t held_rights;
	int *held_fd;
	bool may_signal; /* only to itself; false denies kill() of any other pid by
			    Landlock scope */
	const int *extra_syscalls; /* beyond the common daemon set (libseccomp numbers,
				      ended by -1); NULL */
};

/* One line a wall, for status and doctor. */
struct confine_report {
	unsigned n;
	struct {
		char wall[96];	 /* "exec", "read:~/.ssh", "socket:inet" */
		char answer[64]; /* "EPERM" */
		bool held;
	} line[32];
};

/* Enforce. After it returns 0 nothing can be taken back. execve is always forbidden. */
MUST_CHECK int confine_self(const struct confine_policy *policy, struct err *err);
/*
 * Attempt what is forbidden (exec, sockets, ~/.ssh, the home directory, the
 * user bus, the paths in `foreign` (NULL-terminated), ptrace and a signal to
 * the parent (signal 0 is not used: a real but harmless SIGCONT)), fill the report;
 * -1 with ERRID_START_CONFINE naming the wall if anything succeeded.
 */
MUST_CHECK int confine_selftest(const struct confine_policy *policy,
				const char *const *foreign, struct confine_report *ret,
				struct err *err);
/*
 * For a child that is about to execute what confines itself and what it starts, but has no filter
 * (who: its name): connect() is refused to it and to all of them from here on, which is tried, and
 * no_new_privs set. -1 with ERRID_START_UNROOTED.
 */
MUST_CHECK int confine_refuse_connect(const char *who, struct err *err);
/* Every program calls it first: ERRID_CORE_ROOT when uid, euid or any capability says
 * root. */
MUST_CHECK int confine_refuse_root(struct err *err);

#endif
