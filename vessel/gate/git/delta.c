/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * A delta of a pack: copies of the base, and bytes of its own. See pack.h.
 */
#include "common/cleanup.h"
#include "common/mem.h"
#include "vessel/gate/git/pack.h"

#include <stdlib.h>
#include <string.h>

#define SIZE_SHIFT_MAX 28 /* sizes above 2^35 are nobody's */
#define COPY_DEFAULT_BYTES 0x10000u

struct delta {
	const unsigned char *at;
	size_t left;
};

static int bad(struct err *err, const char *why)
{
	return err_set_id(err, ERRID_GIT_REQUEST, "a delta of the pack: %s", why);
}

static bool take_byte(struct delta *d, unsigned *ret)
{
	if (d->left == 0)
		return false;
	*ret = *d->at++;
	d->left--;
	return true;
}

/* Seven bits a byte, the least first. */
static bool take_size(struct delta *d, size_t *ret)
{
	unsigned byte = 0x80;

	*ret = 0;
	for (unsigned shift = 0; byte & 0x80; shift += 7) {
		if (shift > SIZE_SHIFT_MAX || !take_byte(d, &byte))
			return false;
		*ret |= (size_t)(byte & 0x7f) << shift;
	}
	return true;
}

/* The bytes of a number that these bits of an instruction name. */
static bool take_bytes(struct delta *d, unsigned bits, unsigned n, size_t *ret)
{
	unsigned byte;

	*ret = 0;
	for (unsigned i = 0; i < n; i++) {
		if (!(bits >> i & 1))
			continue;
		if (!take_byte(d, &byte))
			return false;
		*ret |= (size_t)byte << (8 * i);
	}
	return true;
}

struct made {
	char *data;
	size_t len, max;
};

static bool add(struct made *m, const void *data, size_t len)
{
	if (len > m->max - m->len)
		return false;
	memcpy(m->data + m->len, data, len);
	m->len += len;
	return true;
}

static bool copy(struct delta *d, unsigned how, const char *base, size_t base_len,
		 struct made *m)
{
	size_t from, n;

	if (!take_bytes(d, how & 0xf, 4, &from) || !take_bytes(d, how >> 4 & 7, 3, &n))
		return false;
	n = n ? n : COPY_DEFAULT_BYTES;
	return from <= base_len && n <= base_len - from && add(m, base + from, n);
}

static bool insert(struct delta *d, size_t n, struct made *m)
{
	/* 0 is kept for later by git */
	if (n == 0 || n > d->left || !add(m, d->at, n))
		return false;
	d->at += n;
	d->left -= n;
	return true;
}

int pack_apply(const void *base, size_t base_len, const void *delta, size_t delta_len,
	       size_t max, char **ret, size_t *ret_len, struct err *err)
{
	struct delta d = {.at = delta, .left = delta_len};
	cleanup_free char *data = NULL;
	struct made m = {0};
	unsigned how;
	size_t from;

	if (!take_size(&d, &from) || !take_size(&d, &m.max))
		return bad(err, "it has no sizes");
	if (from != base_len)
		return bad(err, "it is of another base");
	if (m.max > max)
		return bad(err, "what it makes is more than is taken");
	data = m.data = xmalloc(m.max + 1);
	while (take_byte(&d, &how))
		if (!(how & 0x80 ? copy(&d, how, base, base_len, &m)
				 : insert(&d, how, &m)))
			return bad(err, "an instruction leads out of it");
	if (m.len != m.max)
		return bad(err, "it makes less than it says");
	*ret = TAKE_PTR(data);
	*ret_len = m.len;
	return 0;
}
