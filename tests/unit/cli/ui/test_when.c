/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/when.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

Test(when, what_is_no_time_of_the_vessel_is_not_read_as_one)
{
	static const char *const others[] = {
		"",
		"2026-11-28",
		"2026-11-28T10:47:09Z",	      /* no milliseconds */
		"2026-11-28T10:47:09.123",    /* no zone */
		"2026-11-28 10:47:09.123Z",   /* a blank */
		"2026-11-28T10:47:09.1234Z",  /* too long */
		"2026-13-28T10:47:09.123Z",   /* no such month */
		"2026-02-29T10:47:09.123Z",   /* no such day */
		"2026-11-28T24:00:00.000Z",   /* the next day */
		"2026-11-28T10:47:60.123Z",   /* the next minute */
		"+026-11-28T10:47:09.123Z",   /* a sign */
		"2026-11-28T 9:47:09.123Z",   /* a blank for a digit */
		"1969-12-31T23:59:59.999Z",   /* before the first */
		"2026-11-28T10:47:09.123z",   /* another letter */
		"2026-11-28T10:47:09.123Z\n", /* more behind it */
	};
	char out[WHEN_SIZE];
	usec_t wall;

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		cr_expect_not(when_parse(others[i], &wall), "%s", others[i]);
		when_text_of(others[i], out);
		cr_expect_str_eq(out, others[i]);
	}
}

Test(when, a_time_is_read_back_as_it_was_written)
{
	static const usec_t times[] = {0, 1, 951782400999999, 1795862829123456,
				       4102444800000000};
	char text[RFC3339_SIZE];
	usec_t wall;

	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		clock_rfc3339(times[i], text);
		cr_assert(when_parse(text, &wall), "%s", text);
		cr_expect_eq(wall, times[i] / 1000 * 1000);
	}
}

/* 2026-11-28 10:47:09 UTC, in a zone that is an hour and a half ahead */
#define NOW (1795862829 * USEC_PER_SEC)

static void zone(void)
{
	static char tz[] = "TZ=XST-1:30";
	static char *env[] = {tz, NULL};

	environ = env;
}

TestSuite(when_read, .init = zone);

Test(when_read, what_is_no_time_is_refused)
{
	static const char *const bad[] = {
		"",
		"noon",
		"2026-02-30",
		"2026-13-01",
		"25:00",
		"11:60",
		"11:4x",
		"2026-11-28 x",
		"1w",
		"1.5h",
		"-1h",
		"2026-11-28T",
		"11:47 CET",
		"11:47 +0100x",
		"11:47 +1",
		"11:47 +9900",
		"11:47:09.12",
	};
	struct err err = ERR_INIT;
	usec_t t = 7;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		err_clear(&err);
		cr_expect_lt(when_read(bad[i], NOW, &t, &err), 0, "took '%s'", bad[i]);
		cr_expect_eq(err.id, ERRID_SPEC_TYPE, "%s", bad[i]);
	}
	err_clear(&err);
	cr_expect_lt(when_read("2999-01-01", NOW, &t, &err), 0);
	cr_expect_eq(err.id, ERRID_SPEC_RANGE);
	err_clear(&err);
	cr_expect_lt(when_read("12:18", NOW, &t, &err), 0);
	cr_expect_eq(err.id, ERRID_SPEC_RANGE);
	cr_expect_eq(t, 7);
}

Test(when_read, what_people_write)
{
	static const struct {
		const char *text;
		usec_t sec;
	} good[] = {
		{"0", 1795862829},
		{"10m", 1795862829 - 600},
		{"1h30m", 1795862829 - 5400},
		{"12:17:09", 1795862829},
		{"12:17", 1795862820},
		{"10:47 UTC", 1795862820},
		{"2026-11-28", 1795818600},
		{"2026-11-28 12:17:09", 1795862829},
		{"2026-11-28T12:17:09", 1795862829},
		{"2026-11-28 12:17", 1795862820},
		{"2026-11-28T10:47:09.123Z", 1795862829},
		{"2026-11-28 10:47:09.123 UTC", 1795862829},
		{"2026-11-28 12:17:09.123 +0130", 1795862829},
		{"2026-11-28 05:47:09 -0500", 1795862829},
	};
	struct err err = ERR_INIT;
	usec_t t;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		cr_expect_eq(when_read(good[i].text, NOW, &t, &err), 0, "%s: %s",
			     good[i].text, err.msg);
		cr_expect_eq(t, good[i].sec * USEC_PER_SEC, "%s: %llu", good[i].text,
			     (unsigned long long)(t / USEC_PER_SEC));
	}
}

Test(when, how_long_takes_two_units_and_is_never_less_than_nothing)
{
	static const struct {
		usec_t usec;
		const char *text;
	} cases[] = {
		{0, "0s"},
		{99999, "0.0s"},
		{400000, "0.4s"},
		{9999999, "9.9s"},
		{10000000, "10s"},
		{59999999, "59s"},
		{60000000, "1m00s"},
		{192000000, "3m12s"},
		{3600000000, "1h00m"},
		{7500000000, "2h05m"},
		{86400000000, "1d00h"},
		{273600000000, "3d04h"},
	};
	char out[WHEN_SPAN_SIZE];

	when_span(5000000, 4000000, out);
	cr_expect_str_eq(out, "0s");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		when_span(7, 7 + cases[i].usec, out);
		cr_expect_str_eq(out, cases[i].text);
	}
	when_span(0, UINT64_MAX, out);
	cr_expect_lt(strlen(out), sizeof(out) - 1);
}
