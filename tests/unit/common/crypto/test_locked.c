/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that may not be swapped is locked, or it is not given. */
#include "common/crypto/locked.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

TestSuite(locked, .timeout = 10);

#define SIZE ((size_t)4096)

/* AddressSanitizer has an mlock() of its own, which locks nothing and is never refused. */
static bool is_real(void)
{
	struct rlimit was;
	char byte = 0;
	bool r;

	cr_assert_eq(getrlimit(RLIMIT_MEMLOCK, &was), 0);
	cr_assert_eq(setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){0, was.rlim_max}), 0);
	r = mlock(&byte, sizeof(byte)) < 0;
	cr_assert_eq(setrlimit(RLIMIT_MEMLOCK, &was), 0);
	return r;
}

static unsigned long locked_kib(void)
{
	unsigned long kib = 0;
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");

	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "VmLck: %lu", &kib) == 1)
			break;
	(void)fclose(f);
	return kib;
}

Test(locked, refused_where_nothing_may_be_locked)
{
	const struct rlimit none = {0, 0};
	struct err err = ERR_INIT;
	void *p = NULL;

	if (!is_real())
		return;
	cr_assert_eq(setrlimit(RLIMIT_MEMLOCK, &none), 0);
	cr_assert_eq(locked_new(SIZE, &p, &err), -1);
	cr_expect_eq(err.id, ERRID_START_LIMIT);
	cr_expect_not_null(strstr(err.msg, "RLIMIT_MEMLOCK"), "%s", err.msg);
	cr_expect_null(p);
}

Test(locked, locked_and_let_go)
{
	unsigned long before = locked_kib();
	struct err err = ERR_INIT;
	void *p = NULL;

	if (!is_real())
		return;
	cr_assert_eq(locked_new(SIZE, &p, &err), 0, "%s", err.msg);
	cr_expect_gt(locked_kib(), before);
	locked_free(p, SIZE);
	cr_expect_eq(locked_kib(), before);
}
