/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-audit.
 * See audit_proof.h. The log is read and judged as by verify; meanwhile its leaves are gathered,
 * the record and the checkpoints that are asked for, and each seal with which keys begin or end.
 */
#include "vessel/scribe/audit_proof.h"
#include "common/cleanup.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include <string.h>

/* 1 GiB */
#define LEAVES_MAX ((uint64_t)1 << 25)
#define KEYS_MAX ((size_t)64 << 20)

struct gathering {
	const struct audit_question *q;
	struct merkle_hash *leaves;
	uint64_t n, room;
	struct buf record; /* its line */
	struct seal from, to;
	bool has_from, has_to;
	uint64_t epoch; /* whose key sealed the record */
	bool is_sealed;
	struct buf keys; /* seals that carry keys, an array of JSON strings */
	struct jsonw keys_w;
};

static int on_line(const struct audit_reading *r, const struct audit_head *h,
		   const char *members, size_t len, void *arg, struct err *err)
{
	struct gathering *g = arg;

	if (g->n == g->room) {
		g->room = g->room ? 2 * g->room : 4096;
		if (g->room > LEAVES_MAX)
			return err_set(err, ERR_LIMIT,
				       "a proof from a log of more than %llu records",
				       (unsigned long long)LEAVES_MAX);
		g->leaves = xreallocarray(g->leaves, g->room, sizeof(*g->leaves));
	}
	/* what the next line has to say is this one's leaf */
	if (sha256_hex_parse(r->chain.prev, g->leaves[g->n++].b, err) < 0)
		return -1;
	if (h->seq == g->q->record) {
		audit_line_write(&g->record, h, members, len - 1);
		g->record.len--; /* the newline is not hashed */
	}
	return 0;
}

static void add_note(struct jsonw *w, const struct seal *s)
{
	cleanup_buf struct buf b;

	buf_init(&b, SEAL_MAX);
	seal_write(&b, s);
	/* without the empty line that parts it from the next one */
	jsonw_strn(w, b.data, b.len - 1);
}

/* A record is proved by the first checkpoint that has it: by a key of its own epoch, and a later one could
 * have been made by whoever has a later key. */
static bool is_wanted(const struct gathering *g, const struct seal *s)
{
	if (g->q->to)
		return s->size == g->q->to;
	if (g->q->record)
		return !g->has_to && s->size >= g->q->record;
	return s->size > 0;
}

static int on_seal(const struct audit_reading *r, void *arg, struct err *err UNUSED)
{
	struct gathering *g = arg;
	const struct seal *s = &r->seals.last;

	if (s->has_genesis || s->has_next)
		add_note(&g->keys_w, s);
	if (g->q->from && s->size == g->q->from) {
		g->from = *s;
		g->has_from = true;
	}
	if (g->q->record && !g->is_sealed && s->size >= g->q->record) {
		g->epoch = s->epoch;
		g->is_sealed = true;
	}
	if (is_wanted(g, s)) {
		g->to = *s;
		g->has_to = true;
	}
	return 0;
}

static void write_path(struct jsonw *w, const struct merkle_proof *p)
{
	jsonw_key(w, "path");
	jsonw_arr(w);
	for (size_t i = 0; i < p->n; i++) {
		char hex[SHA256_HEX_SIZE];

		hex_encode(p->hash[i].b, sizeof(p->hash[i].b), hex);
		jsonw_str(w, hex);
	}
	jsonw_arr_end(w);
}

static int refuse_unsealed(const struct gathering *g, uint64_t size, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND,
		       "record %llu is not sealed by a checkpoint of %llu records",
		       (unsigned long long)g->q->record, (unsigned long long)size);
}

static int prove_record(const struct gathering *g, struct jsonw *w, struct err *err)
{
	uint64_t index = g->q->record - 1;
	struct merkle_proof p;
	char hex[SHA256_HEX_SIZE];

	if (g->q->record > g->to.size)
		return refuse_unsealed(g, g->to.size, err);
	if (g->to.epoch != g->epoch)
		return err_set(
			err, ERR_INVALID,
			"the checkpoint of %llu records is of a later key than the "
			"one that sealed record %llu, and does not vouch for it",
			(unsigned long long)g->to.size, (unsigned long long)g->q->record);
	merkle_prove_inclusion(g->leaves, index, g->to.size, &p);
	if (!merkle_includes(&g->to.root, g->to.size, &g->leaves[index], index, &p))
		return err_set(err, ERR_INTERNAL, "a proof that does not hold");
	hex_encode(g->leaves[index].b, SHA256_SIZE, hex);
	jsonw_kstr(w, "proof", "inclusion");
	jsonw_ku64(w, "seq", g->q->record);
	jsonw_key(w, "line");
	jsonw_strn(w, g->record.data, g->record.len);
	jsonw_kstr(w, "leaf", hex);
	write_path(w, &p);
	return 0;
}

static int prove_goes_on(const struct gathering *g, struct jsonw *w, struct err *err)
{
	struct merkle_proof p;

	if (!g->has_from)
		return err_set(err, ERR_NOT_FOUND, "no checkpoint of %llu records",
			       (unsigned long long)g->q->from);
	if (g->from.size > g->to.size)
		return err_set(err, ERR_INVALID, "the older checkpoint has more records");
	merkle_prove_consistency(g->leaves, g->from.size, g->to.size, &p);
	if (!merkle_goes_on(&g->from.root, g->from.size, &g->to.root, g->to.size, &p))
		return err_set(err, ERR_INTERNAL, "a proof that does not hold");
	jsonw_kstr(w, "proof", "consistency");
	jsonw_key(w, "from");
	add_note(w, &g->from);
	write_path(w, &p);
	return 0;
}

static int write_proof(struct gathering *g, const struct audit_reading *r,
		       struct buf *ret, struct err *err)
{
	char genesis[SEAL_TEXT32];
	struct jsonw w;

	if (!g->has_to && g->q->record && !g->q->to)
		return refuse_unsealed(g, r->seals.last.size, err);
	if (!g->has_to)
		return err_set(err, ERR_NOT_FOUND, "no checkpoint of %llu records",
			       (unsigned long long)g->q->to);
	jsonw_init(&w, ret);
	jsonw_obj(&w);
	if ((g->q->record ? prove_record(g, &w, err) : prove_goes_on(g, &w, err)) < 0)
		return -1;
	seal_text32(r->seals.genesis, genesis);
	jsonw_key(&w, "checkpoint");
	add_note(&w, &g->to);
	jsonw_kstr(&w, "genesis", genesis);
	jsonw_key(&w, "keys");
	jsonw_raw(&w, g->keys.data, g->keys.len);
	jsonw_obj_end(&w);
	return buf_ok(ret) && buf_ok(&g->keys)
		       ? 0
		       : err_set(err, ERR_LIMIT, "the proof is too long");
}

int audit_prove(struct audit_reading *r, const char *dir, const struct audit_question *q,
		struct buf *ret, struct err *err)
{
	struct gathering g = {.q = q};
	const struct audit_visit visit = {on_line, on_seal, &g};
	int rc;

	buf_init(&g.record, AUDIT_LINE_MAX);
	buf_init(&g.keys, KEYS_MAX);
	buf_init(ret, KEYS_MAX + ((size_t)1 << 20));
	jsonw_init(&g.keys_w, &g.keys);
	jsonw_arr(&g.keys_w);
	r->visit = &visit;
	rc = audit_read(r, dir, err);
	r->visit = NULL;
	jsonw_arr_end(&g.keys_w);
	if (rc == 0)
		rc = write_proof(&g, r, ret, err);
	free(g.leaves);
	buf_done(&g.record);
	buf_done(&g.keys);
	return rc;
}
