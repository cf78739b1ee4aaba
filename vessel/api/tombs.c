/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See tombs.h.
 */
#include "vessel/api/tombs.h"

#include "common/mem.h"
#include "common/str.h"

#include <stdlib.h>

struct seen {
	char name[TOMB_NAME_SIZE];
	struct door_hello hello;
	usec_t at;
	unsigned
		refused; /* the version it spoke when it was turned away; 0: it was not */
	bool said_hello;
};

struct tombs {
	const struct clock_ops *clock;
	struct seen list[TOMBS_SEEN_MAX];
	size_t n;
};

struct tombs *tombs_new(const struct clock_ops *clock)
{
	struct tombs *t = xnew(struct tombs);

	t->clock = clock;
	return t;
}

void tombs_free(struct tombs *t)
{
	free(t);
}

static struct seen *touch(struct tombs *t, const char *name)
{
	struct seen *s = NULL, *oldest = &t->list[0];

	for (size_t i = 0; i < t->n && !s; i++) {
		if (str_eq(t->list[i].name, name))
			s = &t->list[i];
		if (t->list[i].at < oldest->at)
			oldest = &t->list[i];
	}
	if (!s) {
		s = t->n < TOMBS_SEEN_MAX ? &t->list[t->n++] : oldest;
		*s = (struct seen){0};
		if (str_copy(s->name, sizeof(s->name), name) < 0)
			s->name[0] = '\0';
	}
	s->at = t->clock->boot_usec(t->clock->ctx);
	return s;
}

void tombs_seen(struct tombs *t, const char *name)
{
	(void)touch(t, name);
}

void tombs_hello(struct tombs *t, const char *name, const struct door_hello *h)
{
	struct seen *s = touch(t, name);

	s->hello = *h;
	s->said_hello = true;
	s->refused = 0;
}

void tombs_refused(struct tombs *t, const char *name, unsigned protocol)
{
	touch(t, name)->refused = protocol;
}

void tombs_write(const struct tombs *t, struct jsonw *w)
{
	usec_t now = t->clock->boot_usec(t->clock->ctx);

	jsonw_arr(w);
	for (size_t i = 0; i < t->n; i++) {
		const struct seen *s = &t->list[i];

		jsonw_obj(w);
		jsonw_kstr(w, "name", s->name);
		jsonw_kstr(w, "door",
			   s->said_hello ? queue_door_name(s->hello.door) : NULL);
		jsonw_kstr(w, "release", s->said_hello ? s->hello.release : NULL);
		jsonw_ku64(w, "protocol", s->refused ? s->refused : LYCH_API_VERSION);
		jsonw_ku64(w, "slots", s->said_hello ? s->hello.slots : 0);
		jsonw_ku64(w, "seen_ago_s", (now - s->at) / USEC_PER_SEC);
		jsonw_kbool(w, "refused", s->refused != 0);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
}
