/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Waiting until every part answers: lych status --wait, lych bind --start.
 */
#ifndef LYCH_CLI_POD_STATUS_WAIT_H
#define LYCH_CLI_POD_STATUS_WAIT_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/err.h"
#include <stdbool.h>

/* How long, where nothing is said: the first start of an image copies it for the user's uid. */
#define STATUS_WAIT_DEFAULT (300 * USEC_PER_SEC)
#define STATUS_WAIT_MIN USEC_PER_SEC
#define STATUS_WAIT_MAX (86400 * USEC_PER_SEC)

/* One look. *missing, empty and with a cap: which parts are not there, in words; empty when
 * all are. -1: it could not even be asked. */
typedef int status_look(void *arg, struct buf *missing, struct err *err);
/* One more part that is not there. */
void status_missing(struct buf *missing, const char *part, const char *state);
/* Looks until nothing is missing; ERRID_START_PARTS with what the last look found missing
 * after that time. On a terminal stderr says what is waited for whenever that changes. */
MUST_CHECK int status_wait(status_look *look, void *arg, usec_t time, struct err *err);

#endif
