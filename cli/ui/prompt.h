/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * What is asked of a person at a terminal: secrets, which are shown to nobody (no echo, no argv, no
 * history), and whether something is to be done.
 */
#ifndef LYCH_CLI_UI_PROMPT_H
#define LYCH_CLI_UI_PROMPT_H

#include "common/attr.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>

/*
 * One secret from stdin: on a terminal a line after the question, which is not shown as it is typed
 * (backspace and Ctrl-U take letters back, Ctrl-C gives up); else all of stdin, without a
 * line's end at its end. ERR_TOO_LARGE: longer than max bytes; out has max + 1, with a NUL. The
 * caller wipes it.
 */
MUST_CHECK int prompt_secret(const char *question, char *out, size_t max, size_t *ret_len,
			     struct err *err);

/* The same of the process's own terminal, whatever stdin is: from nothing else is it taken.
 * ERRID_PASSPHRASE_TERMINAL. */
MUST_CHECK int prompt_passphrase(const char *question, char *out, size_t max,
				 size_t *ret_len, struct err *err);

/* From the first of the questions above to the release the terminal shows nothing, between two of them neither;
 * what is typed early answers the next one. */
bool prompt_hold(void);
void prompt_release(const bool *ignored);
#define cleanup_prompt_hold __attribute__((cleanup(prompt_release)))

/* Is there a person: are stdin and stderr a terminal? */
bool prompt_can_ask(void);
/* A question on that terminal, " [yes/no] " behind it: only the whole word yes is one. ERR_INVALID
 * where nobody can be asked. */
MUST_CHECK int prompt_yes(const char *question, bool *ret, struct err *err);

#endif
