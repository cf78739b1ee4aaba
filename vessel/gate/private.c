/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the gate worker.
 * Theory of operation. Everything is searched by one rolling hash per window size, a
 * polynomial over the field of 2^61 - 1 whose base is drawn from the store's key:
 *
 *	a term    the hash of its first 4, 8, 16 or 32 bytes (the largest that fits), and
 *		  an HMAC of all of it that the candidate must match
 *	a file    of the hashes of all its stretches of 48 bytes the least one of each 17
 *		  in a row (winnowing): two texts that share 64 bytes share a print
 *
 * The text itself is not kept.
 */
#include "vessel/gate/private.h"
#include "common/clock.h"
#include "common/crypto/hmac.h"
#include "common/id.h"
#include "common/mem.h"
#include "common/proto/wire.h"
#include "common/str.h"
#include "common/utf8.h"
#include "vessel/gate/text/fold.h"
#include <ctype.h>

#define PRIME (((uint64_t)1 << 61) - 1)
#define PRINT_BYTES 48
#define WINNOW 17
#define TERM_MAC 16
/* A shorter term is found between non-letters only. */
#define BORDER_BELOW 8
#define MAGIC "LYPRIV1\n"
#define BLOOM_BITS 20

_Static_assert(PRINT_BYTES + WINNOW - 1 == PRIVATE_PASSAGE_BYTES, "what is always found");

static const unsigned windows[] = {4, 8, 16, 32, PRINT_BYTES};
#define N_WINDOWS ARRAY_SIZE(windows)

struct entry {
	uint64_t id, created_usec;
	enum private_kind kind;
	char *name;
	uint32_t bytes; /* normalised */
	/* a term, or a file too short for prints: n == 0 */
	uint64_t head;
	uint8_t mac[TERM_MAC];
	uint64_t *print;
	uint32_t n;
};

struct slot {
	uint64_t hash;
	uint32_t entry;
};

/* Of one window size: sorted by hash. */
struct index {
	struct slot *slot;
	size_t n;
	uint8_t *bloom;
};

struct gate_private {
	uint8_t key[SHA256_SIZE];
	uint64_t base, next_id;
	struct entry *entry;
	size_t n, n_prints;
	struct index index[N_WINDOWS];
};

/* ---- the hash -------------------------------------------------------------------- */

static uint64_t mul(uint64_t a, uint64_t b)
{
	unsigned __int128 x = (unsigned __int128)a * b;
	uint64_t r = (uint64_t)(x & PRIME) + (uint64_t)(x >> 61);

	return r >= PRIME ? r - PRIME : r;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t r = a + b;

	return r >= PRIME ? r - PRIME : r;
}

struct roll {
	uint64_t base, out; /* base^(w-1) */
	uint64_t h;
	unsigned w;
};

static void roll_start(struct roll *r, uint64_t base, unsigned w, const char *s)
{
	*r = (struct roll){.base = base, .out = 1, .w = w};
	for (unsigned i = 0; i < w; i++) {
		r->h = add(mul(r->h, base), (unsigned char)s[i] + 1U);
		if (i)
			r->out = mul(r->out, base);
	}
}

/* From the window at s to the one at s + 1. */
static void roll_on(struct roll *r, const char *s)
{
	uint64_t gone = mul(r->out, (unsigned char)s[0] + 1U);

	r->h = add(mul(add(r->h, PRIME - gone), r->base), (unsigned char)s[r->w] + 1U);
}

static void set_base(struct gate_private *p)
{
	uint8_t d[SHA256_SIZE];

	gate_mac(p->key, "rolling", 7, d);
	memcpy(&p->base, d, sizeof(p->base));
	p->base = p->base % (PRIME - 1000) + 500;
}

static unsigned window_of(size_t len)
{
	unsigned i = 3;

	while (i && windows[i] > len)
		i--;
	return i;
}

/* ---- the index ------------------------------------------------------------------- */

static int by_hash(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static size_t bloom_at(uint64_t h)
{
	return (size_t)(h * 0x9e3779b97f4a7c15U >> (64 - BLOOM_BITS));
}

static void index_done(struct index *x)
{
	free(x->slot);
	free(x->bloom);
	*x = (struct index){0};
}

static void index_add(struct index *x, uint64_t hash, size_t entry)
{
	x->slot[x->n].hash = hash;
	x->slot[x->n++].entry = (uint32_t)entry;
	x->bloom[bloom_at(hash) / 8] |= (uint8_t)(1U << bloom_at(hash) % 8);
}

static void rebuild(struct gate_private *p)
{
	size_t want[N_WINDOWS] = {0};

	p->n_prints = 0;
	for (size_t i = 0; i < p->n; i++) {
		p->n_prints += p->entry[i].n;
		if (p->entry[i].n)
			want[N_WINDOWS - 1] += p->entry[i].n;
		else
			want[window_of(p->entry[i].bytes)]++;
	}
	for (size_t k = 0; k < N_WINDOWS; k++) {
		index_done(&p->index[k]);
		if (!want[k])
			continue;
		p->index[k].slot = xcalloc(want[k], sizeof(struct slot));
		p->index[k].bloom = xcalloc((size_t)1 << (BLOOM_BITS - 3), 1);
	}
	for (size_t i = 0; i < p->n; i++) {
		const struct entry *e = &p->entry[i];

		for (uint32_t k = 0; k < e->n; k++)
			index_add(&p->index[N_WINDOWS - 1], e->print[k], i);
		if (!e->n)
			index_add(&p->index[window_of(e->bytes)], e->head, i);
	}
	for (size_t k = 0; k < N_WINDOWS; k++)
		if (p->index[k].n)
			qsort(p->index[k].slot, p->index[k].n, sizeof(struct slot),
			      by_hash);
}

static const struct slot *index_find(const struct index *x, uint64_t hash)
{
	size_t lo = 0, hi = x->n;

	if (!(x->bloom[bloom_at(hash) / 8] & 1U << bloom_at(hash) % 8))
		return NULL;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (x->slot[mid].hash < hash)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < x->n && x->slot[lo].hash == hash ? &x->slot[lo] : NULL;
}

/* ---- add, remove ----------------------------------------------------------------- */

struct gate_private *gate_private_new(void)
{
	struct gate_private *p = xnew(struct gate_private);

	random_bytes(p->key, sizeof(p->key));
	p->next_id = 1;
	set_base(p);
	return p;
}

static void entry_done(struct entry *e)
{
	free(e->name);
	free(e->print);
}

void gate_private_free(struct gate_private *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++)
		entry_done(&p->entry[i]);
	for (size_t k = 0; k < N_WINDOWS; k++)
		index_done(&p->index[k]);
	free(p->entry);
	explicit_bzero(p->key, sizeof(p->key));
	free(p);
}

/* The least of each WINNOW hashes in a row, each place once. */
static uint32_t winnow(const struct gate_private *p, const char *s, size_t len,
		       uint64_t **ret)
{
	size_t n = len - PRINT_BYTES + 1, last = SIZE_MAX, cap = n / 4 + 2, got = 0;
	uint64_t *hash = xcalloc(n, sizeof(*hash));
	uint64_t *out = xcalloc(cap, sizeof(*out));
	struct roll r;

	roll_start(&r, p->base, PRINT_BYTES, s);
	hash[0] = r.h;
	for (size_t i = 1; i < n; i++) {
		roll_on(&r, s + i - 1);
		hash[i] = r.h;
	}
	for (size_t i = 0; i == 0 || i + WINNOW <= n; i++) {
		size_t least = i, end = i + WINNOW < n ? i + WINNOW : n;

		for (size_t k = i; k < end; k++)
			if (hash[k] <= hash[least])
				least = k;
		if (least == last)
			continue;
		if (got == cap)
			out = xreallocarray(out, cap *= 2, sizeof(*out));
		out[got++] = hash[last = least];
	}
	free(hash);
	*ret = out;
	return (uint32_t)got;
}

static int check_name(const char *name, struct err *err)
{
	size_t len = strlen(name);

	if (len == 0 || len > PRIVATE_NAME_MAX_BYTES || !utf8_is_valid(name, len) ||
	    str_has_control(name, len))
		return err_set_id(err, ERRID_GATE_TERM,
				  "the name: 1 to %d bytes of text without control "
				  "characters",
				  PRIVATE_NAME_MAX_BYTES);
	return 0;
}

static int check_new(const struct gate_private *p, const struct entry *e, struct err *err)
{
	for (size_t i = 0; i < p->n; i++)
		if (memcmp(p->entry[i].mac, e->mac, TERM_MAC) == 0)
			return err_set_id(err, ERRID_GATE_TERM,
					  "it is registered already, as %llu",
					  (unsigned long long)p->entry[i].id);
	if (p->n >= PRIVATE_ENTRIES_MAX)
		return err_set_id(err, ERRID_GATE_FULL, "%d entries",
				  PRIVATE_ENTRIES_MAX);
	if (p->n_prints + e->n > PRIVATE_PRINTS_MAX)
		return err_set_id(err, ERRID_GATE_FULL, "%u fingerprints of files",
				  PRIVATE_PRINTS_MAX);
	return 0;
}

static size_t trimmed(const struct gate_folded *f)
{
	return f->len && f->data[f->len - 1] == ' ' ? f->len - 1 : f->len;
}

int gate_private_add(struct gate_private *p, enum private_kind kind, const char *name,
		     const void *data, size_t len, uint64_t now_usec, uint64_t *ret_id,
		     struct err *err)
{
	size_t max =
		kind == PRIVATE_TERM ? PRIVATE_TERM_MAX_BYTES : PRIVATE_FILE_MAX_BYTES;
	struct entry e = {.id = p->next_id, .kind = kind, .created_usec = now_usec};
	uint8_t mac[SHA256_SIZE];
	struct gate_folded f;
	struct roll r;
	size_t n;

	if (check_name(name, err) < 0)
		return -1;
	if (len > max)
		return err_set_id(err, ERRID_GATE_TERM, "longer than %zu bytes", max);
	gate_fold(data, len, FOLD_SHAPES | FOLD_CASE | FOLD_LETTERS, &f);
	n = trimmed(&f);
	if (n < PRIVATE_TERM_MIN_BYTES) {
		gate_folded_done(&f);
		return err_set_id(err, ERRID_GATE_TERM, "shorter than %d bytes",
				  PRIVATE_TERM_MIN_BYTES);
	}
	e.bytes = (uint32_t)n;
	gate_mac(p->key, f.data, n, mac);
	memcpy(e.mac, mac, sizeof(e.mac));
	roll_start(&r, p->base, windows[window_of(n)], f.data);
	e.head = r.h;
	if (kind == PRIVATE_FILE && n >= PRIVATE_PASSAGE_BYTES)
		e.n = winnow(p, f.data, n, &e.print);
	explicit_bzero(f.data, f.len);
	gate_folded_done(&f);
	if (check_new(p, &e, err) < 0) {
		free(e.print);
		return -1;
	}
	e.name = xstrdup(name);
	p->entry = xreallocarray(p->entry, p->n + 1, sizeof(*p->entry));
	p->entry[p->n++] = e;
	*ret_id = p->next_id++;
	rebuild(p);
	return 0;
}

int gate_private_remove(struct gate_private *p, uint64_t id, struct err *err)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->entry[i].id != id)
			continue;
		entry_done(&p->entry[i]);
		memmove(&p->entry[i], &p->entry[i + 1],
			(p->n - i - 1) * sizeof(*p->entry));
		p->n--;
		rebuild(p);
		return 0;
	}
	return err_set_id(err, ERRID_GATE_NO_TERM, "%llu", (unsigned long long)id);
}

bool gate_private_has(const struct gate_private *p, uint64_t id)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->entry[i].id == id)
			return true;
	return false;
}

size_t gate_private_count(const struct gate_private *p)
{
	return p->n;
}

void gate_private_at(const struct gate_private *p, size_t i, struct private_entry *ret)
{
	const struct entry *e = &p->entry[i];

	*ret = (struct private_entry){
		.id = e->id,
		.kind = e->kind,
		.name = e->name,
		.created_usec = e->created_usec,
		.bytes = e->bytes,
		.prints = e->n,
	};
}

bool gate_private_has_short(const struct gate_private *p, size_t max)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->entry[i].bytes <= max)
			return true;
	return false;
}

/* ---- as bytes -------------------------------------------------------------------- */

void gate_private_write(const struct gate_private *p, struct buf *out)
{
	buf_adds(out, MAGIC);
	buf_add(out, p->key, sizeof(p->key));
	wire_put_uint(out, p->next_id, 8);
	wire_put_uint(out, p->n, 4);
	for (size_t i = 0; i < p->n; i++) {
		const struct entry *e = &p->entry[i];

		wire_put_uint(out, e->id, 8);
		wire_put_uint(out, e->created_usec, 8);
		wire_put_uint(out, e->kind, 4);
		wire_put_uint(out, e->bytes, 4);
		wire_put_uint(out, e->head, 8);
		buf_add(out, e->mac, sizeof(e->mac));
		wire_put_sized(out, 4, e->name, strlen(e->name));
		wire_put_uint(out, e->n, 4);
		if (e->n)
			buf_add(out, e->print, e->n * sizeof(*e->print));
	}
}

static bool read_entry(struct wire *r, struct gate_private *p, struct entry *e)
{
	uint32_t kind;
	const char *name;
	size_t name_len;

	e->id = wire_uint(r, 8);
	e->created_usec = wire_uint(r, 8);
	kind = (uint32_t)wire_uint(r, 4);
	e->bytes = (uint32_t)wire_uint(r, 4);
	e->head = wire_uint(r, 8);
	if (!wire_take(r, e->mac, sizeof(e->mac)) || kind > PRIVATE_FILE ||
	    e->bytes < PRIVATE_TERM_MIN_BYTES || e->bytes > PRIVATE_FILE_MAX_BYTES ||
	    e->id == 0 || e->id >= p->next_id)
		return false;
	e->kind = (enum private_kind)kind;
	name = wire_sized(r, 4, PRIVATE_NAME_MAX_BYTES, &name_len);
	e->name = xstrndup(name, name_len);
	e->n = (uint32_t)wire_uint(r, 4);
	if (r->failed || strlen(e->name) != name_len || check_name(e->name, NULL) < 0 ||
	    e->n > PRIVATE_PRINTS_MAX || e->n > r->left / sizeof(uint64_t) ||
	    p->n_prints + e->n > PRIVATE_PRINTS_MAX) {
		e->n = 0;
		return false;
	}
	p->n_prints += e->n;
	if (!e->n)
		return true;
	e->print = xcalloc(e->n, sizeof(*e->print));
	return wire_take(r, e->print, e->n * sizeof(*e->print));
}

int gate_private_read(const void *data, size_t len, struct gate_private **ret,
		      struct err *err)
{
	cleanup_private struct gate_private *p = xnew(struct gate_private);
	struct wire r = {.at = data, .left = len};
	char magic[sizeof(MAGIC) - 1];
	uint32_t n;

	if (!wire_take(&r, magic, sizeof(magic)) ||
	    memcmp(magic, MAGIC, sizeof(magic)) != 0 ||
	    !wire_take(&r, p->key, sizeof(p->key)))
		return err_set_id(err, ERRID_GATE_STORE, "its head");
	p->next_id = wire_uint(&r, 8);
	n = (uint32_t)wire_uint(&r, 4);
	if (r.failed || p->next_id == 0 || n > PRIVATE_ENTRIES_MAX)
		return err_set_id(err, ERRID_GATE_STORE, "its head");
	p->entry = xcalloc(n + 1U, sizeof(*p->entry));
	for (uint32_t i = 0; i < n; i++) {
		p->n++;
		if (!read_entry(&r, p, &p->entry[i]))
			return err_set_id(err, ERRID_GATE_STORE, "entry %u", i);
	}
	if (r.left)
		return err_set_id(err, ERRID_GATE_STORE, "%zu bytes too many", r.left);
	set_base(p);
	rebuild(p);
	*ret = p;
	p = NULL;
	return 0;
}

/* ---- search ---------------------------------------------------------------------- */

struct search {
	const struct gate_private *p;
	const char *s;
	size_t len;
	private_hit *hit;
	void *arg;
	size_t from, to; /* of files' passages, grown together */
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

static bool is_bordered(const struct search *x, size_t at, size_t n)
{
	bool left = at == 0 || !is_word(x->s[at]) || !is_word(x->s[at - 1]);
	bool right =
		at + n == x->len || !is_word(x->s[at + n - 1]) || !is_word(x->s[at + n]);

	return n >= BORDER_BELOW || (left && right);
}

/* Every entry that has this hash. False: stop. */
static bool try_terms(struct search *x, const struct index *idx, const struct slot *slot,
		      size_t at)
{
	uint64_t hash = slot->hash;

	for (; slot < idx->slot + idx->n && slot->hash == hash; slot++) {
		const struct entry *e = &x->p->entry[slot->entry];
		uint8_t mac[SHA256_SIZE];

		if (e->bytes > x->len - at || !is_bordered(x, at, e->bytes))
			continue;
		gate_mac(x->p->key, x->s + at, e->bytes, mac);
		if (mem_eq_ct(mac, e->mac, TERM_MAC) && !x->hit(at, e->bytes, x->arg))
			return false;
	}
	return true;
}

static bool grow_passage(struct search *x, size_t at)
{
	if (x->to && at <= x->to + PRIVATE_PASSAGE_BYTES) {
		x->to = at + PRINT_BYTES;
		return true;
	}
	if (x->to && !x->hit(x->from, x->to - x->from, x->arg))
		return false;
	x->from = at;
	x->to = at + PRINT_BYTES;
	return true;
}

static bool search_window(struct search *x, unsigned k)
{
	const struct index *idx = &x->p->index[k];
	unsigned w = windows[k];
	struct roll r;

	if (!idx->n || x->len < w)
		return true;
	roll_start(&r, x->p->base, w, x->s);
	for (size_t at = 0;; at++) {
		const struct slot *slot = index_find(idx, r.h);

		if (slot && !(k == N_WINDOWS - 1 ? grow_passage(x, at)
						 : try_terms(x, idx, slot, at)))
			return false;
		if (at + w >= x->len)
			return true;
		roll_on(&r, x->s + at);
	}
}

void gate_private_search(const struct gate_private *p, const char *normal, size_t len,
			 private_hit *hit, void *arg)
{
	struct search x = {.p = p, .s = normal, .len = len, .hit = hit, .arg = arg};

	for (unsigned k = 0; k < N_WINDOWS; k++)
		if (!search_window(&x, k))
			return;
	if (x.to)
		(void)hit(x.from, x.to - x.from, arg);
}
