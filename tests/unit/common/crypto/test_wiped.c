/* SPDX-License-Identifier: Apache-2.0 */
/* What is given back holds nothing of what was in it. */
#include "common/crypto/wiped.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

TestSuite(wiped, .timeout = 10);

#define SECRET "sk-wiped-0123456789abcdef0123456789abcdef"

/* Does the allocator give out the same bytes again? Under AddressSanitizer it does not:
 * then there is nothing to look at, and nobody else can either. */
static void expect_gone(uintptr_t was, size_t size)
{
	char *volatile again = malloc(size); /* the compiler knows nothing of it */

	cr_assert(again);
	if ((uintptr_t)again == was)
		cr_expect_null(memmem(again, size, SECRET + 24, 8));
	free(again);
}

Test(wiped, what_is_freed_is_wiped)
{
	char *p = wiped_malloc(4000);
	uintptr_t was = (uintptr_t)p;

	for (size_t i = 0; i + sizeof(SECRET) < 4000; i += sizeof(SECRET))
		memcpy(p + i, SECRET, sizeof(SECRET));
	wiped_free(p);
	expect_gone(was, 4000);
	p = wiped_strdup(SECRET);
	was = (uintptr_t)p;
	cr_expect_str_eq(p, SECRET);
	wiped_free(p);
	expect_gone(was, sizeof(SECRET));
	wiped_free(NULL);
}

Test(wiped, what_moves_is_wiped_where_it_was)
{
	char *p = wiped_calloc(1, sizeof(SECRET)), *guard;
	uintptr_t old = (uintptr_t)p;

	cr_expect_eq(p[sizeof(SECRET) - 1], 0);
	memcpy(p, SECRET, sizeof(SECRET));
	guard = wiped_malloc(64);
	p = wiped_realloc(p, 10000);
	cr_expect_neq((uintptr_t)p, old);
	cr_expect_str_eq(p, SECRET);
	expect_gone(old, sizeof(SECRET));
	p = wiped_realloc(p, sizeof(SECRET));
	cr_expect_str_eq(p, SECRET);
	cr_expect_null(wiped_realloc(p, 0));
	p = wiped_realloc(NULL, 8);
	cr_expect(p);
	wiped_free(p);
	wiped_free(guard);
}
