/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * The one grammar of host names: of the URLs that jobs ask for (vessel/egress/url.h), of the rules
 * and URLs of codex.yaml, and of what the ward compares. A name is labels of 1..63 lower-case
 * letters, digits and hyphens (not at their ends) between single dots, at most 253 bytes in
 * all; the last label begins with a letter, since what ends in a digit some read as an
 * address; a label that begins with "xn--" is sound Punycode for something beyond ASCII.
 */
#ifndef LYCH_COMMON_HOST_H
#define LYCH_COMMON_HOST_H

#include <stdbool.h>
#include <stddef.h>

#define HOST_NAME_BYTES_MAX 253
#define HOST_LABEL_BYTES_MAX 63

enum host_fault {
	HOST_OK,
	HOST_LONG,    /* over 253 bytes */
	HOST_LABEL,   /* a label is none */
	HOST_A_LABEL, /* xn-- and no Punycode of anything */
	HOST_NUMBER,  /* ends in what could be a number */
};
enum host_fault host_name_check(const char *s, size_t len);

static inline bool host_is_name(const char *s, size_t len)
{
	return host_name_check(s, len) == HOST_OK;
}

#endif
