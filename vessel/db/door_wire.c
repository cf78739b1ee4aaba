/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See door_wire.h.
 */
#include "vessel/db/door_wire.h"

#include "common/json/json.h"
#include "common/str.h"

#include <string.h>

#define WIRE_DEPTH 4
#define TTL_MIN_SEC 5
#define TTL_MAX_SEC 300
#define SLOTS_MAX 64

static int read_uuid(const struct json *obj, const char *key, struct uuid *ret,
		     struct err *err)
{
	const char *text = NULL;

	if (json_get_str(obj, key, true, sizeof(ret->s) - 1, &text, err) < 0)
		return -1;
	if (uuid_parse(text, ret, NULL) < 0)
		return err_set_id(err, ERRID_SPEC_RANGE, "%s: not a UUID", key);
	return 0;
}

static int read_number(const struct json *obj, const char *key, unsigned min,
		       unsigned max, unsigned *ret, struct err *err)
{
	uint64_t n = 0;

	if (json_get_u64(obj, key, true, min, max, &n, err) < 0)
		return -1;
	*ret = (unsigned)n;
	return 0;
}

int door_hello_parse(const void *body, size_t len, struct door_hello *ret,
		     struct err *err)
{
	static const char *const keys[] = {"door", "release", "boot", "slots"};
	cleanup_json struct json *j = NULL;
	const char *door = NULL, *release = NULL;

	if (json_parse(body, len, WIRE_DEPTH, &j, err) < 0 ||
	    json_check_keys(j, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_str(j, "door", true, 16, &door, err) < 0 ||
	    json_get_str(j, "release", true, sizeof(ret->release) - 1, &release, err) <
		    0 ||
	    read_uuid(j, "boot", &ret->boot, err) < 0 ||
	    read_number(j, "slots", 1, SLOTS_MAX, &ret->slots, err) < 0)
		return -1;
	if (!queue_door_from_name(door, &ret->door))
		return err_set_id(err, ERRID_SPEC_RANGE, "door: postgres or vessel");
	for (const char *c = release; *c; c++)
		if (*c < 0x21 || *c > 0x7e)
			return err_set_id(err, ERRID_SPEC_RANGE, "release");
	return str_copy(ret->release, sizeof(ret->release), release);
}

int door_claim_parse(const void *body, size_t len, struct door_claim *ret,
		     struct err *err)
{
	static const char *const keys[] = {"queue", "n", "ttl", "boot", "claim"};
	cleanup_json struct json *j = NULL;
	const char *queue = NULL;

	if (json_parse(body, len, WIRE_DEPTH, &j, err) < 0 ||
	    json_check_keys(j, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_str(j, "queue", true, sizeof(ret->queue) - 1, &queue, err) < 0 ||
	    read_number(j, "n", 0, DOOR_CLAIM_MAX, &ret->n, err) < 0 ||
	    read_number(j, "ttl", TTL_MIN_SEC, TTL_MAX_SEC, &ret->ttl_sec, err) < 0 ||
	    read_uuid(j, "boot", &ret->boot, err) < 0 ||
	    read_uuid(j, "claim", &ret->claim, err) < 0)
		return -1;
	return str_copy(ret->queue, sizeof(ret->queue), queue);
}

static int read_lease(const struct json *obj, struct queue_lease *ret, struct err *err)
{
	static const char *const keys[] = {"job", "epoch", "token"};

	if (json_as_obj(obj, err) < 0 ||
	    json_check_keys(obj, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_i64(obj, "job", true, 1, INT64_MAX, &ret->job, err) < 0 ||
	    json_get_i64(obj, "epoch", true, 0, INT64_MAX, &ret->epoch, err) < 0)
		return -1;
	return read_uuid(obj, "token", &ret->token, err);
}

int door_extend_parse(const void *body, size_t len, struct door_extend *ret,
		      struct err *err)
{
	static const char *const keys[] = {"boot", "ttl", "leases"};
	cleanup_json struct json *j = NULL;
	const struct json *leases = NULL;

	if (json_parse(body, len, WIRE_DEPTH, &j, err) < 0 ||
	    json_check_keys(j, keys, ARRAY_SIZE(keys), err) < 0 ||
	    read_uuid(j, "boot", &ret->boot, err) < 0 ||
	    read_number(j, "ttl", TTL_MIN_SEC, TTL_MAX_SEC, &ret->ttl_sec, err) < 0 ||
	    json_get_arr(j, "leases", true, DOOR_EXTEND_MAX, &leases, err) < 0)
		return -1;
	ret->n = json_arr_len(leases);
	if (ret->n == 0)
		return err_set_id(err, ERRID_SPEC_RANGE, "leases: none");
	for (size_t i = 0; i < ret->n; i++)
		if (read_lease(json_arr_at(leases, i), &ret->lease[i], err) < 0)
			return err_wrap(err, "leases[%zu]", i);
	return 0;
}
