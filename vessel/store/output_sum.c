/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See output_sum.h.
 */
#include "vessel/store/output_sum.h"
#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/mem.h"
#include "common/proto.h"
#include "vessel/store/store.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Blocks that one append can have left without a slot. */
#define OPEN_MAX (OUTPUT_CHUNK_MAX_BYTES / SUM_BLOCK_BYTES + 1)

struct slot {
	uint32_t len; /* 0: there is none */
	uint8_t sum[SHA256_SIZE];
};

static uint64_t blocks_of(uint64_t size)
{
	return (size + SUM_BLOCK_BYTES - 1) / SUM_BLOCK_BYTES;
}

uint64_t sum_bytes(uint64_t size)
{
	return blocks_of(size) * SUM_SLOT_BYTES;
}

/* All of it, or as much as there is. */
static int read_at(int fd, void *buf, size_t len, uint64_t offset, size_t *ret,
		   struct err *err)
{
	size_t have = 0;

	while (have < len) {
		ssize_t n =
			pread(fd, (char *)buf + have, len - have, (off_t)(offset + have));

		if (n < 0 && errno == EINTR)
			continue;
		/* a block that the disk can't give back is as good as another one */
		if (n < 0 && errno != EIO)
			return err_sys(err, "read stored output");
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	*ret = have;
	return 0;
}

static void slot_put(const struct slot *s, uint8_t out[SUM_SLOT_BYTES])
{
	for (unsigned i = 0; i < 4; i++)
		out[i] = (uint8_t)(s->len >> (8 * i));
	memcpy(out + 4, s->sum, sizeof(s->sum));
}

static int slot_get(const struct sum_pair *p, uint64_t block, struct slot *ret,
		    struct err *err)
{
	uint8_t raw[SUM_SLOT_BYTES] = {0};
	size_t n;

	if (read_at(p->sums, raw, sizeof(raw), block * SUM_SLOT_BYTES, &n, err) < 0)
		return -1;
	if (n < sizeof(raw))
		memset(raw, 0, sizeof(raw));
	ret->len = 0;
	for (unsigned i = 0; i < 4; i++)
		ret->len |= (uint32_t)raw[i] << (8 * i);
	if (ret->len > SUM_BLOCK_BYTES)
		ret->len = 0;
	memcpy(ret->sum, raw + 4, sizeof(ret->sum));
	return 0;
}

int sum_size(const struct sum_pair *p, uint64_t *ret, struct err *err)
{
	uint64_t have, slots, block;

	if (store_size(p->data, &have, err) < 0)
		return -1;
	*ret = have;
	if (p->sums < 0)
		return 0;
	if (store_size(p->sums, &slots, err) < 0)
		return -1;
	/* more slots than blocks: the file has lost bytes, and reading tells */
	slots /= SUM_SLOT_BYTES;
	block = slots > blocks_of(have) ? slots : blocks_of(have);
	for (unsigned i = 0; i <= OPEN_MAX && block > 0; i++) {
		struct slot s;

		if (slot_get(p, --block, &s, err) < 0)
			return -1;
		if (s.len == 0)
			continue;
		*ret = block * SUM_BLOCK_BYTES + s.len;
		return 0;
	}
	if (block == 0)
		*ret = 0;
	return 0;
}

static int damaged(struct err *err, uint64_t from, uint64_t to)
{
	return err_set_id(err, ERRID_STORE_DAMAGED,
			  "bytes %llu to %llu are not those that were stored",
			  (unsigned long long)from, (unsigned long long)(to - 1));
}

/* The slots of what is behind size once data is appended there; begun is what the first
 * block has already. */
static uint8_t *make_slots(const uint8_t *begun, size_t n_begun, const uint8_t *data,
			   size_t len, size_t *ret_n)
{
	size_t n = (size_t)blocks_of(n_begun + len);
	uint8_t *raw = xmalloc(n * SUM_SLOT_BYTES);

	for (size_t i = 0; i < n; i++) {
		cleanup_sha256 struct sha256 *h = sha256_new();
		size_t before = i == 0 ? n_begun : 0;
		size_t take =
			SUM_BLOCK_BYTES - before < len ? SUM_BLOCK_BYTES - before : len;
		struct slot s = {.len = (uint32_t)(before + take)};

		sha256_add(h, begun, before);
		sha256_add(h, data, take);
		sha256_final(h, s.sum);
		slot_put(&s, raw + i * SUM_SLOT_BYTES);
		data += take;
		len -= take;
	}
	*ret_n = n;
	return raw;
}

/* The bytes of the last block, when it is not full: compared. */
static int read_begun(const struct sum_pair *p, uint64_t size, uint8_t *buf, size_t *ret,
		      struct slot *ret_slot, struct err *err)
{
	uint64_t block = size / SUM_BLOCK_BYTES, begin = block * SUM_BLOCK_BYTES;
	size_t want = (size_t)(size - begin), n;
	uint8_t sum[SHA256_SIZE];

	*ret = want;
	if (want == 0)
		return 0;
	if (read_at(p->data, buf, want, begin, &n, err) < 0 ||
	    slot_get(p, block, ret_slot, err) < 0)
		return -1;
	sha256_of(buf, n, sum);
	if (n != want || ret_slot->len != want ||
	    memcmp(sum, ret_slot->sum, sizeof(sum)) != 0)
		return damaged(err, begin, size);
	return 0;
}

static int put_slots(const struct sum_pair *p, uint64_t block, const uint8_t *raw,
		     size_t n, struct err *err)
{
	size_t len = n * SUM_SLOT_BYTES, done = 0;

	while (done < len) {
		ssize_t w = pwrite(p->sums, raw + done, len - done,
				   (off_t)(block * SUM_SLOT_BYTES + done));

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0) {
			if (w == 0)
				errno = ENOSPC;
			(void)err_sys(err, "write");
			return store_err(err);
		}
		done += (size_t)w;
	}
	return 0;
}

int sum_append(const struct sum_pair *p, uint64_t size, const void *data, size_t len,
	       struct err *err)
{
	cleanup_free uint8_t *begun = NULL, *slots = NULL;
	uint64_t block = size / SUM_BLOCK_BYTES;
	uint8_t old_raw[SUM_SLOT_BYTES];
	struct slot old = {0};
	size_t n_begun = 0, n;
	uint64_t have;

	if (p->sums < 0)
		return store_append(p->data, size, data, len, err);
	if (store_size(p->data, &have, err) < 0)
		return -1;
	if (have < size)
		return damaged(err, have, size);
	begun = xmalloc(SUM_BLOCK_BYTES);
	if (read_begun(p, size, begun, &n_begun, &old, err) < 0)
		return -1;
	if (ftruncate(p->data, (off_t)size) < 0)
		return err_sys(err, "cut what was not told");
	if (store_append(p->data, size, data, len, err) < 0)
		return -1;
	slots = make_slots(begun, n_begun, data, len, &n);
	if (put_slots(p, block, slots, n, err) == 0)
		return 0;
	/* shorter and in place: possible also on a full disk; in this order what is left after
	 * each step is the pair as it was */
	slot_put(&old, old_raw);
	if ((n_begun && put_slots(p, block, old_raw, 1, err) < 0) ||
	    ftruncate(p->sums, (off_t)sum_bytes(size)) < 0 ||
	    ftruncate(p->data, (off_t)size) < 0)
		return err_sys(err, "cut back after a failed write");
	return -1;
}

/* A whole block, compared; 1: it is not what was written. */
static int read_block(const struct sum_pair *p, uint64_t block, size_t want, uint8_t *buf,
		      struct err *err)
{
	uint8_t sum[SHA256_SIZE];
	struct slot s = {0};
	size_t n;

	if (read_at(p->data, buf, want, block * SUM_BLOCK_BYTES, &n, err) < 0 ||
	    (p->sums >= 0 && slot_get(p, block, &s, err) < 0))
		return -1;
	if (p->sums < 0)
		return n != want;
	sha256_of(buf, n, sum);
	return n != want || s.len != want || memcmp(sum, s.sum, sizeof(sum)) != 0;
}

int sum_read(const struct sum_pair *p, uint64_t size, uint64_t offset, void *buf,
	     size_t room, size_t *ret_len, uint64_t *ret_next, struct err *err)
{
	cleanup_free uint8_t *block_buf = xmalloc(SUM_BLOCK_BYTES);
	size_t have = 0;

	*ret_len = 0;
	*ret_next = size;
	while (have < room && offset + have < size) {
		uint64_t at = offset + have, block = at / SUM_BLOCK_BYTES;
		uint64_t begin = block * SUM_BLOCK_BYTES;
		size_t want = size - begin < SUM_BLOCK_BYTES ? (size_t)(size - begin)
							     : SUM_BLOCK_BYTES;
		size_t skip = (size_t)(at - begin), n = want - skip;
		int r = read_block(p, block, want, block_buf, err);

		if (r < 0)
			return -1;
		if (r > 0 && have > 0)
			break;
		if (r > 0) {
			*ret_next = begin + want;
			return damaged(err, begin, begin + want);
		}
		if (n > room - have)
			n = room - have;
		memcpy((char *)buf + have, block_buf + skip, n);
		have += n;
	}
	*ret_len = have;
	return 0;
}
