/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/fdpass.h"
#include "sandbox/contract/terminal.h"
#include "sandbox/terminal/relay.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

TestSuite(relay, .timeout = 60);

#define WAIT_MSEC 30000

static int person = -1, job = -1; /* who types and reads, and the job's stdio */
static int sock = -1;
static pid_t relay;

static void make_raw(int fd)
{
	struct termios modes;

	cr_assert_eq(tcgetattr(fd, &modes), 0);
	cfmakeraw(&modes);
	cr_assert_eq(tcsetattr(fd, TCSANOW, &modes), 0);
}

static void tell(uint32_t word, int *fd)
{
	cr_assert_geq(fdpass_send(sock, &word, sizeof(word), fd, fd ? 1 : 0, 0), 0);
}

static uint32_t told(void)
{
	uint32_t word = 0;

	cr_assert_eq(read(sock, &word, sizeof(word)), sizeof(word));
	return word;
}

/* A person's terminal and a job's, and between them a relay in a process of its own. */
static void begin_as(uint32_t word)
{
	pid_t self = getpid();
	int sv[2], slave = -1, master = -1;

	cr_assert_eq(openpty(&person, &slave, NULL, NULL, NULL), 0);
	cr_assert_eq(openpty(&master, &job, NULL, NULL, NULL), 0);
	make_raw(slave);
	make_raw(job);
	cr_assert_eq(fcntl(slave, F_SETFL, O_NONBLOCK), 0);
	cr_assert_eq(fcntl(master, F_SETFL, O_NONBLOCK), 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	relay = fork();
	if (relay == 0)
		relay_main(slave, sv[1], self);
	cr_assert_gt(relay, 0);
	sock = sv[0];
	fd_close(&sv[1]);
	fd_close(&slave);
	cr_assert_eq(told(), RELAY_READY);
	tell(word, &master);
	fd_close(&master);
}

static void begin(void)
{
	begin_as(RELAY_BEGIN);
}

static void say(int fd, const char *text)
{
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* That comes next, and nothing else. */
static void hears(int fd, const char *text)
{
	size_t len = strlen(text), n = 0;
	char heard[256];

	while (n < len) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t r;

		cr_assert_gt(poll(&p, 1, WAIT_MSEC), 0, "%.*s of %s", (int)n, heard,
			     text);
		r = read(fd, heard + n, len - n);
		cr_assert_gt(r, 0);
		n += (size_t)r;
	}
	cr_assert_arr_eq(heard, text, len, "%.*s", (int)len, heard);
}

Test(relay, what_is_typed_arrives_as_it_is, .init = begin)
{
	static const char keys[] = "secret\x03\x1a\x1b[A\xc3\xa9\r";

	say(person, keys);
	hears(job, keys);
	say(job, "seen");
	hears(person, "seen");
}

Test(relay, what_the_job_writes_is_filtered, .init = begin)
{
	say(job, "a\033]52;c;aGVsbG8=\007b\033[31mc\xc3\xa9.");
	hears(person, "ab\033[31mc\xc3\xa9.");
}

static void begin_ascii(void)
{
	begin_as(RELAY_BEGIN_ASCII);
}

Test(relay, a_terminal_that_knows_ascii_only_is_shown_nothing_else, .init = begin_ascii)
{
	say(job, "a\xc3\xa9z");
	hears(person, "a?z");
}

Test(relay, an_answer_of_the_filters_goes_to_the_job_alone, .init = begin)
{
	say(job, "\033[5n");
	hears(job, "\033[0n");
	tell(RELAY_PAUSE, NULL);
	cr_assert_eq(told(), RELAY_CLEAN, "nothing was shown");
}

/* How much one side takes before it says no more, while nobody reads the other. */
static size_t pour(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	char some[1000];
	size_t total = 0;

	memset(some, 'x', sizeof(some));
	cr_assert_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	while (poll(&p, 1, 500) > 0) {
		ssize_t n = write(fd, some, sizeof(some));

		cr_assert(n > 0 || errno == EAGAIN);
		total += n > 0 ? (size_t)n : 0;
		cr_assert_lt(total, (size_t)1 << 20);
	}
	return total;
}

Test(relay, who_reads_nothing_stops_who_writes, .init = begin)
{
	cr_assert_gt(pour(job), 0);
	cr_assert_gt(pour(person), 0);
	cr_assert_eq(waitpid(relay, NULL, WNOHANG), 0);
}

Test(relay, while_it_pauses_it_touches_nothing, .init = begin)
{
	struct pollfd p[] = {{.fd = person, .events = POLLIN},
			     {.fd = job, .events = POLLIN}};

	say(job, "one");
	hears(person, "one");
	tell(RELAY_PAUSE, NULL);
	cr_assert_eq(told(), RELAY_USED);
	say(job, "two");
	say(person, "keys");
	cr_assert_eq(poll(p, 2, 300), 0, "it is passed on");
	tell(RELAY_GO_ON, NULL);
	hears(person, "two");
	hears(job, "keys");
}

/* A session at the person's terminal, whose leader is in front and the relay is not. Ends with 0 when the
 * kernel has stopped that. */
static pid_t begin_in_background(void)
{
	int sv[2], slave = -1, master = -1;
	pid_t leader;

	cr_assert_eq(openpty(&person, &slave, NULL, NULL, NULL), 0);
	cr_assert_eq(openpty(&master, &job, NULL, NULL, NULL), 0);
	make_raw(slave);
	make_raw(job);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	leader = fork();
	if (leader == 0) {
		pid_t self = getpid();
		int status = 0;

		if (setsid() < 0 || ioctl(slave, TIOCSCTTY, 0) < 0)
			_exit(2);
		relay = fork();
		if (relay == 0) {
			(void)setpgid(0, 0);
			relay_main(slave, sv[1], self);
		}
		(void)waitpid(relay, &status, WUNTRACED);
		(void)kill(relay, SIGKILL);
		_exit(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTTIN ? 0 : 1);
	}
	sock = sv[0];
	fd_close(&sv[1]);
	cr_assert_eq(told(), RELAY_READY);
	tell(RELAY_BEGIN, &master);
	return leader;
}

static void is_stopped_untouched(pid_t leader, int other)
{
	struct pollfd p = {.fd = other, .events = POLLIN};
	int status = 1;

	cr_assert_eq(waitpid(leader, &status, 0), leader);
	cr_assert_eq(status, 0, "the relay was not stopped");
	cr_assert_eq(poll(&p, 1, 300) > 0 && (p.revents & POLLIN), 0, "it was passed on");
}

Test(relay, in_the_background_it_is_stopped_before_it_shows)
{
	pid_t leader = begin_in_background();

	say(job, "one");
	is_stopped_untouched(leader, person);
}

Test(relay, in_the_background_it_is_stopped_before_it_reads_a_key)
{
	pid_t leader = begin_in_background();

	say(person, "key");
	is_stopped_untouched(leader, job);
}

Test(relay, at_the_end_all_is_shown, .init = begin)
{
	char many[3000];

	memset(many, 'y', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	say(job, many);
	tell(RELAY_END, NULL);
	cr_assert_eq(told(), RELAY_USED);
	cr_assert_eq(waitpid(relay, NULL, 0), relay);
	for (size_t i = 0; i + 1 < sizeof(many); i++)
		hears(person, "y");
}

Test(relay, a_terminal_that_is_closed_ends_both_ways, .init = begin)
{
	fd_close(&person);
	cr_assert_eq(waitpid(relay, NULL, 0), relay);
	cr_assert_lt(write(job, "x", 1), 0, "the job's is hung up");
	cr_assert_eq(errno, EIO);
}

Test(relay, it_ends_with_its_parents_socket, .init = begin)
{
	fd_close(&sock);
	cr_assert_eq(waitpid(relay, NULL, 0), relay);
}
