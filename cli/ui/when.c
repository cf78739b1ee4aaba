/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See when.h.
 */
#include "cli/ui/when.h"

#include "common/str.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MINUTE ((usec_t)60)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

static bool is_utc;

static error_t parse_utc(int key, char *arg UNUSED, struct argp_state *state UNUSED)
{
	if (key != 'u')
		return ARGP_ERR_UNKNOWN;
	is_utc = true;
	return 0;
}

static const struct argp_option utc_options[] = {
	{"utc", 'u', NULL, 0, "times in UTC, not in local time", 0},
	{0},
};
static const struct argp utc_argp = {.options = utc_options, .parser = parse_utc};
const struct argp_child when_option[] = {{&utc_argp, 0, NULL, 0}, {0}};

bool when_parse(const char *rfc3339, usec_t *ret)
{
	struct tm tm = {0};
	char again[RFC3339_SIZE];
	unsigned msec = 0;
	usec_t wall;
	time_t sec;

	if (strlen(rfc3339) != RFC3339_SIZE - 1 ||
	    sscanf(rfc3339, "%4d-%2d-%2dT%2d:%2d:%2d.%3uZ", &tm.tm_year, &tm.tm_mon,
		   &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &msec) != 7)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	sec = timegm(&tm);
	if (sec < 0)
		return false;
	wall = (usec_t)sec * USEC_PER_SEC + msec * USEC_PER_MSEC;
	/* what was read in a loose way is written otherwise */
	clock_rfc3339(wall, again);
	if (!str_eq(again, rfc3339))
		return false;
	*ret = wall;
	return true;
}

void when_text(usec_t wall, char out[WHEN_SIZE])
{
	time_t sec = (time_t)(wall / USEC_PER_SEC);
	unsigned msec = (unsigned)(wall % USEC_PER_SEC / USEC_PER_MSEC);
	char day[32] = "?", zone[16] = "UTC";
	struct tm tm;

	tzset(); /* localtime_r() need not */
	if (is_utc ? !gmtime_r(&sec, &tm) : !localtime_r(&sec, &tm)) {
		(void)snprintf(out, WHEN_SIZE, "%" PRIu64 " s", wall / USEC_PER_SEC);
		return;
	}
	(void)!strftime(day, sizeof(day), "%Y-%m-%d %H:%M:%S", &tm);
	if (!is_utc)
		(void)!strftime(zone, sizeof(zone), "%z", &tm);
	(void)snprintf(out, WHEN_SIZE, "%s.%03u %s", day, msec % 1000, zone);
}

void when_text_of(const char *rfc3339, char out[WHEN_SIZE])
{
	usec_t wall;

	if (when_parse(rfc3339, &wall))
		when_text(wall, out);
	else
		(void)snprintf(out, WHEN_SIZE, "%s", rfc3339);
}

/* ".123", then "Z", " UTC" or "+0100": what there is of it. false: something else. */
static bool read_zone(const char *s, bool *ret_utc, long *ret_offset)
{
	unsigned hours, minutes;
	char sign;
	int n = 0;

	*ret_utc = is_utc;
	*ret_offset = 0;
	if (*s == '.') {
		if (strspn(s + 1, "0123456789") != 3)
			return false;
		s += 4;
	}
	if (!*s)
		return true;
	*ret_utc = true;
	if (str_eq(s, "Z") || str_eq(s, " UTC"))
		return true;
	s += *s == ' ';
	if (strspn(s, "+-0123456789") != 5 || !(s[0] == '+' || s[0] == '-') ||
	    sscanf(s, "%c%2u%2u%n", &sign, &hours, &minutes, &n) != 3 || n != 5 || s[n] ||
	    hours > 14 || minutes > 59)
		return false;
	*ret_offset = (long)(hours * HOUR + minutes * MINUTE) * (sign == '-' ? -1 : 1);
	return true;
}

/* false: not a time of this form. A time of no day is one of today. */
static bool read_form(const char *text, const char *form, time_t now, time_t *ret)
{
	struct tm tm = {0}, again;
	const char *rest;
	bool utc;
	long offset;

	if (form[1] == 'H') { /* of today */
		if (is_utc ? !gmtime_r(&now, &tm) : !localtime_r(&now, &tm))
			return false;
		tm.tm_sec = 0;
	}
	rest = strptime(text, form, &tm);
	if (!rest || !read_zone(rest, &utc, &offset))
		return false;
	tm.tm_isdst = -1;
	again = tm;
	*ret = utc ? timegm(&again) : mktime(&again);
	/* the 30th of February is another day */
	if (*ret < 0 || again.tm_mday != tm.tm_mday || again.tm_mon != tm.tm_mon)
		return false;
	*ret -= offset;
	return true;
}

int when_read(const char *text, usec_t now, usec_t *ret, struct err *err)
{
	static const char *const forms[] = {
		"%Y-%m-%d %H:%M:%S",
		"%Y-%m-%dT%H:%M:%S",
		"%Y-%m-%d %H:%M",
		"%Y-%m-%dT%H:%M",
		"%Y-%m-%d",
		"%H:%M:%S",
		"%H:%M",
	};
	usec_t ago;
	time_t sec;

	if (parse_duration_usec(text, 0, now, &ago, NULL) == 0) {
		*ret = now - ago;
		return 0;
	}
	tzset();
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		if (!read_form(text, forms[i], (time_t)(now / USEC_PER_SEC), &sec))
			continue;
		if (sec < 0 || (usec_t)sec * USEC_PER_SEC > now)
			return err_set_id(err, ERRID_SPEC_RANGE,
					  "'%.40s' is not in the past", text);
		*ret = (usec_t)sec * USEC_PER_SEC;
		return 0;
	}
	return err_set_id(
		err, ERRID_SPEC_TYPE,
		"'%.40s' is not a time (like 10m, 1h30m ago; 11:47; 2026-11-28; "
		"'2026-11-28 11:47:09')",
		text);
}

void when_span(usec_t from, usec_t to, char out[WHEN_SPAN_SIZE])
{
	usec_t usec = to > from ? to - from : 0, sec = usec / USEC_PER_SEC;

	if (usec > 0 && sec < 10)
		(void)snprintf(out, WHEN_SPAN_SIZE, "%" PRIu64 ".%" PRIu64 "s", sec,
			       usec % USEC_PER_SEC / (USEC_PER_SEC / 10));
	else if (sec < MINUTE)
		(void)snprintf(out, WHEN_SPAN_SIZE, "%" PRIu64 "s", sec);
	else if (sec < HOUR)
		(void)snprintf(out, WHEN_SPAN_SIZE, "%" PRIu64 "m%02" PRIu64 "s",
			       sec / MINUTE, sec % MINUTE);
	else if (sec < DAY)
		(void)snprintf(out, WHEN_SPAN_SIZE, "%" PRIu64 "h%02" PRIu64 "m",
			       sec / HOUR, sec % HOUR / MINUTE);
	else
		(void)snprintf(out, WHEN_SPAN_SIZE, "%" PRIu64 "d%02" PRIu64 "h",
			       sec / DAY, sec % DAY / HOUR);
}
