/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/spec_limits.h"

#include "common/str.h"

#include <string.h>

#define NOFILE_MIN 16 /* the walls themselves open a few */
#define NOFILE_MAX 65536
#define SIZE_LEAST 4096

enum kind { SIZE, COUNT, TIME, SECONDS };

static const struct {
	const char *name;
	enum kind kind;
	uint64_t min, max; /* bytes, count or microseconds */
	size_t offset;	   /* of the field that it sets */
} limits[] = {
	{"timeout", TIME, USEC_PER_MSEC, LIMIT_TIMEOUT_USEC_MAX,
	 offsetof(struct sbx_spec, timeout_usec)},
	{"cpu-time", SECONDS, USEC_PER_SEC, LIMIT_TIMEOUT_USEC_MAX *LIMIT_CPUS_MAX,
	 offsetof(struct sbx_spec, cpu_sec)},
	{"memory", SIZE, (uint64_t)1 << 20, LIMIT_MEMORY_MAX,
	 offsetof(struct sbx_spec, memory_bytes)},
	{"disk", SIZE, SIZE_LEAST, LIMIT_DISK_MAX, offsetof(struct sbx_spec, disk_bytes)},
	{"tmp", SIZE, SIZE_LEAST, LIMIT_MEMORY_MAX, offsetof(struct sbx_spec, tmp_bytes)},
	{"file-size", SIZE, SIZE_LEAST, LIMIT_DISK_MAX,
	 offsetof(struct sbx_spec, output_bytes)},
	{"processes", COUNT, 1, LIMIT_PROCESSES_MAX,
	 offsetof(struct sbx_spec, processes)},
	{"cpus", COUNT, 1, LIMIT_CPUS_MAX, offsetof(struct sbx_spec, cpus)},
	{"nofile", COUNT, NOFILE_MIN, NOFILE_MAX, offsetof(struct sbx_spec, nofile)},
};

_Static_assert(ARRAY_SIZE(limits) == SPEC_LIMIT_COUNT, "SPEC_LIMIT_COUNT");

int spec_limit_find(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (strlen(limits[i].name) == len &&
		    strncmp(limits[i].name, name, len) == 0)
			return (int)i;
	return -1;
}

const char *spec_limit_name(int i)
{
	return limits[i].name;
}

int spec_limit_unknown(const char *name, size_t len, struct err *err)
{
	char list[160] = "";
	size_t at = 0;

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s",
				       i ? ", " : "", limits[i].name);
	return err_set_id(err, ERRID_SPEC_KEY,
			  "--limit: there is no limit '%.*s'; there are %s",
			  (int)(len < 40 ? len : 40), name, list);
}

int spec_limit_set(struct sbx_spec *s, int i, const char *value, struct err *err)
{
	char *field = (char *)s + limits[i].offset;
	enum kind kind = limits[i].kind;
	uint64_t v = 0;
	int r;

	if (kind == SIZE)
		r = parse_size(value, limits[i].min, limits[i].max, &v, err);
	else if (kind == COUNT)
		r = parse_u64(value, limits[i].min, limits[i].max, &v, err);
	else
		r = parse_duration_usec(value, limits[i].min, limits[i].max, &v, err);
	if (r < 0)
		return err_wrap(err, "limit %s", limits[i].name);
	if (kind == SECONDS)
		v = (v + USEC_PER_SEC - 1) / USEC_PER_SEC;
	if (kind == COUNT) {
		unsigned n = (unsigned)v;

		memcpy(field, &n, sizeof(n));
	} else {
		memcpy(field, &v, sizeof(v));
	}
	return 0;
}
