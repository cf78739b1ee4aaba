/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See str.h.
 */
#include "common/str.h"
#include "common/clock.h"
#include "common/utf8.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PATH_COMPONENT_MAX 255
#define PATH_DEPTH_MAX 64

bool str_eq(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	return strcmp(a, b) == 0;
}

bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

void args_name(int argc, char **argv, const char *name)
{
	if (argc > 0)
		argv[0] = (char *)(uintptr_t)name;
}

size_t str_run(const char *s, const char *more)
{
	size_t n = 0;

	while (s[n] && (isalnum((unsigned char)s[n]) || strchr(more, s[n])))
		n++;
	return n;
}

int str_copy(char *dst, size_t size, const char *src)
{
	size_t n = strlen(src);

	if (n >= size) {
		if (size)
			dst[0] = '\0';
		return -1;
	}
	memcpy(dst, src, n + 1);
	return 0;
}

int str_fmt(char *dst, size_t size, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(dst, size, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= size) {
		if (size)
			dst[0] = '\0';
		return -1;
	}
	return 0;
}

/* Digits from *s on; *s is moved behind them. */
static int digits(const char **s, uint64_t *ret)
{
	const char *p = *s;
	uint64_t v = 0;

	if (*p < '0' || *p > '9')
		return -1;
	if (*p == '0' && p[1] >= '0' && p[1] <= '9')
		return -1;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return -1;
	*s = p;
	*ret = v;
	return 0;
}

static int in_range(const char *s, uint64_t v, uint64_t min, uint64_t max, uint64_t *ret,
		    struct err *err)
{
	if (v < min || v > max)
		return err_set_id(err, ERRID_SPEC_RANGE,
				  "'%.40s' is not within %llu..%llu", s,
				  (unsigned long long)min, (unsigned long long)max);
	*ret = v;
	return 0;
}

int parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret, struct err *err)
{
	const char *p = s;
	uint64_t v;

	if (digits(&p, &v) < 0 || *p)
		return err_set_id(err, ERRID_SPEC_TYPE, "'%.40s' is not a whole number",
				  s);
	return in_range(s, v, min, max, ret, err);
}

/* ---- sizes and durations ---------------------------------------------------- */

/* The largest unit of each size comes first, and the one that is written. */
struct unit {
	const char *suffix;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{"TiB", 1ULL << 40},
	{"T", 1ULL << 40},
	{"t", 1ULL << 40},
	{"GiB", 1ULL << 30},
	{"G", 1ULL << 30},
	{"g", 1ULL << 30},
	{"MiB", 1ULL << 20},
	{"M", 1ULL << 20},
	{"m", 1ULL << 20},
	{"KiB", 1ULL << 10},
	{"K", 1ULL << 10},
	{"k", 1ULL << 10},
	{"B", 1},
	{"", 1},
};

static const struct unit time_units[] = {
	{"d", 86400 * USEC_PER_SEC}, {"h", 3600 * USEC_PER_SEC}, {"m", 60 * USEC_PER_SEC},
	{"s", USEC_PER_SEC},	     {"ms", USEC_PER_MSEC},	 {"us", 1},
};

/* v in the largest unit that says it exactly. */
static void in_units(uint64_t v, const struct unit *units, size_t n, char *out,
		     size_t size)
{
	size_t i = 0;

	while (i + 1 < n && (v == 0 || v % units[i].factor != 0))
		i++;
	(void)snprintf(out, size, "%llu%s", (unsigned long long)(v / units[i].factor),
		       units[i].suffix);
}

static int within(const char *s, uint64_t v, uint64_t min, uint64_t max,
		  const struct unit *units, size_t n, uint64_t *ret, struct err *err)
{
	char least[32], most[32];

	if (v >= min && v <= max) {
		*ret = v;
		return 0;
	}
	in_units(min, units, n, least, sizeof(least));
	in_units(max, units, n, most, sizeof(most));
	return err_set_id(err, ERRID_SPEC_RANGE, "'%.40s' is not within %s and %s", s,
			  least, most);
}

/* The unit of this suffix, from *at on; *at is moved behind it. */
static const struct unit *unit_of(const char *suffix, size_t len,
				  const struct unit *units, size_t n, size_t *at)
{
	for (; *at < n; ++*at)
		if (strlen(units[*at].suffix) == len &&
		    strncmp(units[*at].suffix, suffix, len) == 0)
			return &units[(*at)++];
	return NULL;
}

int parse_size(const char *s, uint64_t min, uint64_t max, uint64_t *ret, struct err *err)
{
	const struct unit *u = NULL;
	const char *p = s;
	size_t at = 0;
	uint64_t v;

	if (digits(&p, &v) == 0)
		u = unit_of(p, strlen(p), size_units, ARRAY_SIZE(size_units), &at);
	if (!u)
		return err_set_id(err, ERRID_SPEC_TYPE,
				  "'%.40s' is not a size (like 512m, 2g, 64MiB or a "
				  "number of bytes; each unit is 1024 of the one before)",
				  s);
	if (__builtin_mul_overflow(v, u->factor, &v))
		v = UINT64_MAX;
	return within(s, v, min, max, size_units, ARRAY_SIZE(size_units), ret, err);
}

/* "1h30m": each unit once, the larger before the smaller. Too much becomes the most there is. */
static int add_parts(const char *p, uint64_t *ret)
{
	uint64_t sum = 0;
	size_t at = 0;

	do {
		const struct unit *u;
		size_t len;
		uint64_t v;

		if (sum > 0 && *p == '0')
			p += p[1] >= '0' && p[1] <= '9'; /* 1h05m */
		if (digits(&p, &v) < 0)
			return -1;
		len = strcspn(p, "0123456789");
		/* microseconds are no unit of ours to read */
		u = unit_of(p, len, time_units, ARRAY_SIZE(time_units) - 1, &at);
		if (!u)
			return -1;
		if (__builtin_mul_overflow(v, u->factor, &v) ||
		    __builtin_add_overflow(sum, v, &sum))
			sum = UINT64_MAX;
		p += len;
	} while (*p);
	*ret = sum;
	return 0;
}

int parse_duration_usec(const char *s, uint64_t min_usec, uint64_t max_usec,
			uint64_t *ret, struct err *err)
{
	const char *p = s;
	uint64_t v;

	if (digits(&p, &v) == 0 && !*p) {
		if (__builtin_mul_overflow(v, USEC_PER_SEC, &v))
			v = UINT64_MAX;
	} else if (add_parts(s, &v) < 0) {
		return err_set_id(err, ERRID_SPEC_TYPE,
				  "'%.40s' is not a duration (like 90s, 1h30m, 7d, 250ms "
				  "or a number of seconds)",
				  s);
	}
	return within(s, v, min_usec, max_usec, time_units, ARRAY_SIZE(time_units), ret,
		      err);
}

int parse_micro(const char *s, uint64_t min, uint64_t max, uint64_t *ret, struct err *err)
{
	const char *p = s;
	uint64_t whole, part = 0;
	unsigned places = 0;

	if (digits(&p, &whole) == 0) {
		if (*p == '.')
			for (p++; *p >= '0' && *p <= '9' && places < 6; p++, places++)
				part = part * 10 + (uint64_t)(*p - '0');
		if (!*p && p[-1] != '.') {
			for (; places < 6; places++)
				part *= 10;
			if (__builtin_mul_overflow(whole, (uint64_t)1000000, &whole) ||
			    __builtin_add_overflow(whole, part, &whole))
				whole = UINT64_MAX;
			if (whole >= min && whole <= max) {
				*ret = whole;
				return 0;
			}
			return err_set_id(err, ERRID_SPEC_RANGE,
					  "'%.40s' is not within %llu..%llu", s,
					  (unsigned long long)(min / 1000000),
					  (unsigned long long)(max / 1000000));
		}
	}
	return err_set_id(err, ERRID_SPEC_TYPE,
			  "'%.40s' is not a decimal number (like 12 or 0.40, at most six "
			  "digits behind the point)",
			  s);
}

bool str_has_control(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return true;
	return false;
}

void hex_encode(const void *data, size_t len, char *out)
{
	static const char d[] = "0123456789abcdef";
	const unsigned char *p = data;

	for (size_t i = 0; i < len; i++) {
		out[2 * i] = d[p[i] >> 4];
		out[2 * i + 1] = d[p[i] & 15];
	}
	out[2 * len] = '\0';
}

int hex_digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static int lower_digit(char c)
{
	return c >= 'A' && c <= 'F' ? -1 : hex_digit_value(c);
}

int hex_decode(const char *hex, void *out, size_t len)
{
	unsigned char *p = out;

	if (strlen(hex) != 2 * len)
		return -1;
	for (size_t i = 0; i < len; i++) {
		int hi = lower_digit(hex[2 * i]), lo = lower_digit(hex[2 * i + 1]);

		if (hi < 0 || lo < 0)
			return -1;
		p[i] = (unsigned char)(hi << 4 | lo);
	}
	return 0;
}

/* As much of the path as can be shown, and what is wrong with it. */
static int bad_path(const char *path, size_t len, const char *what, struct err *err)
{
	enum { SHOWN = 80 };
	size_t n = 0, c;
	uint32_t letter;

	while (n < len && (c = utf8_get(path + n, len - n, &letter)) != 0 &&
	       n + c <= SHOWN && letter >= 0x20 && letter != 0x7f)
		n += c;
	return err_set_id(err, ERRID_SPEC_PATH, "path '%.*s%s' %s", (int)n, path,
			  n < len ? "..." : "", what);
}

int path_check_relative(const char *path, size_t len, struct err *err)
{
	size_t start = 0;
	unsigned depth = 0;
	char what[64];

	(void)snprintf(what, sizeof(what), "has %zu bytes; 1..%d are allowed", len,
		       PATH_BYTES_MAX);
	if (len == 0 || len > PATH_BYTES_MAX)
		return bad_path(path, len, what, err);
	(void)snprintf(what, sizeof(what), "is over %d levels deep", PATH_DEPTH_MAX);
	if (memchr(path, '\0', len) || str_has_control(path, len))
		return bad_path(path, len, "has a control character", err);
	if (!utf8_is_valid(path, len))
		return bad_path(path, len, "is not UTF-8", err);
	if (path[0] == '/')
		return bad_path(path, len, "is absolute", err);
	for (size_t i = 0; i <= len; i++) {
		size_t n = i - start;

		if (i < len && path[i] != '/')
			continue;
		if (n == 0)
			return bad_path(path, len, "has an empty component", err);
		if (n > PATH_COMPONENT_MAX)
			return bad_path(path, len, "has a component that is too long",
					err);
		if ((n == 1 && path[start] == '.') ||
		    (n == 2 && path[start] == '.' && path[start + 1] == '.'))
			return bad_path(path, len, "has a '.' or '..' component", err);
		if (++depth > PATH_DEPTH_MAX)
			return bad_path(path, len, what, err);
		start = i + 1;
	}
	return 0;
}

bool mem_eq_ct(const void *a, const void *b, size_t len)
{
	const volatile unsigned char *x = a, *y = b;
	unsigned char diff = 0;

	for (size_t i = 0; i < len; i++)
		diff |= (unsigned char)(x[i] ^ y[i]);
	return diff == 0;
}
