/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * See spec_limits.h.
 */
#include "sandbox/spec_limits.h"

#include "common/str.h"

#include <string.h>

#define NOFILE_MIN 16 /* the walls themselves open a few */
#define NOFILE_MAX 65536
#define SIZE_LEAST 4096

enum kind { SIZE, COUNT, TIME, SECONDS };

static const char *const names[SPEC_LIMIT_COUNT] = {
#define LIMIT(symbol, name) [SPEC_LIMIT_##symbol] = (name),
#include "common/proto/sandbox_options.def"
};

static const struct {
	enum kind kind;
	uint64_t min, max; /* bytes, count or microseconds */
	size_t offset;	   /* of the field that it sets */
} limits[SPEC_LIMIT_COUNT] = {
#define ROW(symbol, kind, min, max, field)                                               \
	[SPEC_LIMIT_##symbol] = {kind, min, max, offsetof(struct sbx_spec, field)}
	ROW(TIMEOUT, TIME, LIMIT_TIMEOUT_USEC_MIN, LIMIT_TIMEOUT_USEC_MAX, timeout_usec),
	ROW(CPU_TIME, SECONDS, USEC_PER_SEC, LIMIT_TIMEOUT_USEC_MAX *LIMIT_CPUS_MAX,
	    cpu_sec),
	ROW(MEMORY, SIZE, LIMIT_MEMORY_MIN, LIMIT_MEMORY_MAX, memory_bytes),
	ROW(DISK, SIZE, SIZE_LEAST, LIMIT_DISK_MAX, disk_bytes),
	ROW(TMP, SIZE, SIZE_LEAST, LIMIT_MEMORY_MAX, tmp_bytes),
	ROW(FILE_SIZE, SIZE, SIZE_LEAST, LIMIT_DISK_MAX, output_bytes),
	ROW(PROCESSES, COUNT, 1, LIMIT_PROCESSES_MAX, processes),
	ROW(CPUS, COUNT, 1, LIMIT_CPUS_MAX, cpus),
	ROW(NOFILE, COUNT, NOFILE_MIN, NOFILE_MAX, nofile),
#undef ROW
};

int spec_limit_find(const char *name, size_t len)
{
	for (size_t i = 0; i < SPEC_LIMIT_COUNT; i++)
		if (strlen(names[i]) == len && strncmp(names[i], name, len) == 0)
			return (int)i;
	return -1;
}

const char *spec_limit_name(int i)
{
	return names[i];
}

int spec_limit_unknown(const char *name, size_t len, struct err *err)
{
	char list[160] = "";
	size_t at = 0;

	for (size_t i = 0; i < SPEC_LIMIT_COUNT; i++)
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s",
				       i ? ", " : "", names[i]);
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
		return err_wrap(err, "limit %s", names[i]);
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
