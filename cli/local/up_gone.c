/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See up_gone.h.
 */
#include "cli/local/up_gone.h"

#include "cli/base/proc.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RECORD_MAX 256
/* Long enough for a namespace full of processes on a machine that has other things to do: without
 * the proof its leases run for half a minute. Who is stuck for longer is left. */
#define END_MSEC 10000

/* One that does not say which it is: another boot may be another machine's. */
#define NO_MACHINE "-"

/* One process for good: of this machine, since this boot. */
struct life {
	char machine[40], boot[40];
	uint64_t pid_ns, pid, start;
	uint64_t starter, starter_start;
};

/* The first word of a small file. */
static int read_word(const char *path, char *out, size_t size)
{
	cleanup_free char *text = NULL;
	struct err ignored = ERR_INIT;
	size_t len;

	if (fs_read_file(AT_FDCWD, path, 4096, &text, &len, &ignored) < 0)
		return -1;
	text[strcspn(text, " \n")] = '\0';
	return *text ? str_copy(out, size, text) : -1;
}

/* Field 22 of /proc/PID/stat; the second may hold anything, blanks and brackets too. One that has
 * ended and waits for its parent is none. */
static int read_start(pid_t pid, uint64_t *ret)
{
	cleanup_free char *text = proc_text(pid, "stat", NULL);
	char *s;

	if (!text || !(s = strrchr(text, ')')) || str_starts(s, ") Z") ||
	    str_starts(s, ") X"))
		return -1;
	for (int field = 2; field < 22; field++)
		if (!(s = strchr(s + 1, ' ')))
			return -1;
	s[1 + strspn(s + 1, "0123456789")] = '\0';
	return parse_u64(s + 1, 0, UINT64_MAX, ret, NULL);
}

/* Where we are: everything but pid and start. */
static int read_here(struct life *ret)
{
	struct stat st;

	if (read_word("/etc/machine-id", ret->machine, sizeof(ret->machine)) < 0)
		(void)snprintf(ret->machine, sizeof(ret->machine), NO_MACHINE);
	if (read_word("/proc/sys/kernel/random/boot_id", ret->boot, sizeof(ret->boot)) <
		    0 ||
	    stat("/proc/self/ns/pid", &st) < 0)
		return -1;
	ret->pid_ns = st.st_ino;
	return 0;
}

static int life_read(const char *record, struct life *ret)
{
	cleanup_free char *text = NULL;
	struct err ignored = ERR_INIT;
	size_t len;
	int n;

	if (fs_read_file(AT_FDCWD, record, RECORD_MAX, &text, &len, &ignored) < 0)
		return -1;
	n = sscanf(text,
		   "%39s %39s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
		   ret->machine, ret->boot, &ret->pid_ns, &ret->pid, &ret->start,
		   &ret->starter, &ret->starter_start);
	return n == 7 && ret->pid > 1 && ret->pid <= INT_MAX && ret->starter <= INT_MAX
		       ? 0
		       : -1;
}

/* pidfd is of the process that has the pid now. */
static bool end_it(int pidfd, const struct life *was)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	uint64_t start = 0;

	if (poll(&p, 1, 0) > 0)
		return true;
	if (read_start((pid_t)was->pid, &start) < 0)
		return poll(&p, 1, 0) > 0;
	if (start != was->start)
		return true; /* somebody else */
	log_warn("an earlier tomb is still there; it is ended");
	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	return poll(&p, 1, END_MSEC) > 0;
}

static bool starter_lives(const struct life *was)
{
	uint64_t start = 0;

	return read_start((pid_t)was->starter, &start) == 0 &&
	       start == was->starter_start;
}

const char *gone_prove(const char *record)
{
	struct life was = {0}, here = {0};
	cleanup_close int pidfd = -1;

	if (life_read(record, &was) < 0 || read_here(&here) < 0 ||
	    !str_eq(was.machine, here.machine))
		return NULL;
	/* What it ran may have ended the machine. */
	if (!str_eq(was.boot, here.boot))
		return str_eq(here.machine, NO_MACHINE) ? NULL : TOMB_GONE_ALONE;
	/* The number of a namespace is used again only when nobody is left in it. */
	if (was.pid_ns != here.pid_ns)
		return NULL;
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)was.pid, 0);
	if (pidfd < 0 ? errno != ESRCH : !end_it(pidfd, &was))
		return NULL;
	return starter_lives(&was) ? TOMB_GONE_ALONE : TOMB_GONE_HOUSE;
}

int gone_forget(const char *record, struct err *err)
{
	if (unlink(record) < 0 && errno != ENOENT)
		return err_sys(err, "remove %s", record);
	return 0;
}

int gone_record(const char *record, pid_t tomb, pid_t starter, struct err *err)
{
	struct life now = {.pid = (uint64_t)tomb, .starter = (uint64_t)starter};
	cleanup_free char *line = NULL;

	if (read_here(&now) < 0 || read_start(tomb, &now.start) < 0 ||
	    read_start(starter, &now.starter_start) < 0)
		return err_set_id(err, ERRID_CORE_SYS,
				  "/proc does not say who the processes %d and %d are",
				  tomb, starter);
	line = xasprintf("%s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
			 "\n",
			 now.machine, now.boot, now.pid_ns, now.pid, now.start,
			 now.starter, now.starter_start);
	return fs_write_atomic(AT_FDCWD, record, line, strlen(line), 0600, err);
}

int gone_tell(const char *tomb_data, const char *word, struct err *err)
{
	cleanup_close int dir =
		open(tomb_data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	cleanup_close int fd = -1;

	if (dir < 0)
		return err_sys(err, "open %s", tomb_data);
	if (unlinkat(dir, TOMB_GONE_FILE, 0) < 0 && errno != ENOENT)
		return err_sys(err, "remove %s/%s", tomb_data, TOMB_GONE_FILE);
	if (!word)
		return 0;
	fd = openat(dir, TOMB_GONE_FILE,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, "make %s/%s", tomb_data, TOMB_GONE_FILE);
	return fs_write_all(fd, word, strlen(word), err);
}
