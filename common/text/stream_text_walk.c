/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See stream_text_walk.h.
 */
#include "common/text/stream_text_walk.h"

#include "common/attr.h"
#include "common/json/json.h"
#include "common/str.h"
#include "common/text/fnv.h"

#include <string.h>

#define TYPE_MAX_BYTES 64
/* candidates, its element, content, parts, its element, text */
#define PART_DEPTH 6

#define THOUGHT 1 /* beside the numbers of candidates */

static void add_number(struct stream_text_place *p, uint64_t n)
{
	p->where = fnv(p->where ? p->where : FNV_START, &n, sizeof(n));
	if (!p->is_numbered)
		p->group = p->where;
	p->is_numbered = true;
}

static bool read_number(const struct json *v, const char *key, uint64_t *ret)
{
	return json_has(v, key) &&
	       json_get_u64(v, key, false, 0, UINT32_MAX, ret, NULL) == 0;
}

/* Those of the Responses API, each under its own name. */
static void add_wide(struct stream_text_place *p, const struct json *v)
{
	static const char *const keys[] = {"output_index", "content_index",
					   "summary_index"};

	for (uint64_t i = 0; i < ARRAY_SIZE(keys); i++) {
		uint64_t n[2] = {i, 0};

		if (!read_number(v, keys[i], &n[1]))
			continue;
		p->wide = fnv(p->wide ? p->wide : FNV_START, n, sizeof(n));
		if (!p->is_numbered)
			p->group = p->wide;
		p->is_numbered = true;
	}
}

static bool is_thought(const struct json *v)
{
	bool ret = false;

	return json_has(v, "thought") &&
	       json_get_bool(v, "thought", false, &ret, NULL) == 0 && ret;
}

struct step {
	struct stream_text_walk *w;
	const struct stream_text_place *p;
	size_t i;
};

static void walk(struct stream_text_walk *w, const struct json *v,
		 const struct stream_text_place *p);

static void walk_member(const char *key, const struct json *val, void *arg)
{
	struct step *s = arg;
	struct stream_text_place below = *s->p;

	s->w->trail[s->p->depth] = s->i++;
	s->w->at++;
	below.depth++;
	below.key = key;
	if (!below.is_again)
		below.path = fnv(below.path, key, strlen(key) + 1);
	below.is_again = below.is_again || (s->p->key && str_eq(s->p->key, "response"));
	below.is_gemini =
		below.is_gemini || (s->p->depth == 0 && str_eq(key, "candidates"));
	if (below.is_gemini && str_eq(key, "functionCall"))
		below.is_again = below.is_data = true;
	below.is_delta = below.is_delta || str_eq(key, "delta") ||
			 (below.is_gemini && below.depth == PART_DEPTH &&
			  str_eq(key, "text") && str_eq(s->p->key, "parts"));
	walk(s->w, val, &below);
}

/* Where a list says which text an element belongs to, its position does when it does
 * not itself. */
static bool is_numbered_list(const char *key)
{
	return key && (str_eq(key, "choices") || str_eq(key, "tool_calls") ||
		       str_eq(key, "candidates"));
}

static void walk_list(struct stream_text_walk *w, const struct json *v,
		      const struct stream_text_place *p)
{
	for (size_t i = 0; i < json_arr_len(v); i++) {
		const struct json *one = json_arr_at(v, i);
		struct stream_text_place below = *p;
		uint64_t n;

		w->trail[p->depth] = i;
		below.depth++;
		if (is_numbered_list(p->key) && !read_number(one, "index", &n))
			add_number(&below, i);
		walk(w, one, &below);
	}
}

static void walk(struct stream_text_walk *w, const struct json *v,
		 const struct stream_text_place *p)
{
	struct stream_text_place here = *p;
	struct step s = {.w = w, .p = &here};
	const char *text = "";
	uint64_t n;

	switch (json_kind_of(v)) {
	case JSON_STRING:
		/* a string of this parser's is one */
		if (json_as_str(v, SIZE_MAX, &text, NULL) == 0)
			w->leaf(p, text, strlen(text), w->arg);
		w->at++;
		break;
	case JSON_NUMBER:
		w->at++;
		break;
	case JSON_OBJECT:
		if (read_number(v, "index", &n))
			add_number(&here, n);
		add_wide(&here, v);
		if (here.is_gemini && is_thought(v))
			add_number(&here, THOUGHT);
		json_obj_each(v, walk_member, &s);
		break;
	case JSON_ARRAY:
		walk_list(w, v, p);
		break;
	case JSON_NULL:
	case JSON_BOOL:
		break;
	}
}

void stream_text_walk(struct stream_text_walk *w, stream_text_leaf *leaf, void *arg)
{
	struct stream_text_place top = {.path = FNV_START};
	const char *type = "";

	if (json_get_str(w->json, "type", true, TYPE_MAX_BYTES, &type, NULL) == 0)
		top.is_arguments = str_eq(type, "response.function_call_arguments.delta");
	w->at = 0;
	w->leaf = leaf;
	w->arg = arg;
	walk(w, w->json, &top);
}
