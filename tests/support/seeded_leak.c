/* SPDX-License-Identifier: Apache-2.0 */
/* A leak on purpose: Criterion hides leaks unless ASan aborts on them, so the
 * asan run first proves with this program that it would see one. */
#include <criterion/criterion.h>
#include <stdlib.h>

static char *volatile lost;

Test(seeded, leak)
{
	lost = malloc(4711);
	cr_assert_not_null(lost);
	lost = NULL;
}
