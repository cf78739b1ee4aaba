/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by conf.c and conf_lint.c. */
#ifndef LYCH_COMMON_NET_CONF_PRIV_H
#define LYCH_COMMON_NET_CONF_PRIV_H

#include "common/attr.h"
#include "common/err.h"
#include <stddef.h>

/* Refuse what is outside of our subset of YAML. */
MUST_CHECK int conf_lint(const char *text, size_t len, struct err *err);
/* The line on which a dotted key of a lint-clean text stands; 1 when it is not there. */
unsigned conf_line_of(const char *text, const char *dotted_key);
/* The nth line from `from` on with a key of that name; `from` when there is none. */
unsigned conf_line_of_name(const char *text, const char *name, unsigned from,
			   unsigned nth);

#endif
