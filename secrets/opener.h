/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-secret-driver.
 * What opens the store: a passphrase or a key, from exactly one place that the caller
 * names. Never from argv or the environment: both can be read by others of this uid.
 */
#ifndef LYCH_SECRETS_OPENER_H
#define LYCH_SECRETS_OPENER_H

#include "common/attr.h"
#include "common/err.h"
#include <stddef.h>

struct opener_source {
	const char *credential; /* a name below $CREDENTIALS_DIRECTORY (systemd) */
	const char *file;	/* ours, 0600 or 0400 */
	int fd;			/* -1: none; read to its end */
};

/* One trailing newline is stripped; out is NUL-terminated and the caller's to wipe. */
MUST_CHECK int opener_read(const struct opener_source *from, char *out, size_t size,
			   size_t *ret_len, struct err *err);

#endif
