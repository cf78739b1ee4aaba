/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the gate worker.
 * See parts.h.
 */
#include "vessel/gate/parts.h"
#include "common/jsonw.h"
#include "common/mem.h"

struct gate_parts *gate_parts_new(void)
{
	return xnew(struct gate_parts);
}

static void part_done(struct gate_part *p)
{
	char *data = (char *)(uintptr_t)p->data;

	if (data)
		explicit_bzero(data, p->len);
	free(data);
}

void gate_parts_free(struct gate_parts *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++)
		part_done(&p->part[i]);
	free(p->part);
	free(p);
}

static char *copy_of(const void *data, size_t len)
{
	char *c = xmalloc(len + 1);

	if (len)
		memcpy(c, data, len);
	c[len] = '\0';
	return c;
}

/* FNV-1a: equal names, equal tags. */
static uint32_t tag_of(const char *name)
{
	uint32_t h = 2166136261u;

	for (; name && *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	return h;
}

void gate_parts_add(struct gate_parts *p, enum gate_part_kind kind, const char *tag,
		    const void *data, size_t len)
{
	if (p->n >= GATE_PARTS_MAX || len > GATE_INPUT_MAX_BYTES - p->bytes) {
		p->overflow = true;
		return;
	}
	if (p->n == p->cap) {
		p->cap = p->cap * 2 + 16;
		p->part = xreallocarray(p->part, p->cap, sizeof(*p->part));
	}
	p->part[p->n++] = (struct gate_part){
		.data = copy_of(data, len), .len = len, .kind = kind, .tag = tag_of(tag)};
	p->bytes += len;
}

void gate_parts_replace(struct gate_parts *p, size_t i, const void *data, size_t len)
{
	struct gate_part *part = &p->part[i];

	p->bytes = p->bytes - part->len + len;
	if (p->bytes > GATE_INPUT_MAX_BYTES)
		p->overflow = true;
	part_done(part);
	part->data = copy_of(data, len);
	part->len = len;
}

static void add_piece(enum json_piece what, const char *key, const char *text, size_t len,
		      void *arg)
{
	static const enum gate_part_kind kinds[] = {
		[JSON_PIECE_KEY] = GATE_PART_NAME,
		[JSON_PIECE_STRING] = GATE_PART_TEXT,
		[JSON_PIECE_NUMBER] = GATE_PART_NUMBER,
	};

	gate_parts_add(arg, kinds[what], key, text, len);
}

void gate_parts_add_json(struct gate_parts *p, const struct json *v)
{
	json_visit(v, add_piece, p);
}

struct cursor {
	const struct gate_parts *p;
	size_t at;
};

static void from_parts(enum json_piece what, const char **text, size_t *len, void *arg)
{
	struct cursor *c = arg;
	const struct gate_part *part = c->at < c->p->n ? &c->p->part[c->at] : NULL;

	c->at++;
	if (what == JSON_PIECE_STRING && part) {
		*text = part->data;
		*len = part->len;
	}
}

void gate_parts_write_json(const struct gate_parts *p, size_t first, const struct json *v,
			   struct jsonw *w)
{
	struct cursor c = {.p = p, .at = first};

	json_write_replaced(v, w, from_parts, &c);
}
