/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Theory of operation. The path is read again and again, each time with its escapes undone
 * once more, until there are none: each stage is what some server works with. Between two
 * rounds some read characters (an overlong or full-width '%' begins an escape), others keep
 * the bytes; how they read them differs, too (ward_shape.h). So a stage is a text of ASCII.
 *
 * Of a stage every segment may be several things: a name, ".." or nothing, and a reader need
 * not be the same in two places. All that they could come to is kept at once: for each number
 * of segments of the prefix, how few names may stand behind these and nothing else. Fewer are
 * never worse, as what may be ".." may also be nothing. When all segments of the prefix are
 * there, the path is within.
 */
#include "vessel/broker/ward_path.h"

#include "common/str.h"
#include "common/utf8.h"
#include "vessel/broker/ward_shape.h"
#include <stdint.h>
#include <string.h>

/* Nobody codes a path so often for a purpose that is good. */
#define STAGES_MAX 8
/* Nor has any path for a good purpose so many stages of such a length. */
#define WORK_BYTES_MAX ((size_t)256 << 10)

#define SEGMENTS_MAX (WARD_PATH_BYTES_MAX / 2)
#define NEVER UINT16_MAX

struct text {
	char s[WARD_PATH_BYTES_MAX];
	size_t n; /* s[n] is a NUL; others may stand before it */
};

/* A rule's path. */
struct prefix {
	char s[WARD_PATH_BYTES_MAX];
	struct {
		uint16_t at, len;
	} seg[SEGMENTS_MAX];
	size_t n;
};

/* ---- escapes ---- */

/* At a '%': its length and what it stands for; 0: none. "%u0061" is Microsoft's. */
static size_t escape_at(const char *s, size_t n, unsigned *ret)
{
	size_t first = n > 1 && (s[1] == 'u' || s[1] == 'U') ? 2 : 1;
	size_t end = first == 2 ? 6 : 3;

	if (n < end)
		return 0;
	*ret = 0;
	for (size_t i = first; i < end; i++) {
		int digit = hex_digit_value(s[i]);

		if (digit < 0)
			return 0;
		*ret = *ret << 4 | (unsigned)digit;
	}
	return end;
}

/* Whole escapes once, others stay. False: there was none. */
static bool undo_escapes(struct text *t)
{
	size_t to = 0, used;

	for (size_t i = 0; i < t->n; i += used) {
		unsigned c = 0;

		used = t->s[i] == '%' ? escape_at(t->s + i, t->n - i, &c) : 0;
		if (used > 3 && c >= 0x80)
			to += utf8_put(c, t->s + to);
		else
			t->s[to++] = used == 0	? t->s[i]
				     : c == '/' ? WARD_SLASH_OR_NAME
						: (char)c;
		used += used == 0;
	}
	t->s[to] = '\0';
	if (to == t->n)
		return false;
	t->n = to;
	return true;
}

/* ---- one segment ---- */

/* What may be left off at either end of a name; '+' is a blank in forms. */
static bool is_blank(char c)
{
	return c == ' ' || c == '.' || c == '+' || (unsigned char)c < 0x20 || c == 0x7f;
}

/* May a name end here: what follows are blanks, a parameter, what ends a path for some (a
 * query, a fragment, a NUL), a stream of NTFS ("::$DATA") or an empty one? */
static bool may_end(const char *s, size_t n)
{
	size_t i = 0;

	for (; i < n && is_blank(s[i]); i++)
		if (s[i] == '\0')
			return true;
	if (i == n || s[i] == '?' || s[i] == '#' || s[i] == ';')
		return true;
	if (s[i] != ':' || memchr(s + i, '$', n - i))
		return s[i] == ':';
	while (i < n && s[i] == ':')
		i++;
	return i == n;
}

static bool may_be_up(const char *s, size_t n)
{
	unsigned dots = 0;

	for (size_t i = 0; i < n && is_blank(s[i]) && s[i] != '\0'; i++)
		dots += s[i] == '.';
	return dots >= 2 && may_end(s, n);
}

/* Blanks before it do not count, but a dot does: ".admin" is another name. */
static bool may_be(const char *s, size_t n, const char *name, size_t len)
{
	for (; n >= len; s++, n--) {
		size_t k = 0;

		while (k < len && (s[k] == name[k] || (name[k] == '+' && s[k] == ' ')))
			k++;
		if (k == len && may_end(s + len, n - len))
			return true;
		if (!is_blank(s[0]) || s[0] == '.')
			return false;
	}
	return false;
}

/* ---- a stage ---- */

/* False: too long. */
static bool read_prefix(const char *path, struct prefix *p)
{
	size_t len;

	p->n = 0;
	if (str_copy(p->s, sizeof(p->s) - 1, path) < 0)
		return false;
	for (char *c = p->s; *c; c++)
		*c = (char)(*c >= 'A' && *c <= 'Z' ? *c | 0x20 : *c);
	for (const char *s = p->s; *s; s += len) {
		size_t keep;

		s += *s == '/';
		len = keep = strcspn(s, "/");
		while (keep > 0 && s[keep - 1] == '.')
			keep--;
		if (keep == 0)
			continue;
		p->seg[p->n].at = (uint16_t)(s - p->s);
		p->seg[p->n++].len = (uint16_t)keep;
	}
	return true;
}

/* What may stand before a segment (fewest[m]: m segments of the prefix, and so many names
 * behind them) becomes what may stand after it. True: the whole prefix may. */
static bool take_segment(const char *s, size_t n, bool may_join, const struct prefix *p,
			 uint16_t *fewest, size_t *top)
{
	bool is_up = may_be_up(s, n);
	bool is_nothing = may_join || is_up || may_end(s, n);

	/* from the top: so what becomes of one is not taken for another */
	for (size_t m = *top + 1; m-- > 0;) {
		uint16_t was = fewest[m];

		if (was == NEVER)
			continue;
		if (!is_nothing)
			fewest[m]++;
		if (was > 0 || !may_be(s, n, p->s + p->seg[m].at, p->seg[m].len))
			continue;
		if (m + 1 == p->n)
			return true;
		fewest[m + 1] = 0;
		*top = m + 1 > *top ? m + 1 : *top;
	}
	for (size_t m = 0; is_up && m <= *top; m++) {
		if (fewest[m + 1] == 0)
			fewest[m] = 0;
		else if (fewest[m] > 0 && fewest[m] != NEVER)
			fewest[m]--;
	}
	return false;
}

/* The length of the segment that begins at `at`. */
static size_t segment_at(const struct text *t, size_t at)
{
	size_t n = 0;

	while (at + n < t->n && t->s[at + n] != '/' && t->s[at + n] != WARD_SLASH_OR_NAME)
		n++;
	return n;
}

static bool stage_is_within(const struct text *t, const struct prefix *p)
{
	uint16_t fewest[SEGMENTS_MAX + 1];
	bool may_join = false;
	size_t top = 0;

	for (size_t m = 0; m <= p->n; m++)
		fewest[m] = NEVER;
	fewest[0] = 0;
	if (p->n == 0)
		return true;
	for (size_t at = 0; at <= t->n;) {
		const char *s = t->s + at;
		size_t n = segment_at(t, at);

		/* what stands before the first slash is nothing */
		if (at + n > 0 && take_segment(s, n, may_join, p, fewest, &top))
			return true;
		may_join = at + n < t->n && s[n] == WARD_SLASH_OR_NAME;
		at += n + 1;
	}
	return false;
}

static bool stage_climbs(const struct text *t)
{
	for (size_t at = 0, n; at <= t->n; at += n + 1) {
		n = segment_at(t, at);
		if (may_be_up(t->s + at, n))
			return true;
	}
	return false;
}

/* ---- the stages ---- */

struct reading {
	enum ward_reader who;
	const struct prefix *prefix; /* NULL: does it climb? */
	size_t work;		     /* bytes */
	bool met_bytes;		     /* some are not ASCII, so readers differ */
};

/* With the bytes of `now` read as characters before more escapes are undone. */
static bool rest_is_within(struct reading *r, const struct text *from, unsigned stage)
{
	struct text now = *from, next;

	for (unsigned i = stage; i < STAGES_MAX; i++) {
		bool is_ascii = ward_shape_is_ascii(now.s, now.n);

		r->met_bytes |= !is_ascii;
		r->work += now.n;
		if (r->work > WORK_BYTES_MAX ||
		    !ward_shape_read(r->who, now.s, now.n, next.s, sizeof(next.s),
				     &next.n) ||
		    (r->prefix ? stage_is_within(&next, r->prefix) : stage_climbs(&next)))
			return true;
		/* nothing was read that the caller will not read */
		if (is_ascii && i == stage)
			return false;
		if (!undo_escapes(&next))
			return false;
		now = next;
	}
	return true;
}

static bool reads_within(struct reading *r, const struct text *path)
{
	struct text raw = *path;

	for (unsigned i = 0; i < STAGES_MAX; i++) {
		if (rest_is_within(r, &raw, i))
			return true;
		if (!undo_escapes(&raw))
			return false;
	}
	return true;
}

/* May any reader come to it? */
static bool read_by_all(const char *path, const struct prefix *prefix)
{
	struct reading r = {.prefix = prefix};
	struct text raw;

	raw.n = strlen(path);
	if (str_copy(raw.s, sizeof(raw.s) - 1, path) < 0)
		return true;
	for (r.who = 0; r.who < WARD_READER_MAX_; r.who++) {
		if (reads_within(&r, &raw))
			return true;
		if (!r.met_bytes)
			return false;
	}
	return false;
}

bool ward_path_is_within(const char *path, const char *prefix)
{
	struct prefix p;

	return !read_prefix(prefix, &p) || read_by_all(path, &p);
}

bool ward_path_may_climb(const char *path)
{
	return read_by_all(path, NULL);
}
