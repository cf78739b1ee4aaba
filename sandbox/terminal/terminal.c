/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * See terminal.h.
 */
#include "sandbox/terminal/terminal.h"

#include "common/cleanup.h"
#include "common/fdpass.h"
#include "sandbox/terminal/relay.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* It waits for nobody that long: then it is stuck, or stopped. */
#define WORD_MAX_MSEC 15000

int terminal_open(struct terminal *t, struct err *err)
{
	return person_open(&t->person, err);
}

/* ---- the relay ------------------------------------------------------------------------ */

static int fork_relay(struct terminal *t, struct err *err)
{
	pid_t self = getpid();
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return err_sys_id(err, ERRID_TTY_RELAY, "socketpair");
	t->relay = fork();
	if (t->relay == 0)
		relay_main(t->person.fd, sv[1], self);
	fd_close(&sv[1]);
	t->sock = sv[0];
	if (t->relay < 0) {
		t->relay = 0;
		return err_sys_id(err, ERRID_TTY_RELAY, "fork");
	}
	return 0;
}

/* 0: none came. */
static uint32_t hear(const struct terminal *t, int wait_msec)
{
	struct pollfd p = {.fd = t->sock, .events = POLLIN};
	uint32_t word = 0;

	if (poll(&p, 1, wait_msec) <= 0 ||
	    read(t->sock, &word, sizeof(word)) != sizeof(word))
		return 0;
	return word;
}

static bool tell(const struct terminal *t, uint32_t word, int *fd)
{
	return t->sock >= 0 &&
	       fdpass_send_patiently(t->sock, &word, sizeof(word), fd, fd ? 1 : 0,
				     TERMINAL_PATIENCE_USEC) >= 0;
}

void terminal_lost(struct terminal *t)
{
	fd_close(&t->sock);
	fd_close(&t->slave);
	if (t->relay) {
		(void)kill(t->relay, SIGKILL);
		while (waitpid(t->relay, NULL, 0) < 0 && errno == EINTR)
			;
	}
	t->relay = 0;
}

int terminal_lend(struct terminal *t, struct sbx_terminal *ret, struct err *err)
{
	if (fork_relay(t, err) < 0)
		return -1;
	if (hear(t, WORD_MAX_MSEC) != RELAY_READY)
		return err_set_id(err, ERRID_TTY_RELAY, "its walls do not stand");
	if (person_lend(&t->person, err) < 0)
		return -1;
	ret->has_modes = true;
	ret->modes = t->person.before;
	ret->modes.c_lflag &= ~(tcflag_t)EXTPROC;
	return person_size(&t->person, &ret->size)
		       ? 0
		       : err_sys_id(err, ERRID_TTY_NONE, "--tty: ask the terminal");
}

int terminal_begin(struct terminal *t, int job[TERMINAL_FDS], struct err *err)
{
	bool utf8 = t->person.before.c_iflag & IUTF8;

	if (!t->relay || t->slave >= 0)
		return err_set_id(err, ERRID_TTY_RELAY, "it is gone, or has one already");
	if (!tell(t, utf8 ? RELAY_BEGIN : RELAY_BEGIN_ASCII, &job[TERMINAL_MASTER]))
		return err_sys_id(err, ERRID_TTY_RELAY, "give it the job's terminal");
	t->slave = TAKE_FD(job[TERMINAL_SLAVE]);
	terminal_resize(t);
	return 0;
}

/* ---- while it runs -------------------------------------------------------------------- */

/* What let us go on may have been for us alone. In the background it would be stopped again, and we
 * with it. */
static void wake(const struct terminal *t)
{
	if (t->relay && person_is_in_front(&t->person))
		(void)kill(t->relay, SIGCONT);
}

void terminal_resize(const struct terminal *t)
{
	struct winsize size;

	if (t->slave >= 0 && person_size(&t->person, &size))
		(void)ioctl(t->slave, TIOCSWINSZ, &size);
}

void terminal_continue(const struct terminal *t)
{
	wake(t);
	person_lend_again(&t->person);
	terminal_resize(t);
}

/* A full-screen program draws anew when the size is another one. */
static void have_it_drawn(const struct terminal *t)
{
	struct winsize size;

	if (t->slave < 0 || !person_size(&t->person, &size))
		return;
	size.ws_row++;
	(void)ioctl(t->slave, TIOCSWINSZ, &size);
	terminal_resize(t);
}

/* Where we are not in front and are to end the relay stays as it is, and touches nothing. */
static void lend_anew(struct terminal *t)
{
	struct err err = ERR_INIT;

	if ((person_is_in_front(&t->person) || !person_is_to_end()) &&
	    person_lend(&t->person, &err) == 0 && tell(t, RELAY_GO_ON, NULL))
		have_it_drawn(t);
	else if (!person_is_to_end())
		terminal_lost(t);
}

void terminal_suspend(struct terminal *t)
{
	uint32_t word;

	if (!t->person.lent || !person_is_in_front(&t->person)) {
		person_stop(); /* it is somebody else's already */
		return;
	}
	wake(t);
	if (!tell(t, RELAY_PAUSE, NULL))
		return; /* it has ended: whoever waits for us sees it */
	word = hear(t, WORD_MAX_MSEC);
	(void)person_give_back(&t->person, word != RELAY_CLEAN, 0);
	if (!word) {
		terminal_lost(t);
		return;
	}
	person_stop();
	lend_anew(t);
}

/* ---- the end -------------------------------------------------------------------------- */

static bool is_enough(int signal_fd)
{
	struct signalfd_siginfo si;

	if (read(signal_fd, &si, sizeof(si)) != sizeof(si))
		return true;
	return person_signal_ends((int)si.ssi_signo);
}

/* The relay waits for the terminal as long as it is right to. */
static uint32_t hear_or_signal(const struct terminal *t, int signal_fd)
{
	struct pollfd p[] = {{.fd = t->sock, .events = POLLIN},
			     {.fd = signal_fd, .events = POLLIN}};

	for (;;) {
		if (poll(p, 2, -1) < 0)
			continue;
		if (p[0].revents)
			return hear(t, 0);
		if (is_enough(signal_fd))
			return 0;
	}
}

bool terminal_end(struct terminal *t, int signal_fd)
{
	usec_t stall_usec = RELAY_STALL_SEC * USEC_PER_SEC;
	uint32_t word = 0;

	wake(t);
	if (t->person.lent && person_is_in_front(&t->person) && tell(t, RELAY_END, NULL))
		word = hear_or_signal(t, signal_fd);
	terminal_lost(t);
	/* It was waited for already, or is not to be. */
	if (word != RELAY_USED)
		stall_usec = 1;
	return person_give_back(&t->person, word != RELAY_CLEAN, stall_usec) &&
	       word != RELAY_LOST;
}
