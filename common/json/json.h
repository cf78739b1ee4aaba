/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Strict JSON from outside, the only user of json-c. json-c in strict mode still
 * takes duplicate keys, single quotes, NaN, raw control bytes, overlong UTF-8,
 * NUL in keys and clamps integers; a pre-scan of our own refuses all of these
 * before json-c sees a byte (RFC 8259, RFC 7493 I-JSON).
 */
#ifndef LYCH_COMMON_JSON_JSON_H
#define LYCH_COMMON_JSON_JSON_H

#include "common/attr.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json; /* a reference-counted value (json-c's object underneath) */

#define JSON_DEPTH_DEFAULT 16
/* More members in one object are refused: lookups and iteration stay cheap. */
#define JSON_MEMBERS_MAX 4096
/* More values in one text are refused: parsing it stays within a few milliseconds. */
#define JSON_VALUES_MAX 65536

/* The pre-scan alone: ERRID_SPEC_JSON with byte offset and reason. Top level must be an
 * object. */
MUST_CHECK int json_scan(const void *data, size_t len, unsigned depth_max,
			 struct err *err);
/* Scan, then parse. *ret is owned by the caller. */
MUST_CHECK int json_parse(const void *data, size_t len, unsigned depth_max,
			  struct json **ret, struct err *err);
void json_free(struct json *j);
static inline void json_free_p(struct json **j)
{
	json_free(*j);
}
#define cleanup_json __attribute__((cleanup(json_free_p)))

/*
 * No function below trusts the kind of what it is given: `obj`, `arr` and `v` may be any
 * value, JSON's null (NULL) too. What is not there to be found is said by the typed refusal,
 * false, NULL or 0 of each, never by an assertion: all of it came from outside.
 */

/* Refuse keys that are not in allowed[0..n): ERRID_SPEC_KEY naming the key; ERRID_SPEC_TYPE
 * when obj is no object. */
MUST_CHECK int json_check_keys(const struct json *obj, const char *const *allowed,
			       size_t n, struct err *err);

/*
 * Typed getters. `where` of an error is the key. A missing key is success with
 * *ret untouched when required is false (so initialise with the default), else
 * ERRID_SPEC_MISSING. A wrong type is ERRID_SPEC_TYPE, a value out of range
 * ERRID_SPEC_RANGE; null counts as a wrong type, and so does an obj that is no object, also
 * when the key is not required. Strings are borrowed from obj, are
 * NUL-terminated and contain no NUL.
 */
MUST_CHECK int json_get_str(const struct json *obj, const char *key, bool required,
			    size_t max_bytes, const char **ret, struct err *err);
MUST_CHECK int json_get_u64(const struct json *obj, const char *key, bool required,
			    uint64_t min, uint64_t max, uint64_t *ret, struct err *err);
MUST_CHECK int json_get_i64(const struct json *obj, const char *key, bool required,
			    int64_t min, int64_t max, int64_t *ret, struct err *err);
MUST_CHECK int json_get_bool(const struct json *obj, const char *key, bool required,
			     bool *ret, struct err *err);
/* An integer or a fraction, within min and max. */
MUST_CHECK int json_get_number(const struct json *obj, const char *key, bool required,
			       double min, double max, double *ret, struct err *err);
/* Borrowed child values. */
MUST_CHECK int json_get_obj(const struct json *obj, const char *key, bool required,
			    const struct json **ret, struct err *err);
MUST_CHECK int json_get_arr(const struct json *obj, const char *key, bool required,
			    size_t max_items, const struct json **ret, struct err *err);
bool json_has(const struct json *obj, const char *key);
bool json_is_null(const struct json *obj, const char *key);

/* What a value is; NULL is JSON's null. */
enum json_kind {
	JSON_NULL,
	JSON_BOOL,
	JSON_NUMBER,
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT,
};
enum json_kind json_kind_of(const struct json *v);

size_t json_arr_len(const struct json *arr);
const struct json *json_arr_at(const struct json *arr, size_t i);
/* An element (or any value) as a string / object; NULL-safe typed checks as above. */
MUST_CHECK int json_as_str(const struct json *v, size_t max_bytes, const char **ret,
			   struct err *err);
MUST_CHECK int json_as_obj(const struct json *v, struct err *err);

/* The next member of an object: *at NULL before the first; false at the end. */
bool json_obj_next(const struct json *obj, const void **at, const char **ret_key,
		   const struct json **ret_val);
/* The i-th, from 0; false: it has fewer. Not for walking through one that may be large. */
bool json_obj_at(const struct json *obj, size_t i, const char **ret_key,
		 const struct json **ret_val);

/* The same value to be changed, of an object that is the caller's; NULL: none, or no object. */
struct json *json_obj_child(struct json *obj, const char *key);
/* Takes a member away, if it is there. */
void json_obj_del(struct json *obj, const char *key);
/* Makes the object at that key the last member; an empty one when there is no object. */
void json_obj_last(struct json *obj, const char *key);

/* Every member of an object, in order; not of anything else. */
typedef void json_member_fn(const char *key, const struct json *val, void *arg);
void json_obj_each(const struct json *obj, json_member_fn *fn, void *arg);

/* Every key, string and number below a value, in order. A number's text is as it was
 * written. `key` is the one that the piece belongs to (through arrays too); NULL: none. */
enum json_piece { JSON_PIECE_KEY, JSON_PIECE_STRING, JSON_PIECE_NUMBER };
typedef void json_visit_fn(enum json_piece what, const char *key, const char *text,
			   size_t len, void *arg);
void json_visit(const struct json *v, json_visit_fn *fn, void *arg);

/* Re-encode a value with jsonw's escaping (json-c's own printer is not strict enough). */
struct jsonw;
void json_write(const struct json *v, struct jsonw *w);
/* The same, with other strings: fn is asked for each piece in json_visit's order, and what
 * it answers takes a string's place (*text, *len; as they are: unchanged). */
typedef void json_replace_fn(enum json_piece what, const char **text, size_t *len,
			     void *arg);
void json_write_replaced(const struct json *v, struct jsonw *w, json_replace_fn *fn,
			 void *arg);

#endif
