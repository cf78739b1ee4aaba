/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * One event loop per process over libevent: timers, descriptors, signals.
 */
#ifndef LYCH_COMMON_NET_LOOP_H
#define LYCH_COMMON_NET_LOOP_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct loop;
struct loop_timer;
struct loop_io;

#define LOOP_READ 1u
#define LOOP_WRITE 2u

typedef void loop_timer_fn(void *arg);
typedef void loop_io_fn(int fd, unsigned what, void *arg);
typedef void loop_signal_fn(int signo, void *arg);

MUST_CHECK int loop_new(struct loop **ret, struct err *err);
void loop_free(struct loop *l); /* frees the signal handlers; timers and ios belong to
				   their makers */
/* Until loop_stop(); returns the code given to it, or -1 with err. */
MUST_CHECK int loop_run(struct loop *l, struct err *err);
void loop_stop(struct loop *l, int exit_code);
/* The longest turn yet, in microseconds of this thread's processor time: what was done between
 * two looks at who is ready. What waits for a disk is not in it. */
uint64_t loop_longest_turn_usec(const struct loop *l);
/* Only httpd.c, httpc.c, db.c need it. */
struct event_base *loop_base(struct loop *l);

/* One-shot timer, not armed at birth. Arming again replaces the deadline. */
struct loop_timer *loop_timer_new(struct loop *l, loop_timer_fn *fn, void *arg);
void loop_timer_arm(struct loop_timer *t, usec_t in_usec);
void loop_timer_disarm(struct loop_timer *t);
void loop_timer_free(
	struct loop_timer *t); /* NULL is fine; allowed inside its own callback */

/* Level-triggered watch; the descriptor stays the caller's. what may be changed, 0 =
 * paused. */
struct loop_io *loop_io_new(struct loop *l, int fd, unsigned what, loop_io_fn *fn,
			    void *arg);
void loop_io_set(struct loop_io *io, unsigned what);
void loop_io_free(struct loop_io *io);

MUST_CHECK int loop_signal(struct loop *l, int signo, loop_signal_fn *fn, void *arg,
			   struct err *err);

#endif
