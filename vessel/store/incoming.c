/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See incoming.h.
 */
#include "vessel/store/incoming.h"
#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define SLICE_BYTES ((size_t)512 << 10) /* hashed in one turn of the loop */
#define COMMITS_MAX 8			/* a call that was repeated */
#define NAME_SIZE (UPLOAD_OWNER_SIZE + 1 + UPLOAD_ID_SIZE)

/* One call that waits for the end of its upload. */
struct commit {
	char sha256_hex[SHA256_HEX_SIZE];
	incoming_done *done;
	void *arg;
};

struct upload {
	char name[NAME_SIZE];
	size_t owner_len;
	uint64_t size, hashed;
	struct sha256 *sum; /* of the first `hashed` bytes; NULL: of none */
	uint64_t used_at;
	struct commit commit[COMMITS_MAX];
	unsigned n_commits;
	struct upload *next; /* among those with bytes to hash */
	bool is_queued;
};

struct incoming {
	int dirfd;
	struct store_budget *budget;
	struct blobs *blobs;
	struct upload **list;
	size_t n;
	uint64_t tick;
	struct upload *head, *tail; /* of those with bytes to hash */
	struct loop_timer *turn;
	char *slice;
};

/* ---- the list ---- */

typedef bool owned_fn(const struct upload *u, const char *owner);

static bool is_owned_by(const struct upload *u, const char *owner)
{
	return strlen(owner) == u->owner_len &&
	       strncmp(u->name, owner, u->owner_len) == 0;
}

/* Both by the same tomb: what stands before the first dot. */
static bool is_of_same_tomb(const struct upload *u, const char *owner)
{
	size_t n = strcspn(owner, ".");

	return n < u->owner_len && owner[n] == '.' && strncmp(u->name, owner, n + 1) == 0;
}

static struct upload *find(const struct incoming *in, const char *name)
{
	for (size_t i = 0; i < in->n; i++)
		if (str_eq(in->list[i]->name, name))
			return in->list[i];
	return NULL;
}

static struct upload *add(struct incoming *in, const char *name, uint64_t size)
{
	struct upload *u = xnew(struct upload);
	const char *dash = strrchr(name, '-');

	/* the name was made, or measured, to fit */
	memcpy(u->name, name, strlen(name) + 1);
	u->owner_len = dash ? (size_t)(dash - name) : strlen(name);
	u->size = size;
	u->used_at = ++in->tick;
	in->list = xreallocarray(in->list, in->n + 1, sizeof(struct upload *));
	in->list[in->n++] = u;
	return u;
}

static void unqueue(struct incoming *in, struct upload *u)
{
	struct upload **at = &in->head, *before = NULL;

	if (!u->is_queued)
		return;
	while (*at != u) {
		before = *at;
		at = &before->next;
	}
	*at = u->next;
	if (in->tail == u)
		in->tail = before;
	u->next = NULL;
	u->is_queued = false;
}

static void queue(struct incoming *in, struct upload *u)
{
	if (u->is_queued)
		return;
	u->is_queued = true;
	if (in->tail)
		in->tail->next = u;
	else
		in->head = u;
	in->tail = u;
	loop_timer_arm(in->turn, 0);
}

static void forget_hash(struct upload *u)
{
	sha256_free(u->sum);
	u->sum = NULL;
	u->hashed = 0;
}

/* Its file is gone or somebody else's by now. */
static void drop(struct incoming *in, struct upload *u)
{
	unqueue(in, u);
	forget_hash(u);
	for (size_t i = 0; i < in->n; i++) {
		if (in->list[i] != u)
			continue;
		in->list[i] = in->list[--in->n];
		break;
	}
	free(u);
}

static void remove_upload(struct incoming *in, struct upload *u)
{
	if (unlinkat(in->dirfd, u->name, 0) == 0)
		store_return(in->budget, u->size);
	drop(in, u);
}

/* Whoever waits is told. It is gone then, with its file when that is to be `removed`; but for
 * an error that leaves it as it was. */
static void settle(struct incoming *in, struct upload *u, bool removed,
		   const struct err *err)
{
	struct commit waiting[COMMITS_MAX];
	unsigned n = u->n_commits;

	memcpy(waiting, u->commit, sizeof(waiting));
	u->n_commits = 0;
	forget_hash(u);
	if (removed)
		remove_upload(in, u);
	else if (!err)
		drop(in, u);
	for (unsigned i = 0; i < n; i++)
		waiting[i].done(err, waiting[i].arg);
}

/* ---- birth ---- */

static int load(struct incoming *in, struct err *err)
{
	cleanup_close int fd = openat(in->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!dir)
		return err_sys(err, "list uploads");
	fd = -1; /* the DIR's now */
	while ((e = readdir(dir))) {
		struct stat st;

		if (e->d_name[0] == '.' || strlen(e->d_name) >= NAME_SIZE ||
		    fstatat(in->dirfd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		(void)add(in, e->d_name, (uint64_t)st.st_size);
		in->budget->used += (uint64_t)st.st_size;
	}
	return 0;
}

static void on_turn(void *arg);

int incoming_new(struct loop *l, int data_fd, struct store_budget *budget,
		 struct blobs *blobs, struct incoming **ret, struct err *err)
{
	struct incoming *in = xnew(struct incoming);

	in->budget = budget;
	in->blobs = blobs;
	in->dirfd = -1;
	in->turn = loop_timer_new(l, on_turn, in);
	in->slice = xmalloc(SLICE_BYTES);
	if (fs_mkdir_beneath(data_fd, "uploads", 0700, err) == 0)
		in->dirfd = fs_open_beneath(data_fd, "uploads", O_RDONLY | O_DIRECTORY, 0,
					    err);
	if (in->dirfd < 0 || load(in, err) < 0) {
		incoming_free(in);
		return -1;
	}
	*ret = in;
	return 0;
}

void incoming_free(struct incoming *in)
{
	struct err err = ERR_INIT;

	if (!in)
		return;
	(void)err_set(&err, ERR_UNAVAILABLE, "the vessel stops");
	while (in->n) {
		settle(in, in->list[in->n - 1], false, &err);
		drop(in, in->list[in->n - 1]);
	}
	free(in->list);
	loop_timer_free(in->turn);
	free(in->slice);
	fd_close(&in->dirfd);
	free(in);
}

/* ---- begin and append ---- */

/* Both parts are checked, since they become a file name. */
static int upload_name(char out[NAME_SIZE], const char *owner, const char *id,
		       struct err *err)
{
	uint8_t raw[(UPLOAD_ID_SIZE - 1) / 2];

	if (strlen(id) != UPLOAD_ID_SIZE - 1 || hex_decode(id, raw, sizeof(raw)) < 0)
		return err_set_id(err, ERRID_STORE_UPLOAD,
				  "an upload's id is 32 hex digits");
	if (strchr(owner, '/') || owner[0] == '.' ||
	    str_fmt(out, NAME_SIZE, "%s-%s", owner, id) < 0)
		return err_set(err, ERR_INTERNAL, "owner of an upload");
	return 0;
}

struct share {
	size_t n;
	uint64_t bytes;
	struct upload *idle; /* the one of them that nobody waits for and is oldest */
};

/* What this owner has but for `but`. */
static struct share share_by(const struct incoming *in, owned_fn *is_owned,
			     const char *owner, const struct upload *but)
{
	struct share s = {0};

	for (size_t i = 0; i < in->n; i++) {
		struct upload *u = in->list[i];

		if (u == but || !is_owned(u, owner))
			continue;
		s.n++;
		s.bytes += u->size;
		if (!u->n_commits && (!s.idle || u->used_at < s.idle->used_at))
			s.idle = u;
	}
	return s;
}

static struct share share_of(const struct incoming *in, const char *owner,
			     const struct upload *but)
{
	return share_by(in, is_owned_by, owner, but);
}

static int full(size_t n, struct err *err)
{
	return err_set_id(err, ERRID_STORE_LIMIT, "%zu uploads are open", n);
}

/* A place for one more. */
static int find_place(struct incoming *in, const char *owner, struct err *err)
{
	struct share mine = share_of(in, owner, NULL);
	struct share tombs;
	size_t persons = share_of(in, UPLOAD_OWNER, NULL).n;

	if (str_eq(owner, UPLOAD_OWNER))
		return persons < UPLOADS_OWNER_MAX ? 0 : full(persons, err);
	/* a begin whose answer was lost left it */
	if (mine.n >= UPLOADS_LEASE_MAX) {
		if (!mine.idle)
			return full(mine.n, err);
		remove_upload(in, mine.idle);
	}
	/* leases that ended left them */
	tombs = share_by(in, is_of_same_tomb, owner, NULL);
	if (tombs.n >= UPLOADS_TOMB_MAX && tombs.idle)
		remove_upload(in, tombs.idle);
	else if (tombs.n >= UPLOADS_TOMB_MAX)
		return full(tombs.n, err);
	return in->n - persons < UPLOADS_MAX - UPLOADS_OWNER_MAX
		       ? 0
		       : full(in->n - persons, err);
}

int incoming_begin(struct incoming *in, const char *owner, const struct random_ops *rng,
		   char ret_id[UPLOAD_ID_SIZE], struct err *err)
{
	cleanup_close int fd = -1;
	char name[NAME_SIZE], id[UPLOAD_ID_SIZE];
	uint8_t raw[(UPLOAD_ID_SIZE - 1) / 2];

	rng->bytes(rng->ctx, raw, sizeof(raw));
	hex_encode(raw, sizeof(raw), id);
	if (upload_name(name, owner, id, err) < 0 || find_place(in, owner, err) < 0)
		return -1;
	fd = fs_open_beneath(in->dirfd, name, O_WRONLY | O_CREAT | O_EXCL, 0600, err);
	if (fd < 0)
		return store_err(err);
	(void)add(in, name, 0);
	memcpy(ret_id, id, sizeof(id));
	return 0;
}

/* The upload of that name, and its file. */
static int upload_open(struct incoming *in, const char *owner, const char *id,
		       struct upload **ret, struct err *err)
{
	char name[NAME_SIZE];
	int fd;

	if (upload_name(name, owner, id, err) < 0)
		return -1;
	*ret = find(in, name);
	if (!*ret)
		return err_set_id(err, ERRID_STORE_UPLOAD, "no such upload");
	fd = fs_open_beneath(in->dirfd, name, O_RDWR | O_NOFOLLOW, 0, err);
	if (fd < 0 && err->sys == ENOENT) {
		drop(in, *ret);
		return err_set_id(err, ERRID_STORE_UPLOAD, "its file is gone");
	}
	if (fd >= 0 && store_size(fd, &(*ret)->size, err) < 0)
		fd_close(&fd);
	return fd;
}

/* n more bytes in u: within the lease's share, at the cost of its own idle ones. */
static int find_room(struct incoming *in, const char *owner, const struct upload *u,
		     size_t n, struct err *err)
{
	struct share others;

	if (n > BLOB_MAX_BYTES - u->size)
		return err_set_id(err, ERRID_STORE_LIMIT, "a blob is at most %llu bytes",
				  (unsigned long long)BLOB_MAX_BYTES);
	while (!str_eq(owner, UPLOAD_OWNER)) {
		others = share_of(in, owner, u);
		if (others.bytes <= BLOB_MAX_BYTES - u->size - n)
			break;
		if (!others.idle)
			return err_set_id(err, ERRID_STORE_LIMIT,
					  "the uploads of one attempt have at most %llu "
					  "bytes",
					  (unsigned long long)BLOB_MAX_BYTES);
		remove_upload(in, others.idle);
	}
	return store_reserve(in->budget,
			     str_eq(owner, UPLOAD_OWNER) ? STORE_PERSON : STORE_TOMB, n,
			     err);
}

int incoming_append(struct incoming *in, const char *owner, const char *id,
		    uint64_t offset, const void *data, size_t len, uint64_t *ret_size,
		    struct err *err)
{
	struct upload *u = NULL;
	cleanup_close int fd = upload_open(in, owner, id, &u, err);
	uint64_t size;

	if (fd < 0)
		return -1;
	*ret_size = size = u->size;
	u->used_at = ++in->tick;
	if (offset > size)
		return err_set_id(err, ERRID_RUN_GAP, "offset %llu, %llu bytes received",
				  (unsigned long long)offset, (unsigned long long)size);
	if (len <= size - offset)
		return 0;
	if (u->n_commits)
		return err_set_id(err, ERRID_STORE_HASH, "it is being committed");
	const char *fresh = (const char *)data + (size - offset);
	size_t n = len - (size_t)(size - offset);

	if (find_room(in, owner, u, n, err) < 0)
		return -1;
	if (store_append(fd, size, fresh, n, err) < 0) {
		store_return(in->budget, n);
		return -1;
	}
	*ret_size = u->size = size + n;
	queue(in, u);
	return 0;
}

/* ---- the hash, and what it was for ---- */

/* All of it is hashed, and somebody wants it to be a blob. */
static void finish(struct incoming *in, struct upload *u, int fd)
{
	uint8_t want[SHA256_SIZE], got[SHA256_SIZE];
	struct err err = ERR_INIT;

	sha256_final(u->sum, got);
	if (sha256_hex_parse(u->commit[0].sha256_hex, want, &err) < 0 ||
	    !mem_eq_ct(want, got, sizeof(got))) {
		(void)err_set_id(&err, ERRID_STORE_HASH, "the sha256 differs");
		settle(in, u, true, &err);
		return;
	}
	if (blobs_take(in->blobs, in->dirfd, u->name, fd, u->commit[0].sha256_hex, &err) <
	    0)
		settle(in, u, false, &err);
	else
		settle(in, u, false, NULL);
}

static int hash_slice(struct incoming *in, struct upload *u, int fd, struct err *err)
{
	uint64_t left = u->size - u->hashed;
	size_t want = left < SLICE_BYTES ? (size_t)left : SLICE_BYTES;
	ssize_t n = want ? pread(fd, in->slice, want, (off_t)u->hashed) : 0;

	if (n < 0 && errno == EINTR)
		return 0;
	if (n < 0)
		return err_sys(err, "read upload");
	if (want && n == 0)
		return err_set(err, ERR_INTERNAL, "the upload became shorter");
	if (!u->sum)
		u->sum = sha256_new();
	sha256_add(u->sum, in->slice, (size_t)n);
	u->hashed += (uint64_t)n;
	return 0;
}

/* One slice of the next in line. */
static void on_turn(void *arg)
{
	struct incoming *in = arg;
	struct upload *u = in->head;
	cleanup_close int fd = -1;
	struct err err = ERR_INIT;

	if (!u)
		return;
	unqueue(in, u);
	fd = fs_open_beneath(in->dirfd, u->name, O_RDWR | O_NOFOLLOW, 0, &err);
	if (fd < 0 || hash_slice(in, u, fd, &err) < 0)
		settle(in, u, false, &err);
	else if (u->hashed < u->size)
		queue(in, u);
	else if (u->n_commits)
		finish(in, u, fd);
	if (in->head)
		loop_timer_arm(in->turn, 0);
}

int incoming_commit(struct incoming *in, const char *owner, const char *id,
		    const char *sha256_hex, uint64_t size, incoming_done *done, void *arg,
		    struct err *err)
{
	struct upload *u = NULL;
	uint8_t want[SHA256_SIZE];
	cleanup_close int fd = -1;
	struct commit *c;

	if (sha256_hex_parse(sha256_hex, want, NULL) < 0)
		return err_set_id(err, ERRID_SPEC_RANGE,
				  "sha256: 64 lower-case hex digits");
	fd = upload_open(in, owner, id, &u, err);
	if (fd < 0)
		return -1;
	if (u->size != size)
		return err_set_id(err, ERRID_STORE_HASH, "%llu bytes received, not %llu",
				  (unsigned long long)u->size, (unsigned long long)size);
	if (u->n_commits &&
	    (u->n_commits == COMMITS_MAX || !str_eq(u->commit[0].sha256_hex, sha256_hex)))
		return err_set_id(err, ERRID_STORE_HASH, "it is being committed");
	c = &u->commit[u->n_commits++];
	*c = (struct commit){.done = done, .arg = arg};
	memcpy(c->sha256_hex, sha256_hex, sizeof(c->sha256_hex));
	u->used_at = ++in->tick;
	queue(in, u);
	return 0;
}

/* Moved by every write. */
static usec_t last_used_usec(const struct stat *st)
{
	return st->st_ctim.tv_sec < 0 ? 0
				      : (usec_t)st->st_ctim.tv_sec * USEC_PER_SEC +
						(usec_t)st->st_ctim.tv_nsec / 1000;
}

void incoming_reap(struct incoming *in, usec_t before_wall_usec, unsigned *ret_n)
{
	*ret_n = 0;
	for (size_t i = in->n; i-- > 0;) {
		struct upload *u = in->list[i];
		struct stat st;

		if (u->n_commits ||
		    fstatat(in->dirfd, u->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    last_used_usec(&st) >= before_wall_usec)
			continue;
		remove_upload(in, u);
		(*ret_n)++;
	}
}
