/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox and lych.
 * The terminal of the person who started us: lent to a job while that runs (no key means anything
 * here then, each is a byte for the job), and given back as it was.
 */
#ifndef LYCH_COMMON_TERM_PERSON_H
#define LYCH_COMMON_TERM_PERSON_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <termios.h>

struct person {
	int fd; /* an opening of our own, which does not block; -1: none */
	bool lent;
	struct termios before; /* its modes, when it is lent */
};

/* The terminal must be stdin, stdout and the controlling one. ERRID_TTY_NONE. p->fd stays open
 * until the program ends. */
MUST_CHECK int person_open(struct person *p, struct err *err);
MUST_CHECK bool person_is_in_front(const struct person *p);
/* In the background we are stopped, as whoever reads there. ERRID_TTY_FRONT. */
MUST_CHECK int person_await_front(const struct person *p, struct err *err);
/* In the foreground only, which is waited for. p->before is how it was. ERRID_TTY_FRONT,
 * ERRID_TTY_NONE. */
MUST_CHECK int person_lend(struct person *p, struct err *err);
/* Somebody may have changed its modes while we were stopped. */
void person_lend_again(const struct person *p);
/* used: something of the job's was written to it, so that it is told to forget what that asked
 * for, and what it still answers is thrown away with what was typed before the answer.
 * stall_usec, of one that takes nothing: how long it is waited for, then what it had not taken is
 * thrown away (false) to tell it. 0: a moment, and it is not told. SIGTTOU is blocked. */
bool person_give_back(struct person *p, bool used, usec_t stall_usec);
MUST_CHECK bool person_size(const struct person *p, struct winsize *ret);

/* While it is lent these are blocked and read from a signalfd: its own affairs (SIGWINCH, SIGCONT,
 * SIGTSTP), and whatever else would end us before it is given back. SIGTTOU is blocked and never
 * read. */
void person_signals(sigset_t *add_to);
/* One that says: no longer. */
MUST_CHECK bool person_signal_ends(int signal);
/* Such a one waits. */
MUST_CHECK bool person_is_to_end(void);
/* SIGTSTP, which is blocked but for here. */
void person_stop(void);

#endif
