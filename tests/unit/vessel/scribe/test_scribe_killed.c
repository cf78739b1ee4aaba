/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of the log is killed at each of its writes and fsyncs, before it or in the middle: what
 * was acknowledged is there, chain and seals hold, one key is left, and the log goes on. */
#include "common/attr.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/proto.h"
#include "vessel/scribe/audit_read.h"
#include "vessel/scribe/log.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static char dir[64];
static const struct uuid stream = {"aaaaaaaa-1111-4222-8333-444444444444"};

/* What the child and we share. */
static struct shared {
	unsigned calls; /* that were made */
	uint64_t acked;
} *shared;
static unsigned die_at; /* 0: never */
static bool in_the_middle;

static bool is_last(void)
{
	return die_at && ++shared->calls == die_at;
}

NORETURN static void die(void)
{
	(void)kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

/* In the place of libc's: this program's own come first. */
ssize_t write(int fd, const void *data, size_t len)
{
	if (is_last()) {
		if (in_the_middle)
			(void)!syscall(SYS_write, fd, data, len / 2);
		die();
	}
	return syscall(SYS_write, fd, data, len);
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
	if (is_last()) {
		if (in_the_middle)
			(void)!syscall(SYS_pwrite64, fd, data, len / 2, at);
		die();
	}
	return syscall(SYS_pwrite64, fd, data, len, at);
}

int fsync(int fd)
{
	if (is_last())
		die();
	return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	if (is_last())
		die();
	return (int)syscall(SYS_fdatasync, fd);
}

static void begin(void)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/ly-killed-XXXXXX");
	cr_assert(mkdtemp(dir));
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(shared, MAP_FAILED);
}

static void empty(void)
{
	struct err err = ERR_INIT;
	int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	cr_assert(fs_remove_beneath(tmp, dir + 5, &err) == 0);
	close(tmp);
}

TestSuite(scribe_killed, .init = begin, .fini = empty, .timeout = 120);

/* A short life. 0: it came to its end. */
static int life(unsigned events)
{
	struct scribe_log_config cfg = {
		.dir = dir,
		.segment_bytes = 4096,
		.clock = &clock_real,
		.rng = &random_real,
		.kernel_boot = {"00000000-1111-4222-8333-444444444444"},
	};
	struct scribe_log *l = NULL;
	enum scribe_taken taken;
	struct err err = ERR_INIT;

	if (scribe_log_open(&cfg, &l, &err) < 0 || scribe_log_commit(l, &err) < 0 ||
	    scribe_log_seal(l, true, &err) < 0)
		return 1;
	/* what was acknowledged is there */
	if (scribe_log_last(l, "queue", &stream) < shared->acked)
		return 2;
	shared->acked = scribe_log_last(l, "queue", &stream);
	for (unsigned i = 0; i < events; i++) {
		if (scribe_log_add(l, "queue", &stream, shared->acked + 1, "\"a\":1", 5,
				   &taken, &err) < 0 ||
		    scribe_log_commit(l, &err) < 0)
			return 3;
		shared->acked++;
		if (i % 2 && scribe_log_seal(l, i % 4 == 3, &err) < 0)
			return 4;
	}
	if (scribe_log_own(l, "scribe.stop", NULL, &err) < 0 ||
	    scribe_log_commit(l, &err) < 0 || scribe_log_seal(l, true, &err) < 0)
		return 5;
	scribe_log_free(l);
	return 0;
}

/* Exit code, or -1 when it was killed. */
static int lives(unsigned at, bool middle, unsigned events)
{
	int status;
	pid_t pid;

	shared->calls = 0;
	pid = fork();
	if (pid == 0) {
		die_at = at;
		in_the_middle = middle;
		_exit(life(events));
	}
	cr_assert(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static enum audit_verdict verdict(struct err *err)
{
	struct audit_reading r = {0};
	enum audit_verdict v = audit_read(&r, dir, err) < 0 ? r.verdict : AUDIT_OK;

	audit_reading_done(&r);
	return v;
}

static void killed_at_each_call(bool middle)
{
	unsigned at = 1;

	for (;; at++) {
		struct err err = ERR_INIT;
		int code;

		shared->acked = 0;
		if (mkdir(dir, 0700) < 0)
			cr_assert_eq(at, 1);
		code = lives(at, middle, 8);
		cr_assert(code == -1 || code == 0, "call %u: %d", at, code);
		if (code == 0)
			break;
		/* the next one goes on, is killed at the same call, and another one goes on */
		code = lives(at, middle, 0);
		cr_assert(code == -1 || code == 0, "call %u again: %d", at, code);
		cr_assert_eq(lives(0, false, 4), 0, "call %u: the third life", at);
		cr_assert_eq(verdict(&err), AUDIT_OK, "call %u: %s", at, err.msg);
		empty();
	}
	cr_assert_gt(at, 50, "%u calls", at);
	cr_log_info("%u calls", at);
}

Test(scribe_killed, before_each_write_and_fsync)
{
	killed_at_each_call(false);
}

Test(scribe_killed, in_the_middle_of_each_write)
{
	killed_at_each_call(true);
}

/* Without a life after it: what the dead one left is no sign of tampering. The one exception is
 * told: a clean stop whose checkpoint is missing, which is what somebody who cut it would leave. */
Test(scribe_killed, what_is_left_verifies)
{
	unsigned stopped = 0;

	for (unsigned at = 1;; at++) {
		struct err err = ERR_INIT;
		enum audit_verdict v;
		int code;

		shared->acked = 0;
		if (mkdir(dir, 0700) < 0)
			cr_assert_eq(at, 1);
		code = lives(at, true, 4);
		v = verdict(&err);
		if (v == AUDIT_UNSEALED)
			stopped++;
		else
			cr_assert(v == AUDIT_OK || (v == AUDIT_UNKNOWN && at < 10),
				  "call %u: %d %s", at, v, err.msg);
		if (code == 0)
			break;
		empty();
	}
	cr_assert_leq(stopped, 8, "%u", stopped);
}
