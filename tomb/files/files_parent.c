/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the files' parent.
 * The parent of the file workers (tomb/files/files.h). It is asked by one byte and answers with the
 * tomb's end of a new worker's socket; it reads nothing that anybody else wrote. Its end is
 * that of its children: by their death signal, which reaches them inside its own Landlock
 * domain, and by the end of their sockets.
 */
#include "tomb/files/files.h"

#include "common/cleanup.h"
#include "common/confine/confine.h"
#include "common/confine/probe.h"
#include "common/crypto/sha256.h"
#include "common/fdpass.h"
#include "common/landlock.h"
#include "common/log.h"
#include "common/net/children.h"
#include "common/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TREE_RIGHTS                                                                      \
	(LL_FS_RO | LL_FS_WRITE_FILE | LL_FS_TRUNCATE | LL_FS_MAKE_DIR |                 \
	 LL_FS_MAKE_REG | LL_FS_REMOVE_DIR | LL_FS_REMOVE_FILE)

int files_confine(const struct files_place *place, bool parent, struct err *err)
{
	const struct confine_path paths[] = {{place->jobs, TREE_RIGHTS},
					     {place->spool, TREE_RIGHTS},
					     {place->artifacts, TREE_RIGHTS},
					     {place->quarantine, TREE_RIGHTS}};
	const struct confine_policy policy = {
		.name = parent ? "file workers' parent" : "file worker",
		.paths = paths,
		.n_paths = ARRAY_SIZE(paths),
		.private_root = parent && !place->unrooted,
		.unrooted = place->unrooted,
		.may_change_modes = true,
		.api_socket = place->api_socket,
		.may_fork = parent,
		.below_parent = !parent,
	};
	static const char *const foreign[] = {"/etc/passwd", "/proc/self", NULL};
	struct confine_report walls;

	if (confine_self(&policy, err) < 0)
		return -1;
	return confine_selftest(&policy, foreign, &walls, err);
}

int files_say(int fd, enum files_word word, const struct err *why)
{
	struct files_reply r = {.word = word};

	if (why)
		r.err = *why;
	return fdpass_send(fd, &r, sizeof(r), NULL, 0, 0);
}

void files_probe(const struct files_place *place UNUSED, const char *process UNUSED)
{
#ifdef LYCH_TEST_BUILD
	struct confine_probe p;

	if (!place->probe_process || !str_eq(place->probe_process, process))
		return;
	p = *place->probe;
	confine_probe_run(&p);
#endif
}

static int worker(int end, void *arg)
{
	return files_worker_run(arg, end);
}

/* One that could not be begun is asked for again. */
static int one_more(int control, void *arg)
{
	cleanup_close int fd = children_fork(worker, arg);
	const struct files_reply r = {.word = fd < 0 ? FILES_BUSY : FILES_DONE};

	if (fd < 0)
		log_warn("a file worker could not be started: %s", strerror(errno));
	return fdpass_send(control, &r, sizeof(r), &fd, fd < 0 ? 0 : 1, 0);
}

int files_parent_run(const struct files_place *place, int control)
{
	struct files_place mine = *place;
	struct err err = ERR_INIT;
	int signals = -1, code;

	children_keep(control, -1);
	log_init("files", LOG_INFO_);
	/* OpenSSL reads its configuration at the first digest: not later, when it cannot. */
	sha256_free(sha256_new());
	if (children_begin("lych-files", &signals, &err) < 0 ||
	    files_confine(place, true, &err) < 0) {
		log_err(LOG_ERROR_, "cannot start", &err);
		(void)!files_say(control, FILES_FAILED, &err);
		code = err_exit_code(&err);
	} else {
		files_probe(place, "files-parent");
		code = files_say(control, FILES_READY, NULL) < 0
			       ? EXIT_FAILURE
			       : children_serve(control, signals, "file worker", one_more,
						&mine);
	}
	fd_close(&signals);
	return code;
}
