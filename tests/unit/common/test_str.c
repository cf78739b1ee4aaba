/* SPDX-License-Identifier: Apache-2.0 */
#include "common/clock.h"
#include "common/id.h"
#include "common/str.h"
#include "common/utf8.h"

#include <criterion/criterion.h>
#include <string.h>

Test(str, parse_u64_refuses_what_is_not_a_plain_number)
{
	static const char *const bad[] = {"",
					  "-1",
					  "+1",
					  " 1",
					  "1 ",
					  "0x10",
					  "010",
					  "1e3",
					  "12abc",
					  "18446744073709551616",
					  "99999999999999999999"};
	struct err err = ERR_INIT;
	uint64_t v = 7;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		cr_assert_lt(parse_u64(bad[i], 0, UINT64_MAX, &v, &err), 0, "took '%s'",
			     bad[i]);
		cr_assert_eq(v, 7u);
	}
	cr_assert_eq(parse_u64("18446744073709551615", 0, UINT64_MAX, &v, &err), 0);
	cr_assert_eq(v, UINT64_MAX);
	cr_assert_lt(parse_u64("11", 0, 10, &v, &err), 0);
	cr_assert_eq(err.id, ERRID_SPEC_RANGE);
}

Test(str, what_could_be_another_size_is_none)
{
	static const char *const bad[] = {
		"",	"m",   "MiB",	"-1m",	"+1m",	 " 1m",	 "1 m", "1m ", "1.5g",
		"01m",	"1MB", "1kB",	"1mib", "1MIB",	 "1Mib", "1b",	"1KB", "1mb",
		"1m1k", "1g5", "0x10m", "1e3",	"1,000", "1mm",	 "1gm", "1p",  "m1",
	};
	struct err err = ERR_INIT;
	uint64_t v = 7;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		err_clear(&err);
		cr_expect_lt(parse_size(bad[i], 0, UINT64_MAX, &v, &err), 0, "took '%s'",
			     bad[i]);
		cr_expect_eq(err.id, ERRID_SPEC_TYPE, "%s", bad[i]);
	}
	cr_expect_eq(v, 7u);
	err_clear(&err);
	cr_expect_lt(parse_size("17179869184GiB", 0, UINT64_MAX - 1, &v, &err), 0);
	err_clear(&err);
	cr_expect_lt(parse_size("2g", 1 << 20, 1 << 30, &v, &err), 0);
	cr_expect_eq(err.id, ERRID_SPEC_RANGE);
	cr_expect(strstr(err.msg, "'2g' is not within 1MiB and 1GiB"), "%s", err.msg);
}

Test(str, sizes_have_the_units_that_people_type)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{"0", 0},
		{"1", 1},
		{"77B", 77},
		{"3k", 3 << 10},
		{"3K", 3 << 10},
		{"3KiB", 3 << 10},
		{"512m", 512 << 20},
		{"512M", 512 << 20},
		{"512MiB", 512 << 20},
		{"2g", 2ULL << 30},
		{"2G", 2ULL << 30},
		{"2GiB", 2ULL << 30},
		{"1t", 1ULL << 40},
		{"1TiB", 1ULL << 40},
	};
	struct err err = ERR_INIT;
	uint64_t v;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		cr_expect_eq(parse_size(good[i].text, 0, UINT64_MAX, &v, &err), 0, "%s",
			     good[i].text);
		cr_expect_eq(v, good[i].bytes, "%s", good[i].text);
	}
}

Test(str, what_could_be_another_time_is_none)
{
	static const char *const bad[] = {
		"",	   "m",	   "1h30",  "30m1h",  "1h1h", "1h 30m", " 1h",
		"-1h",	   "1.5h", "1H",    "5M",     "1w",   "1min",	"1hr",
		"1sec",	   "5us",  "01h",   "1h005m", "1:30", "h1",	"1h30m5",
		"1m5ms2s", "1hm",  "1ms1s", "0x1s",   "1e3s",
	};
	struct err err = ERR_INIT;
	uint64_t v = 7;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		err_clear(&err);
		cr_expect_lt(parse_duration_usec(bad[i], 0, UINT64_MAX, &v, &err), 0,
			     "took '%s'", bad[i]);
		cr_expect_eq(err.id, ERRID_SPEC_TYPE, "%s", bad[i]);
	}
	cr_expect_eq(v, 7u);
	err_clear(&err);
	cr_expect_lt(parse_duration_usec("99999999999999d", 0, UINT64_MAX - 1, &v, &err),
		     0);
	cr_expect_eq(err.id, ERRID_SPEC_RANGE);
	err_clear(&err);
	cr_expect_lt(parse_duration_usec("2d", USEC_PER_SEC / 10, 86400 * USEC_PER_SEC,
					 &v, &err),
		     0);
	cr_expect(strstr(err.msg, "'2d' is not within 100ms and 1d"), "%s", err.msg);
}

Test(str, durations_have_several_units)
{
	static const struct {
		const char *text;
		uint64_t msec;
	} good[] = {
		{"0", 0},
		{"30", 30000},
		{"90s", 90000},
		{"250ms", 250},
		{"5m", 300000},
		{"2h", 7200000},
		{"7d", 604800000},
		{"1h30m", 5400000},
		{"1h05m", 3900000},
		{"1m30s", 90000},
		{"1d12h", 129600000},
		{"1h0m", 3600000},
		{"1d2h3m4s5ms", 93784005},
		{"1s500ms", 1500},
		{"90m", 5400000},
	};
	struct err err = ERR_INIT;
	uint64_t v;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		cr_expect_eq(parse_duration_usec(good[i].text, 0, UINT64_MAX, &v, &err),
			     0, "%s", good[i].text);
		cr_expect_eq(v, good[i].msec * USEC_PER_MSEC, "%s", good[i].text);
	}
}

Test(str, relative_paths_stay_inside)
{
	static const struct {
		const char *path;
		size_t len;
	} bad[] = {
		{"", 0},
		{"/etc/passwd", 11},
		{"..", 2},
		{"a/../b", 6},
		{"./a", 3},
		{"a//b", 4},
		{"a/", 2},
		{"a/.", 3},
		{"a\nb", 3},
		{"a\0b", 3},
		{"a\x7f", 2},
		{"\xff", 1},
		{"\xc0\xae\xc0\xae", 4},
	};
	struct err err = ERR_INIT;
	char deep[300], longname[300];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		cr_assert_lt(path_check_relative(bad[i].path, bad[i].len, &err), 0,
			     "row %zu", i);
		cr_assert_eq(err.id, ERRID_SPEC_PATH);
	}
	memset(longname, 'x', 256);
	cr_assert_lt(path_check_relative(longname, 256, &err), 0);
	cr_assert_eq(path_check_relative(longname, 255, &err), 0);
	for (size_t i = 0; i < 65; i++)
		memcpy(deep + 2 * i, "a/", 2);
	cr_assert_lt(path_check_relative(deep, 129, &err), 0);
	cr_assert_eq(path_check_relative(deep, 127, &err), 0);
	cr_assert_eq(path_check_relative("..a/b..", 7, &err), 0);
}

/* Of many files one is bad: which one is told, as much of it as can be shown. */
Test(str, a_path_that_is_refused_is_named)
{
	static const struct {
		const char *path, *words;
		size_t len;
	} rows[] = {
		{"d//f", "path 'd//f' has an empty component", 4},
		{"d/../f", "path 'd/../f' has a '.' or '..' component", 6},
		{"/d", "path '/d' is absolute", 2},
		{"d/\x1b[31mf", "path 'd/...' has a control character", 9},
		{"d\0f", "path 'd...' has a control character", 3},
		{"d/\xc3\xa4\xff", "path 'd/\xc3\xa4...' is not UTF-8", 5},
		{"", "path '' has 0 bytes; 1..4095 are allowed", 0},
	};
	char deep[200], long_name[200];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = ERR_INIT;

		cr_assert_lt(path_check_relative(rows[i].path, rows[i].len, &err), 0);
		cr_expect_str_eq(err.msg, rows[i].words);
	}
	for (size_t i = 0; i < sizeof(deep) / 2; i++)
		memcpy(deep + 2 * i, "a/", 2);
	for (size_t i = 0; i < 81; i += 3)
		memcpy(long_name + i, "\xe2\x82\xac", 3);
	memcpy(long_name + 81, "//", 2);
	struct err err = ERR_INIT;

	cr_assert_lt(path_check_relative(deep, sizeof(deep) - 1, &err), 0);
	cr_expect(strstr(err.msg, "...' is over 64 levels deep"), "%s", err.msg);
	err_clear(&err);
	/* cut between two characters */
	cr_assert_lt(path_check_relative(long_name, 83, &err), 0);
	cr_expect(utf8_is_valid(err.msg, strlen(err.msg)) && strstr(err.msg, "...'"),
		  "%s", err.msg);
}

Test(str, utf8_refuses_overlong_and_surrogates)
{
	cr_assert_not(utf8_is_valid("\xc0\x80", 2));
	cr_assert_not(utf8_is_valid("\xe0\x80\x80", 3));
	cr_assert_not(utf8_is_valid("\xed\xa0\x80", 3));
	cr_assert_not(utf8_is_valid("\xf4\x90\x80\x80", 4));
	cr_assert_not(utf8_is_valid("\xe2\x82", 2));
	cr_assert(utf8_is_valid("\xe2\x82\xac\xf0\x9f\x98\x80", 7));
}

Test(str, copies_fail_instead_of_truncating)
{
	char b[4] = "zzz";

	cr_assert_lt(str_copy(b, sizeof(b), "four"), 0);
	cr_assert_str_eq(b, "");
	cr_assert_eq(str_copy(b, sizeof(b), "abc"), 0);
	cr_assert_lt(str_fmt(b, sizeof(b), "%d", 1234), 0);
	cr_assert_str_eq(b, "");
}

Test(str, ids_are_strict)
{
	struct err err = ERR_INIT;
	struct uuid u;
	job_id_t id;
	uint8_t sha[SHA256_SIZE];

	uuid_new(&random_real, &u);
	cr_assert_eq(u.s[14], '4');
	cr_assert_eq(uuid_parse(u.s, &u, &err), 0);
	cr_assert_lt(uuid_parse("00000000-0000-0000-0000-00000000000G", &u, &err), 0);
	cr_assert_lt(job_id_parse("0", &id, &err), 0);
	cr_assert_lt(job_id_parse("9223372036854775808", &id, &err), 0);
	cr_assert_eq(job_id_parse("42", &id, &err), 0);
	cr_assert_lt(sha256_hex_parse("ABCD", sha, &err), 0);
}

Test(str, times_are_rfc3339)
{
	char t[RFC3339_SIZE];

	clock_rfc3339(1763763300123456ULL, t);
	cr_assert_str_eq(t, "2025-11-21T22:15:00.123Z");
}
