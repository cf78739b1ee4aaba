/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * See redact_strings.h.
 */
#include "vessel/egress/redact_strings.h"

#include "common/text/fnv.h"

#include <string.h>

void redact_strings_begin(struct redact_strings *s, const struct redact *what)
{
	*s = (struct redact_strings){.what = what};
}

/* When there are too many keys some share one: what is read on is then less certain. */
static struct redact_stream *stream_of(struct redact_strings *s, uint64_t key)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->of[i].key == key)
			return &s->of[i].stream;
	if (s->n == REDACT_KEYS_MAX)
		return &s->of[key % REDACT_KEYS_MAX].stream;
	s->of[s->n].key = key;
	redact_begin(&s->of[s->n].stream, s->what);
	return &s->of[s->n++].stream;
}

static void open_level(struct redact_strings *s, bool is_object)
{
	if (s->depth < REDACT_LEVELS_MAX) {
		s->level[s->depth].is_object = is_object;
		s->level[s->depth].key = s->key;
	}
	s->depth++;
	s->wants_key = is_object;
}

static void close_level(struct redact_strings *s)
{
	if (s->depth > 0)
		s->depth--;
	if (s->depth < REDACT_LEVELS_MAX)
		s->key = s->level[s->depth].key;
	s->wants_key = false;
}

/* Deeper than is remembered the innermost level is taken for an object. */
static bool in_object(const struct redact_strings *s)
{
	return s->depth > REDACT_LEVELS_MAX ||
	       (s->depth > 0 && s->level[s->depth - 1].is_object);
}

static void take_outside(struct redact_strings *s, char c)
{
	switch (c) {
	case '{':
	case '[':
		open_level(s, c == '{');
		break;
	case '}':
	case ']':
		close_level(s);
		break;
	case ',':
		s->wants_key = in_object(s);
		break;
	case ':':
		s->key = s->last;
		s->wants_key = false;
		break;
	case '"':
		s->in_string = true;
		s->is_key = s->wants_key;
		s->last = FNV_START;
		break;
	default:
		break;
	}
}

/* The string's bytes at p up to its end or that of the piece; how many they are. */
static size_t inside(struct redact_strings *s, const char *p, size_t len)
{
	size_t n = 0;

	for (; n < len; n++) {
		/* a line break ends what is no JSON string */
		if (p[n] == '\n' || (p[n] == '"' && !s->in_escape))
			break;
		s->in_escape = p[n] == '\\' && !s->in_escape;
		s->last = fnv(s->last, &p[n], 1);
	}
	return n;
}

static void take_string(struct redact_strings *s, const char *p, size_t n, bool ends,
			struct buf *out)
{
	if (s->is_key) {
		buf_add(out, p, n);
	} else {
		struct redact_stream *stream = stream_of(s, s->key);

		redact_feed(stream, p, n, out);
		if (ends)
			redact_release(stream, out);
	}
	if (ends)
		s->in_string = s->in_escape = false;
}

void redact_strings_feed(struct redact_strings *s, const void *data, size_t len,
			 struct buf *out)
{
	const char *p = data;
	size_t at = 0, from = 0; /* of what was not written yet */

	while (at < len) {
		if (!s->in_string) {
			take_outside(s, p[at++]);
			if (!s->in_string)
				continue;
			buf_add(out, p + from, at - from);
		} else {
			size_t n = inside(s, p + at, len - at);

			take_string(s, p + at, n, at + n < len, out);
			from = at += n;
			/* the quote that ends it is not the next one's */
			at += at < len;
		}
	}
	if (!s->in_string)
		buf_add(out, p + from, at - from);
}

void redact_strings_end(struct redact_strings *s, struct buf *out)
{
	if (s->in_string && !s->is_key)
		redact_release(stream_of(s, s->key), out);
}

unsigned redact_strings_hits(const struct redact_strings *s)
{
	unsigned hits = 0;

	for (size_t i = 0; i < s->n; i++)
		hits += s->of[i].stream.hits;
	return hits;
}

void redact_strings_done(struct redact_strings *s)
{
	for (size_t i = 0; i < s->n; i++)
		redact_done(&s->of[i].stream);
	s->n = 0;
}
