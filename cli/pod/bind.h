/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych bind: codex.yaml becomes the units of a pod. Theory of operation:
 *
 *  1. Everything is judged before anything is written: the configuration file, each value
 *     for the place that it goes to, the mounts, the units themselves, the secrets, and
 *     the files that lie where ours will. A refusal leaves no trace.
 *  2. The units are rendered in memory, written to a private directory beside the last
 *     rendering and exchanged with it in one step. The receipt names every file that was
 *     ever written, by sha256, and is on disk before the files are.
 *  3. --install hands that directory to `podman quadlet install` (places the files itself
 *     below 5.6), and believes what it then finds, not an exit code: each file is there
 *     with our bytes, and systemd has a service of each. Else the former set is put back.
 *
 * A file whose bytes are not in the receipt belongs to somebody else.
 */
#ifndef LYCH_CLI_POD_BIND_H
#define LYCH_CLI_POD_BIND_H

#include "cli/base/paths.h"
#include "cli/base/podman.h"
#include "cli/pod/receipt.h"
#include "cli/pod/units.h"
#include "common/attr.h"
#include "common/buf.h"
#include "common/conf/conf.h"
#include "common/err.h"
#include <stdbool.h>

#define BIND_APP "lychgate"	    /* the directory, and so Podman's application */
#define BIND_HOST "host"	    /* beside it: units of the host */
#define BIND_RECEIPT "receipt.json" /* in <data>/bind */

struct bind {
	struct paths paths;
	struct conf conf;
	char *home;   /* real */
	char *dir;    /* <data>/bind */
	char *staged; /* <data>/bind/lychgate: what `podman quadlet install` takes */
	char *receipt_path;
	char *quadlets;	  /* where Quadlet looks: .../containers/systemd */
	char *user_units; /* where the user manager looks: .../systemd/user */
	char **mount;	  /* real paths, checked */
	size_t n_mounts;
	struct podman podman;
	struct unit_set units;
	struct receipt receipt; /* empty without one */
	bool has_receipt;
	/* names of changed units that may be overwritten or removed all the same */
	const char *const *overwrite;
	size_t n_overwrite;
	int lock_fd; /* <data>/bind/lock, held from bind_lock() on; -1 before */
};
#define BIND_INIT {.lock_fd = -1}

/* Paths and receipt; nothing else is looked at. */
MUST_CHECK int bind_open(struct bind *b, struct err *err);
void bind_done(struct bind *b);
#define cleanup_bind __attribute__((cleanup(bind_done)))

/* ---- bind.c: configuration -> units, in memory. Asks Podman for the secrets. */
MUST_CHECK int bind_render(struct bind *b, struct err *err);
/* The tomb's own secrets in Podman's store, from the masters and its generation: made where
 * they are missing or another's. After everything is judged, before anything is written. */
MUST_CHECK int bind_tomb_secrets(const struct bind *b, struct err *err);

/* ---- bind_files.c */
enum bind_state {
	BIND_MISSING,
	BIND_OURS,    /* with bytes that we wrote once */
	BIND_CHANGED, /* a name of ours, other bytes */
	BIND_FOREIGN, /* a name that we never wrote, or no regular file of the user's */
};
/* The directory that a unit is installed in: quadlets, or user_units for the host's. */
const char *bind_place(const struct bind *b, const char *name);
/* What lies under that name in its place. *ret_text (may be NULL): its bytes, or NULL. */
MUST_CHECK int bind_look(const struct bind *b, const char *name, enum bind_state *ret,
			 char **ret_text, struct err *err);
/* Are these the bytes of the present rendering? */
bool bind_is_present(const struct receipt_file *f, const char *text);
/* Every name that is rendered or known, each once. Caller frees the array only. */
void bind_names(const struct bind *b, const char ***ret, size_t *ret_n);
/* Nothing in the way of ours, neither of what is rendered nor of what is installed. */
MUST_CHECK int bind_check_files(const struct bind *b, struct err *err);
/* One at a time. Makes <data>/bind and reads the receipt again. */
MUST_CHECK int bind_lock(struct bind *b, struct err *err);
/* Receipt and staged directory; under the lock. */
MUST_CHECK int bind_stage(struct bind *b, struct err *err);

/* ---- bind_install.c */
/* Is there a user manager that answers? Asked before anything is written. */
MUST_CHECK int bind_can_install(const struct bind *b, struct err *err);
MUST_CHECK int bind_install(struct bind *b, struct err *err);
/* Stop the services, remove what is ours, forget it. *ret_removed: how many files. */
MUST_CHECK int bind_remove(struct bind *b, size_t *ret_removed, struct err *err);

/* ---- bind_status.c */
/* What of the pod is not there (status_wait.h): empty when each unit is installed and
 * active, none is unhealthy, and the vessel and its database answer. */
MUST_CHECK int bind_look_missing(struct bind *b, struct buf *missing, struct err *err);
/* Start its service, again where it runs (perhaps with units that are no more), and wait
 * until nothing is missing. */
MUST_CHECK int bind_start(struct bind *b, struct err *err);
/* lych status, where the units are bound. */
/* 0; EXIT_UNAVAILABLE when not all of it runs; -1. */
MUST_CHECK int bind_status(struct bind *b, bool as_json, bool verbose, struct err *err);

#endif
