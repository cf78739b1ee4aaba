/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What the gate reads of a package's path: the path, what it spells (Go writes a capital as "!x"),
 * and what was cut into segments. Names of packages have no case for registries: a canary is
 * found with its letters in either.
 */
#include "common/buf.h"
#include "common/cleanup.h"
#include "vessel/broker/dispatch/priv.h"
#include "vessel/broker/intents/registry_go.h"

#include <string.h>

#define JOINED_SEGMENTS_MAX 8 /* longer terms need no borders */
/* Each byte of a path stands in n rows of n segments at most. */
#define JOINED_MAX_BYTES                                                                 \
	((size_t)JOINED_SEGMENTS_MAX * (JOINED_SEGMENTS_MAX + 1) * REGISTRY_PATH_MAX)

/* The path's segments of digits, one behind the other; what else it has. */
struct split_path {
	char digits[REGISTRY_PATH_MAX + 1], rest[REGISTRY_PATH_MAX + 1];
	size_t n_digits, n_rest;
};

static bool is_hex(const char *s, size_t len)
{
	return strspn(s, "0123456789abcdefABCDEF") >= len;
}

static void split(const char *path, struct split_path *ret)
{
	ret->n_digits = ret->n_rest = 0;
	for (const char *s = path; *s;) {
		size_t len = strcspn(s, "/");

		if (is_hex(s, len)) {
			memcpy(ret->digits + ret->n_digits, s, len);
			ret->n_digits += len;
		}
		if (!seen_is_hex(s, len) || !s[len]) {
			memcpy(ret->rest + ret->n_rest, s, len);
			ret->n_rest += len;
			if (s[len])
				ret->rest[ret->n_rest++] = '/';
		}
		s += len + (s[len] == '/');
	}
}

static void add_joined(const char *s, const char *end, struct buf *out)
{
	for (; s < end; s++)
		if (*s != '/')
			buf_addc(out, *s);
	buf_addc(out, '\n');
}

/* All segments as one word, and each few in a row: a short term counts only where a word begins and
 * ends. A line each. */
static void join(const char *path, struct buf *out)
{
	add_joined(path, path + strlen(path), out);
	for (const char *from = path; *from; from += *from == '/') {
		const char *end = from + strcspn(from, "/");

		for (unsigned n = 1; n < JOINED_SEGMENTS_MAX && end[0] && end[1]; n++) {
			end += 1 + strcspn(end + 1, "/");
			add_joined(from, end, out);
		}
		from += strcspn(from, "/");
	}
}

/* All of it as one word, without what may stand before a letter. */
static void squeeze(const char *path, struct buf *out)
{
	for (; *path; path++)
		if (*path != '/' && *path != '!')
			buf_addc(out, *path);
}

void package_path_parts(const struct package_path *p, const struct gate_job *job,
			struct gate_parts *parts)
{
	enum gate_part_kind kind = p->is_seen ? GATE_PART_ECHO : GATE_PART_URL;
	cleanup_buf struct buf spelled = {.max = REGISTRY_PATH_MAX + 1},
			       joined = {.max = JOINED_MAX_BYTES},
			       word = {.max = REGISTRY_PATH_MAX + 1};
	const struct gate_canary *canary;
	struct split_path s;

	split(p->path, &s);
	if (p->is_seen)
		gate_parts_add(parts, GATE_PART_URL, "path", s.rest, s.n_rest);
	gate_parts_add(parts, kind, "path", p->path, strlen(p->path));
	/* what was cut into segments */
	gate_parts_add(parts, kind, "path", s.digits, s.n_digits);
	if (p->kind == REGISTRY_GO)
		registry_go_spell(p->path, &spelled);
	else
		buf_adds(&spelled, p->path);
	if (p->kind == REGISTRY_GO && strchr(p->path, '!'))
		gate_parts_add(parts, GATE_PART_URL, "spelled", spelled.data,
			       spelled.len);
	join(buf_str(&spelled), &joined);
	/* such words look like keys, and are none: only what may never leave counts */
	gate_parts_add(parts, GATE_PART_ECHO, "joined", joined.data, joined.len);
	squeeze(p->path, &word);
	canary = gate_job_canary_in(job, buf_str(&word));
	if (canary)
		gate_parts_add(parts, GATE_PART_URL, "word", canary->data, canary->len);
	if (!buf_ok(&spelled) || !buf_ok(&joined) || !buf_ok(&word))
		parts->overflow = true;
}
