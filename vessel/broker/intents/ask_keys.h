/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * A shape is a table of keys, each with the kinds that its value may have and, where that is
 * not all, what else is looked at: further blocks, a nested shape, a list of them, bytes. ask_check_object()
 * holds an object against a table, and nothing else does; null is fine everywhere, it says
 * nothing. Which table belongs to a block is said by its `type`, as the provider reads it.
 * The tables are those of ask_shape.c, ask_responses.c and ask_gemini.c.
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_ASK_KEYS_H
#define LYCH_VESSEL_BROKER_INTENTS_ASK_KEYS_H

#include "common/attr.h"
#include "common/err.h"
#include "common/json/json.h"
#include <stdbool.h>
#include <stddef.h>

enum {
	SHAPE_BOOL = 1 << JSON_BOOL,
	SHAPE_NUMBER = 1 << JSON_NUMBER,
	SHAPE_STRING = 1 << JSON_STRING,
	SHAPE_ARRAY = 1 << JSON_ARRAY,
	SHAPE_OBJECT = 1 << JSON_OBJECT,
	SHAPE_ANY = SHAPE_BOOL | SHAPE_NUMBER | SHAPE_STRING | SHAPE_ARRAY | SHAPE_OBJECT,
};

enum ask_key_what {
	PLAIN,	/* its kind is all */
	BLOCKS, /* a list of blocks, where it is no string */
	LOCAL,	/* a data: URL */
	BYTES,	/* base64, or a data: URL */
	SHAPED, /* an object of the table `in` */
	EACH,	/* a list of such objects */
	SOURCE, /* Anthropic's source: its type says which table */
	FAR,	/* known, and what is behind it lies elsewhere */
};

struct ask_key {
	const char *name;
	unsigned kinds;
	enum ask_key_what what;
	const struct ask_key *in; /* SHAPED, EACH */
};
#define ASK_KEYS_END {NULL, 0, PLAIN, NULL}
#define ASK_KEY_TYPE {"type", SHAPE_STRING, PLAIN, NULL}

/* A kind of block; the last has no type. */
struct ask_shape {
	const char *type;
	const struct ask_key *keys;
};

struct ask_check {
	const struct ask_shape *blocks, *sources; /* of BLOCKS, of SOURCE */
	const char *place;
	size_t entry; /* of the list at that place, from 0: for the text of a refusal */
};

/* ERRID_BROKER_REQUEST with the place; ERRID_BROKER_FEATURE. name: "" or what is quoted. */
int ask_bad(const struct ask_check *c, const char *what, const char *name,
	    struct err *err);
int ask_refused(struct err *err, const char *what, const char *name);

/* The type that an object says it has, or "". */
const char *ask_type_of(const struct json *obj);
/* NULL: no shape of that type. */
const struct ask_key *ask_shape_find(const struct ask_shape *shapes, const char *type);

MUST_CHECK int ask_check_value(const struct ask_check *c, const struct ask_key *k,
			       const struct json *v, unsigned depth, struct err *err);
MUST_CHECK int ask_check_object(const struct ask_check *c, const struct json *obj,
				const struct ask_key *keys, unsigned depth,
				struct err *err);
/* The list of objects of one shape at c->place; 0 also when it is not there. */
MUST_CHECK int ask_check_list(const struct json *request, struct ask_check *c,
			      const struct ask_key *keys, struct err *err);

#endif
