/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe.
 * See seals.h.
 */
#include "vessel/scribe/seals.h"
#include "common/cleanup.h"
#include "common/crypto/locked.h"
#include "common/crypto/sha256.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define EPOCH_USEC (3600 * USEC_PER_SEC)
#define PLACES 2
#define PLACE_BYTES ((size_t)512)
#define PLACE_MAGIC "lych-audit-key1\n"
#define TAIL_BYTES (8 * SEAL_MAX)

/* A place of .keys. All of it is memory that is locked and wiped. */
struct place {
	char magic[16];
	uint64_t epoch;
	uint8_t seed[ED25519_SEED_SIZE];
	uint8_t genesis[ED25519_PUBLIC_SIZE];
	uint8_t check[8]; /* of SHA-256 of all before it: it was written whole */
};
_Static_assert(sizeof(struct place) <= PLACE_BYTES, "a key has room");

struct seals {
	struct seals_config cfg;
	int fd, key_fd;
	struct place *key; /* PLACES of them, as in the file; locked */
	unsigned current;
	bool must_begin, is_broken;
	usec_t epoch_began;
	bool has_last;
	struct seal last;
	struct merkle_hash last_hash;
};

/* ---- .keys ---- */

static void place_check(const struct place *p, uint8_t ret[8])
{
	uint8_t full[SHA256_SIZE];

	sha256_of(p, offsetof(struct place, check), full);
	memcpy(ret, full, 8);
	explicit_bzero(full, sizeof(full));
}

static bool place_is_whole(const struct place *p)
{
	uint8_t check[8];

	place_check(p, check);
	return memcmp(p->magic, PLACE_MAGIC, sizeof(p->magic)) == 0 &&
	       memcmp(p->check, check, sizeof(check)) == 0;
}

static bool place_is_blank(const struct place *p)
{
	static const struct place blank;

	return memcmp(p, &blank, sizeof(blank)) == 0;
}

static int place_write(struct seals *s, unsigned n, struct err *err)
{
	const struct place *p = &s->key[n];
	off_t at = (off_t)(n * PLACE_BYTES);

	if (pwrite(s->key_fd, p, sizeof(*p), at) != (ssize_t)sizeof(*p) ||
	    fdatasync(s->key_fd) < 0)
		return err_sys_id(err, ERRID_AUDIT_WRITE, "write " AUDIT_KEYS_FILE);
	return 0;
}

static int place_wipe(struct seals *s, unsigned n, struct err *err)
{
	explicit_bzero(&s->key[n], sizeof(s->key[n]));
	return place_write(s, n, err);
}

static int place_new(struct seals *s, unsigned n, uint64_t epoch, const uint8_t *genesis,
		     struct err *err)
{
	struct place *p = &s->key[n];

	explicit_bzero(p, sizeof(*p));
	memcpy(p->magic, PLACE_MAGIC, sizeof(p->magic));
	p->epoch = epoch;
	s->cfg.rng->bytes(s->cfg.rng->ctx, p->seed, sizeof(p->seed));
	if (genesis)
		memcpy(p->genesis, genesis, sizeof(p->genesis));
	else
		ed25519_public(p->seed, p->genesis);
	place_check(p, p->check);
	return place_write(s, n, err);
}

static int read_keys(struct seals *s, struct err *err)
{
	void *mem = NULL;

	if (locked_new(PLACES * sizeof(struct place), &mem, err) < 0)
		return -1;
	s->key = mem;
	for (unsigned n = 0; n < PLACES; n++)
		if (pread(s->key_fd, &s->key[n], sizeof(*s->key),
			  (off_t)(n * PLACE_BYTES)) < 0)
			return err_sys_id(err, ERRID_AUDIT_DIR, "read " AUDIT_KEYS_FILE);
	return 0;
}

/* Is it the key that signs what follows the last seal? */
static bool goes_on(const struct seals *s, const struct place *p)
{
	uint8_t public[ED25519_PUBLIC_SIZE];

	if (!place_is_whole(p) || p->epoch != s->last.epoch + s->last.has_next)
		return false;
	ed25519_public(p->seed, public);
	return s->last.has_next ? memcmp(public, s->last.next, sizeof(public)) == 0
				: seal_is_of(&s->last, public);
}

/* What a dead writer left: of two keys the one that goes on, and not the other. */
static int choose_key(struct seals *s, struct err *err)
{
	bool was_restored =
		memcmp(&s->key[0], AUDIT_KEYS_RESTORED, strlen(AUDIT_KEYS_RESTORED)) == 0;
	unsigned n = 0;

	while (n < PLACES && !(s->has_last && goes_on(s, &s->key[n])))
		n++;
	if (n == PLACES && (!s->has_last || was_restored)) {
		s->must_begin = true;
		return 0;
	}
	if (n == PLACES)
		return err_set_id(
			err, ERRID_AUDIT_SEAL,
			"the private key of epoch %llu is not in " AUDIT_KEYS_FILE,
			(unsigned long long)s->last.epoch + s->last.has_next);
	s->current = n;
	n = PLACES - 1 - n;
	return place_is_blank(&s->key[n]) ? 0 : place_wipe(s, n, err);
}

/* ---- seals ---- */

/* The seals at the end of the file; what is not finished there goes. */
static int read_tail(struct seals *s, struct err *err)
{
	cleanup_free char *tail = xmalloc(TAIL_BYTES);
	const char *first = tail;
	struct stat st;
	off_t from;
	ssize_t got;
	size_t left, len;

	if (fstat(s->fd, &st) < 0)
		return err_sys_id(err, ERRID_AUDIT_DIR, SEAL_FILE);
	from = st.st_size > (off_t)TAIL_BYTES ? st.st_size - (off_t)TAIL_BYTES : 0;
	got = pread(s->fd, tail, TAIL_BYTES, from);
	if (got < 0 || from + got != st.st_size)
		return err_sys_id(err, ERRID_AUDIT_DIR, "read " SEAL_FILE);
	if (from > 0) { /* it begins within one */
		first = memmem(tail, (size_t)got, "\n\nlychgate.audit/", 17);
		first = first ? first + 2 : tail;
	}
	left = (size_t)(tail + got - first);
	for (; (len = seal_length(first, left)); first += len, left -= len) {
		if (seal_parse(first, len, &s->last, err) < 0)
			return err_wrap(err, SEAL_FILE);
		s->has_last = true;
	}
	if (left > SEAL_MAX || (from > 0 && !s->has_last))
		return err_set_id(err, ERRID_AUDIT_SEAL, SEAL_FILE ": no checkpoints");
	if (left &&
	    (ftruncate(s->fd, st.st_size - (off_t)left) < 0 || fdatasync(s->fd) < 0))
		return err_sys_id(err, ERRID_AUDIT_WRITE, "cut an unfinished checkpoint");
	if (s->has_last)
		seal_hash(&s->last, &s->last_hash);
	return 0;
}

static int open_file(const struct seals *s, const char *name, int flags, int *ret,
		     struct err *err)
{
	*ret = fs_open_beneath(s->cfg.dirfd, name, O_RDWR | O_CREAT | O_NOFOLLOW | flags,
			       0600, err);
	if (*ret >= 0)
		return 0;
	err->id = ERRID_AUDIT_WRITE;
	err->code = ERR_UNAVAILABLE;
	return err_wrap(err, "%s", name);
}

int seals_open(const struct seals_config *cfg, struct seals **ret, struct err *err)
{
	struct seals *s = xnew(struct seals);

	s->cfg = *cfg;
	s->fd = s->key_fd = -1;
	s->epoch_began = cfg->clock->boot_usec(cfg->clock->ctx);
	if (open_file(s, SEAL_FILE, O_APPEND, &s->fd, err) < 0 ||
	    open_file(s, AUDIT_KEYS_FILE, 0, &s->key_fd, err) < 0 ||
	    read_keys(s, err) < 0 || read_tail(s, err) < 0 || choose_key(s, err) < 0) {
		seals_free(s);
		return -1;
	}
	/* they were perhaps made just now */
	if (!s->has_last && fsync(cfg->dirfd) < 0) {
		seals_free(s);
		return err_sys_id(err, ERRID_AUDIT_WRITE, "fsync the audit directory");
	}
	*ret = s;
	return 0;
}

void seals_free(struct seals *s)
{
	if (!s)
		return;
	locked_free(s->key, PLACES * sizeof(struct place));
	fd_close(&s->fd);
	fd_close(&s->key_fd);
	free(s);
}

const struct seal *seals_last(const struct seals *s, struct merkle_hash *ret_hash)
{
	if (!s->has_last)
		return NULL;
	if (ret_hash)
		*ret_hash = s->last_hash;
	return &s->last;
}

bool seals_must_begin(const struct seals *s)
{
	return s->must_begin;
}

const uint8_t *seals_genesis(const struct seals *s)
{
	return s->key[s->current].genesis;
}

/* Sign it and make it durable. */
static int append(struct seals *s, struct seal *next, const struct merkle *tree,
		  struct err *err)
{
	const struct place *key = &s->key[s->current];
	cleanup_buf struct buf b;
	usec_t wall = s->cfg.clock->wall_usec(s->cfg.clock->ctx);

	next->size = tree->size;
	merkle_root(tree, &next->root);
	next->epoch = key->epoch;
	clock_rfc3339(wall, next->time);
	next->prev = s->last_hash;
	seal_sign(next, key->seed);
	buf_init(&b, SEAL_MAX);
	seal_write(&b, next);
	if (!buf_ok(&b))
		return err_set(err, ERR_INTERNAL, "a checkpoint is too long");
	if (fs_write_all(s->fd, b.data, b.len, err) < 0) {
		err->id = ERRID_AUDIT_WRITE;
		err->code = ERR_UNAVAILABLE;
		return err_wrap(err, "append to " SEAL_FILE);
	}
	if (fdatasync(s->fd) < 0)
		return err_sys_id(err, ERRID_AUDIT_WRITE, "fdatasync of " SEAL_FILE);
	s->last = *next;
	s->has_last = true;
	seal_hash(next, &s->last_hash);
	return 0;
}

int seals_begin(struct seals *s, const struct uuid *log, const struct merkle *tree,
		struct err *err)
{
	uint64_t epoch = s->has_last ? s->last.epoch + 1 : 0;
	struct seal first = {.log = *log, .has_genesis = true};

	/* the second place: the first one may say "restored", until the seal is there */
	s->current = PLACES - 1;
	if (place_new(s, s->current, epoch, NULL, err) < 0)
		return -1;
	memcpy(first.genesis, s->key[s->current].genesis, sizeof(first.genesis));
	if (append(s, &first, tree, err) < 0 ||
	    place_wipe(s, PLACES - 1 - s->current, err) < 0)
		return -1;
	s->must_begin = false;
	return 0;
}

static int add(struct seals *s, const struct merkle *tree, bool ends_epoch,
	       struct err *err)
{
	unsigned other = PLACES - 1 - s->current;
	const struct place *old = &s->key[s->current];
	struct seal next = {.log = s->last.log, .has_next = ends_epoch};

	if (!ends_epoch)
		return append(s, &next, tree, err);
	if (place_new(s, other, old->epoch + 1, old->genesis, err) < 0)
		return -1;
	ed25519_public(s->key[other].seed, next.next);
	if (append(s, &next, tree, err) < 0 || place_wipe(s, s->current, err) < 0)
		return -1;
	s->current = other;
	s->epoch_began = s->cfg.clock->boot_usec(s->cfg.clock->ctx);
	return 0;
}

int seals_add(struct seals *s, const struct merkle *tree, bool ends_epoch,
	      struct err *err)
{
	usec_t now = s->cfg.clock->boot_usec(s->cfg.clock->ctx);

	if (s->is_broken)
		return err_set_id(err, ERRID_AUDIT_WRITE, "a write has failed before");
	if (add(s, tree, ends_epoch || now - s->epoch_began >= EPOCH_USEC, err) < 0) {
		s->is_broken = true;
		return -1;
	}
	return 0;
}
