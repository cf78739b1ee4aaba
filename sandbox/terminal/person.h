/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * The terminal of the person who started us: lent to a job while that runs (no key means anything
 * here then, each is a byte for the job), and given back as it was.
 */
#ifndef LYCH_SANDBOX_TERMINAL_PERSON_H
#define LYCH_SANDBOX_TERMINAL_PERSON_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include "sandbox/contract/terminal.h"
#include <stdbool.h>

struct person {
	int fd; /* an opening of our own, which does not block; -1: none */
	bool lent;
	struct termios before; /* its modes, when it is lent */
};

/* The terminal must be stdin, stdout and the controlling one. ERRID_TTY_NONE. p->fd stays open
 * until the program ends. */
MUST_CHECK int person_open(struct person *p, struct err *err);
/* In the foreground only: in the background we are stopped first, as whoever reads there. *ret: how
 * it was. ERRID_TTY_FRONT, ERRID_TTY_NONE. */
MUST_CHECK int person_lend(struct person *p, struct sbx_terminal *ret, struct err *err);
MUST_CHECK bool person_is_in_front(const struct person *p);
/* Somebody may have changed its modes while we were stopped. */
void person_lend_again(const struct person *p);
/* used: something of the job's was written to it, so that it is told to forget what that asked
 * for, and what it still answers is thrown away with what was typed before the answer.
 * stall_usec, of one that takes nothing: how long it is waited for, then what it had not taken is
 * thrown away (false) to tell it. 0: a moment, and it is not told. SIGTTOU is blocked. */
bool person_give_back(struct person *p, bool used, usec_t stall_usec);
MUST_CHECK bool person_size(const struct person *p, struct winsize *ret);

#endif
