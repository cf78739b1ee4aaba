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
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

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

NORETURN static void become_worker(const struct files_place *place, int fd, pid_t parent)
{
	if (child_begin(parent) < 0)
		_exit(EXIT_FAILURE);
	children_keep(fd, -1);
	_exit(files_worker_run(place, fd));
}

/* The tomb's end of its socket; -1 with errno. */
static int start_worker(const struct files_place *place)
{
	cleanup_close int ours = -1;
	pid_t self = getpid(), pid;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	ours = pair[0];
	pid = fork();
	if (pid == 0)
		become_worker(place, pair[1], self);
	fd_close(&pair[1]);
	return pid < 0 ? -1 : TAKE_FD(ours);
}

/* One that could not be begun is asked for again. */
static int answer(const struct files_place *place, int control)
{
	cleanup_close int fd = start_worker(place);
	const struct files_reply r = {.word = fd < 0 ? FILES_BUSY : FILES_DONE};

	if (fd < 0)
		log_warn("a file worker could not be started: %s", strerror(errno));
	return fdpass_send(control, &r, sizeof(r), &fd, fd < 0 ? 0 : 1, 0);
}

static void reap(int signals)
{
	int status;
	pid_t pid;

	children_heard(signals);
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			log_warn("file worker %d ended with status %#x", (int)pid,
				 (unsigned)status);
}

/* Until the tomb's end closes. */
static int supervise(const struct files_place *place, int control, int signals)
{
	for (;;) {
		struct pollfd fds[] = {{.fd = control, .events = POLLIN},
				       {.fd = signals, .events = POLLIN}};
		char word;
		ssize_t n;

		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return EXIT_FAILURE;
		if (fds[1].revents)
			reap(signals);
		if (!fds[0].revents)
			continue;
		n = recv(control, &word, sizeof(word), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n != 1)
			return n == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
		if (answer(place, control) < 0)
			return EXIT_FAILURE;
	}
}

int files_parent_run(const struct files_place *place, int control)
{
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
			       : supervise(place, control, signals);
	}
	fd_close(&signals);
	return code;
}
