/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * How far a transfer is: a line at the bottom of a person's terminal (stderr), from its second second on,
 * written over as it goes on and gone when it ends. One at a time; a pipe sees nothing of it.
 */
#ifndef LYCH_CLI_UI_PROGRESS_H
#define LYCH_CLI_UI_PROGRESS_H

#include "common/attr.h"
#include "common/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* what: "copying in". total: bytes, 0: nobody knows; at_most: it may be fewer. quiet: none is shown. */
void progress_begin(const char *what, uint64_t total, bool at_most, bool quiet);
void progress_add(uint64_t bytes);
/* Something else is about to be written to the terminal. */
void progress_hide(void);
void progress_end(void);

/* Bytes of the regular files below a directory, for a total; what can't be looked at counts nothing. */
uint64_t progress_weigh(const char *dir);

/* "copying in: 12.0 MiB of at most 40.0 MiB, 8.0 MiB/s, 4s left" */
#define PROGRESS_TEXT_SIZE 256
void progress_text(const char *what, uint64_t done, uint64_t total, bool at_most,
		   usec_t took, char out[PROGRESS_TEXT_SIZE]);

#endif
