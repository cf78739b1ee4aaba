/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Theory of operation. The values are in two sets: new ones go into the young one. When it is
 * full it becomes the old one, whose values are forgotten; what is asked for there is young
 * again. A client sends its whole conversation at each turn, so what it uses is never
 * forgotten before what it does not.
 *
 * A request's strings are counted as json_visit() counts them: the part of each is known by
 * its place.
 */
#include "vessel/broker/gate/issued.h"
#include "common/crypto/hmac.h"
#include "common/mem.h"
#include "common/str.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS_MIN 64

enum kind { KIND_NONE, KIND_ID, KIND_SIGNATURE, KIND_ENCRYPTED, KIND_INDEX, KIND_DATA };

/* A key, and the `type` that its object must have (NULL: any). An id comes back under
 * another name than it came by. */
static const struct {
	const char *key, *type;
	enum kind kind;
} keys[] = {
	{"id", NULL, KIND_ID},
	{"tool_use_id", NULL, KIND_ID},
	{"tool_call_id", NULL, KIND_ID},
	{"call_id", NULL, KIND_ID},
	{"response_id", NULL, KIND_ID},
	{"responseId", NULL, KIND_ID},
	{"previous_response_id", NULL, KIND_ID},
	{"item_id", NULL, KIND_ID},
	{"message_id", NULL, KIND_ID},
	{"container", NULL, KIND_ID},
	{"signature", NULL, KIND_SIGNATURE},
	{"thoughtSignature", NULL, KIND_SIGNATURE},
	{"thought_signature", NULL, KIND_SIGNATURE},
	{"encrypted_content", NULL, KIND_ENCRYPTED},
	{"encrypted_index", NULL, KIND_INDEX},
	{"data", "redacted_thinking", KIND_DATA},
	{"data", "reasoning.encrypted", KIND_DATA},
};

struct set {
	uint64_t *slot; /* 0: free */
	size_t cap, n;
};

struct issued {
	uint8_t key[SHA256_SIZE];
	struct set young, old;
};

struct issued *issued_new(void)
{
	struct issued *s = xnew(struct issued);

	random_bytes(s->key, sizeof(s->key));
	return s;
}

void issued_free(struct issued *s)
{
	if (!s)
		return;
	free(s->young.slot);
	free(s->old.slot);
	explicit_bzero(s, sizeof(*s));
	free(s);
}

/* ---- the sets ------------------------------------------------------------------------ */

/* Where the digest is, or would be. */
static size_t slot_of(const struct set *t, uint64_t digest)
{
	size_t i = (size_t)digest & (t->cap - 1);

	while (t->slot[i] && t->slot[i] != digest)
		i = (i + 1) & (t->cap - 1);
	return i;
}

static bool set_has(const struct set *t, uint64_t digest)
{
	return t->cap && t->slot[slot_of(t, digest)] == digest;
}

static void set_grow(struct set *t)
{
	struct set more = {.cap = t->cap ? 2 * t->cap : SLOTS_MIN, .n = t->n};

	more.slot = xcalloc(more.cap, sizeof(*more.slot));
	for (size_t i = 0; i < t->cap; i++)
		if (t->slot[i])
			more.slot[slot_of(&more, t->slot[i])] = t->slot[i];
	free(t->slot);
	*t = more;
}

static void remember(struct issued *s, uint64_t digest)
{
	if (set_has(&s->young, digest))
		return;
	if (s->young.n == ISSUED_MAX) {
		free(s->old.slot);
		s->old = s->young;
		s->young = (struct set){0};
	}
	/* half of it stays free */
	if (2 * s->young.n >= s->young.cap)
		set_grow(&s->young);
	s->young.slot[slot_of(&s->young, digest)] = digest;
	s->young.n++;
}

static bool recalls(struct issued *s, uint64_t digest)
{
	if (set_has(&s->young, digest))
		return true;
	if (!set_has(&s->old, digest))
		return false;
	remember(s, digest);
	return true;
}

/* ---- values ---------------------------------------------------------------------------- */

static enum kind kind_of(const char *key, const struct json *of)
{
	for (size_t i = 0; key && i < ARRAY_SIZE(keys); i++) {
		const char *type = "";

		if (!str_eq(key, keys[i].key))
			continue;
		if (!keys[i].type)
			return keys[i].kind;
		if (json_get_str(of, "type", false, SIZE_MAX, &type, NULL) == 0 &&
		    str_eq(type, keys[i].type))
			return keys[i].kind;
	}
	return KIND_NONE;
}

/* Of any length and alphabet it would be a text. */
static bool has_form(enum kind kind, const char *s, size_t len)
{
	size_t max = kind == KIND_ID ? ISSUED_ID_MAX_BYTES : ISSUED_OPAQUE_MAX_BYTES;

	for (size_t i = 0; i < len && i < max; i++)
		if (s[i] <= ' ' || s[i] > '~')
			return false;
	return len >= ISSUED_MIN_BYTES && len <= max;
}

static uint64_t digest_of(const struct issued *s, const char *portal, enum kind kind,
			  const char *text, size_t len)
{
	uint8_t of_kind[SHA256_SIZE], of_portal[SHA256_SIZE], mac[SHA256_SIZE];
	const uint8_t name = (uint8_t)kind;
	uint64_t ret;

	gate_mac(s->key, &name, sizeof(name), of_kind);
	gate_mac(of_kind, portal, strlen(portal), of_portal);
	gate_mac(of_portal, text, len, mac);
	memcpy(&ret, mac, sizeof(ret));
	return ret ? ret : 1;
}

struct walk {
	struct issued *s;
	const char *portal;
	struct gate_parts *p; /* NULL: what is met is noted */
	size_t at;
};

static void meet(struct walk *w, enum kind kind, const char *text)
{
	size_t len = strlen(text);
	uint64_t digest;

	if (!has_form(kind, text, len))
		return;
	digest = digest_of(w->s, w->portal, kind, text, len);
	if (!w->p)
		remember(w->s, digest);
	else if (w->at < w->p->n && w->p->part[w->at].kind == GATE_PART_TEXT &&
		 recalls(w->s, digest))
		w->p->part[w->at].kind = GATE_PART_ECHO;
}

/* v is the value at a key of an object; NULL: of a list. */
static void walk(struct walk *w, const struct json *v, const char *key,
		 const struct json *of)
{
	const char *name, *text = "";
	const struct json *val;
	const void *at = NULL;
	enum kind kind;

	switch (json_kind_of(v)) {
	case JSON_STRING:
		kind = kind_of(key, of);
		if (kind && json_as_str(v, SIZE_MAX, &text, NULL) == 0)
			meet(w, kind, text);
		w->at++;
		break;
	case JSON_NUMBER:
		w->at++;
		break;
	case JSON_OBJECT:
		while (json_obj_next(v, &at, &name, &val)) {
			w->at++;
			walk(w, val, name, v);
		}
		break;
	case JSON_ARRAY:
		for (size_t i = 0; i < json_arr_len(v); i++)
			walk(w, json_arr_at(v, i), NULL, NULL);
		break;
	case JSON_NULL:
	case JSON_BOOL:
		break;
	}
}

void issued_note(struct issued *s, const char *portal, const struct json *said)
{
	struct walk w = {.s = s, .portal = portal};

	walk(&w, said, NULL, NULL);
}

void issued_note_signature(struct issued *s, const char *portal, const char *text)
{
	struct walk w = {.s = s, .portal = portal};

	meet(&w, KIND_SIGNATURE, text);
}

void issued_mark(struct issued *s, const char *portal, const struct json *request,
		 struct gate_parts *p, size_t first)
{
	struct walk w = {.s = s, .portal = portal, .p = p, .at = first};

	if (s->young.n || s->old.n)
		walk(&w, request, NULL, NULL);
}

bool issued_may_hold(const char *text, size_t len)
{
	/* how the keys end */
	static const char *const ends[] = {"id\"",	 "Id\"",
					   "ignature\"", "container\"",
					   "encrypted",	 "\"redacted_thinking\""};

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (memmem(text, len, ends[i], strlen(ends[i])))
			return true;
	return false;
}
