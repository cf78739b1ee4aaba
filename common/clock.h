/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Time. Deadlines are CLOCK_BOOTTIME; wall time is only for people; where time in which the
 * machine was suspended must not count, CLOCK_MONOTONIC.
 */
#ifndef LYCH_COMMON_CLOCK_H
#define LYCH_COMMON_CLOCK_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t usec_t;
#define USEC_PER_MSEC ((usec_t)1000)
#define USEC_PER_SEC ((usec_t)1000000)
#define USEC_INFINITY UINT64_MAX

usec_t clock_boot_usec(void);
usec_t clock_wall_usec(void);
usec_t clock_awake_usec(void);
usec_t clock_thread_usec(void); /* CPU time of the calling thread */
/* RFC 3339, UTC, milliseconds: "2026-11-21T22:15:00.123Z" (25 bytes with NUL). */
#define RFC3339_SIZE 25
void clock_rfc3339(usec_t wall_usec, char out[RFC3339_SIZE]);

/*
 * The world as the cores of vessel and tomb see it: a simulation gives its own.
 * clock_real is the production implementation.
 */
struct clock_ops {
	usec_t (*boot_usec)(void *ctx);
	usec_t (*wall_usec)(void *ctx);
	void *ctx;
};
extern const struct clock_ops clock_real;

#endif
