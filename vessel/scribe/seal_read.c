/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-audit.
 * See seal_read.h.
 */
#include "vessel/scribe/seal_read.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define READ_CHUNK ((size_t)65536)

int seal_reader_open(struct seal_reader *r, int dirfd, struct err *err)
{
	struct err why = ERR_INIT;
	struct stat st;

	*r = (struct seal_reader){.fd = -1};
	buf_init(&r->b, READ_CHUNK + SEAL_MAX);
	r->fd = fs_open_beneath(dirfd, SEAL_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0,
				&why);
	if (r->fd < 0 && why.sys != ENOENT)
		return err_set_id(err, ERRID_AUDIT_DIR, SEAL_FILE ": %s", why.msg);
	if (r->fd >= 0 && fstat(r->fd, &st) < 0)
		return err_sys_id(err, ERRID_AUDIT_DIR, SEAL_FILE);
	r->file_bytes = r->fd < 0 ? 0 : (uint64_t)st.st_size;
	return 0;
}

void seal_reader_done(struct seal_reader *r)
{
	fd_close(&r->fd);
	buf_done(&r->b);
}

static int refuse(struct seal_reader *r, enum seal_flaw flaw, const struct seal *s,
		  const char *why, struct err *err)
{
	r->flaw = flaw;
	return err_set_id(err, ERRID_AUDIT_SEAL,
			  "checkpoint %llu (of %llu records, epoch %llu): %s",
			  (unsigned long long)r->count + 1, (unsigned long long)s->size,
			  (unsigned long long)s->epoch, why);
}

/* Whose signature it must have: the key of its epoch, or where keys begin its own. */
static int check_key(struct seal_reader *r, const struct seal *s, struct err *err)
{
	uint64_t epoch = r->epoch;

	if (s->has_genesis)
		epoch = r->count ? r->last.epoch + 1 : 0;
	else if (r->count == 0)
		return refuse(r, SEAL_MISSING, s, "the one with which keys began is gone",
			      err);
	if (s->epoch > epoch)
		return refuse(r, SEAL_MISSING, s, "the end of an epoch before it is gone",
			      err);
	if (s->epoch < epoch)
		return refuse(r, SEAL_FORGED, s, "its epoch had ended", err);
	if (!seal_is_of(s, s->has_genesis ? s->genesis : r->key))
		return refuse(r, SEAL_FORGED, s, "the key of its epoch did not sign it",
			      err);
	return 0;
}

static int follow(struct seal_reader *r, const struct seal *s, struct err *err)
{
	if (r->count && !str_eq(s->log.s, r->last.log.s))
		return refuse(r, SEAL_FORGED, s, "it is of another log", err);
	if (check_key(r, s, err) < 0)
		return -1;
	if (!merkle_hash_eq(&s->prev, &r->hash))
		return refuse(r, SEAL_MISSING, s, "the one before it is gone", err);
	if (r->count && s->size < r->last.size)
		return refuse(r, SEAL_FORGED, s, "it is of fewer records than the last",
			      err);
	if (s->has_genesis) {
		memcpy(r->genesis, s->genesis, sizeof(r->genesis));
		memcpy(r->key, s->genesis, sizeof(r->key));
		r->epoch = s->epoch;
		r->began = s->size;
		r->begins++;
	}
	if (s->has_next) {
		memcpy(r->key, s->next, sizeof(r->key));
		r->epoch++;
	}
	r->last = *s;
	seal_hash(s, &r->hash);
	r->count++;
	return 1;
}

static int read_more(struct seal_reader *r, struct err *err)
{
	char chunk[4096];
	ssize_t n;

	do
		n = read(r->fd, chunk, sizeof(chunk));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys_id(err, ERRID_AUDIT_DIR, "read " SEAL_FILE);
	buf_add(&r->b, chunk, (size_t)n);
	return n > 0;
}

int seal_reader_next(struct seal_reader *r, struct err *err)
{
	size_t len;

	if (r->fd < 0)
		return 0;
	while (!(len = seal_length(r->b.data, r->b.len))) {
		struct seal none = {0};
		int more;

		if (r->b.len > SEAL_MAX)
			return refuse(r, SEAL_FORGED, &none, "no checkpoint", err);
		more = read_more(r, err);
		if (more <= 0)
			return more;
	}
	struct seal s = {0};

	if (seal_parse(r->b.data, len, &s, err) < 0) {
		r->flaw = SEAL_FORGED;
		return err_wrap(err, "checkpoint %llu", (unsigned long long)r->count + 1);
	}
	buf_consume(&r->b, len);
	r->read_bytes += len;
	return follow(r, &s, err);
}
