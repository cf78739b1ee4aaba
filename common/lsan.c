/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See lsan.h.
 */
#include "common/lsan.h"

#include "common/attr.h"

#ifdef HAVE_LSAN

static int turned_off;

/* The hook's name and meaning: compiler-rt, sanitizer/lsan_interface.h. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return turned_off;
}

void lsan_turn_off(void)
{
	turned_off = 1;
}

#else

void lsan_turn_off(void)
{
}

#endif
