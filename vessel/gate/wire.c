/* SPDX-License-Identifier: Apache-2.0 */
#include "vessel/gate/wire.h"
#include "common/mem.h"
#include "common/reader.h"
#include "common/str.h"
#include "vessel/gate/private.h"
#include "vessel/gate/rules.h"

#define RULE_NAME_MAX 40

static bool get_u32(struct reader *r, uint32_t *out)
{
	return reader_take(r, out, sizeof(*out));
}

/* u32 length and bytes, which stay where they are. */
static bool get_bytes(struct reader *r, const char **ret, size_t *ret_len)
{
	uint32_t n;

	if (!get_u32(r, &n) || n > r->left)
		return false;
	*ret = r->at;
	*ret_len = n;
	r->at += n;
	r->left -= n;
	return true;
}

static bool get_share(struct reader *r, double most, double *ret)
{
	return reader_take(r, ret, sizeof(*ret)) && *ret >= 0 && *ret <= most;
}

static void put_u32(struct buf *out, uint32_t v)
{
	buf_add(out, &v, sizeof(v));
}

static void put_bytes(struct buf *out, const char *s, size_t len)
{
	put_u32(out, (uint32_t)len);
	buf_add(out, s, len);
}

/* ---- frames ---------------------------------------------------------------------- */

int gate_wire_header(const void *data, size_t len, struct gate_frame *ret)
{
	struct reader r = {.at = data, .left = len};
	uint32_t type;

	if (len < GATE_FRAME_HEADER)
		return 0;
	if (!get_u32(&r, &ret->len) || !get_u32(&r, &type) ||
	    !reader_take(&r, &ret->id, sizeof(ret->id)) || ret->len > GATE_FRAME_MAX ||
	    type < GATE_F_CONFIG || type >= GATE_F_MAX_)
		return -1;
	ret->type = (enum gate_frame_type)type;
	return 1;
}

void gate_wire_put_header(struct buf *out, enum gate_frame_type type, uint64_t id,
			  size_t len)
{
	put_u32(out, (uint32_t)len);
	put_u32(out, type);
	buf_add(out, &id, sizeof(id));
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
	memcpy(out->data + at, &len, sizeof(len));
}

/* ---- configuration ---------------------------------------------------------------- */

void gate_wire_put_config(struct buf *out, const struct gate_config *c)
{
	size_t at = begin(out, GATE_F_CONFIG, 0);

	buf_add(out, &c->portal_threshold, sizeof(c->portal_threshold));
	buf_add(out, &c->forbidden_threshold, sizeof(c->forbidden_threshold));
	buf_add(out, c->mac_key, sizeof(c->mac_key));
	buf_add(out, &c->deadline_usec, sizeof(c->deadline_usec));
	end(out, at);
}

bool gate_wire_get_config(const void *data, size_t len, struct gate_config *ret)
{
	struct reader r = {.at = data, .left = len};

	return get_share(&r, 1, &ret->portal_threshold) &&
	       get_share(&r, 1, &ret->forbidden_threshold) &&
	       reader_take(&r, ret->mac_key, sizeof(ret->mac_key)) &&
	       reader_take(&r, &ret->deadline_usec, sizeof(ret->deadline_usec)) &&
	       r.left == 0;
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
	for (size_t i = 0; i < in->n_canaries; i++)
		put_bytes(out, in->canaries[i].data, in->canaries[i].len);
	end(out, at);
}

void gate_wire_put_whose(struct buf *out, job_id_t job, int64_t epoch)
{
	size_t at = begin(out, GATE_F_WHOSE, 0);

	buf_add(out, &job, sizeof(job));
	buf_add(out, &epoch, sizeof(epoch));
	end(out, at);
}

bool gate_wire_get_whose(const void *data, size_t len, job_id_t *ret_job,
			 int64_t *ret_epoch)
{
	struct reader r = {.at = data, .left = len};

	return reader_take(&r, ret_job, sizeof(*ret_job)) &&
	       reader_take(&r, ret_epoch, sizeof(*ret_epoch)) && r.left == 0;
}

struct scan_memory {
	struct gate_canary canary[GATE_CANARIES_MAX];
	struct gate_tail tail[GATE_TAILS_MAX];
	struct gate_part part[];
};

static bool get_part(struct reader *r, struct gate_part *p)
{
	uint32_t kind;

	if (!get_u32(r, &kind) || kind >= GATE_PART_KIND_MAX_ || !get_u32(r, &p->tag) ||
	    !get_bytes(r, &p->data, &p->len))
		return false;
	p->kind = (enum gate_part_kind)kind;
	return true;
}

static bool get_lists(struct reader *r, const uint32_t n[3], struct scan_memory *m)
{
	for (uint32_t i = 0; i < n[0]; i++)
		if (!get_part(r, &m->part[i]))
			return false;
	for (uint32_t i = 0; i < n[1]; i++)
		if (!reader_take(r, &m->tail[i], sizeof(m->tail[i])) ||
		    m->tail[i].len > GATE_TAIL_BYTES)
			return false;
	for (uint32_t i = 0; i < n[2]; i++)
		if (!get_bytes(r, &m->canary[i].data, &m->canary[i].len) ||
		    m->canary[i].len < GATE_CANARY_MIN_BYTES)
			return false;
	return r->left == 0;
}

bool gate_wire_get_scan(const void *data, size_t len, struct gate_input *ret,
			void **ret_memory)
{
	struct reader r = {.at = data, .left = len};
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
	buf_add(out, &rep->added, sizeof(rep->added));
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
	end(out, at);
}

static bool get_finding(struct reader *r, struct gate_finding *f)
{
	uint32_t family, depth, is_split;
	const char *name;
	size_t name_len;

	*f = (struct gate_finding){0};
	if (!get_u32(r, &family) || family >= GATE_FAMILY_MAX_ || !get_u32(r, &f->part) ||
	    !get_u32(r, &f->offset) || !get_u32(r, &f->len) || f->len == 0 ||
	    !get_u32(r, &depth) || depth > UINT8_MAX || !get_u32(r, &is_split) ||
	    is_split > 1 || !get_share(r, 1, &f->severity) ||
	    !reader_take(r, f->mac, sizeof(f->mac)) || !get_bytes(r, &name, &name_len) ||
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

bool gate_wire_get_report(const void *data, size_t len, const struct gate_part *parts,
			  size_t n_parts, struct gate_report *ret)
{
	struct reader r = {.at = data, .left = len};
	uint32_t n;

	ret->n = 0;
	ret->verdict = GATE_REFUSE;
	if (!get_share(&r, 1, &ret->score) || !get_share(&r, 1e9, &ret->added) ||
	    !get_u32(&r, &n) || n > GATE_FINDINGS_MAX)
		return false;
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
	return r.left == 0;
}
