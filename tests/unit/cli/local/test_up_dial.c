/* SPDX-License-Identifier: Apache-2.0 */
/* The dialer: a name of its list, for who has business with it, and nothing else. */
#include "cli/local/up_dial.h"

#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/proto/dial_proto.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#define VESSEL (DIAL_BIT(DIAL_DATABASE) | DIAL_BIT(DIAL_SCRIBE))

static char dir[] = "/tmp/lych-dial-XXXXXX";
static struct paths where;
static int daemon_end, our_end;

static void setup(void)
{
	int pair[2];

	cr_assert(mkdtemp(dir));
	where = (struct paths){.pg_dir = dir, .work_dir = dir, .audit_dir = dir};
	cr_assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	daemon_end = pair[0];
	our_end = pair[1];
}

static void teardown(void)
{
	static const char *const names[] = {".s.PGSQL.5432", "vessel.sock",
					    "scribe.sock"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char path[64];

		cr_assert(str_fmt(path, sizeof(path), "%s/%s", dir, names[i]) == 0);
		(void)unlink(path);
	}
	cr_assert(rmdir(dir) == 0);
	fd_close(&daemon_end);
	fd_close(&our_end);
}

TestSuite(up_dial, .timeout = 20, .init = setup, .fini = teardown);

static int listen_at(const char *name, int type)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	cr_assert(str_fmt(sa.sun_path, sizeof(sa.sun_path), "%s/%s", dir, name) == 0);
	cr_assert(bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) == 0 &&
		  listen(fd, 4) == 0);
	return fd;
}

static void ask(uint32_t name, uint32_t serial)
{
	const struct dial_ask a = {.name = name, .serial = serial};

	cr_assert(fdpass_send(daemon_end, &a, sizeof(a), NULL, 0, 0) == 0);
}

/* What came back: the descriptor, or -1. */
static int answer(uint32_t serial, int32_t error)
{
	int fds[FDPASS_MAX] = FDPASS_NONE;
	struct dial_answer a = {0};
	unsigned n = 0;

	cr_assert(fdpass_recv(daemon_end, &a, sizeof(a), fds, &n, MSG_DONTWAIT) ==
		  (ssize_t)sizeof(a));
	cr_assert_eq(a.serial, serial);
	cr_assert_eq(a.error, error, "%d", a.error);
	cr_assert_eq(n, error ? 0 : 1);
	return fds[0];
}

static void says_nothing(void)
{
	char c;

	cr_assert(recv(daemon_end, &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
}

/* Who was connected is the listener of that name, and the descriptor is ready for use. */
static void reaches(enum dial_name name, const char *file, int type, unsigned may)
{
	cleanup_close int listener = listen_at(file, type), fd = -1, peer = -1;
	char c = 0;

	ask(name, 7);
	cr_assert(up_dial_answer(our_end, may, &where) == 0);
	fd = answer(7, 0);
	cr_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
	peer = accept(listener, NULL, NULL);
	cr_assert(peer >= 0);
	cr_assert(send(fd, "x", 1, 0) == 1 && recv(peer, &c, 1, 0) == 1 && c == 'x');
}

Test(up_dial, each_name_leads_to_its_socket)
{
	reaches(DIAL_DATABASE, ".s.PGSQL.5432", SOCK_STREAM, VESSEL);
	reaches(DIAL_SCRIBE, "scribe.sock", SOCK_SEQPACKET, VESSEL);
	reaches(DIAL_WORK, "vessel.sock", SOCK_STREAM, DIAL_BIT(DIAL_WORK));
}

Test(up_dial, nobody_there_is_an_answer)
{
	cleanup_close int listener = listen_at(".s.PGSQL.5432", SOCK_STREAM);

	ask(DIAL_SCRIBE, 1);
	cr_assert(up_dial_answer(our_end, VESSEL, &where) == 0);
	cr_assert_eq(answer(1, ENOENT), -1);
	fd_close(&listener);
	ask(DIAL_DATABASE, 2);
	cr_assert(up_dial_answer(our_end, VESSEL, &where) == 0);
	cr_assert_eq(answer(2, ECONNREFUSED), -1);
	cr_assert(up_dial_answer(our_end, VESSEL, &where) == 0, "no question is fine");
}

Test(up_dial, a_name_of_somebody_else_hangs_up)
{
	cleanup_close int listener = listen_at("vessel.sock", SOCK_STREAM);

	ask(DIAL_WORK, 1);
	cr_assert(up_dial_answer(our_end, VESSEL, &where) < 0);
	ask(DIAL_DATABASE, 1);
	cr_assert(up_dial_answer(our_end, DIAL_BIT(DIAL_WORK), &where) < 0);
	ask(DIAL_DATABASE, 1);
	cr_assert(up_dial_answer(our_end, 0, &where) < 0);
	says_nothing();
	cr_assert(accept(listener, NULL, NULL) < 0 && errno == EAGAIN);
}

Test(up_dial, what_is_no_question_hangs_up)
{
	static const uint32_t none[] = {0, DIAL_MAX_, 31, 32, 33, UINT32_MAX};
	const struct dial_ask good = {.name = DIAL_DATABASE, .serial = 1};
	char path[64] = "/run/user/1000/bus";

	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		ask(none[i], 1);
		cr_assert(up_dial_answer(our_end, ~0U, &where) < 0, "%u", none[i]);
	}
	cr_assert(send(daemon_end, path, sizeof(path), 0) == (ssize_t)sizeof(path));
	cr_assert(up_dial_answer(our_end, ~0U, &where) < 0, "a path");
	cr_assert(send(daemon_end, &good, sizeof(good) - 1, 0) > 0);
	cr_assert(up_dial_answer(our_end, ~0U, &where) < 0, "too short");
	cr_assert(fdpass_send(daemon_end, &good, sizeof(good), &daemon_end, 1, 0) == 0);
	cr_assert(up_dial_answer(our_end, ~0U, &where) < 0, "a descriptor");
	says_nothing();
	fd_close(&daemon_end);
	cr_assert(up_dial_answer(our_end, ~0U, &where) < 0, "the daemon is gone");
}
