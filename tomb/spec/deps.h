/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * A job's dependencies: fetched in one sandbox, installed in another.
 *
 *	fetch	  has the registries, whatever the job itself may ask. Its workspace is
 *		  DEPS_DIR alone, new and empty but for what is written here from the
 *		  checked spec: no module, .npmrc or package.json of the job's is there to be
 *		  read or run. pip download takes wheels only, npm runs no script, cargo builds
 *		  nothing and go neither, nor runs it another go that a module wants: nothing
 *		  that came is executed either
 *	install	  in the job's whole workspace, without network or broker: what npm's packages
 *		  run at their installation runs here, as untrusted as the job, and reaches
 *		  nothing
 *
 * Both work below the job's own limits. The job finds Python's packages by PYTHONPATH,
 * Node's where Node looks for them, crates in its CARGO_HOME and modules in its GOMODCACHE.
 */
#ifndef LYCH_TOMB_SPEC_DEPS_H
#define LYCH_TOMB_SPEC_DEPS_H

#include "common/buf.h"
#include "common/json/deps_read.h"
#include "common/proto.h"

#define DEPS_DIR ".lychgate-deps"
/* As the job sees it: its workspace is /work. */
#define DEPS_PYTHON "/work/" DEPS_DIR "/python"
#define DEPS_REQUIREMENTS "requirements.txt" /* in DEPS_DIR */

/* The files that the fetch begins with: put() for each, whose name is relative to DEPS_DIR. */
void deps_files(const struct deps *d,
		void (*put)(const char *name, const char *data, size_t len, void *arg),
		void *arg);
/* The variables by which the job finds them, and by which cargo and go of a job that has no mirror
 * look no further. */
void deps_env(const struct deps *d, enum egress_mode egress,
	      void (*put)(const char *name, const char *value, void *arg), void *arg);
/* The command of each step, NUL-terminated strings one after the other. */
void deps_fetch_argv(const struct deps *d, struct buf *out);
void deps_install_argv(const struct deps *d, struct buf *out);

#endif
