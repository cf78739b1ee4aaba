/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See ask_keys.h.
 */
#include "vessel/broker/intents/ask_keys.h"
#include "common/str.h"
#include <string.h>

#define BLOCKS_DEPTH_MAX 8

int ask_bad(const struct ask_check *c, const char *what, const char *name,
	    struct err *err)
{
	return err_set_id(err, ERRID_BROKER_REQUEST, "%s, entry %zu: %s%s%.64s%s",
			  c->place, c->entry + 1, what, *name ? " '" : "", name,
			  *name ? "'" : "");
}

int ask_refused(struct err *err, const char *what, const char *name)
{
	return err_set_id(err, ERRID_BROKER_FEATURE, "%s%s%.64s%s", what,
			  *name ? " '" : "", name, *name ? "'" : "");
}

/* ---- one object ---- */

static int check_blocks(const struct ask_check *c, const struct json *list,
			unsigned depth, struct err *err);

const char *ask_type_of(const struct json *obj)
{
	const char *type = "";

	return json_get_str(obj, "type", true, SIZE_MAX, &type, NULL) == 0 ? type : "";
}

const struct ask_key *ask_shape_find(const struct ask_shape *shapes, const char *type)
{
	for (; shapes->type; shapes++)
		if (str_eq(shapes->type, type))
			return shapes->keys;
	return NULL;
}

/* Base64 and what else is written for it has no colon: a scheme ends in one. */
static bool is_local(const char *s, bool also_bytes)
{
	return str_starts(s, "data:") || (also_bytes && !strchr(s, ':'));
}

static int check_source(const struct ask_check *c, const struct json *source,
			unsigned depth, struct err *err)
{
	const char *type = ask_type_of(source);
	const struct ask_key *keys = ask_shape_find(c->sources, type);

	if (!keys)
		return ask_refused(
			err, "a source that lies elsewhere (send its bytes): type", type);
	return ask_check_object(c, source, keys, depth + 1, err);
}

static int check_each(const struct ask_check *c, const struct ask_key *k,
		      const struct json *list, unsigned depth, struct err *err)
{
	for (size_t i = 0; i < json_arr_len(list); i++) {
		const struct json *one = json_arr_at(list, i);

		if (json_kind_of(one) != JSON_OBJECT)
			return ask_bad(c, "a list of objects:", k->name, err);
		if (ask_check_object(c, one, k->in, depth + 1, err) < 0)
			return -1;
	}
	return 0;
}

int ask_check_value(const struct ask_check *c, const struct ask_key *k,
		    const struct json *v, unsigned depth, struct err *err)
{
	enum json_kind kind = json_kind_of(v);
	enum ask_key_what what = k->what;
	const char *text = "";

	if (what == FAR)
		return ask_refused(err,
				   "a file that is stored at the provider:", k->name);
	if (!(k->kinds & (1u << kind)))
		return ask_bad(c, "wrong type:", k->name, err);
	if (kind == JSON_STRING && json_as_str(v, SIZE_MAX, &text, err) < 0)
		return -1;
	if (what == SHAPED && kind == JSON_STRING)
		what = LOCAL;
	if (what == BLOCKS && kind == JSON_ARRAY)
		return check_blocks(c, v, depth + 1, err);
	if (what == SHAPED)
		return ask_check_object(c, v, k->in, depth + 1, err);
	if (what == EACH)
		return check_each(c, k, v, depth, err);
	if (what == SOURCE)
		return check_source(c, v, depth, err);
	if ((what == LOCAL || what == BYTES) && !is_local(text, what == BYTES))
		return ask_refused(err,
				   "a URL (send the bytes, or a data: URL):", k->name);
	return 0;
}

struct members {
	const struct ask_check *check;
	const struct ask_key *keys;
	unsigned depth;
	struct err *err;
	int result;
};

static void on_member(const char *name, const struct json *v, void *arg)
{
	struct members *m = arg;
	const struct ask_key *k = m->keys;

	if (m->result < 0)
		return;
	while (k->name && !str_eq(k->name, name))
		k++;
	if (!k->name)
		m->result = ask_bad(m->check, "unknown key", name, m->err);
	else if (json_kind_of(v) != JSON_NULL)
		m->result = ask_check_value(m->check, k, v, m->depth, m->err);
}

int ask_check_object(const struct ask_check *c, const struct json *obj,
		     const struct ask_key *keys, unsigned depth, struct err *err)
{
	struct members m = {c, keys, depth, err, 0};

	if (depth > BLOCKS_DEPTH_MAX)
		return ask_bad(c, "nested too deep", "", err);
	json_obj_each(obj, on_member, &m);
	return m.result;
}

static int check_block(const struct ask_check *c, const struct json *block,
		       unsigned depth, struct err *err)
{
	const struct ask_key *keys;
	const char *type;

	if (json_kind_of(block) != JSON_OBJECT)
		return ask_bad(c, "content is a text or a list of objects", "", err);
	type = ask_type_of(block);
	if (!*type)
		return ask_bad(c, "a part of content has no type", "", err);
	keys = ask_shape_find(c->blocks, type);
	if (!keys)
		return ask_refused(err, "content of a type that is not passed on:", type);
	return ask_check_object(c, block, keys, depth, err);
}

static int check_blocks(const struct ask_check *c, const struct json *list,
			unsigned depth, struct err *err)
{
	if (depth > BLOCKS_DEPTH_MAX)
		return ask_bad(c, "nested too deep", "", err);
	for (size_t i = 0; i < json_arr_len(list); i++)
		if (check_block(c, json_arr_at(list, i), depth, err) < 0)
			return -1;
	return 0;
}

int ask_check_list(const struct json *rq, struct ask_check *c, const struct ask_key *keys,
		   struct err *err)
{
	const struct json *list = NULL;

	if (!json_has(rq, c->place) || json_is_null(rq, c->place))
		return 0;
	if (json_get_arr(rq, c->place, true, SIZE_MAX, &list, NULL) < 0)
		return err_set_id(err, ERRID_BROKER_REQUEST, "%s: a list of objects",
				  c->place);
	for (c->entry = 0; c->entry < json_arr_len(list); c->entry++) {
		const struct json *one = json_arr_at(list, c->entry);

		if (json_kind_of(one) != JSON_OBJECT)
			return ask_bad(c, "it is no object", "", err);
		if (ask_check_object(c, one, keys, 0, err) < 0)
			return -1;
	}
	return 0;
}
