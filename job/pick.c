/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the job.
 * See pick.h.
 */
#include "job/pick.h"
#include "common/utf8.h"

#include <string.h>

#define DEPTH_MAX 64

struct at {
	const char *p, *end;
};

static void skip_blanks(struct at *a)
{
	while (a->p < a->end && strchr(" \t\r\n", *a->p) && *a->p)
		a->p++;
}

static bool take(struct at *a, char c)
{
	skip_blanks(a);
	if (a->p == a->end || *a->p != c)
		return false;
	a->p++;
	return true;
}

/* From the opening quote to behind the closing one. */
static bool skip_string(struct at *a)
{
	if (!take(a, '"'))
		return false;
	for (; a->p < a->end; a->p++) {
		if (*a->p == '"') {
			a->p++;
			return true;
		}
		if (*a->p == '\\' && ++a->p == a->end)
			return false;
	}
	return false;
}

static bool skip_value(struct at *a)
{
	char open[DEPTH_MAX];
	unsigned depth = 0;

	/* Brackets and strings; what stands between them is nobody's matter here. */
	do {
		skip_blanks(a);
		if (a->p == a->end)
			return false;
		if (*a->p == '"') {
			if (!skip_string(a))
				return false;
		} else if (*a->p == '{' || *a->p == '[') {
			if (depth == DEPTH_MAX)
				return false;
			open[depth++] = *a->p++;
		} else if (*a->p == '}' || *a->p == ']') {
			if (depth == 0 || open[--depth] != (*a->p == '}' ? '{' : '['))
				return false;
			a->p++;
		} else if (depth) {
			a->p++;
		} else {
			const char *from = a->p;

			while (a->p < a->end && !memchr(" \t\r\n,]}:\"[{", *a->p, 11))
				a->p++;
			return a->p > from;
		}
	} while (depth);
	return true;
}

/* Is the string from..to (with its quotes) this name? Names of ours have no escapes. */
static bool is_name(const char *from, const char *to, const char *name, size_t len)
{
	return (size_t)(to - from) == len + 2 && memcmp(from + 1, name, len) == 0;
}

static bool enter_object(struct at *a, const char *name, size_t len)
{
	if (!take(a, '{'))
		return false;
	do {
		const char *from;

		skip_blanks(a);
		from = a->p;
		if (!skip_string(a))
			return false;
		if (is_name(from, a->p, name, len))
			return take(a, ':');
		if (!take(a, ':') || !skip_value(a))
			return false;
	} while (take(a, ','));
	return false;
}

static bool enter_array(struct at *a, unsigned index)
{
	if (!take(a, '['))
		return false;
	for (; index; index--)
		if (!skip_value(a) || !take(a, ','))
			return false;
	return true;
}

static bool enter(struct at *a, const char *part, size_t len)
{
	unsigned index = 0;

	skip_blanks(a);
	if (a->p == a->end || *a->p == '{')
		return enter_object(a, part, len);
	for (size_t i = 0; i < len; i++) {
		if (part[i] < '0' || part[i] > '9' || i > 5)
			return false;
		index = index * 10 + (unsigned)(part[i] - '0');
	}
	return len && enter_array(a, index);
}

bool pick_raw(const char *json, size_t len, const char *path, const char **ret,
	      size_t *ret_len)
{
	struct at a = {json, json + len};
	const char *from;

	while (*path) {
		size_t n = strcspn(path, ".");

		if (!enter(&a, path, n))
			return false;
		path += n + (path[n] == '.');
	}
	skip_blanks(&a);
	from = a.p;
	if (!skip_value(&a))
		return false;
	*ret = from;
	*ret_len = (size_t)(a.p - from);
	return true;
}

static void add_utf8(struct buf *out, uint32_t c)
{
	char utf8[4];

	buf_add(out, utf8, utf8_put(c, utf8));
}

static bool hex4(const char *p, const char *end, uint32_t *ret)
{
	*ret = 0;
	if (end - p < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		char c = p[i];

		if (c >= '0' && c <= '9')
			*ret = *ret * 16 + (uint32_t)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			*ret = *ret * 16 + (uint32_t)((c | 32) - 'a' + 10);
		else
			return false;
	}
	return true;
}

/* p: behind "\u". */
static const char *add_unicode(struct buf *out, const char *p, const char *end)
{
	uint32_t c, low;

	if (!hex4(p, end, &c))
		return p;
	p += 4;
	if (c >= 0xd800 && c < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u' &&
	    hex4(p + 2, end, &low) && low >= 0xdc00 && low < 0xe000) {
		add_utf8(out, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
		return p + 6;
	}
	add_utf8(out, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
	return p;
}

bool pick_text(const char *json, size_t len, const char *path, struct buf *out)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const char *p, *end;
	size_t n;

	if (!pick_raw(json, len, path, &p, &n) || *p != '"')
		return false;
	end = p + n - 1;
	for (p++; p < end; p++) {
		const char *known;

		if (*p != '\\') {
			buf_addc(out, *p);
			continue;
		}
		p++;
		if (*p == 'u') {
			p = add_unicode(out, p + 1, end) - 1;
			continue;
		}
		known = *p ? strchr(from, *p) : NULL;
		buf_addc(out, known ? to[known - from] : *p);
	}
	return buf_ok(out);
}

bool pick_u64(const char *json, size_t len, const char *path, uint64_t max, uint64_t *ret)
{
	const char *p;
	uint64_t v = 0;
	size_t n;

	if (!pick_raw(json, len, path, &p, &n) || n > 18)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (p[i] < '0' || p[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(p[i] - '0');
	}
	if (v > max)
		return false;
	*ret = v;
	return true;
}
