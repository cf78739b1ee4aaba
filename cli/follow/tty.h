/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * A person's terminal, lent to a job that has one of its own (lych run --tty): by the same code as
 * lych-sandbox (common/term), from when the job runs until nobody follows it any more.
 */
#ifndef LYCH_CLI_FOLLOW_TTY_H
#define LYCH_CLI_FOLLOW_TTY_H

#include "common/attr.h"
#include "common/err.h"
#include "common/term/filter.h"
#include "common/term/person.h"
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct tty {
	struct person person;
	struct term_filter filter;
	bool is_used; /* something of the job's was shown since it was lent */
	bool is_cut;  /* it did not take all that the job had shown it */
};
#define TTY_NONE {.person = {.fd = -1}}

/* Before there is a job: is there one that can be lent? Waits for the foreground. ERRID_TTY_NONE,
 * ERRID_TTY_FRONT. */
MUST_CHECK int tty_open(struct tty *t, struct err *err);
/* Of its window, as a spec may say it: what it does not know is 80 and 24. */
void tty_size(const struct tty *t, unsigned *ret_cols, unsigned *ret_rows);
/* Signals that are read from f's signalfd from now on, and blocked. */
MUST_CHECK int tty_catch_signals(int sigfd, struct err *err);

/* The job runs; again: nothing to do. */
MUST_CHECK int tty_lend(struct tty *t, struct err *err);
/* Of so many bytes at most what may be shown: TERM_FILTER_ROOM(TTY_PIECE) of them. */
#define TTY_PIECE 4096
size_t tty_filter(struct tty *t, const char *data, size_t len, char *out);
/* How much it took just now; -1: it is gone. */
MUST_CHECK ssize_t tty_write(struct tty *t, const char *data, size_t len,
			     struct err *err);
/* Since SIGTSTP: given back, stopped, and lent again. */
MUST_CHECK int tty_suspend(struct tty *t, struct err *err);
/* As it was: its modes, and what the job had it do undone. Says so where something was lost. */
void tty_give_back(struct tty *t);

#endif
