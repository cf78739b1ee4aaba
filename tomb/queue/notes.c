/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See notes.h.
 */
#include "tomb/queue/notes.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORDS_MAX 4096

/* A page holds them without a rest, so that none lies across two. */
struct record {
	uint32_t kind, version;
	int64_t job, epoch;
	char id[40], boot[40]; /* token, or claim and boot */
	uint8_t unused[16];
	uint64_t sum; /* over all before it */
};
_Static_assert(sizeof(struct record) == 128, "a part of a page");
#define RECORD_VERSION 1u

struct notes {
	int fd;
	struct uuid boot;
	size_t claim; /* the number of our claim's note, 0: none yet */
	bool failed;  /* said once */
	/* Numbers begin with 1. */
	bool used[RECORDS_MAX];
	size_t n; /* none above is used */
	struct {
		size_t number;
		struct note note;
	} *left;
	size_t n_left;
};

/* FNV-1a: tells a whole record from a torn one. */
static uint64_t record_sum(const struct record *r)
{
	const unsigned char *p = (const unsigned char *)r;
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < offsetof(struct record, sum); i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

static bool note_write(struct notes *n, size_t number, const struct record *r)
{
	ssize_t w = pwrite(n->fd, r, sizeof(*r), (off_t)(number - 1) * (off_t)sizeof(*r));

	if (w == (ssize_t)sizeof(*r))
		return true;
	if (!n->failed)
		log_warn("a lease could not be noted (%s): if this tomb dies it runs out",
			 w < 0 ? strerror(errno) : "no room");
	n->failed = true;
	return false;
}

static size_t number_new(struct notes *n)
{
	size_t i = 0;

	while (i < n->n && n->used[i])
		i++;
	if (i == RECORDS_MAX)
		return 0;
	n->used[i] = true;
	if (i == n->n)
		n->n++;
	return i + 1;
}

static size_t note_add(struct notes *n, size_t number, struct record *r)
{
	r->version = RECORD_VERSION;
	r->sum = record_sum(r);
	if (number && note_write(n, number, r))
		return number;
	notes_end(n, number);
	return 0;
}

void notes_claim(struct notes *n, const struct uuid *claim)
{
	struct record r = {.kind = NOTE_CLAIM};

	memcpy(r.id, claim->s, sizeof(claim->s));
	memcpy(r.boot, n->boot.s, sizeof(n->boot.s));
	n->claim = note_add(n, n->claim ? n->claim : number_new(n), &r);
}

size_t notes_lease(struct notes *n, const struct lease_key *key)
{
	struct record r = {.kind = NOTE_LEASE, .job = key->job, .epoch = key->epoch};

	memcpy(r.id, key->token.s, sizeof(key->token.s));
	return note_add(n, number_new(n), &r);
}

void notes_end(struct notes *n, size_t number)
{
	static const struct record none;

	if (!number)
		return;
	(void)note_write(n, number, &none);
	n->used[number - 1] = false;
	for (size_t i = 0; i < n->n_left; i++)
		if (n->left[i].number == number)
			n->left[i] = n->left[--n->n_left];
}

const struct note *notes_left(const struct notes *n, size_t i, size_t *ret_number)
{
	if (i >= n->n_left)
		return NULL;
	*ret_number = n->left[i].number;
	return &n->left[i].note;
}

static bool record_read(const struct record *r, struct note *ret)
{
	*ret = (struct note){.kind = (enum note_kind)r->kind};
	if (r->version != RECORD_VERSION || r->sum != record_sum(r) ||
	    r->id[sizeof(ret->claim.s) - 1] || r->boot[sizeof(ret->boot.s) - 1])
		return false;
	if (r->kind == NOTE_CLAIM)
		return uuid_parse(r->id, &ret->claim, NULL) == 0 &&
		       uuid_parse(r->boot, &ret->boot, NULL) == 0;
	ret->lease.job = r->job;
	ret->lease.epoch = r->epoch;
	return r->kind == NOTE_LEASE && r->job > 0 && r->epoch > 0 &&
	       uuid_parse(r->id, &ret->lease.token, NULL) == 0;
}

static void note_keep(struct notes *n, size_t number, const struct note *note)
{
	n->left = xreallocarray(n->left, n->n_left + 1, sizeof(*n->left));
	n->left[n->n_left].number = number;
	n->left[n->n_left++].note = *note;
}

void notes_inherit(struct notes *n, const struct lease_key *key)
{
	const struct note note = {.kind = NOTE_LEASE, .lease = *key};
	size_t number = notes_lease(n, key);

	if (number)
		note_keep(n, number, &note);
}

/* Records that are none are room for new ones. */
static int notes_read(struct notes *n, struct err *err)
{
	for (size_t number = 1; number <= RECORDS_MAX; number++) {
		struct record r;
		struct note note;
		ssize_t got = pread(n->fd, &r, sizeof(r),
				    (off_t)(number - 1) * (off_t)sizeof(r));

		if (got < 0)
			return err_sys(err, "read %s", NOTES_FILE);
		if (got < (ssize_t)sizeof(r))
			break;
		if (!record_read(&r, &note))
			continue;
		note_keep(n, number, &note);
		n->used[number - 1] = true;
		n->n = number;
	}
	return 0;
}

int notes_open(int data_fd, const struct uuid *boot, bool proved, struct notes **ret,
	       struct err *err)
{
	struct notes *n = xnew(struct notes);
	struct stat st;

	n->boot = *boot;
	n->fd = fs_open_beneath(data_fd, NOTES_FILE, O_RDWR | O_CREAT | O_NOFOLLOW, 0600,
				err);
	if (n->fd < 0)
		goto fail;
	if (fstat(n->fd, &st) < 0 || !S_ISREG(st.st_mode) || (st.st_mode & 077)) {
		(void)err_set(err, ERR_SYS, "%s is not a file of ours alone", NOTES_FILE);
		goto fail;
	}
	if (proved ? notes_read(n, err) < 0 : ftruncate(n->fd, 0) < 0) {
		(void)err_wrap(err, "%s", NOTES_FILE);
		goto fail;
	}
	*ret = n;
	return 0;
fail:
	notes_free(n);
	return -1;
}

void notes_free(struct notes *n)
{
	if (!n)
		return;
	fd_close(&n->fd);
	if (n->left)
		explicit_bzero(n->left, n->n_left * sizeof(*n->left));
	free(n->left);
	free(n);
}
