/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See clock.h.
 */
#include "common/clock.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

static usec_t read_clock(clockid_t id)
{
	struct timespec ts;
	int r = clock_gettime(id, &ts);

	assert(r == 0);
	return (usec_t)ts.tv_sec * USEC_PER_SEC + (usec_t)ts.tv_nsec / 1000;
}

usec_t clock_boot_usec(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

usec_t clock_awake_usec(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

usec_t clock_thread_usec(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

usec_t clock_wall_usec(void)
{
	return read_clock(CLOCK_REALTIME);
}

void clock_rfc3339(usec_t wall_usec, char out[RFC3339_SIZE])
{
	time_t sec = (time_t)(wall_usec / USEC_PER_SEC);
	unsigned ms = (unsigned)(wall_usec % USEC_PER_SEC / USEC_PER_MSEC);
	struct tm tm;
	size_t n;

	if (!gmtime_r(&sec, &tm) || tm.tm_year > 8099) {
		tm = (struct tm){.tm_year = 70, .tm_mday = 1};
		ms = 0;
	}
	n = strftime(out, RFC3339_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(out + n, RFC3339_SIZE - n, ".%03uZ", ms % 1000);
}

static usec_t real_boot(void *ctx)
{
	(void)ctx;
	return clock_boot_usec();
}

static usec_t real_wall(void *ctx)
{
	(void)ctx;
	return clock_wall_usec();
}

const struct clock_ops clock_real = {.boot_usec = real_boot, .wall_usec = real_wall};
