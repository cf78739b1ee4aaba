/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * See pack.h.
 *
 * Theory of operation. Entries are read one behind the other, and each object is kept until the end,
 * for those that are deltas of it. A base stands before its delta, so one pass is enough, and no
 * delta can lead to itself. All that is unpacked is paid from one budget before there is memory for it.
 */
#include "vessel/gate/git/pack.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "vessel/gate/git/inflate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES 12
#define VERSION 2u
#define TYPE_OFS_DELTA 6u
#define TYPE_REF_DELTA 7u
#define SIZE_SHIFT_MAX 32
#define SLOTS 65536u /* more than twice the objects */

struct entry {
	size_t at; /* of the pack */
	unsigned depth;
	struct pack_object o;
	char *owned; /* o.data */
};

struct pack {
	const unsigned char *data;
	size_t len, at; /* len: without the digest */
	struct entry *entry;
	uint32_t n;
	uint32_t *slot; /* by id: the entry's number and 1 */
	size_t budget;
};

static int bad(struct err *err, const char *why)
{
	return err_set_id(err, ERRID_GIT_REQUEST, "the pack: %s", why);
}

const char *pack_type_name(enum pack_type t)
{
	static const char *const names[] = {
		[PACK_COMMIT] = "commit",
		[PACK_TREE] = "tree",
		[PACK_BLOB] = "blob",
		[PACK_TAG] = "tag",
	};

	return names[t];
}

static bool take_byte(struct pack *p, unsigned *ret)
{
	if (p->at >= p->len)
		return false;
	*ret = p->data[p->at++];
	return true;
}

/* ---- which object is a delta's base ---- */

static uint32_t first_slot(const uint8_t id[SHA1_SIZE])
{
	uint32_t h;

	memcpy(&h, id, sizeof(h));
	return h % SLOTS;
}

static void remember(struct pack *p, uint32_t i)
{
	uint32_t s = first_slot(p->entry[i].o.id);

	while (p->slot[s])
		s = (s + 1) % SLOTS;
	p->slot[s] = i + 1;
}

static const struct entry *find_by_id(const struct pack *p, const uint8_t id[SHA1_SIZE])
{
	for (uint32_t s = first_slot(id); p->slot[s]; s = (s + 1) % SLOTS)
		if (memcmp(p->entry[p->slot[s] - 1].o.id, id, SHA1_SIZE) == 0)
			return &p->entry[p->slot[s] - 1];
	return NULL;
}

static const struct entry *find_by_place(const struct pack *p, size_t at)
{
	uint32_t lo = 0, hi = p->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (p->entry[mid].at == at)
			return &p->entry[mid];
		if (p->entry[mid].at < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

/* ---- an entry's head ---- */

/* Type, and how long it is unpacked: of a delta, what it says. */
static int take_head(struct pack *p, unsigned *ret_type, size_t *ret_len, struct err *err)
{
	unsigned byte, shift = 4;

	if (!take_byte(p, &byte))
		return bad(err, "it ends early");
	*ret_type = byte >> 4 & 7;
	*ret_len = byte & 0xf;
	while (byte & 0x80) {
		if (shift > SIZE_SHIFT_MAX || !take_byte(p, &byte))
			return bad(err, "an object's head");
		*ret_len |= (size_t)(byte & 0x7f) << shift;
		shift += 7;
	}
	return 0;
}

/* How far before an entry its base is: bits of seven, the most significant first, and one more for
 * each byte that follows. */
static bool take_distance(struct pack *p, size_t *ret)
{
	unsigned byte;
	size_t n;

	if (!take_byte(p, &byte))
		return false;
	n = byte & 0x7f;
	while (byte & 0x80) {
		if (n > p->len || !take_byte(p, &byte))
			return false;
		n = (n + 1) << 7 | (byte & 0x7f);
	}
	*ret = n;
	return true;
}

/* *ret NULL: it is no delta. */
static int take_base(struct pack *p, unsigned type, size_t at, const struct entry **ret,
		     struct err *err)
{
	size_t distance = 0;

	*ret = NULL;
	if (type >= PACK_COMMIT && type <= PACK_TAG)
		return 0;
	if (type == TYPE_OFS_DELTA) {
		if (!take_distance(p, &distance) || distance == 0 || distance > at)
			return bad(err, "a delta's base");
		*ret = find_by_place(p, at - distance);
		return *ret ? 0 : bad(err, "a delta whose base is no object");
	}
	if (type != TYPE_REF_DELTA)
		return bad(err, "an object of no known type");
	if (p->len - p->at < SHA1_SIZE)
		return bad(err, "it ends early");
	*ret = find_by_id(p, p->data + p->at);
	p->at += SHA1_SIZE;
	return *ret ? 0
		    : bad(err, "a delta whose base is not before it in the same pack "
			       "(a thin pack)");
}

/* ---- objects ---- */

static int pay(struct pack *p, size_t len, struct err *err)
{
	if (len > PACK_OBJECT_MAX_BYTES)
		return bad(err, "an object of more than 4 MiB");
	if (len > p->budget)
		return bad(err, "it unpacks to more than 16 MiB");
	p->budget -= len;
	return 0;
}

static int unpack(struct pack *p, size_t len, char **ret, struct err *err)
{
	size_t used = 0;

	if (pay(p, len, err) < 0)
		return -1;
	*ret = xmalloc(len + 1);
	if (!git_inflate(p->data + p->at, p->len - p->at, *ret, len, &used)) {
		free(TAKE_PTR(*ret));
		return bad(err, "an object that is no zlib stream of its length");
	}
	p->at += used;
	return 0;
}

static void name(struct pack_object *o)
{
	char head[32];
	int n = snprintf(head, sizeof(head), "%s %zu", pack_type_name(o->type), o->len);

	sha1_of(head, (size_t)n + 1, o->data, o->len, o->id);
}

static int make(struct pack *p, struct entry *e, const struct entry *base,
		struct err *err)
{
	cleanup_free char *delta = TAKE_PTR(e->owned);
	size_t delta_len = e->o.len;

	if (base->depth >= PACK_DEPTH_MAX)
		return bad(err, "more than 64 deltas upon each other");
	if (pack_apply(base->o.data, base->o.len, delta, delta_len,
		       p->budget < PACK_OBJECT_MAX_BYTES ? p->budget
							 : PACK_OBJECT_MAX_BYTES,
		       &e->owned, &e->o.len, err) < 0)
		return -1;
	e->o.type = base->o.type;
	e->depth = base->depth + 1;
	return pay(p, e->o.len, err);
}

static int take_entry(struct pack *p, struct err *err)
{
	struct entry *e = &p->entry[p->n];
	const struct entry *base;
	unsigned type = 0;

	e->at = p->at;
	if (take_head(p, &type, &e->o.len, err) < 0 ||
	    take_base(p, type, e->at, &base, err) < 0 ||
	    unpack(p, e->o.len, &e->owned, err) < 0)
		return -1;
	p->n++; /* it is freed with the rest */
	if (base && make(p, e, base, err) < 0)
		return -1;
	if (!base)
		e->o.type = (enum pack_type)type;
	e->o.data = e->owned;
	name(&e->o);
	remember(p, p->n - 1);
	return 0;
}

/* ---- the whole ---- */

static uint32_t number_at(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* *ret_n: how many objects it says that it has. */
static int begin(struct pack *p, const void *data, size_t len, uint32_t *ret_n,
		 struct err *err)
{
	uint8_t digest[SHA1_SIZE];

	p->data = data;
	if (len < HEAD_BYTES + SHA1_SIZE || memcmp(data, "PACK", 4) != 0)
		return bad(err, "it is none");
	p->len = len - SHA1_SIZE;
	if (number_at(p->data + 4) != VERSION)
		return bad(err, "its version is not 2");
	*ret_n = number_at(p->data + 8);
	if (*ret_n > PACK_OBJECTS_MAX)
		return bad(err, "more than 16384 objects");
	sha1_of("", 0, data, p->len, digest);
	if (memcmp(digest, p->data + p->len, SHA1_SIZE) != 0)
		return bad(err, "its digest is wrong");
	p->at = HEAD_BYTES;
	p->budget = PACK_TOTAL_MAX_BYTES;
	p->entry = xcalloc(*ret_n + 1U, sizeof(*p->entry));
	p->slot = xcalloc(SLOTS, sizeof(*p->slot));
	return 0;
}

static void done(struct pack *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		free(p->entry[i].owned);
	free(p->entry);
	free(p->slot);
}

int pack_read(const void *data, size_t len, pack_on_object *on, void *arg,
	      struct err *err)
{
	struct pack p = {0};
	uint32_t n = 0;
	bool goes_on = true;
	int r = begin(&p, data, len, &n, err);

	while (r == 0 && goes_on && p.n < n) {
		r = take_entry(&p, err);
		goes_on = r == 0 && on(&p.entry[p.n - 1].o, arg);
	}
	if (r == 0 && goes_on && p.at != p.len)
		r = bad(err, "something stands behind its objects");
	done(&p);
	return r;
}
