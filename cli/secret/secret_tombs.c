/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See secret_tombs.h.
 */
#include "cli/secret/secret_tombs.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/str.h"
#include <stdio.h>
#include <string.h>

static void put(struct secret_value *v, const char *text)
{
	v->len = strlen(text);
	memcpy(v->s, text, v->len + 1);
}

/* ---- which there are ---------------------------------------------------------- */

static void on_name(const char *name, const char *kind UNUSED, void *arg)
{
	struct secret_tombs *t = arg;
	const char *tomb = name + strlen(TOMB_GENERATION_OF);

	if (str_starts(name, TOMB_GENERATION_OF) && tomb_name_is_usable(tomb) &&
	    t->n < SECRET_TOMBS_MAX &&
	    str_copy(t->name[t->n], sizeof(t->name[0]), tomb) == 0)
		t->n++;
}

int secret_tombs_list(struct secret_store *s, struct secret_tombs *ret, struct err *err)
{
	ret->n = 0;
	return s->ops->list(s, on_name, ret, err);
}

/* 0: it has none. */
static int read_generation(struct secret_store *s, const char *tomb, uint64_t *ret,
			   struct err *err)
{
	cleanup_free char *name = xasprintf(TOMB_GENERATION_OF "%s", tomb);
	cleanup_secret_value struct secret_value v = {0};
	struct err why = ERR_INIT;

	*ret = 0;
	if (s->ops->read(s, name, &v, &why) < 0)
		return why.id == ERRID_SECRET_MISSING ? 0 : (*err = why, -1);
	return tomb_generation_parse(v.s, ret, err);
}

/* ---- what they should be -------------------------------------------------------- */

static int derive(struct secret_store *s, enum tomb_secret which, const char *tomb,
		  uint64_t generation, struct secret_value *ret, struct err *err)
{
	cleanup_secret_value struct secret_value master = {0};
	char text[TOMB_SECRET_SIZE];

	if (s->ops->read(s, tomb_secret_master(which), &master, err) < 0 ||
	    secret_value_check(&master, SECRET_VALUE_MIN_BYTES, err) < 0)
		return err_wrap(err, "%s", tomb_secret_master(which));
	tomb_secret_derive(which, master.s, tomb, generation, text);
	put(ret, text);
	explicit_bzero(text, sizeof(text));
	return 0;
}

/* Written only when it is another one: in Podman's store each write is a new secret. */
static int write_own(struct secret_store *s, enum tomb_secret which, const char *tomb,
		     uint64_t generation, struct err *err)
{
	cleanup_free char *name = xasprintf("%s%s", tomb_secret_prefix(which), tomb);
	cleanup_secret_value struct secret_value want = {0};
	cleanup_secret_value struct secret_value have = {0};
	struct err ignored = ERR_INIT;

	if (derive(s, which, tomb, generation, &want, err) < 0)
		return -1;
	if (s->ops->read(s, name, &have, &ignored) == 0 && have.len == want.len &&
	    mem_eq_ct(have.s, want.s, want.len))
		return 0;
	return s->ops->write(s, name, &want, true, err);
}

int secret_tomb_set(struct secret_store *s, const char *tomb, enum secret_tomb_want want,
		    struct err *err)
{
	cleanup_free char *name = xasprintf(TOMB_GENERATION_OF "%s", tomb);
	struct secret_value text = {0};
	uint64_t have = 0, generation;

	if (!tomb_name_is_usable(tomb))
		return err_set_id(err, ERRID_SECRET_NAME, "'%.40s' is no tomb's name",
				  tomb);
	if (read_generation(s, tomb, &have, err) < 0)
		return -1;
	if (!have && want != SECRET_TOMB_MAKE)
		return err_set_id(err, ERRID_SECRET_MISSING,
				  "%s: 'lych secret tomb %s' makes it", name, tomb);
	generation =
		have && want != SECRET_TOMB_NEXT
			? have
			: tomb_generation_next(have, clock_wall_usec() / USEC_PER_SEC);
	if (generation != have) {
		tomb_generation_write(generation, text.s);
		text.len = strlen(text.s);
		if (s->ops->write(s, name, &text, true, err) < 0)
			return -1;
	}
	for (enum tomb_secret k = 0; k < TOMB_SECRET_MAX_; k++)
		if (write_own(s, k, tomb, generation, err) < 0)
			return -1;
	return 0;
}

int secret_tombs_set(struct secret_store *s, enum secret_tomb_want want, struct err *err)
{
	struct secret_tombs t;

	if (secret_tombs_list(s, &t, err) < 0)
		return -1;
	if (!t.n && want == SECRET_TOMB_NEXT)
		return err_set_id(err, ERRID_SECRET_MISSING,
				  "no tomb has any in %s: only what is there is rotated",
				  s->where);
	for (size_t i = 0; i < t.n; i++)
		if (secret_tomb_set(s, t.name[i], want, err) < 0)
			return -1;
	return 0;
}

static int renew_masters(struct secret_store *s, struct err *err)
{
	for (enum tomb_secret k = 0; k < TOMB_SECRET_MAX_; k++) {
		cleanup_secret_value struct secret_value v = {0};

		secret_value_generate(&v);
		if (s->ops->write(s, tomb_secret_master(k), &v, true, err) < 0)
			return -1;
	}
	return 0;
}

bool secret_is_tombs_master(const char *name)
{
	return str_eq(name, tomb_secret_master(TOMB_SECRET_DB)) ||
	       str_eq(name, tomb_secret_master(TOMB_SECRET_WORK));
}

int secret_tombs_prepare(struct secret_store *s, const char *tomb, struct err *err)
{
	struct secret_tombs t;

	if (secret_tombs_list(s, &t, err) < 0 || (!t.n && renew_masters(s, err) < 0) ||
	    secret_tomb_set(s, tomb, SECRET_TOMB_MAKE, err) < 0)
		return -1;
	return secret_tombs_set(s, SECRET_TOMB_AS_IT_IS, err);
}

int secret_tomb_judge(struct secret_store *s, const char *name,
		      const struct secret_value *v, struct err *err)
{
	uint64_t generation = 0;

	if (str_starts(name, TOMB_GENERATION_OF))
		return tomb_generation_parse(v->s, &generation, err);
	for (enum tomb_secret k = 0; k < TOMB_SECRET_MAX_; k++) {
		const char *tomb = name + strlen(tomb_secret_prefix(k));
		cleanup_secret_value struct secret_value want = {0};

		if (!str_starts(name, tomb_secret_prefix(k)))
			continue;
		if (!tomb_name_is_usable(tomb) ||
		    read_generation(s, tomb, &generation, err) < 0 || !generation)
			return err_set_id(err, ERRID_SECRET_VALUE,
					  "a tomb's, and it has no generation");
		if (derive(s, k, tomb, generation, &want, err) < 0)
			return -1;
		if (v->len != want.len || !mem_eq_ct(v->s, want.s, want.len))
			return err_set_id(err, ERRID_SECRET_VALUE,
					  "not what its master and its generation give: "
					  "'lych secret tomb %s'",
					  tomb);
	}
	return 0;
}
