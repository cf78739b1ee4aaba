/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See metrics.h.
 */
#include "vessel/store/metrics.h"
#include "common/err.h"
#include "common/json/json.h"
#include "common/str.h"

#define NAME_MAX_BYTES 160
#define HEALTH_DEPTH_MAX 8

void metrics_counter(struct buf *out, const char *name, const char *help, uint64_t value)
{
	buf_addf(out,
		 "# HELP lychgate_%s_total %s\n# TYPE lychgate_%s_total counter\n"
		 "lychgate_%s_total %llu\n",
		 name, help, name, name, (unsigned long long)value);
}

void metrics_gauge(struct buf *out, const char *name, const char *help, uint64_t value)
{
	buf_addf(out,
		 "# HELP lychgate_%s %s\n# TYPE lychgate_%s gauge\nlychgate_%s %llu\n",
		 name, help, name, name, (unsigned long long)value);
}

/* A metric's name from a key: anything but [a-z0-9_] becomes '_'. */
static bool join(char out[NAME_MAX_BYTES], const char *prefix, const char *key)
{
	if (str_fmt(out, NAME_MAX_BYTES, "%s_%s", prefix, key) < 0)
		return false;
	for (char *p = out; *p; p++) {
		if (!((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9')))
			*p = '_';
	}
	return true;
}

static void flatten(struct buf *out, const char *prefix, const struct json *obj,
		    unsigned depth)
{
	const struct json *val, *child;
	const char *key;

	for (size_t i = 0; json_obj_at(obj, i, &key, &val); i++) {
		char name[NAME_MAX_BYTES];
		int64_t n;
		bool b;

		if (!join(name, prefix, key))
			continue;
		if (json_get_i64(obj, key, true, INT64_MIN, INT64_MAX, &n, NULL) == 0)
			buf_addf(out, "%s %lld\n", name, (long long)n);
		else if (json_get_bool(obj, key, true, &b, NULL) == 0)
			buf_addf(out, "%s %d\n", name, b ? 1 : 0);
		else if (depth < HEALTH_DEPTH_MAX &&
			 json_get_obj(obj, key, true, &child, NULL) == 0)
			flatten(out, name, child, depth + 1);
	}
}

void metrics_write(const struct metrics *m, const char *health, size_t health_len,
		   struct buf *out)
{
	cleanup_json struct json *j = NULL;

#define X(name, help) metrics_counter(out, #name, help, m->name);
	METRICS_COUNTERS(X)
#undef X
	if (health && json_parse(health, health_len, HEALTH_DEPTH_MAX, &j, NULL) == 0)
		flatten(out, "lychgate_queue", j, 1);
}
