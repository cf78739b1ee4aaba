/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * One value of a codex.yaml changed, or taken away, in its text: comments, order and layout stay.
 */
#ifndef LYCH_CLI_LOCAL_CONFIG_TEXT_H
#define LYCH_CLI_LOCAL_CONFIG_TEXT_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"

/*
 * The text with this key (conf_key_check() holds) at this value; a key that is missing gets a place at
 * the end of its section. text is an acceptable one. What comes out has been compared: but for the key
 * nothing means another thing. ERRID_START_CONFIG where it would be unacceptable, ERR_UNSUPPORTED where
 * the layout is one that only a person changes. *ret_old: what stood there, NULL: it did not; caller
 * frees.
 */
MUST_CHECK int config_text_set(const char *text, const char *key, const char *value,
			       struct buf *out, char **ret_old, struct err *err);
/* The text without this key, and without a section that had no other; the same text where the key is not
 * in it (*ret_old is NULL then). Compared as above. */
MUST_CHECK int config_text_unset(const char *text, const char *key, struct buf *out,
				 char **ret_old, struct err *err);

#endif
