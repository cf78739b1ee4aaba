/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/loop.h"
#include "common/net/notify.h"
#include "common/watch.h"

#include "common/str.h"
#include "tests/support/scratch_socket.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

TestSuite(loop, .timeout = 10);

static struct loop *loop;
static struct loop_timer *timer;
static struct loop_io *io;
static unsigned fired;
static char seen[4096];

static void begin(void)
{
	struct err err = ERR_INIT;

	fired = 0;
	seen[0] = '\0';
	cr_assert(loop_new(&loop, &err) == 0, "%s", err.msg);
}

static int run(void)
{
	struct err err = ERR_INIT;

	return loop_run(loop, &err);
}

static void fire_and_free(void *arg)
{
	(void)arg;
	fired++;
	loop_timer_free(timer);
	loop_stop(loop, 7);
}

static void must_not(void *arg)
{
	(void)arg;
	cr_assert_fail("a disarmed timer fired");
}

Test(loop, timer_may_free_itself)
{
	struct loop_timer *other;

	begin();
	timer = loop_timer_new(loop, fire_and_free, NULL);
	other = loop_timer_new(loop, must_not, NULL);
	loop_timer_arm(other, 1000);
	loop_timer_disarm(other);
	loop_timer_arm(timer, USEC_INFINITY);
	loop_timer_arm(timer, 5000);
	cr_expect_eq(run(), 7);
	cr_expect_eq(fired, 1);
	loop_timer_free(other);
	loop_timer_free(NULL);
	loop_free(loop);
}

static void readable(int fd, unsigned what, void *arg)
{
	char c;

	(void)arg;
	cr_assert_eq(what, LOOP_READ);
	cr_assert_eq(read(fd, &c, 1), 1);
	if (++fired == 2) {
		loop_io_free(io);
		loop_stop(loop, 0);
	} else {
		loop_io_set(io, 0);
		loop_io_set(io, LOOP_READ);
	}
}

Test(loop, io_is_level_triggered_and_may_free_itself)
{
	int p[2];

	begin();
	cr_assert(pipe2(p, O_CLOEXEC) == 0);
	cr_assert(write(p[1], "ab", 2) == 2);
	io = loop_io_new(loop, p[0], LOOP_READ, readable, NULL);
	cr_expect_eq(run(), 0);
	cr_expect_eq(fired, 2);
	close(p[0]);
	close(p[1]);
	loop_free(loop);
}

static void on_signal(int signo, void *arg)
{
	(void)arg;
	fired = (unsigned)signo;
	loop_stop(loop, 3);
}

Test(loop, signals_arrive_and_sigpipe_is_ignored)
{
	struct err err = ERR_INIT;
	int s[2];

	begin();
	cr_assert(loop_signal(loop, SIGUSR1, on_signal, NULL, &err) == 0);
	cr_assert(raise(SIGUSR1) == 0);
	cr_expect_eq(run(), 3);
	cr_expect_eq(fired, SIGUSR1);
	cr_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) == 0);
	close(s[0]);
	cr_expect(write(s[1], "x", 1) < 0 && errno == EPIPE);
	close(s[1]);
	loop_free(loop);
}

/* ---- notify ---- */

static char env_socket[128];
static char *env[] = {env_socket, NULL};

/* What came by now, each datagram ended by '|'. */
static void hear(int fd)
{
	size_t n = strlen(seen);
	ssize_t got;

	while ((got = recv(fd, seen + n, sizeof(seen) - n - 2, MSG_DONTWAIT)) > 0) {
		n += (size_t)got;
		seen[n++] = '|';
		seen[n] = '\0';
	}
}

static void manager_hears(const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct notify *n = NULL;
	struct err err = ERR_INIT;
	char line[64] = {0};
	int fd, p[2];

	begin();
	cr_assert(str_copy(a.sun_path, sizeof(a.sun_path), name) == 0);
	if (name[0] == '@')
		a.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert(bind(fd, (struct sockaddr *)&a,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name) +
				   (name[0] == '/'))) == 0);
	cr_assert(str_fmt(env_socket, sizeof(env_socket), "NOTIFY_SOCKET=%s", name) == 0);
	environ = env;
	cr_assert(pipe2(p, O_CLOEXEC) == 0);
	cr_assert(notify_new(loop, p[1], &n, &err) == 0, "%s", err.msg);
	notify_status(n, "starting");
	notify_status(n, "forged\nREADY=1");
	notify_ready(n);
	notify_stopping(n);
	hear(fd);
	cr_expect_str_eq(seen, "STATUS=starting|READY=1|STOPPING=1|");
	cr_expect(read(p[0], line, sizeof(line) - 1) > 0);
	cr_expect(str_starts(line, "STATUS=starting\nREADY=1\n"), "%s", line);
	notify_free(n);
	cr_expect_eq(read(p[0], line, 1), 0, "the descriptor is closed");
	close(fd);
	close(p[0]);
	if (name[0] == '/')
		(void)unlink(name);
	loop_free(loop);
}

Test(loop, manager_hears_readiness)
{
	char name[64];

	cr_assert(str_copy(name, sizeof(name), scratch_socket()) == 0);
	manager_hears(name);
	cr_assert(str_fmt(name, sizeof(name), "@lych-notify-%d", getpid()) == 0);
	manager_hears(name);
}

static char said[4096];

static void starter_reads(int fd, unsigned what, void *arg)
{
	size_t n = strlen(said);
	ssize_t got = read(fd, said + n, sizeof(said) - n - 1);

	(void)what;
	(void)arg;
	cr_assert(got > 0);
	if (strstr(said, WATCH_BEAT_LINE "\n" WATCH_BEAT_LINE "\n"))
		loop_stop(loop, 0);
}

/* Before it is ready too, and for as long as the loop turns. */
Test(loop, starter_hears_that_it_lives)
{
	struct notify *n = NULL;
	struct err err = ERR_INIT;
	int p[2];

	begin();
	cr_assert(pipe2(p, O_CLOEXEC) == 0);
	cr_assert(notify_new(loop, p[1], &n, &err) == 0, "%s", err.msg);
	io = loop_io_new(loop, p[0], LOOP_READ, starter_reads, NULL);
	cr_expect_eq(run(), 0);
	notify_ready(n);
	cr_expect(read(p[0], said, sizeof(said) - 1) > 0);
	cr_expect(str_starts(said, "READY=1\n"), "%s", said);
	notify_free(n);
	loop_io_free(io);
	close(p[0]);
	loop_free(loop);
}

/* A starter that is stopped, or ends before its parts, keeps none of them waiting. */
Test(loop, nobody_waits_for_the_starter)
{
	static char much[1 << 16];
	struct notify *n = NULL;
	struct err err = ERR_INIT;
	int p[2];

	begin();
	cr_assert(pipe2(p, O_CLOEXEC) == 0);
	cr_assert(notify_new(loop, p[1], &n, &err) == 0, "%s", err.msg);
	while (write(p[1], much, sizeof(much)) > 0)
		;
	timer = loop_timer_new(loop, fire_and_free, NULL);
	loop_timer_arm(timer, 5000);
	cr_expect_eq(run(), 7);
	close(p[0]);
	timer = loop_timer_new(loop, fire_and_free, NULL);
	loop_timer_arm(timer, WATCH_BEAT_USEC + 5000);
	cr_expect_eq(run(), 7);
	notify_stopping(n);
	notify_free(n);
	loop_free(loop);
}

Test(loop, notify_refuses_a_bad_environment)
{
	static const char *const bad[] = {
		"NOTIFY_SOCKET=relative", "NOTIFY_SOCKET=@",
		"NOTIFY_SOCKET=", "NOTIFY_SOCKET=/nonexistent/x"};
	struct notify *n = NULL;
	struct err err = ERR_INIT;

	begin();
	environ = env;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		cr_assert(str_copy(env_socket, sizeof(env_socket), bad[i]) == 0);
		cr_expect(notify_new(loop, -1, &n, &err) < 0, "%s", bad[i]);
	}
	environ = env + 1;
	cr_expect(notify_new(loop, -1, &n, &err) == 0, "no manager is fine");
	notify_ready(n);
	notify_free(n);
	loop_free(loop);
}

/* Epoll watches are counted for each uid across namespaces: a job could use them all up. */
Test(loop, needs_no_quota_that_a_job_shares)
{
	struct loop *l = NULL;
	struct err err = ERR_INIT;
	struct rlimit r;

	cr_assert_eq(loop_new(&l, &err), 0);
	cr_expect_str_eq(event_base_get_method(loop_base(l)), "poll");
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &r), 0);
	cr_expect_eq(r.rlim_cur, r.rlim_max);
	loop_free(l);
}
