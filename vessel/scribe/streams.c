/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe.
 * See streams.h.
 */
#include "vessel/scribe/streams.h"
#include "common/crypto/sha256.h"
#include "common/mem.h"
#include "common/str.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

void streams_done(struct streams *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->of[i]);
}

struct stream *streams_at(const struct streams *t, size_t i)
{
	struct stream *s = t->of[i];

	assert(s);
	return s;
}

struct stream *streams_find(const struct streams *t, const char *prod,
			    const struct uuid *id)
{
	for (size_t i = 0; i < t->n; i++)
		if (str_eq(streams_at(t, i)->prod, prod) &&
		    str_eq(streams_at(t, i)->id.s, id->s))
			return streams_at(t, i);
	return NULL;
}

/*
 * Where a new stream of this producer goes: a free place, or that of its own stream that was silent
 * for longest. Never another producer's: the outbox is silent for as long as the database is away,
 * while a vessel that cannot reach it starts again and again, a stream each time. NULL: one
 * producer too many.
 */
static struct stream *place_for(struct streams *t, const char *prod)
{
	struct stream *oldest = NULL;
	size_t own = 0, producers = 1; /* with this one */

	for (size_t i = 0; i < t->n; i++) {
		struct stream *s = streams_at(t, i);
		size_t before = 0;

		if (str_eq(s->prod, prod)) {
			own++;
			if (!oldest || s->used < oldest->used)
				oldest = s;
			continue;
		}
		while (before < i && !str_eq(streams_at(t, before)->prod, s->prod))
			before++;
		producers += before == i; /* the first of its name */
	}
	if (own == SCRIBE_STREAMS_EACH) {
		*oldest = (struct stream){0};
		return oldest;
	}
	if (producers > SCRIBE_PRODUCERS_MAX)
		return NULL;
	return t->of[t->n++] = xnew(struct stream);
}

struct stream *streams_get(struct streams *t, const char *prod, const struct uuid *id,
			   uint64_t seq, struct err *err)
{
	struct stream *s = streams_find(t, prod, id);

	if (s)
		return s;
	s = place_for(t, prod);
	if (!s) {
		(void)err_set_id(err, ERRID_AUDIT_EVENT,
				 "%s would be producer %d of this log; it has at most %d",
				 prod, SCRIBE_PRODUCERS_MAX + 1, SCRIBE_PRODUCERS_MAX);
		return NULL;
	}
	if (str_copy(s->prod, sizeof(s->prod), prod) < 0)
		s->prod[0] = '\0'; /* was checked: it fits */
	s->id = *id;
	s->since = 1;
	s->used = seq;
	return s;
}

static struct stream_print print_of(const char *members, size_t len)
{
	uint8_t full[SHA256_SIZE];
	struct stream_print p;

	sha256_of(members, len, full);
	memcpy(p.b, full, sizeof(p.b));
	return p;
}

void stream_remember(struct stream *s, uint64_t pseq, const char *members, size_t len,
		     uint64_t seq)
{
	s->prints[pseq % SCRIBE_REMEMBERED] = print_of(members, len);
	s->last = pseq;
	s->used = seq;
}

static bool print_is_known(const struct stream *s, uint64_t pseq)
{
	return pseq >= s->since && pseq + SCRIBE_REMEMBERED > s->last;
}

int stream_judge_old(const struct stream *s, uint64_t pseq, const char *members,
		     size_t len, struct err *err)
{
	struct stream_print p = print_of(members, len);

	if (!print_is_known(s, pseq))
		return err_set_id(err, ERRID_AUDIT_ORDER,
				  "%s sends number %llu again, %llu was its last",
				  s->prod, (unsigned long long)pseq,
				  (unsigned long long)s->last);
	if (memcmp(p.b, s->prints[pseq % SCRIBE_REMEMBERED].b, sizeof(p.b)) != 0)
		return err_set_id(err, ERRID_AUDIT_ORDER,
				  "%s sends another event as number %llu than the one "
				  "that was written",
				  s->prod, (unsigned long long)pseq);
	return 0;
}
