/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * Theory of operation. Every read goes through common/proto/wire.h, so a parser may read on and ask
 * once. A compressed name may only point backwards, before where the name began, so reading
 * it ends.
 */
#include "vessel/egress/dns.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/proto/wire.h"

#include <string.h>

#define HEADER_BYTES 12
#define NAME_MAX_BYTES 255
#define LABEL_MAX_BYTES 63
#define RECORDS_MAX 64
#define CLASS_IN 1
#define TYPE_CNAME 5
#define FLAG_QR 0x8000u
#define FLAG_OPCODE 0x7800u
#define FLAG_TC 0x0200u
#define FLAG_RD 0x0100u
#define RCODE_NXDOMAIN 3u
#define TTL_SIGN 0x80000000u

/* A name as it is sent, without compression, in lower case. */
struct wire_name {
	uint8_t b[NAME_MAX_BYTES];
	size_t n;
};

/* A reader that can stand anywhere in the message. */
struct cursor {
	const char *msg;
	size_t len;
	struct wire w;
};

static size_t place(const struct cursor *c)
{
	return c->len - c->w.left;
}

static void seek(struct cursor *c, size_t at)
{
	c->w.at = c->msg + at;
	c->w.left = c->len - at;
}

static unsigned get8(struct cursor *c)
{
	return (unsigned)wire_uint(&c->w, 1);
}

static unsigned get16(struct cursor *c)
{
	return (unsigned)wire_uint_be(&c->w, 2);
}

static uint32_t get32(struct cursor *c)
{
	return (uint32_t)wire_uint_be(&c->w, 4);
}

static uint8_t lower(unsigned b)
{
	return (uint8_t)(b >= 'A' && b <= 'Z' ? b | 0x20 : b);
}

static bool name_eq(const struct wire_name *a, const struct wire_name *b)
{
	return a->n == b->n && memcmp(a->b, b->b, a->n) == 0;
}

/* From "a.example" to labels; false when it does not fit. */
static bool name_from_text(const char *text, struct wire_name *ret)
{
	size_t at = 0;

	while (*text) {
		size_t n = strcspn(text, ".");

		if (n == 0 || n > LABEL_MAX_BYTES || at + 1 + n + 1 > NAME_MAX_BYTES)
			return false;
		ret->b[at++] = (uint8_t)n;
		for (size_t i = 0; i < n; i++)
			ret->b[at++] = lower((unsigned char)text[i]);
		text += n;
		if (*text == '.')
			text++;
	}
	ret->b[at++] = 0;
	ret->n = at;
	return at > 1;
}

/* The cursor ends behind the name where it stands; its pointers lead elsewhere. */
static void get_name(struct cursor *c, struct wire_name *ret)
{
	struct cursor label = *c;
	size_t limit = place(c); /* a pointer leads before this */
	bool jumped = false;

	ret->n = 0;
	for (;;) {
		unsigned n = get8(&label);

		if (label.w.failed)
			break;
		if (n >= 0xc0) {
			size_t to = (n & 0x3f) << 8 | get8(&label);

			if (label.w.failed || to >= limit || to < HEADER_BYTES)
				break;
			if (!jumped)
				c->w = label.w;
			jumped = true;
			limit = to;
			seek(&label, to);
			continue;
		}
		if (n > LABEL_MAX_BYTES || ret->n + n + 1 > NAME_MAX_BYTES - (n > 0))
			break;
		ret->b[ret->n++] = (uint8_t)n;
		for (unsigned i = 0; i < n; i++)
			ret->b[ret->n++] = lower(get8(&label));
		if (label.w.failed)
			break;
		if (n > 0)
			continue;
		if (!jumped)
			c->w = label.w;
		return;
	}
	c->w.failed = true;
}

struct record {
	struct wire_name owner, target; /* target of a CNAME */
	struct addr addr;
	unsigned type; /* CNAME or the one that was asked; 0: of no use */
	uint32_t ttl;
};

static void get_record(struct cursor *c, enum dns_type asked, struct record *ret)
{
	unsigned type, class, len;
	const char *bytes;
	size_t end;

	ret->type = 0;
	get_name(c, &ret->owner);
	type = get16(c);
	class = get16(c);
	ret->ttl = get32(c);
	len = get16(c);
	bytes = wire_bytes(&c->w, len);
	if (!bytes)
		return;
	end = place(c);
	/* RFC 2181: a TTL with its highest bit set is 0. */
	if (ret->ttl & TTL_SIGN)
		ret->ttl = 0;
	if (class == CLASS_IN && type == TYPE_CNAME) {
		struct cursor data = *c;

		seek(&data, end - len);
		get_name(&data, &ret->target);
		if (data.w.failed || place(&data) != end)
			c->w.failed = true;
		ret->type = type;
	} else if (class == CLASS_IN && type == (unsigned)asked) {
		ret->addr = (struct addr){.v6 = asked == DNS_TYPE_AAAA};
		if (len != (ret->addr.v6 ? 16u : 4u))
			c->w.failed = true;
		else
			memcpy(ret->addr.b, bytes, len);
		ret->type = type;
	}
}

static const struct record *find_alias(const struct record *r, size_t n,
				       const struct wire_name *owner)
{
	for (size_t i = 0; i < n; i++)
		if (r[i].type == TYPE_CNAME && name_eq(&r[i].owner, owner))
			return &r[i];
	return NULL;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* From the name that was asked along its aliases to addresses. */
static enum dns_verdict follow(const struct record *r, size_t n, struct wire_name name,
			       enum dns_type type, struct dns_answer *a)
{
	const struct record *alias;

	a->ttl = UINT32_MAX;
	while ((alias = find_alias(r, n, &name))) {
		if (++a->aliases > DNS_ALIASES_MAX)
			return DNS_LOOP;
		a->ttl = least(a->ttl, alias->ttl);
		name = alias->target;
	}
	for (size_t i = 0; i < n; i++) {
		if (r[i].type != (unsigned)type || !name_eq(&r[i].owner, &name))
			continue;
		if (a->n == DNS_ADDRS_MAX)
			return DNS_BAD;
		a->addr[a->n++] = r[i].addr;
		a->ttl = least(a->ttl, r[i].ttl);
	}
	return DNS_OK;
}

static bool is_our_question(struct cursor *c, const struct wire_name *name,
			    enum dns_type type)
{
	struct wire_name asked;
	unsigned t, class;

	get_name(c, &asked);
	t = get16(c);
	class = get16(c);
	return !c->w.failed && name_eq(&asked, name) && t == (unsigned)type &&
	       class == CLASS_IN;
}

enum dns_verdict dns_parse(const uint8_t *msg, size_t len, uint16_t id, const char *name,
			   enum dns_type type, struct dns_answer *ret)
{
	struct cursor c = {.msg = (const char *)msg,
			   .len = len,
			   .w = {.at = (const char *)msg, .left = len}};
	struct dns_answer a = {.n = 0};
	cleanup_free struct record *records = NULL;
	struct wire_name asked;
	unsigned their_id = get16(&c), flags = get16(&c), questions = get16(&c),
		 answers = get16(&c);
	enum dns_verdict verdict;

	(void)get32(&c); /* two more numbers */
	if (their_id != id || !(flags & FLAG_QR) || (flags & FLAG_OPCODE) ||
	    questions != 1 || !name_from_text(name, &asked) ||
	    !is_our_question(&c, &asked, type))
		return DNS_FOREIGN;
	if (flags & FLAG_TC)
		return DNS_TRUNCATED;
	if ((flags & 15) == RCODE_NXDOMAIN)
		return DNS_NO_NAME;
	if (flags & 15)
		return DNS_REFUSED;
	if (answers > RECORDS_MAX)
		return DNS_BAD;
	records = xcalloc(answers + 1, sizeof(*records));
	for (unsigned i = 0; i < answers && !c.w.failed; i++)
		get_record(&c, type, &records[i]);
	if (c.w.failed)
		return DNS_BAD;
	verdict = follow(records, answers, asked, type, &a);
	if (verdict == DNS_OK)
		*ret = a;
	return verdict;
}

static void put16(uint8_t *out, size_t *at, unsigned v)
{
	out[(*at)++] = (uint8_t)(v >> 8);
	out[(*at)++] = (uint8_t)v;
}

size_t dns_query(uint16_t id, const char *name, enum dns_type type,
		 uint8_t out[DNS_QUERY_MAX])
{
	struct wire_name n;
	size_t at = 0;

	if (!name_from_text(name, &n))
		return 0;
	put16(out, &at, id);
	put16(out, &at, FLAG_RD);
	put16(out, &at, 1);
	put16(out, &at, 0);
	put16(out, &at, 0);
	put16(out, &at, 0);
	memcpy(out + at, n.b, n.n);
	at += n.n;
	put16(out, &at, (unsigned)type);
	put16(out, &at, CLASS_IN);
	return at;
}
