/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * The sanitizer's leak check, where a process may no longer run it.
 */
#ifndef LYCH_COMMON_LSAN_H
#define LYCH_COMMON_LSAN_H

/*
 * Called behind the walls: the check at exit clones and ptraces, which they
 * refuse. Does nothing in a build without the address sanitizer.
 */
void lsan_turn_off(void);

#endif
