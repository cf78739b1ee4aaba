/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * A starter as other commands see it: who holds the data directory, and in what state.
 */
#include "cli/local/up.h"

#include "cli/base/proc.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/syscall.h>

#define RESTART_TIMEOUT (120 * USEC_PER_SEC)

int starter_state_read(const struct paths *p, struct starter_state *ret, struct err *err)
{
	cleanup_free char *path = xasprintf("%s/" STARTER_STATE, p->data);
	cleanup_free char *text = NULL;
	cleanup_json struct json *j = NULL;
	const char *state, *runtime;
	uint64_t generation = 0;
	size_t len;

	if (fs_read_file(AT_FDCWD, path, 65536, &text, &len, err) < 0 ||
	    json_parse(text, len, JSON_DEPTH_DEFAULT, &j, err) < 0 ||
	    json_get_str(j, "state", true, sizeof(ret->state) - 1, &state, err) < 0 ||
	    json_get_str(j, "runtime", true, PATH_MAX, &runtime, err) < 0 ||
	    json_get_u64(j, "generation", false, 0, INT64_MAX, &generation, err) < 0)
		return -1;
	*ret = (struct starter_state){.runtime = xstrdup(runtime),
				      .generation = generation};
	return str_copy(ret->state, sizeof(ret->state), state);
}

static int hold_of(const char *dir, int *ret_pidfd, pid_t *ret_pid, struct err *err)
{
	cleanup_free char *path = xasprintf("%s/lock", dir);
	cleanup_close int lock = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	cleanup_close int pidfd = -1;
	pid_t holder = 0, again = 0;

	*ret_pidfd = -1;
	*ret_pid = 0;
	if (lock < 0 && errno == ENOENT)
		return 0;
	if (lock < 0 && (errno == EROFS || errno == EACCES))
		return err_sys_id(err, ERRID_START_DATA, "%s", path);
	if (lock < 0)
		return err_sys(err, "%s", path);
	if (fs_lock_holder(lock, &holder, err) < 0)
		return -1;
	if (!holder)
		return 0;
	pidfd = (int)syscall(SYS_pidfd_open, holder, 0);
	if (pidfd < 0 && errno != ESRCH)
		return err_sys(err, "pidfd_open %d", holder);
	/* the same process still holds it, so the descriptor is of that process */
	if (fs_lock_holder(lock, &again, err) < 0)
		return -1;
	*ret_pid = holder;
	if (again == holder)
		*ret_pidfd = TAKE_FD(pidfd);
	return 0;
}

int starter_hold(const struct paths *p, int *ret_pidfd, pid_t *ret_pid, struct err *err)
{
	if (hold_of(p->data, ret_pidfd, ret_pid, err) < 0)
		return -1;
	/* somebody removed that lock: a starter has this one too */
	return *ret_pid ? 0 : hold_of(p->runtime, ret_pidfd, ret_pid, err);
}

/* Of `lych restore ...`, as it was called. */
static bool is_restore(const char *cmdline, size_t size)
{
	size_t at = strnlen(cmdline, size) + 1;

	while (at < size && cmdline[at] == '-')
		at += strlen(cmdline + at) + 1;
	return at < size && str_eq(cmdline + at, "restore");
}

int starter_check_holder(const struct paths *p, pid_t holder, struct err *err)
{
	size_t len = 0;
	cleanup_free char *comm = proc_text(holder, "comm", NULL);
	cleanup_free char *cmdline = proc_text(holder, "cmdline", &len);

	if (!comm)
		return 0; /* it has just ended */
	if (!str_eq(comm, "lych\n"))
		return err_set_id(err, ERRID_START_LOCKED,
				  "pid %d holds %s/lock and is no lych: it is left alone",
				  holder, p->data);
	if (cmdline && is_restore(cmdline, len))
		return err_set_id(err, ERRID_START_LOCKED,
				  "%s: a 'lych restore' (pid %d) works there: wait for "
				  "it, or end it with 'kill %d'",
				  p->data, holder, holder);
	return 0;
}

/* 1: ready again; 0: not yet. */
static int is_back(const struct paths *p, uint64_t generation)
{
	struct err ignored = ERR_INIT;
	struct starter_state now = {0};

	if (starter_state_read(p, &now, &ignored) < 0)
		return 0;
	free(now.runtime);
	return now.generation > generation && str_eq(now.state, "up");
}

int starter_restart(const struct paths *p, bool *ret_ran, struct err *err)
{
	usec_t deadline = clock_boot_usec() + RESTART_TIMEOUT;
	struct starter_state before = {0};
	cleanup_close int pidfd = -1;
	pid_t holder = 0;

	*ret_ran = false;
	if (starter_hold(p, &pidfd, &holder, err) < 0)
		return -1;
	if (!holder)
		return 0;
	*ret_ran = true;
	if (starter_check_holder(p, holder, err) < 0 ||
	    starter_state_read(p, &before, err) < 0)
		return -1;
	free(before.runtime);
	if (!str_eq(before.state, "up"))
		return err_set_id(err, ERRID_START_LOCKED,
				  "pid %d is %s; try again when it is up", holder,
				  before.state);
	if (pidfd < 0 ||
	    syscall(SYS_pidfd_send_signal, pidfd, STARTER_RESTART_SIGNAL, NULL, 0) < 0)
		return err_set_id(err, ERRID_START_LOCKED, "pid %d has just ended",
				  holder);
	while (!is_back(p, before.generation)) {
		struct timespec nap = {.tv_nsec = 20 * 1000 * 1000};

		if (clock_boot_usec() >= deadline)
			return err_set_id(err, ERRID_CORE_TIMEOUT,
					  "vessel and tomb are not ready again; see "
					  "%s/log/starter.log and 'lych status'",
					  p->data);
		(void)nanosleep(&nap, NULL);
	}
	return 0;
}
