/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See prompt.h.
 */
#include "cli/ui/prompt.h"
#include "common/attr.h"
#include "common/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#define TERMINAL "/dev/tty"

/* How a terminal, and what ends us, was before the terminal was made silent. */
struct before {
	struct termios modes;
	sigset_t mask;
};

/* Of prompt_hold(): the terminal, once it was asked on; -1: not yet. */
static struct {
	bool is_wanted, is_on;
	int fd;
	struct before was;
} held = {.fd = -1};

enum { CTRL_C = 3, CTRL_D = 4, CTRL_H = 8, CTRL_U = 21, DEL = 127 };

/* One byte; 0 at the end. */
static int read_byte(int fd, unsigned char *ret, struct err *err)
{
	ssize_t n;

	do
		n = read(fd, ret, 1);
	while (n < 0 && errno == EINTR);
	return n < 0 ? err_sys(err, "read %s", fd == STDIN_FILENO ? "stdin" : TERMINAL)
		     : (int)n;
}

/* What would end us and leave the terminal silent. */
static sigset_t ends(void)
{
	static const int each[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT};
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(each); i++)
		(void)sigaddset(&set, each[i]);
	return set;
}

/* The same, unless we are to end first (told): that waits until the terminal is as it was. */
static int read_key(int fd, int told, unsigned char *ret, struct err *err)
{
	struct pollfd p[] = {{.fd = fd, .events = POLLIN},
			     {.fd = told, .events = POLLIN}};

	while (poll(p, 2, -1) < 0)
		if (errno != EINTR)
			return err_sys(err, "poll");
	if (p[1].revents)
		return err_set_id(err, ERRID_CORE_UNCONFIRMED,
				  "told to end: nothing was read");
	return read_byte(fd, ret, err);
}

/* A character of UTF-8 less. */
static size_t erase(const char *s, size_t len)
{
	while (len > 0 && ((unsigned char)s[--len] & 0xc0) == 0x80)
		;
	return len;
}

/* Byte by byte: the terminal neither edits nor signals while it does not echo. */
static int read_line(int fd, char *out, size_t max, size_t *ret_len, struct err *err)
{
	sigset_t set = ends();
	cleanup_close int told = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	size_t len = 0;

	if (told < 0)
		return err_sys(err, "signalfd");
	for (;;) {
		unsigned char c = 0;
		int n = read_key(fd, told, &c, err);

		if (n < 0)
			return -1;
		if (c == CTRL_C)
			return err_set_id(err, ERRID_CORE_UNCONFIRMED,
					  "given up: nothing was read");
		if (n == 0 || c == '\n' || c == '\r' || c == CTRL_D)
			break;
		if (c == DEL || c == CTRL_H)
			len = erase(out, len);
		else if (c == CTRL_U)
			len = 0;
		else if (len == max)
			return err_set_id(err, ERRID_CORE_TOO_LARGE,
					  "longer than %zu bytes", max);
		else
			out[len++] = (char)c;
	}
	*ret_len = len;
	return 0;
}

static int make_silent(int fd, struct before *ret_was, struct err *err)
{
	sigset_t set = ends();
	struct termios silent;

	if (tcgetattr(fd, &ret_was->modes) < 0)
		return err_sys(err, "the terminal");
	silent = ret_was->modes;
	silent.c_lflag &= (tcflag_t) ~(ECHO | ECHONL | ICANON | ISIG);
	silent.c_cc[VMIN] = 1;
	silent.c_cc[VTIME] = 0;
	(void)sigprocmask(SIG_BLOCK, &set, &ret_was->mask);
	if (tcsetattr(fd, TCSAFLUSH, &silent) == 0)
		return 0;
	(void)sigprocmask(SIG_SETMASK, &ret_was->mask, NULL);
	return err_sys(err, "the terminal");
}

/* A signal that came meanwhile ends us here. */
static void make_as_before(int fd, const struct before *was)
{
	(void)tcsetattr(fd, TCSAFLUSH, &was->modes);
	(void)sigprocmask(SIG_SETMASK, &was->mask, NULL);
}

/* The question goes to `to`. */
static int read_terminal(int fd, int to, const char *question, char *out, size_t max,
			 size_t *ret_len, struct err *err)
{
	struct before was;
	int r;

	if (!held.is_on && make_silent(fd, &was, err) < 0)
		return -1;
	if (held.is_wanted && !held.is_on) {
		held.is_on = true;
		held.fd = fd;
		held.was = was;
	}
	(void)dprintf(to, "%s", question);
	r = read_line(fd, out, max, ret_len, err);
	if (!held.is_on)
		make_as_before(fd, &was);
	(void)dprintf(to, "\n");
	return r;
}

bool prompt_hold(void)
{
	held.is_wanted = true;
	return true;
}

void prompt_release(const bool *ignored UNUSED)
{
	if (held.is_on)
		make_as_before(held.fd, &held.was);
	if (held.fd != STDIN_FILENO)
		fd_close(&held.fd);
	held.fd = -1;
	held.is_wanted = held.is_on = false;
}

static int read_all(char *out, size_t max, size_t *ret_len, struct err *err)
{
	size_t len = 0;

	/* one byte more tells that it is too long; a line's end does not count */
	while (len <= max) {
		ssize_t n = read(STDIN_FILENO, out + len, max + 1 - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "read stdin");
		if (n == 0)
			break;
		len += (size_t)n;
	}
	if (len > 0 && out[len - 1] == '\n')
		len--;
	if (len > max)
		return err_set_id(err, ERRID_CORE_TOO_LARGE, "longer than %zu bytes",
				  max);
	*ret_len = len;
	return 0;
}

int prompt_secret(const char *question, char *out, size_t max, size_t *ret_len,
		  struct err *err)
{
	int r = isatty(STDIN_FILENO) ? read_terminal(STDIN_FILENO, STDERR_FILENO,
						     question, out, max, ret_len, err)
				     : read_all(out, max, ret_len, err);

	if (r == 0)
		out[*ret_len] = '\0';
	else
		explicit_bzero(out, max + 1);
	return r;
}

int prompt_passphrase(const char *question, char *out, size_t max, size_t *ret_len,
		      struct err *err)
{
	cleanup_close int own =
		held.is_on ? -1 : open(TERMINAL, O_RDWR | O_CLOEXEC | O_NOCTTY);
	int fd = held.is_on ? held.fd : own;
	int r = fd < 0 ? err_set_id(err, ERRID_PASSPHRASE_TERMINAL, TERMINAL ": %s",
				    strerror(errno))
		       : read_terminal(fd, fd, question, out, max, ret_len, err);

	if (held.fd == own)
		own = -1; /* it is the hold's now */
	if (r == 0)
		out[*ret_len] = '\0';
	else
		explicit_bzero(out, max + 1);
	return r;
}

bool prompt_can_ask(void)
{
	return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
}

int prompt_yes(const char *question, bool *ret, struct err *err)
{
	char answer[16];
	size_t len = 0;
	int n;

	*ret = false;
	if (!prompt_can_ask())
		return err_set_id(err, ERRID_CORE_NOBODY,
				  "stdin and stderr are no terminal");
	(void)fprintf(stderr, "%s [yes/no] ", question);
	(void)fflush(stderr);
	for (;;) {
		unsigned char c = 0;

		n = read_byte(STDIN_FILENO, &c, err);
		if (n < 0)
			return -1;
		if (n == 0 || c == '\n')
			break;
		if (len < sizeof(answer))
			answer[len++] = (char)c;
	}
	*ret = len == strlen("yes") && memcmp(answer, "yes", len) == 0;
	return 0;
}
