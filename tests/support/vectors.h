/* SPDX-License-Identifier: Apache-2.0 */
/* The known answers of docs/SECRETS.md: its lines "    name = value". */
#ifndef LYCH_TESTS_SUPPORT_VECTORS_H
#define LYCH_TESTS_SUPPORT_VECTORS_H

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>

/* The caller frees it. */
static inline char *vector(const char *name)
{
	cleanup_free char *text = NULL;
	cleanup_free char *mark = xasprintf("\n    %s = ", name);
	struct err err = ERR_INIT;
	size_t len;

	cr_assert_eq(
		fs_read_file(AT_FDCWD, "docs/SECRETS.md", 1 << 20, &text, &len, &err), 0,
		"%s", err.msg);
	const char *at = strstr(text, mark);

	cr_assert_not_null(at, "no vector %s", name);
	at += strlen(mark);
	return xstrndup(at, strcspn(at, "\n"));
}

#endif
