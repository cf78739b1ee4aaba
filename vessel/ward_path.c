/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. The path is read again and again, each time with its escapes undone
 * once more, until there are none: each stage is what some server works with. A stage is
 * folded (case, look-alikes) and then written as plain segments, in four ways: with ".."
 * followed or left, with parameters cut off or left. If one of them begins with the
 * segments of the prefix, written the same way, the path is within.
 */
#include "vessel/ward_path.h"

#include "common/str.h"
#include "vessel/gate_fold.h"
#include <string.h>

/* Nobody codes a path so often for a purpose that is good. */
#define STAGES_MAX 8

struct text {
	char s[WARD_PATH_BYTES_MAX];
	size_t n; /* s[n] is a NUL; others may stand before it */
};

/* Whole escapes once, others stay. False: there was none. */
static bool undo_escapes(struct text *t)
{
	size_t to = 0;

	for (size_t i = 0; i < t->n; i++, to++) {
		int high = t->s[i] == '%' && i + 2 < t->n ? hex_digit_value(t->s[i + 1])
							  : -1;
		int low = high < 0 ? -1 : hex_digit_value(t->s[i + 2]);

		t->s[to] = low < 0 ? t->s[i] : (char)(high * 16 + low);
		i += low < 0 ? 0 : 2;
	}
	t->s[to] = '\0';
	if (to == t->n)
		return false;
	t->n = to;
	return true;
}

/* ---- what characters may be taken for ---- */

static bool is_next(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Overlong UTF-8 of ASCII, which no decoder should take: "%c0%af" is a slash to some. */
static void shorten(struct text *t)
{
	size_t to = 0;

	for (size_t i = 0; i < t->n; to++) {
		const unsigned char *p = (const unsigned char *)t->s + i;
		size_t left = t->n - i;
		size_t len = p[0] == 0xc0 || p[0] == 0xc1 ? 2
			     : p[0] == 0xe0		  ? 3
			     : p[0] == 0xf0		  ? 4
							  : 1;
		unsigned v = len == 2 ? p[0] & 1U : 0;

		for (size_t k = 1; k < len && k < left && is_next(t->s[i + k]); k++) {
			v = v << 6 | (p[k] & 0x3fU);
			if (k + 1 == len && v < 0x80) {
				t->s[i + k] = (char)v;
				i += k;
			}
		}
		t->s[to] = t->s[i++];
	}
	t->s[to] = '\0';
	t->n = to;
}

static void unshape(struct text *t)
{
	struct gate_folded f;

	shorten(t);
	gate_fold(t->s, t->n, FOLD_SHAPES, &f);
	memcpy(t->s, f.data, f.len);
	t->n = f.len;
	t->s[t->n] = '\0';
	gate_folded_done(&f);
}

/* Into *out: never longer. */
static void fold(const struct text *in, struct text *out)
{
	bool ascii = true;

	*out = *in;
	for (size_t i = 0; i < out->n; i++)
		ascii = ascii && (unsigned char)out->s[i] < 0x80;
	if (!ascii)
		unshape(out);
	for (size_t i = 0; i < out->n; i++) {
		char *c = &out->s[i];

		if (*c == '\\')
			*c = '/';
		else if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c | 0x20);
	}
}

/* ---- segments ---- */

static bool is_blank(char c)
{
	return c == ' ' || c == '.' || (unsigned char)c < 0x20;
}

/* "/a/b" of the text: no empty segments, none of a dot; what ends a path for some (a query,
 * a fragment, a NUL) ends the segment that it stands in. */
static void write_plain(const struct text *t, bool follow, bool cut, struct text *out)
{
	out->n = 0;
	for (size_t at = 0; at < t->n;) {
		const char *p = t->s + at, *slash = memchr(p, '/', t->n - at);
		size_t n = slash ? (size_t)(slash - p) : t->n - at, keep = 0;
		bool is_up;

		at += n + 1;
		while (keep < n && p[keep] != '\0' &&
		       !strchr(cut ? "?#;" : "?#", p[keep]))
			keep++;
		is_up = keep == 2 && p[0] == '.' && p[1] == '.';
		if (is_up && follow)
			while (out->n > 0 && out->s[--out->n] != '/')
				;
		while (!is_up && keep > 0 && is_blank(p[keep - 1]))
			keep--;
		while (!is_up && keep > 0 && p[0] == ' ') {
			p++;
			keep--;
		}
		if (keep == 0 || (is_up && follow))
			continue;
		out->s[out->n++] = '/';
		memmove(out->s + out->n, p, keep);
		out->n += keep;
	}
	out->s[out->n] = '\0';
}

static bool begins_with(const struct text *t, const struct text *prefix)
{
	return t->n >= prefix->n && memcmp(t->s, prefix->s, prefix->n) == 0 &&
	       (t->n == prefix->n || t->s[prefix->n] == '/');
}

static bool stage_is_within(const struct text *stage, const struct text *prefix)
{
	bool has_parameter = memchr(prefix->s, ';', prefix->n) != NULL;
	struct text folded, a, b;

	fold(stage, &folded);
	for (int way = 0; way < 4; way++) {
		bool follow = way & 1, cut = way & 2;

		/* a prefix that names a parameter is about it */
		if (cut && has_parameter)
			continue;
		write_plain(&folded, follow, cut, &a);
		write_plain(prefix, follow, cut, &b);
		if (begins_with(&a, &b))
			return true;
	}
	return false;
}

bool ward_path_is_within(const char *path, const char *prefix)
{
	struct text stage, raw, folded;

	/* an escape takes more than what it becomes; a segment, a slash more */
	if (str_copy(stage.s, sizeof(stage.s) - 1, path) < 0 ||
	    str_copy(raw.s, sizeof(raw.s) - 1, prefix) < 0)
		return true;
	stage.n = strlen(stage.s);
	raw.n = strlen(raw.s);
	fold(&raw, &folded);
	for (unsigned i = 0; i < STAGES_MAX; i++) {
		if (stage_is_within(&stage, &folded))
			return true;
		if (!undo_escapes(&stage))
			return false;
	}
	return true;
}
