/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See json.h.
 */
#include "common/json/json.h"

#include "common/jsonw.h"
#include "common/str.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdlib.h>

/* struct json is json-c's object under another name: no handler sees json-c. */
static struct json_object *obj_of(const struct json *j)
{
	/* json-c's getters take non-const pointers. */
	return (struct json_object *)(uintptr_t)j;
}

static struct json *json_of(struct json_object *o)
{
	return (struct json *)(void *)o;
}

static const char *type_name(const struct json_object *o)
{
	return json_type_to_name(json_object_get_type(o));
}

int json_parse(const void *data, size_t len, unsigned depth_max, struct json **ret,
	       struct err *err)
{
	struct json_tokener *tok;
	struct json_object *o;
	enum json_tokener_error why;
	size_t end;

	if (len > INT_MAX)
		return err_set_id(err, ERRID_SPEC_JSON, "too long");
	if (json_scan(data, len, depth_max, err) < 0)
		return -1;
	/* json-c's depth N admits N-1 levels; the scan has enforced the real limit. */
	tok = json_tokener_new_ex((int)depth_max + 2);
	if (!tok)
		return err_set(err, ERR_INTERNAL, "no JSON tokener");
	/* No flags: with STRICT json-c 0.18 (Debian 13) takes the char of a byte above
	 * 0x7f for a control character and refuses the string. The scan is a complete
	 * recogniser and stricter than STRICT and VALIDATE_UTF8 together, so json-c only
	 * builds the tree. */
	json_tokener_set_flags(tok, 0);
	/* Trailing blanks are allowed by the scan; json-c is given none. */
	for (end = len; end > 0 && ((const char *)data)[end - 1] != '}'; end--)
		;
	o = json_tokener_parse_ex(tok, data, (int)end);
	why = json_tokener_get_error(tok);
	if (why != json_tokener_success || json_tokener_get_parse_end(tok) != end ||
	    !json_object_is_type(o, json_type_object)) {
		json_object_put(o);
		json_tokener_free(tok);
		return err_set_id(err, ERRID_SPEC_JSON, "%s",
				  why == json_tokener_success
					  ? "not one object"
					  : json_tokener_error_desc(why));
	}
	json_tokener_free(tok);
	*ret = json_of(o);
	return 0;
}

void json_free(struct json *j)
{
	json_object_put(obj_of(j));
}

int json_check_keys(const struct json *obj, const char *const *allowed, size_t n,
		    struct err *err)
{
	if (json_as_obj(obj, err) < 0)
		return -1;
	json_object_object_foreach(obj_of(obj), key, val)
	{
		bool known = false;

		(void)val;
		for (size_t i = 0; i < n && !known; i++)
			known = str_eq(key, allowed[i]);
		if (!known)
			return err_set_id(err, ERRID_SPEC_KEY, "'%.64s'", key);
	}
	return 0;
}

/* 1: *ret is the value, of that type; 0: absent and not required; -1: err. Where it is
 * looked for came from outside too, and may be anything. */
static int get_typed(const struct json *obj, const char *key, bool required,
		     enum json_type type, struct json_object **ret, struct err *err)
{
	struct json_object *o = NULL;

	if (!json_object_is_type(obj_of(obj), json_type_object))
		return err_set_id(err, ERRID_SPEC_TYPE,
				  "%s: looked for in %s, not in an object", key,
				  type_name(obj_of(obj)));
	if (!json_object_object_get_ex(obj_of(obj), key, &o)) {
		if (required)
			return err_set_id(err, ERRID_SPEC_MISSING, "%s", key);
		return 0;
	}
	if (!json_object_is_type(o, type))
		return err_set_id(err, ERRID_SPEC_TYPE, "%s: %s expected, %s found", key,
				  json_type_to_name(type), type_name(o));
	*ret = o;
	return 1;
}

static int string_of(const char *where, struct json_object *o, size_t max_bytes,
		     const char **ret, struct err *err)
{
	size_t len = (size_t)json_object_get_string_len(o);
	const char *s = json_object_get_string(o);

	if (len > max_bytes)
		return err_set_id(err, ERRID_SPEC_RANGE, "%s: longer than %zu bytes",
				  where, max_bytes);
	if (strlen(s) != len)
		return err_set_id(err, ERRID_SPEC_RANGE, "%s: contains NUL", where);
	*ret = s;
	return 0;
}

int json_get_str(const struct json *obj, const char *key, bool required, size_t max_bytes,
		 const char **ret, struct err *err)
{
	struct json_object *o = NULL;
	int r = get_typed(obj, key, required, json_type_string, &o, err);

	return r <= 0 ? r : string_of(key, o, max_bytes, ret, err);
}

int json_get_u64(const struct json *obj, const char *key, bool required, uint64_t min,
		 uint64_t max, uint64_t *ret, struct err *err)
{
	struct json_object *o = NULL;
	int r = get_typed(obj, key, required, json_type_int, &o, err);
	uint64_t v;

	if (r <= 0)
		return r;
	v = json_object_get_uint64(o);
	/* json-c turns a negative number into 0 here, so ask for the sign as well. */
	if (json_object_get_int64(o) < 0 || v < min || v > max)
		return err_set_id(err, ERRID_SPEC_RANGE, "%s: not within %llu to %llu",
				  key, (unsigned long long)min, (unsigned long long)max);
	*ret = v;
	return 0;
}

int json_get_i64(const struct json *obj, const char *key, bool required, int64_t min,
		 int64_t max, int64_t *ret, struct err *err)
{
	struct json_object *o = NULL;
	int r = get_typed(obj, key, required, json_type_int, &o, err);
	int64_t v;

	if (r <= 0)
		return r;
	v = json_object_get_int64(o);
	/* A value above INT64_MAX is clamped by json-c: its unsigned form tells. */
	if ((v >= 0 && json_object_get_uint64(o) > INT64_MAX) || v < min || v > max)
		return err_set_id(err, ERRID_SPEC_RANGE, "%s: not within %lld to %lld",
				  key, (long long)min, (long long)max);
	*ret = v;
	return 0;
}

int json_get_bool(const struct json *obj, const char *key, bool required, bool *ret,
		  struct err *err)
{
	struct json_object *o = NULL;
	int r = get_typed(obj, key, required, json_type_boolean, &o, err);

	if (r <= 0)
		return r;
	*ret = json_object_get_boolean(o) != 0;
	return 0;
}

int json_get_number(const struct json *obj, const char *key, bool required, double min,
		    double max, double *ret, struct err *err)
{
	struct json_object *o = NULL;
	int r = get_typed(obj, key, required, json_type_double, &o, NULL);

	if (r < 0)
		r = get_typed(obj, key, required, json_type_int, &o, err);
	if (r <= 0)
		return r;
	*ret = json_object_get_double(o);
	if (!(*ret >= min && *ret <= max))
		return err_set_id(err, ERRID_SPEC_RANGE, "%s: not within %g to %g", key,
				  min, max);
	return 0;
}

int json_get_obj(const struct json *obj, const char *key, bool required,
		 const struct json **ret, struct err *err)
{
	struct json_object *o = NULL;
	int r = get_typed(obj, key, required, json_type_object, &o, err);

	if (r <= 0)
		return r;
	*ret = json_of(o);
	return 0;
}

int json_get_arr(const struct json *obj, const char *key, bool required, size_t max_items,
		 const struct json **ret, struct err *err)
{
	struct json_object *o = NULL;
	int r = get_typed(obj, key, required, json_type_array, &o, err);

	if (r <= 0)
		return r;
	if (json_object_array_length(o) > max_items)
		return err_set_id(err, ERRID_SPEC_RANGE, "%s: more than %zu items", key,
				  max_items);
	*ret = json_of(o);
	return 0;
}

bool json_has(const struct json *obj, const char *key)
{
	return json_object_object_get_ex(obj_of(obj), key, NULL);
}

bool json_is_null(const struct json *obj, const char *key)
{
	struct json_object *o = NULL;

	return json_object_object_get_ex(obj_of(obj), key, &o) && !o;
}

enum json_kind json_kind_of(const struct json *v)
{
	switch (json_object_get_type(obj_of(v))) {
	case json_type_boolean:
		return JSON_BOOL;
	case json_type_double:
	case json_type_int:
		return JSON_NUMBER;
	case json_type_string:
		return JSON_STRING;
	case json_type_array:
		return JSON_ARRAY;
	case json_type_object:
		return JSON_OBJECT;
	case json_type_null:
		break;
	}
	return JSON_NULL;
}

size_t json_arr_len(const struct json *arr)
{
	if (!json_object_is_type(obj_of(arr), json_type_array))
		return 0;
	return json_object_array_length(obj_of(arr));
}

const struct json *json_arr_at(const struct json *arr, size_t i)
{
	if (i >= json_arr_len(arr))
		return NULL;
	return json_of(json_object_array_get_idx(obj_of(arr), i));
}

int json_as_str(const struct json *v, size_t max_bytes, const char **ret, struct err *err)
{
	if (!json_object_is_type(obj_of(v), json_type_string))
		return err_set_id(err, ERRID_SPEC_TYPE, "string expected, %s found",
				  type_name(obj_of(v)));
	return string_of("string", obj_of(v), max_bytes, ret, err);
}

int json_as_obj(const struct json *v, struct err *err)
{
	if (!json_object_is_type(obj_of(v), json_type_object))
		return err_set_id(err, ERRID_SPEC_TYPE, "object expected, %s found",
				  type_name(obj_of(v)));
	return 0;
}

bool json_obj_next(const struct json *obj, const void **at, const char **ret_key,
		   const struct json **ret_val)
{
	const struct lh_entry *e = *at;

	if (!json_object_is_type(obj_of(obj), json_type_object))
		return false;
	e = e ? e->next : json_object_get_object(obj_of(obj))->head;
	if (!e)
		return false;
	*at = e;
	*ret_key = e->k;
	*ret_val = json_of((struct json_object *)(uintptr_t)e->v);
	return true;
}

bool json_obj_at(const struct json *obj, size_t i, const char **ret_key,
		 const struct json **ret_val)
{
	if (!json_object_is_type(obj_of(obj), json_type_object))
		return false;
	json_object_object_foreach(obj_of(obj), key, val)
	{
		if (i-- == 0) {
			*ret_key = key;
			*ret_val = json_of(val);
			return true;
		}
	}
	return false;
}

struct json *json_obj_child(struct json *obj, const char *key)
{
	struct json_object *v = NULL;

	if (!json_object_is_type(obj_of(obj), json_type_object) ||
	    !json_object_object_get_ex(obj_of(obj), key, &v) ||
	    !json_object_is_type(v, json_type_object))
		return NULL;
	return json_of(v);
}

void json_obj_del(struct json *obj, const char *key)
{
	if (json_object_is_type(obj_of(obj), json_type_object))
		json_object_object_del(obj_of(obj), key);
}

void json_obj_last(struct json *obj, const char *key)
{
	struct json_object *v = NULL;

	if (!json_object_is_type(obj_of(obj), json_type_object))
		return;
	if (json_object_object_get_ex(obj_of(obj), key, &v) &&
	    json_object_is_type(v, json_type_object))
		json_object_get(v);
	else
		v = json_object_new_object();
	json_object_object_del(obj_of(obj), key);
	if (!v || json_object_object_add(obj_of(obj), key, v) < 0)
		abort();
}

void json_obj_each(const struct json *obj, json_member_fn *fn, void *arg)
{
	if (!json_object_is_type(obj_of(obj), json_type_object))
		return;
	json_object_object_foreach(obj_of(obj), key, val)
	{
		fn(key, json_of(val), arg);
	}
}

/* The text of a number, as it was written. */
static const char *number_text(struct json_object *o, char *room, size_t size)
{
	int64_t i;

	/* json-c keeps the text of a parsed fraction, and the scan has vetted it. */
	if (json_object_is_type(o, json_type_double))
		return json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN);
	i = json_object_get_int64(o);
	if (i < 0)
		(void)snprintf(room, size, "%" PRId64, i);
	else
		(void)snprintf(room, size, "%" PRIu64, json_object_get_uint64(o));
	return room;
}

static void visit(struct json_object *o, const char *key, json_visit_fn *fn, void *arg)
{
	char room[24];
	const char *text;

	switch (json_object_get_type(o)) {
	case json_type_null:
	case json_type_boolean:
		break;
	case json_type_double:
	case json_type_int:
		text = number_text(o, room, sizeof(room));
		fn(JSON_PIECE_NUMBER, key, text, strlen(text), arg);
		break;
	case json_type_object: {
		json_object_object_foreach(o, name, val)
		{
			fn(JSON_PIECE_KEY, key, name, strlen(name), arg);
			visit(val, name, fn, arg);
		}
		break;
	}
	case json_type_array:
		for (size_t i = 0; i < json_object_array_length(o); i++)
			visit(json_object_array_get_idx(o, i), key, fn, arg);
		break;
	case json_type_string:
		fn(JSON_PIECE_STRING, key, json_object_get_string(o),
		   (size_t)json_object_get_string_len(o), arg);
		break;
	}
}

void json_visit(const struct json *v, json_visit_fn *fn, void *arg)
{
	visit(obj_of(v), NULL, fn, arg);
}

struct writer {
	struct jsonw *w;
	json_replace_fn *fn; /* NULL: as it is */
	void *arg;
};

static void replace(const struct writer *x, enum json_piece what, const char **text,
		    size_t *len)
{
	if (x->fn)
		x->fn(what, text, len, x->arg);
}

static void write_value(struct json_object *o, const struct writer *x);

static void write_object(struct json_object *o, const struct writer *x)
{
	jsonw_obj(x->w);
	json_object_object_foreach(o, key, val)
	{
		const char *name = key;
		size_t len = strlen(key);

		replace(x, JSON_PIECE_KEY, &name, &len);
		jsonw_key(x->w, key);
		write_value(val, x);
	}
	jsonw_obj_end(x->w);
}

static void write_number(struct json_object *o, const struct writer *x)
{
	char room[24];
	const char *text = number_text(o, room, sizeof(room)), *same = text;
	size_t len = strlen(text);

	jsonw_raw(x->w, text, len);
	replace(x, JSON_PIECE_NUMBER, &same, &len);
}

static void write_string(struct json_object *o, const struct writer *x)
{
	const char *text = json_object_get_string(o);
	size_t len = (size_t)json_object_get_string_len(o);

	replace(x, JSON_PIECE_STRING, &text, &len);
	jsonw_strn(x->w, text, len);
}

static void write_value(struct json_object *o, const struct writer *x)
{
	switch (json_object_get_type(o)) {
	case json_type_null:
		jsonw_null(x->w);
		break;
	case json_type_boolean:
		jsonw_bool(x->w, json_object_get_boolean(o) != 0);
		break;
	case json_type_double:
	case json_type_int:
		write_number(o, x);
		break;
	case json_type_object:
		write_object(o, x);
		break;
	case json_type_array:
		jsonw_arr(x->w);
		for (size_t i = 0; i < json_object_array_length(o); i++)
			write_value(json_object_array_get_idx(o, i), x);
		jsonw_arr_end(x->w);
		break;
	case json_type_string:
		write_string(o, x);
		break;
	}
}

void json_write(const struct json *v, struct jsonw *w)
{
	const struct writer x = {.w = w};

	write_value(obj_of(v), &x);
}

void json_write_replaced(const struct json *v, struct jsonw *w, json_replace_fn *fn,
			 void *arg)
{
	const struct writer x = {.w = w, .fn = fn, .arg = arg};

	write_value(obj_of(v), &x);
}
