/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox and lych.
 * See person.h. The opening of our own is for O_NONBLOCK, which on the one that we were given
 * would be the shell's too.
 */
#include "common/term/person.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/term/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

/* Not longer: a terminal that has no answer to the question, or one that takes nothing any more. */
#define ANSWER_MAX_USEC (200 * USEC_PER_MSEC)

/* ---- taking it ------------------------------------------------------------------------ */

static bool is_that(int fd, unsigned own)
{
	unsigned dev = 0;

	return ioctl(fd, TIOCGDEV, &dev) == 0 && dev == own;
}

int person_open(struct person *p, struct err *err)
{
	static const char *const names[] = {"stdin", "stdout"};
	cleanup_close int fd = -1;
	unsigned own = 0;

	for (int i = 0; i < 2; i++)
		if (!isatty(i))
			return err_set_id(err, ERRID_TTY_NONE, "--tty: %s is no terminal",
					  names[i]);
	fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, TIOCGDEV, &own) < 0)
		return err_sys_id(err, ERRID_TTY_NONE, "--tty: open /dev/tty");
	for (int i = 0; i < 2; i++)
		if (!is_that(i, own))
			return err_set_id(err, ERRID_TTY_NONE,
					  "--tty: %s is not the terminal that this was "
					  "started at",
					  names[i]);
	p->fd = TAKE_FD(fd);
	return 0;
}

static bool is_in_front(int fd)
{
	return tcgetpgrp(fd) == getpgrp();
}

bool person_is_in_front(const struct person *p)
{
	return is_in_front(p->fd);
}

/* In the background its modes are somebody else's. What stops us is what stops a reader there;
 * where nobody could let us go on (an orphaned process group) it does nothing. */
int person_await_front(const struct person *p, struct err *err)
{
	if (!is_in_front(p->fd))
		(void)kill(0, SIGTTIN);
	return is_in_front(p->fd) ? 0
				  : err_set_id(err, ERRID_TTY_FRONT,
					       "--tty: it was started in the background");
}

static struct termios raw_of(const struct termios *modes)
{
	struct termios raw = *modes;

	cfmakeraw(&raw);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	return raw;
}

int person_lend(struct person *p, struct err *err)
{
	struct termios raw;

	if (person_await_front(p, err) < 0)
		return -1;
	if (tcgetattr(p->fd, &p->before) < 0)
		return err_sys_id(err, ERRID_TTY_NONE, "--tty: ask the terminal");
	raw = raw_of(&p->before);
	if (tcsetattr(p->fd, TCSANOW, &raw) < 0)
		return err_sys_id(err, ERRID_TTY_NONE, "--tty: set the terminal");
	p->lent = true;
	return 0;
}

void person_lend_again(const struct person *p)
{
	struct termios raw = raw_of(&p->before);

	if (p->lent && is_in_front(p->fd))
		(void)tcsetattr(p->fd, TCSANOW, &raw);
}

bool person_size(const struct person *p, struct winsize *ret)
{
	return ioctl(p->fd, TIOCGWINSZ, ret) == 0;
}

/* ---- giving it back ------------------------------------------------------------------- */

/* events within the time; false: not, or the terminal is gone. */
static bool await(int fd, short events, usec_t by)
{
	struct pollfd p = {.fd = fd, .events = events};
	usec_t now = clock_boot_usec();

	if (now >= by || poll(&p, 1, (int)((by - now) / USEC_PER_MSEC) + 1) <= 0)
		return false;
	return (p.revents & events) && !(p.revents & (POLLHUP | POLLERR | POLLNVAL));
}

static bool say(int fd, const char *text, usec_t by)
{
	while (*text) {
		ssize_t n;

		if (!await(fd, POLLOUT, by))
			return false;
		n = write(fd, text, strlen(text));
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		if (n > 0)
			text += n;
	}
	return true;
}

/* How much of the answer stands at the end of what was read. Its first byte is nowhere else in it. */
static size_t follow_answer(size_t at, char c)
{
	if (c == term_answer[at])
		return at + 1;
	return c == term_answer[0] ? 1 : 0;
}

/* A byte at a time: what follows the answer is typed for whoever reads next. */
static bool hear_answer(int fd, usec_t by)
{
	size_t at = 0, len = strlen(term_answer);
	char c = 0;

	while (at < len && await(fd, POLLIN, by)) {
		ssize_t n = read(fd, &c, 1);

		if (n > 0)
			at = follow_answer(at, c);
		else if (n == 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return at == len;
}

/* What the job had it do is undone. false: for that, what was not taken was thrown away. */
static bool reset(int fd, usec_t stall_usec)
{
	usec_t wait_usec = stall_usec > ANSWER_MAX_USEC ? stall_usec : ANSWER_MAX_USEC;

	if (say(fd, term_reset, clock_boot_usec() + wait_usec) || !stall_usec)
		return true;
	(void)tcflush(fd, TCOFLUSH); /* term_reset begins with the end of what that cut */
	(void)say(fd, term_reset, clock_boot_usec() + ANSWER_MAX_USEC);
	return false;
}

/* Nothing that it says of itself is left for whoever reads next: its answer to our question comes
 * after all that it was asked before. */
static void throw_answers_away(int fd)
{
	usec_t by = clock_boot_usec() + ANSWER_MAX_USEC;

	if (!say(fd, term_question, by) || !hear_answer(fd, by))
		(void)tcflush(fd, TCIFLUSH);
}

bool person_give_back(struct person *p, bool used, usec_t stall_usec)
{
	bool is_whole = true;

	if (!p->lent)
		return true;
	p->lent = false;
	/* Somebody else's by now, or gone. */
	if (!is_in_front(p->fd))
		return true;
	if (used) {
		is_whole = reset(p->fd, stall_usec);
		throw_answers_away(p->fd);
	}
	(void)tcsetattr(p->fd, TCSANOW, &p->before);
	return is_whole;
}

/* ---- signals -------------------------------------------------------------------------- */

void person_signals(sigset_t *add_to)
{
	static const int all[] = {SIGINT,  SIGTERM,   SIGHUP,  SIGQUIT,	  SIGWINCH,
				  SIGTSTP, SIGCONT,   SIGUSR1, SIGUSR2,	  SIGALRM,
				  SIGPIPE, SIGXCPU,   SIGXFSZ, SIGVTALRM, SIGPROF,
				  SIGIO,   SIGSTKFLT, SIGPWR};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		(void)sigaddset(add_to, all[i]);
	for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
		(void)sigaddset(add_to, i);
}

bool person_signal_ends(int signal)
{
	return signal != SIGWINCH && signal != SIGCONT && signal != SIGTSTP &&
	       signal != SIGTTOU;
}

bool person_is_to_end(void)
{
	sigset_t set;

	if (sigpending(&set) < 0)
		return true;
	for (int s = 1; s <= SIGRTMAX; s++)
		if (person_signal_ends(s) && sigismember(&set, s) == 1)
			return true;
	return false;
}

void person_stop(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTSTP);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)kill(getpid(), SIGTSTP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
}
