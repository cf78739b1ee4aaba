/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See tty.h.
 */
#include "cli/follow/tty.h"

#include "cli/base/cmd.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/proto/job_spec.h"
#include <errno.h>
#include <sys/signalfd.h>

/* At the end: one that takes nothing is not waited for. */
#define STALL_USEC (2 * USEC_PER_SEC)

int tty_open(struct tty *t, struct err *err)
{
	if (person_open(&t->person, err) < 0)
		return -1;
	return person_await_front(&t->person, err);
}

static unsigned side(unsigned short n, unsigned unknown)
{
	return !n ? unknown : n > TTY_SIDE_MAX ? TTY_SIDE_MAX : n;
}

void tty_size(const struct tty *t, unsigned *ret_cols, unsigned *ret_rows)
{
	struct winsize size = {0};

	if (!person_size(&t->person, &size))
		size = (struct winsize){0};
	*ret_cols = side(size.ws_col, TTY_COLS_DEFAULT);
	*ret_rows = side(size.ws_row, TTY_ROWS_DEFAULT);
}

int tty_catch_signals(int sigfd, struct err *err)
{
	sigset_t set;

	(void)sigemptyset(&set);
	person_signals(&set);
	/* which lych ignores, and would hear of all the same when they are blocked */
	(void)sigdelset(&set, SIGPIPE);
	(void)sigdelset(&set, SIGXFSZ);
	if (signalfd(sigfd, &set, SFD_CLOEXEC | SFD_NONBLOCK) < 0)
		return err_sys(err, "signalfd");
	(void)sigaddset(&set, SIGTTOU);
	return sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? err_sys(err, "sigprocmask") : 0;
}

int tty_lend(struct tty *t, struct err *err)
{
	if (t->person.lent)
		return 0;
	if (person_lend(&t->person, err) < 0)
		return -1;
	t->filter.is_ascii = !(t->person.before.c_iflag & IUTF8);
	return 0;
}

size_t tty_filter(struct tty *t, const char *data, size_t len, char *out)
{
	return term_filter(&t->filter, data, len, out);
}

ssize_t tty_write(struct tty *t, const char *data, size_t len, struct err *err)
{
	/* In the background the kernel stops who reads, not who writes (SIGTTOU is blocked). */
	ssize_t n = read(t->person.fd, &(char){0}, 0);

	if (n >= 0 || errno == EAGAIN || errno == EINTR)
		n = write(t->person.fd, data, len);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		return err_sys_id(err, ERRID_CORE_OUTPUT, "your terminal");
	t->is_used = true;
	return n;
}

int tty_suspend(struct tty *t, struct err *err)
{
	bool lent = t->person.lent && person_is_in_front(&t->person);

	if (lent)
		(void)person_give_back(&t->person, t->is_used, 0);
	t->is_used = false;
	person_stop();
	/* Who is to end and is not in front touches nothing. */
	if (!lent || (!person_is_in_front(&t->person) && person_is_to_end()))
		return 0;
	return person_lend(&t->person, err);
}

void tty_give_back(struct tty *t)
{
	if (!t->person.lent)
		return;
	t->is_cut |= !person_give_back(&t->person, t->is_used, STALL_USEC);
	if (t->is_cut)
		cmd_tell(ERRID_NONE,
			 "your terminal took nothing any more: what it had not "
			 "taken is in 'lych logs'");
}
