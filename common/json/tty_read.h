/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * `tty` of a job's specification: the vessel reads it when it accepts the job, the tomb when it
 * runs it.
 */
#ifndef LYCH_COMMON_JSON_TTY_READ_H
#define LYCH_COMMON_JSON_TTY_READ_H

#include "common/attr.h"
#include "common/err.h"
#include "common/json/json.h"
#include "common/proto/job_spec.h"

/* A terminal of the job's own. */
struct tty_wish {
	unsigned cols, rows; /* 0: none */
	char term[TTY_TERM_SIZE];
	bool stays; /* when nobody is at it: nothing has ended, and others may come */
};

/* spec: the whole; without tty *ret is left as it is. It needs a stdin_stream, through which
 * somebody types. ERRID_SPEC_MISSING, ERRID_SPEC_RANGE, and json.h's for what has another shape. */
MUST_CHECK int tty_read(const struct json *spec, struct tty_wish *ret, struct err *err);

#endif
