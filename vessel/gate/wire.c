/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the gate worker.
 * See wire.h.
 */
#include "vessel/gate/wire.h"
#include "common/mem.h"
#include "common/proto/wire.h"
#include "common/str.h"
#include "vessel/gate/private.h"
#include "vessel/gate/rules/rules.h"

#define RULE_NAME_MAX 40

static bool get_u32(struct wire *r, uint32_t *out)
{
	*out = (uint32_t)wire_uint(r, sizeof(*out));
	return !r->failed;
}

static bool get_u64(struct wire *r, uint64_t *out)
{
	*out = wire_uint(r, sizeof(*out));
	return !r->failed;
}

/* They stay where they are. */
static bool get_bytes(struct wire *r, const char **ret, size_t *ret_len)
{
	*ret = wire_sized(r, sizeof(uint32_t), UINT32_MAX, ret_len);
	return !r->failed;
}

static bool get_share(struct wire *r, double most, double *ret)
{
	return wire_take(r, ret, sizeof(*ret)) && *ret >= 0 && *ret <= most;
}

static void put_u32(struct buf *out, uint32_t v)
{
	wire_put_uint(out, v, sizeof(v));
}

static void put_bytes(struct buf *out, const char *s, size_t len)
{
	wire_put_sized(out, sizeof(uint32_t), s, len);
}

/* ---- frames ---------------------------------------------------------------------- */

int gate_wire_header(const void *data, size_t len, struct gate_frame *ret)
{
	struct wire r = {.at = data, .left = len};
	uint32_t type;

	if (len < GATE_FRAME_HEADER)
		return 0;
	ret->len = (uint32_t)wire_uint(&r, 4);
	type = (uint32_t)wire_uint(&r, 4);
	ret->id = wire_uint(&r, 8);
	if (r.failed || ret->len > GATE_FRAME_MAX || type < GATE_F_CONFIG ||
	    type >= GATE_F_MAX_)
		return -1;
	ret->type = (enum gate_frame_type)type;
	return 1;
}

void gate_wire_put_header(struct buf *out, enum gate_frame_type type, uint64_t id,
			  size_t len)
{
	put_u32(out, (uint32_t)len);
	put_u32(out, type);
	wire_put_uint(out, id, 8);
}

/* The length is known when the payload is there. */
static size_t begin(struct buf *out, enum gate_frame_type type, uint64_t id)
{
	size_t at = out->len;

	gate_wire_put_header(out, type, id, 0);
	return at;
}

static void end(struct buf *out, size_t at)
{
	uint32_t len;

	if (!buf_ok(out))
		return;
	len = (uint32_t)(out->len - at - GATE_FRAME_HEADER);
	for (unsigned i = 0; i < sizeof(len); i++)
		out->data[at + i] = (char)(len >> (8 * i));
}

/* ---- configuration ---------------------------------------------------------------- */

void gate_wire_put_config(struct buf *out, const struct gate_config *c)
{
	size_t at = begin(out, GATE_F_CONFIG, 0);

	buf_add(out, &c->portal_threshold, sizeof(c->portal_threshold));
	buf_add(out, &c->forbidden_threshold, sizeof(c->forbidden_threshold));
	buf_add(out, c->mac_key, sizeof(c->mac_key));
	wire_put_uint(out, c->deadline_usec, 8);
	for (unsigned i = 0; i < GATE_MEDIUM_MAX_; i++)
		put_u32(out, c->refuses[i]);
	end(out, at);
}

static bool get_refuses(struct wire *r, bool ret[GATE_MEDIUM_MAX_])
{
	for (unsigned i = 0; i < GATE_MEDIUM_MAX_; i++) {
		uint32_t v;

		if (!get_u32(r, &v) || v > 1)
			return false;
		ret[i] = v;
	}
	return true;
}

bool gate_wire_get_config(const void *data, size_t len, struct gate_config *ret)
{
	struct wire r = {.at = data, .left = len};

	return get_share(&r, 1, &ret->portal_threshold) &&
	       get_share(&r, 1, &ret->forbidden_threshold) &&
	       wire_take(&r, ret->mac_key, sizeof(ret->mac_key)) &&
	       get_u64(&r, &ret->deadline_usec) && get_refuses(&r, ret->refuses) &&
	       wire_is_done(&r);
}

/* ---- questions --------------------------------------------------------------------- */

void gate_wire_put_scan(struct buf *out, uint64_t id, const struct gate_input *in)
{
	size_t at = begin(out, GATE_F_SCAN, id);

	buf_add(out, &in->carry, sizeof(in->carry));
	put_u32(out, (uint32_t)in->n_parts);
	put_u32(out, (uint32_t)in->n_tails);
	put_u32(out, (uint32_t)in->n_canaries);
	for (size_t i = 0; i < in->n_parts; i++) {
		put_u32(out, in->parts[i].kind);
		put_u32(out, in->parts[i].tag);
		put_bytes(out, in->parts[i].data, in->parts[i].len);
	}
	for (size_t i = 0; i < in->n_tails; i++)
		buf_add(out, &in->tails[i], sizeof(in->tails[i]));
	for (size_t i = 0; i < in->n_canaries; i++) {
		put_u32(out, in->canaries[i].is_planted);
		put_bytes(out, in->canaries[i].data, in->canaries[i].len);
	}
	end(out, at);
}

void gate_wire_put_whose(struct buf *out, job_id_t job, int64_t epoch)
{
	size_t at = begin(out, GATE_F_WHOSE, 0);

	wire_put_uint(out, (uint64_t)job, 8);
	wire_put_uint(out, (uint64_t)epoch, 8);
	end(out, at);
}

bool gate_wire_get_whose(const void *data, size_t len, job_id_t *ret_job,
			 int64_t *ret_epoch)
{
	struct wire r = {.at = data, .left = len};

	*ret_job = (job_id_t)wire_uint(&r, 8);
	*ret_epoch = (int64_t)wire_uint(&r, 8);
	return wire_is_done(&r);
}

struct scan_memory {
	struct gate_canary canary[GATE_CANARIES_MAX];
	struct gate_tail tail[GATE_TAILS_MAX];
	struct gate_part part[];
};

static bool get_part(struct wire *r, struct gate_part *p)
{
	uint32_t kind;

	if (!get_u32(r, &kind) || kind >= GATE_PART_KIND_MAX_ || !get_u32(r, &p->tag) ||
	    !get_bytes(r, &p->data, &p->len))
		return false;
	p->kind = (enum gate_part_kind)kind;
	return true;
}

static bool get_lists(struct wire *r, const uint32_t n[3], struct scan_memory *m)
{
	for (uint32_t i = 0; i < n[0]; i++)
		if (!get_part(r, &m->part[i]))
			return false;
	for (uint32_t i = 0; i < n[1]; i++)
		if (!wire_take(r, &m->tail[i], sizeof(m->tail[i])) ||
		    m->tail[i].len > GATE_TAIL_BYTES)
			return false;
	for (uint32_t i = 0; i < n[2]; i++) {
		uint32_t is_planted;

		if (!get_u32(r, &is_planted) || is_planted > 1 ||
		    !get_bytes(r, &m->canary[i].data, &m->canary[i].len) ||
		    m->canary[i].len < GATE_CANARY_MIN_BYTES)
			return false;
		m->canary[i].is_planted = is_planted;
	}
	return wire_is_done(r);
}

bool gate_wire_get_scan(const void *data, size_t len, struct gate_input *ret,
			void **ret_memory)
{
	struct wire r = {.at = data, .left = len};
	struct scan_memory *m;
	uint32_t n[3];

	*ret = (struct gate_input){0};
	if (!get_share(&r, 1e9, &ret->carry) || !get_u32(&r, &n[0]) ||
	    !get_u32(&r, &n[1]) || !get_u32(&r, &n[2]) || n[0] > GATE_PARTS_MAX ||
	    n[1] > GATE_TAILS_MAX || n[2] > GATE_CANARIES_MAX || n[0] > r.left)
		return false;
	m = xcalloc(1, sizeof(*m) + n[0] * sizeof(m->part[0]));
	if (!get_lists(&r, n, m)) {
		free(m);
		return false;
	}
	ret->parts = m->part;
	ret->n_parts = n[0];
	ret->tails = m->tail;
	ret->n_tails = n[1];
	ret->canaries = m->canary;
	ret->n_canaries = n[2];
	*ret_memory = m;
	return true;
}

/* ---- answers ----------------------------------------------------------------------- */

void gate_wire_put_report(struct buf *out, uint64_t id, const struct gate_report *rep)
{
	size_t at = begin(out, GATE_F_REPORT, id);

	buf_add(out, &rep->score, sizeof(rep->score));
	put_bytes(out, rep->note, strlen(rep->note));
	put_u32(out, (uint32_t)rep->unpacked);
	put_u32(out, (uint32_t)rep->n);
	for (size_t i = 0; i < rep->n; i++) {
		const struct gate_finding *f = &rep->finding[i];

		put_u32(out, f->family);
		put_u32(out, f->part);
		put_u32(out, f->offset);
		put_u32(out, f->len);
		put_u32(out, f->depth);
		put_u32(out, f->is_split);
		buf_add(out, &f->severity, sizeof(f->severity));
		buf_add(out, f->mac, sizeof(f->mac));
		put_bytes(out, f->rule, strlen(f->rule));
	}
	put_u32(out, (uint32_t)rep->n_judged);
	for (size_t i = 0; i < rep->n_judged; i++) {
		put_u32(out, rep->judged[i].part);
		put_u32(out, rep->judged[i].left);
	}
	end(out, at);
}

static bool get_finding(struct wire *r, struct gate_finding *f)
{
	uint32_t family, depth, is_split;
	const char *name;
	size_t name_len;

	*f = (struct gate_finding){0};
	if (!get_u32(r, &family) || family >= GATE_FAMILY_MAX_ || !get_u32(r, &f->part) ||
	    !get_u32(r, &f->offset) || !get_u32(r, &f->len) || f->len == 0 ||
	    !get_u32(r, &depth) || depth > UINT8_MAX || !get_u32(r, &is_split) ||
	    is_split > 1 || !get_share(r, 1, &f->severity) ||
	    !wire_take(r, f->mac, sizeof(f->mac)) || !get_bytes(r, &name, &name_len) ||
	    name_len > RULE_NAME_MAX)
		return false;
	f->family = (enum gate_family)family;
	f->depth = (uint8_t)depth;
	f->is_split = is_split;
	f->rule = gate_rule_name(name, name_len);
	return true;
}

/* What is split, or tells of the whole, may end anywhere; it is never rewritten. */
static bool is_inside(const struct gate_finding *f, const struct gate_part *parts,
		      size_t n_parts)
{
	if (f->is_split)
		return true;
	return f->part < n_parts && f->offset < parts[f->part].len &&
	       f->len <= parts[f->part].len - f->offset;
}

static bool get_judged(struct wire *r, const struct gate_part *parts, size_t n_parts,
		       struct gate_report *ret)
{
	uint32_t n;

	ret->n_judged = 0;
	if (!get_u32(r, &n) || n > GATE_JUDGED_MAX)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		struct gate_judged *j = &ret->judged[i];

		if (!get_u32(r, &j->part) || !get_u32(r, &j->left) ||
		    j->part >= n_parts || j->left > parts[j->part].len ||
		    (i && j->part <= j[-1].part))
			return false;
		ret->n_judged++;
	}
	return true;
}

static bool get_note(struct wire *r, char ret[GATE_NOTE_SIZE])
{
	const char *text;
	size_t len;

	if (!get_bytes(r, &text, &len) || len >= GATE_NOTE_SIZE)
		return false;
	for (size_t i = 0; i < len; i++)
		if (text[i] < 0x20 || text[i] > 0x7e)
			return false;
	memcpy(ret, text, len);
	ret[len] = '\0';
	return true;
}

bool gate_wire_get_report(const void *data, size_t len, const struct gate_part *parts,
			  size_t n_parts, struct gate_report *ret)
{
	struct wire r = {.at = data, .left = len};
	uint32_t n, unpacked;

	ret->n = 0;
	ret->verdict = GATE_REFUSE;
	if (!get_share(&r, 1, &ret->score) || !get_note(&r, ret->note) ||
	    !get_u32(&r, &unpacked) || unpacked > GATE_UNPACKED_MAX_BYTES ||
	    !get_u32(&r, &n) || n > GATE_FINDINGS_MAX)
		return false;
	ret->unpacked = unpacked;
	for (uint32_t i = 0; i < n; i++) {
		const struct gate_finding *before = i ? &ret->finding[i - 1] : NULL;
		struct gate_finding *f = &ret->finding[i];

		if (!get_finding(&r, f) || !is_inside(f, parts, n_parts))
			return false;
		/* by place: who rewrites relies on it */
		if (before && (f->part < before->part ||
			       (f->part == before->part && f->offset < before->offset)))
			return false;
		ret->n++;
	}
	return get_judged(&r, parts, n_parts, ret) && wire_is_done(&r);
}
