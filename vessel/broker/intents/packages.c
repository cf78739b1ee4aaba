/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See packages.h.
 */
#include "vessel/broker/intents/packages.h"

#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/fs.h"
#include "common/id.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIR_NAME "packages"
#define TMP_PREFIX "tmp-"
#define MAGIC "lych-package-1"
#define CHUNK_BYTES ((size_t)256 << 10)
#define NAME_SIZE SHA256_HEX_SIZE

struct entry {
	char name[NAME_SIZE];
	uint64_t size; /* of the file, with its head */
	usec_t stored_wall;
	usec_t used_boot; /* 0: not since the start */
	bool verified;
};

struct packages {
	int dir;
	const struct clock_ops *clock;
	uint64_t max, used; /* with what is being written */
	uint64_t counter;
	struct entry *entry;
	size_t n;
};

struct packages_write {
	struct packages *p;
	int fd;
	uint64_t size;
	char name[NAME_SIZE], tmp[32];
	char content_type[PACKAGES_TYPE_MAX];
	struct sha256 *sum;
};

static void name_of(const char *key, char out[NAME_SIZE])
{
	uint8_t sum[SHA256_SIZE];

	sha256_of(key, strlen(key), sum);
	hex_encode(sum, sizeof(sum), out);
}

static struct entry *lookup(struct packages *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++)
		if (memcmp(p->entry[i].name, name, NAME_SIZE) == 0)
			return &p->entry[i];
	return NULL;
}

static void drop(struct packages *p, struct entry *e)
{
	(void)unlinkat(p->dir, e->name, 0);
	p->used -= e->size < p->used ? e->size : p->used;
	*e = p->entry[--p->n];
}

static struct entry *oldest(struct packages *p)
{
	struct entry *ret = NULL;

	for (size_t i = 0; i < p->n; i++) {
		struct entry *e = &p->entry[i];

		if (!ret || e->used_boot < ret->used_boot ||
		    (e->used_boot == ret->used_boot && e->stored_wall < ret->stored_wall))
			ret = e;
	}
	return ret;
}

/* n more bytes, in place of the least recently used. */
static int make_room(struct packages *p, uint64_t n, struct err *err)
{
	while (p->n && (n > p->max || p->used > p->max - n))
		drop(p, oldest(p));
	if (n > p->max || p->used > p->max - n)
		return err_set_id(err, ERRID_STORE_LIMIT,
				  "the package cache holds %" PRIu64 " bytes", p->max);
	p->used += n;
	return 0;
}

static void remember(struct packages *p, const char *name, uint64_t size,
		     usec_t stored_wall, bool verified)
{
	struct entry *e = lookup(p, name);

	if (e)
		p->used -= e->size < p->used ? e->size : p->used;
	else if (p->n == PACKAGES_ENTRIES_MAX)
		drop(p, oldest(p));
	if (!e)
		e = &p->entry[p->n++];
	*e = (struct entry){.size = size,
			    .stored_wall = stored_wall,
			    .used_boot =
				    verified ? p->clock->boot_usec(p->clock->ctx) : 0,
			    .verified = verified};
	memcpy(e->name, name, NAME_SIZE);
}

static bool is_name(const char *s)
{
	uint8_t sum[SHA256_SIZE];

	return strlen(s) == NAME_SIZE - 1 && hex_decode(s, sum, sizeof(sum)) == 0;
}

static int list(struct packages *p, struct err *err)
{
	cleanup_dir DIR *dir = NULL;
	const struct dirent *e;
	int fd = fs_open_beneath(p->dir, ".", O_RDONLY | O_DIRECTORY, 0, err);

	if (fd < 0)
		return -1;
	dir = fdopendir(fd);
	if (!dir) {
		fd_close(&fd);
		return err_sys(err, "list " DIR_NAME);
	}
	while ((e = readdir(dir))) {
		struct stat st;

		if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
			continue;
		if (!is_name(e->d_name) || p->n == PACKAGES_ENTRIES_MAX ||
		    fstatat(p->dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode)) {
			if (fs_remove_beneath(p->dir, e->d_name, err) < 0)
				return -1;
			continue;
		}
		remember(p, e->d_name, (uint64_t)st.st_size,
			 (usec_t)st.st_mtim.tv_sec * USEC_PER_SEC, false);
		p->used += (uint64_t)st.st_size;
	}
	return 0;
}

int packages_new(int data_fd, uint64_t max_bytes, const struct clock_ops *clock,
		 struct packages **ret, struct err *err)
{
	struct packages *p = xnew(struct packages);

	p->dir = -1;
	p->max = max_bytes;
	p->clock = clock;
	p->entry = xcalloc(PACKAGES_ENTRIES_MAX, sizeof(*p->entry));
	if (fs_mkdir_beneath(data_fd, DIR_NAME, 0700, err) == 0)
		p->dir = fs_open_beneath(data_fd, DIR_NAME, O_RDONLY | O_DIRECTORY, 0,
					 err);
	if (p->dir < 0 || list(p, err) < 0) {
		packages_free(p);
		return -1;
	}
	while (p->used > p->max && p->n)
		drop(p, oldest(p));
	*ret = p;
	return 0;
}

void packages_free(struct packages *p)
{
	if (!p)
		return;
	fd_close(&p->dir);
	free(p->entry);
	free(p);
}

uint64_t packages_used(const struct packages *p)
{
	return p->used;
}

/* "MAGIC LENGTH SHA256 TYPE\n", then zeros. */
static int read_head(int fd, uint64_t size, struct packages_hit *hit,
		     char sum[SHA256_HEX_SIZE])
{
	char head[PACKAGES_HEAD + 1], *type, *hash, *len, *end;
	struct err ignored = ERR_INIT;

	if (size < PACKAGES_HEAD || pread(fd, head, PACKAGES_HEAD, 0) != PACKAGES_HEAD)
		return -1;
	head[PACKAGES_HEAD] = '\0';
	end = strchr(head, '\n');
	if (!end || !str_starts(head, MAGIC " "))
		return -1;
	*end = '\0';
	len = head + strlen(MAGIC " ");
	hash = strchr(len, ' ');
	if (!hash)
		return -1;
	*hash++ = '\0';
	type = strchr(hash, ' ');
	if (!type)
		return -1;
	*type++ = '\0';
	if (parse_u64(len, 0, UINT64_MAX - PACKAGES_HEAD, &hit->len, &ignored) < 0 ||
	    hit->len + PACKAGES_HEAD != size ||
	    str_copy(sum, SHA256_HEX_SIZE, hash) < 0 ||
	    str_copy(hit->content_type, sizeof(hit->content_type), type) < 0)
		return -1;
	return 0;
}

static bool body_has(int fd, uint64_t len, const char *want)
{
	struct sha256 *h cleanup_sha256 = sha256_new();
	cleanup_free char *chunk = xmalloc(CHUNK_BYTES);
	char sum[SHA256_HEX_SIZE];
	uint64_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, chunk, CHUNK_BYTES, (off_t)(PACKAGES_HEAD + done));

		if (n <= 0)
			return false;
		sha256_add(h, chunk, (size_t)n);
		done += (uint64_t)n;
	}
	sha256_hex(h, sum);
	return str_eq(sum, want);
}

bool packages_find(struct packages *p, const char *key, usec_t max_age,
		   struct packages_hit *ret)
{
	char name[NAME_SIZE], sum[SHA256_HEX_SIZE];
	cleanup_close int fd = -1;
	struct err ignored = ERR_INIT;
	struct entry *e;
	usec_t now = p->clock->wall_usec(p->clock->ctx);
	uint64_t size;

	name_of(key, name);
	e = lookup(p, name);
	if (!e || (max_age != USEC_INFINITY &&
		   (now < e->stored_wall || now - e->stored_wall > max_age)))
		return false;
	fd = fs_open_beneath(p->dir, name, O_RDONLY, 0, &ignored);
	if (fd < 0 || store_size(fd, &size, &ignored) < 0 ||
	    read_head(fd, size, ret, sum) < 0 ||
	    (!e->verified && !body_has(fd, ret->len, sum))) {
		drop(p, e);
		return false;
	}
	e->verified = true;
	e->used_boot = p->clock->boot_usec(p->clock->ctx);
	ret->fd = TAKE_FD(fd);
	return true;
}

int packages_begin(struct packages *p, const char *key, const char *content_type,
		   struct packages_write **ret, struct err *err)
{
	struct packages_write *w = xnew(struct packages_write);

	w->p = p;
	w->fd = -1;
	w->size = PACKAGES_HEAD;
	w->sum = sha256_new();
	name_of(key, w->name);
	if (str_copy(w->content_type, sizeof(w->content_type), content_type) < 0 ||
	    str_has_control(content_type, strlen(content_type)) ||
	    str_fmt(w->tmp, sizeof(w->tmp), TMP_PREFIX "%" PRIu64, p->counter++) < 0) {
		(void)err_set_id(err, ERRID_REGISTRY_INDEX, "an odd content type");
		goto fail;
	}
	w->fd = fs_open_beneath(p->dir, w->tmp, O_RDWR | O_CREAT | O_EXCL, 0600, err);
	if (w->fd < 0)
		goto fail;
	if (make_room(p, PACKAGES_HEAD, err) < 0) {
		w->size = 0;
		goto fail;
	}
	*ret = w;
	return 0;
fail:
	if (w->fd < 0)
		w->size = 0;
	packages_abort(w);
	return -1;
}

int packages_add(struct packages_write *w, const void *data, size_t len, struct err *err)
{
	if (make_room(w->p, len, err) < 0)
		return -1;
	if (store_append(w->fd, w->size, data, len, err) < 0) {
		w->p->used -= len;
		return -1;
	}
	w->size += len;
	sha256_add(w->sum, data, len);
	return 0;
}

static void write_free(struct packages_write *w)
{
	fd_close(&w->fd);
	sha256_free(w->sum);
	free(w);
}

int packages_commit(struct packages_write *w, struct err *err)
{
	struct packages *p = w->p;
	char head[PACKAGES_HEAD] = "", sum[SHA256_HEX_SIZE];

	sha256_hex(w->sum, sum);
	if (str_fmt(head, sizeof(head), MAGIC " %" PRIu64 " %s %s\n",
		    w->size - PACKAGES_HEAD, sum, w->content_type) < 0 ||
	    pwrite(w->fd, head, sizeof(head), 0) != PACKAGES_HEAD ||
	    renameat(p->dir, w->tmp, p->dir, w->name) < 0) {
		(void)err_sys(err, "keep a package");
		packages_abort(w);
		return -1;
	}
	remember(p, w->name, w->size, p->clock->wall_usec(p->clock->ctx), true);
	write_free(w);
	return 0;
}

void packages_abort(struct packages_write *w)
{
	if (!w)
		return;
	if (w->fd >= 0)
		(void)unlinkat(w->p->dir, w->tmp, 0);
	w->p->used -= w->size < w->p->used ? w->size : w->p->used;
	write_free(w);
}
