/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * A job with a terminal of its own (--tty), as its parent has to do with it: the person's terminal
 * (person.h) is lent, a relay passes the bytes on (relay.h), and at the end, or while we are
 * stopped, the terminal is the person's again.
 */
#ifndef LYCH_SANDBOX_TERMINAL_TERMINAL_H
#define LYCH_SANDBOX_TERMINAL_TERMINAL_H

#include "common/attr.h"
#include "common/err.h"
#include "common/term/person.h"
#include "sandbox/contract/terminal.h"
#include <stdbool.h>
#include <sys/types.h>

struct terminal {
	struct person person;
	pid_t relay; /* 0: none */
	int sock;    /* to it: its end tells that it is gone; -1 */
	int slave;   /* of the job's terminal: held open, and told of new sizes; -1 */
};
#define TERMINAL_NONE {.person = {.fd = -1}, .sock = -1, .slave = -1}

/* Is there one that can be lent? Changes nothing. ERRID_TTY_NONE. */
MUST_CHECK int terminal_open(struct terminal *t, struct err *err);
/* Before the keeper is there: a relay whose walls stand, and the terminal lent. *ret: how it was.
 * ERRID_TTY_*. */
MUST_CHECK int terminal_lend(struct terminal *t, struct sbx_terminal *ret,
			     struct err *err);
/* Takes over the job's terminal. ERRID_TTY_RELAY: it has one, or can't be given it. */
MUST_CHECK int terminal_begin(struct terminal *t, int job[TERMINAL_FDS], struct err *err);
/* SIGWINCH. */
void terminal_resize(const struct terminal *t);
/* SIGCONT: after a stop that nobody could see coming. */
void terminal_continue(const struct terminal *t);
/* SIGTSTP, which is blocked but for here: gives the terminal back, stops us, and lends it again when
 * we go on. The job goes on meanwhile, as far as it comes without being read. Whoever is to end (a
 * signal that says so is there) and is not in front when it goes on lends nothing. */
void terminal_suspend(struct terminal *t);
/* The relay has ended: a terminal is hung up, the person's as a rule. No descriptor any more, and
 * the job's terminal is hung up too. */
void terminal_lost(struct terminal *t);
/* The job is over, or there was none: what it had written is shown, as long as no signal comes
 * (signal_fd), and the terminal given back. One that is not ours now is left alone. false: it took
 * nothing any more, and what it had not taken is lost. */
MUST_CHECK bool terminal_end(struct terminal *t, int signal_fd);

#endif
