/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See archive.h.
 */
#include "cli/backup/archive.h"

#include "cli/ui/progress.h"
#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define BLOCK 512
#define DIGITS "0123456789"
#define HEX DIGITS "abcdef"
#define NUMBER_DIGITS 19 /* of 63 bits */
#define SEGMENT_DIGITS 10
#define OUTPUT_FAN 256 /* as vessel/store/output.c */
#define RANK_ALWAYS 2u /* description and database */
#define NAME_BYTES 100
#define SIZE_MAX_BYTES ((uint64_t)1 << 33) /* what eleven octal digits say */
#define MANIFEST_NAME "MANIFEST"
#define MANIFEST_HEAD "lychgate-backup 2\n"
#define MANIFEST_MAX ((size_t)256 << 20)
#define DEPTH_MAX 8
#define CHUNK ((size_t)64 << 10)
#define SEAL_WORD "seal "
/* "seal <id> <hex>\n" */
#define SEAL_LEN (sizeof(SEAL_WORD) - 1 + BACKUP_KEY_ID_SIZE + SHA256_HEX_SIZE)

static const char zeros[BLOCK];

/* ---- the one form of a header ------------------------------------------------ */

static int make_header(const char *name, uint64_t size, char ret[BLOCK], struct err *err)
{
	unsigned sum = 0;

	memset(ret, 0, BLOCK);
	if (strlen(name) >= NAME_BYTES || size >= SIZE_MAX_BYTES)
		return err_set_id(err, ERRID_BACKUP_FAILED,
				  "'%.120s': a name of 100 bytes or a file of 8 GiB does "
				  "not fit",
				  name);
	memcpy(ret, name, strlen(name));
	memcpy(ret + 100, "0000600", 7);
	memcpy(ret + 108, "0000000", 7);
	memcpy(ret + 116, "0000000", 7);
	(void)snprintf(ret + 124, 12, "%011llo", (unsigned long long)size);
	memcpy(ret + 136, "00000000000", 11);
	memset(ret + 148, ' ', 8);
	ret[156] = '0';
	memcpy(ret + 257, "ustar\00000", 8);
	for (size_t i = 0; i < BLOCK; i++)
		sum += (unsigned char)ret[i];
	(void)snprintf(ret + 148, 8, "%06o", sum);
	ret[155] = ' ';
	return 0;
}

static size_t padding(uint64_t size)
{
	return (BLOCK - size % BLOCK) % BLOCK;
}

/* ---- writing ----------------------------------------------------------------- */

void archive_begin(struct archive_writer *w, int fd)
{
	*w = (struct archive_writer){.fd = fd};
	buf_init(&w->manifest, MANIFEST_MAX);
	buf_adds(&w->manifest, MANIFEST_HEAD);
}

void archive_done(struct archive_writer *w)
{
	buf_done(&w->manifest);
}

static int begin_entry(struct archive_writer *w, const char *name, uint64_t size,
		       struct err *err)
{
	char header[BLOCK];

	return make_header(name, size, header, err) < 0
		       ? -1
		       : fs_write_all(w->fd, header, BLOCK, err);
}

static void list_entry(struct buf *manifest, struct sha256 *sum, uint64_t size,
		       const char *name)
{
	char hex[SHA256_HEX_SIZE];

	sha256_hex(sum, hex);
	buf_addf(manifest, "%s %llu %s\n", hex, (unsigned long long)size, name);
}

int archive_add(struct archive_writer *w, const char *name, const void *data, size_t len,
		struct err *err)
{
	cleanup_sha256 struct sha256 *sum = sha256_new();

	sha256_add(sum, data, len);
	if (begin_entry(w, name, len, err) < 0 ||
	    fs_write_all(w->fd, data, len, err) < 0 ||
	    fs_write_all(w->fd, zeros, padding(len), err) < 0)
		return -1;
	list_entry(&w->manifest, sum, len, name);
	w->files++;
	w->bytes += len;
	return 0;
}

static int copy(struct archive_writer *w, int fd, uint64_t size, struct sha256 *sum,
		struct err *err)
{
	cleanup_free char *chunk = xmalloc(CHUNK);

	while (size) {
		ssize_t n = read(fd, chunk, size < CHUNK ? size : CHUNK);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "read");
		if (n == 0)
			return err_set_id(err, ERRID_BACKUP_FAILED,
					  "it became shorter while it was read");
		sha256_add(sum, chunk, (size_t)n);
		if (fs_write_all(w->fd, chunk, (size_t)n, err) < 0)
			return -1;
		progress_add((uint64_t)n);
		size -= (uint64_t)n;
	}
	return 0;
}

int archive_add_file(struct archive_writer *w, const char *name, int dirfd,
		     const char *path, struct err *err)
{
	cleanup_close int fd =
		fs_open_beneath(dirfd, path, O_RDONLY | O_NONBLOCK, 0, err);
	cleanup_sha256 struct sha256 *sum = sha256_new();
	uint64_t size;
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_sys(err, "stat '%.120s'", name);
	if (!S_ISREG(st.st_mode))
		return err_set_id(err, ERRID_BACKUP_FAILED, "'%.120s' is no regular file",
				  name);
	size = (uint64_t)st.st_size;
	if (begin_entry(w, name, size, err) < 0 || copy(w, fd, size, sum, err) < 0 ||
	    fs_write_all(w->fd, zeros, padding(size), err) < 0)
		return err_wrap(err, "'%.120s'", name);
	list_entry(&w->manifest, sum, size, name);
	w->files++;
	w->bytes += size;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int names_of(int dirfd, char ***ret, size_t *ret_n, struct err *err)
{
	cleanup_close int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	char **names = NULL;
	size_t n = 0;

	if (!d)
		return err_sys(err, "list a directory");
	fd = -1; /* the DIR's now */
	while ((e = readdir(d))) {
		if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
			continue;
		if (n % 64 == 0)
			names = xreallocarray(names, n + 64, sizeof(*names));
		names[n++] = xstrdup(e->d_name);
	}
	if (n)
		qsort(names, n, sizeof(*names), by_name);
	*ret = names;
	*ret_n = n;
	return 0;
}

/* ---- the names that an archive has ------------------------------------------------- */

static size_t span(const char *s, const char *of, size_t n)
{
	return strspn(s, of) == n ? n : 0;
}

/* "<aa>/<sha256>" */
static bool is_blob(const char *s)
{
	return strlen(s) == 3 + SHA256_HEX_SIZE - 1 && s[2] == '/' &&
	       span(s + 3, HEX, SHA256_HEX_SIZE - 1) && memcmp(s, s + 3, 2) == 0;
}

/* A decimal number as we write one, up to `end`; what is behind that, or NULL. */
static const char *number_to(const char *s, char end, uint64_t *ret)
{
	char digits[NUMBER_DIGITS + 1];
	size_t n = strspn(s, DIGITS);

	if (n == 0 || n > NUMBER_DIGITS || s[n] != end)
		return NULL;
	memcpy(digits, s, n);
	digits[n] = '\0';
	return parse_u64(digits, 0, INT64_MAX, ret, NULL) < 0 ? NULL : s + n + 1;
}

/* "<job/256>/<job>.<epoch>/" and what the vessel keeps of an attempt (output.h) */
static bool is_output(const char *s)
{
	static const char *const names[] = {"meta",	  "order",  "stderr",
					    "stderr.sum", "stdout", "stdout.sum"};
	uint64_t fan = 0, job = 0, epoch = 0;

	if (!(s = number_to(s, '/', &fan)) || !(s = number_to(s, '.', &job)) ||
	    !(s = number_to(s, '/', &epoch)) || job == 0 || fan != job / OUTPUT_FAN)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eq(s, names[i]))
			return true;
	return false;
}

static bool is_segment(const char *s)
{
	return str_starts(s, "segment-") &&
	       span(s + strlen("segment-"), DIGITS, SEGMENT_DIGITS) &&
	       str_eq(s + strlen("segment-") + SEGMENT_DIGITS, ".jsonl");
}

/* Its seals come before what they seal, as names go: the log may grow in between. */
static bool is_audit(const char *s)
{
	return str_eq(s, "seals") || is_segment(s);
}

/* Its place in the one order that archives have, below it by name; 0: no such name. */
static unsigned rank_of(const char *name)
{
	static const char *const files[] = {ARCHIVE_INFO, ARCHIVE_DATABASE,
					    ARCHIVE_CONFIG, ARCHIVE_PRIVATE};
	static const struct {
		const char *prefix;
		bool (*is)(const char *name);
	} trees[] = {
		{"vessel/blobs/", is_blob},
		{"vessel/output/", is_output},
		{"audit/", is_audit},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(files); i++)
		if (str_eq(name, files[i]))
			return i + 1;
	for (unsigned i = 0; i < ARRAY_SIZE(trees); i++)
		if (str_starts(name, trees[i].prefix) &&
		    trees[i].is(name + strlen(trees[i].prefix)))
			return ARRAY_SIZE(files) + i + 1;
	return str_eq(name, MANIFEST_NAME) ? ARRAY_SIZE(files) + ARRAY_SIZE(trees) + 1
					   : 0;
}

/* May it follow `last` ("": nothing yet)? Description and database are always there. */
static bool is_next(const char *last, const char *name)
{
	unsigned before = last[0] ? rank_of(last) : 0, rank = rank_of(name);

	return rank > before
		       ? before >= RANK_ALWAYS || rank == before + 1
		       : rank == before && before > RANK_ALWAYS && strcmp(last, name) < 0;
}

/* ---- a directory -------------------------------------------------------------- */

/* What is half written, locks, and the private key of the audit log (AUDIT_KEYS_FILE). */
static bool is_passing(const char *name)
{
	return name[0] == '.' || str_ends(name, ".tmp") || str_eq(name, "lock");
}

/* What vanishes between list and read (a finished job that was forgotten) is left out; what
 * has another name than an archive knows is not, for it would be missed when it is too late. */
static int add_level(struct archive_writer *w, const char *prefix, int dirfd,
		     unsigned depth, struct err *err)
{
	char **names = NULL;
	size_t n = 0;
	int r;

	if (depth > DEPTH_MAX)
		return err_set_id(err, ERRID_BACKUP_FAILED, "'%.120s' is too deep",
				  prefix);
	r = names_of(dirfd, &names, &n, err);
	for (size_t i = 0; i < n; i++) {
		cleanup_free char *name = xasprintf("%s/%s", prefix, names[i]);
		cleanup_close int sub = -1;
		struct stat st;

		if (r < 0 || is_passing(names[i]) ||
		    fstatat(dirfd, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			goto next;
		if (S_ISREG(st.st_mode) && !rank_of(name)) {
			r = err_set_id(err, ERRID_BACKUP_FAILED,
				       "%s is not a file that Lychgate keeps there: move "
				       "it away",
				       name);
		} else if (S_ISREG(st.st_mode)) {
			r = archive_add_file(w, name, dirfd, names[i], err);
			if (r < 0 && err->sys == ENOENT) {
				err_clear(err);
				r = 0;
			}
		} else if (S_ISDIR(st.st_mode)) {
			sub = fs_open_beneath(dirfd, names[i], O_RDONLY | O_DIRECTORY, 0,
					      err);
			r = sub < 0 ? -1 : add_level(w, name, sub, depth + 1, err);
		}
	next:
		free(names[i]);
	}
	free(names);
	return r;
}

int archive_add_tree(struct archive_writer *w, const char *prefix, int dirfd,
		     const char *path, struct err *err)
{
	cleanup_close int fd =
		fs_open_beneath(dirfd, path, O_RDONLY | O_DIRECTORY, 0, err);

	return fd < 0 ? -1 : add_level(w, prefix, fd, 0, err);
}

/* The last line but the seal is of all lines before it. */
static void end_manifest(struct buf *m)
{
	cleanup_sha256 struct sha256 *sum = sha256_new();
	char hex[SHA256_HEX_SIZE];

	sha256_add(sum, m->data, m->len);
	sha256_hex(sum, hex);
	buf_addf(m, "end %s\n", hex);
}

int archive_end(struct archive_writer *w, const struct backup_key *key, struct err *err)
{
	char seal[SHA256_HEX_SIZE];

	end_manifest(&w->manifest);
	backup_key_seal(key, w->manifest.data, w->manifest.len, seal);
	buf_addf(&w->manifest, SEAL_WORD "%s %s\n", key->id, seal);
	if (!buf_ok(&w->manifest))
		return err_set_id(err, ERRID_BACKUP_FAILED, "too many files");
	if (begin_entry(w, MANIFEST_NAME, w->manifest.len, err) < 0 ||
	    fs_write_all(w->fd, w->manifest.data, w->manifest.len, err) < 0 ||
	    fs_write_all(w->fd, zeros, padding(w->manifest.len), err) < 0 ||
	    fs_write_all(w->fd, zeros, BLOCK, err) < 0 ||
	    fs_write_all(w->fd, zeros, BLOCK, err) < 0)
		return -1;
	if (fsync(w->fd) < 0)
		return err_sys(err, "fsync");
	return 0;
}

/* ---- reading ----------------------------------------------------------------- */

static int damaged(struct err *err, const char *why, const char *name)
{
	return err_set_id(err, ERRID_BACKUP_DAMAGED, "%s%s%.120s", why,
			  name[0] ? ": " : "", name);
}

/* Exactly len bytes; *ret_eof (may be NULL): none at all, and that is an end. */
static int get(int fd, char *out, size_t len, bool *ret_eof, struct err *err)
{
	size_t have = 0;

	if (ret_eof)
		*ret_eof = false;
	while (have < len) {
		ssize_t n = read(fd, out + have, len - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "read the archive");
		if (n == 0 && have == 0 && ret_eof) {
			*ret_eof = true;
			return 0;
		}
		if (n == 0)
			return damaged(err, "it is cut short", "");
		have += (size_t)n;
	}
	return 0;
}

static int parse_header(const char header[BLOCK], char name[NAME_BYTES + 1],
			uint64_t *ret_size, struct err *err)
{
	char want[BLOCK];
	uint64_t size = 0;

	memcpy(name, header, NAME_BYTES);
	name[NAME_BYTES] = '\0';
	for (int i = 124; i < 135; i++) {
		if (header[i] < '0' || header[i] > '7')
			return damaged(err, "no header where one belongs", "");
		size = size * 8 + (uint64_t)(header[i] - '0');
	}
	if (!rank_of(name))
		return damaged(err, "a name that no backup has", "");
	if (make_header(name, size, want, err) < 0 || memcmp(want, header, BLOCK) != 0)
		return damaged(err, "a header that is not ours", name);
	*ret_size = size;
	return 0;
}

static int read_padding(int fd, uint64_t size, struct err *err)
{
	char pad[BLOCK];

	if (get(fd, pad, padding(size), NULL, err) < 0)
		return -1;
	if (memcmp(pad, zeros, padding(size)) != 0)
		return damaged(err, "bytes between two files", "");
	return 0;
}

static int read_file(int fd, const struct archive_reader *r, const char *name,
		     uint64_t size, struct buf *manifest, struct err *err)
{
	cleanup_sha256 struct sha256 *sum = sha256_new();
	cleanup_free char *chunk = xmalloc(CHUNK);

	if (r->on_file && r->on_file(name, size, r->arg, err) < 0)
		return -1;
	for (uint64_t left = size; left;) {
		size_t n = left < CHUNK ? (size_t)left : CHUNK;

		if (get(fd, chunk, n, NULL, err) < 0)
			return -1;
		sha256_add(sum, chunk, n);
		if (r->on_data && r->on_data(chunk, n, r->arg, err) < 0)
			return -1;
		left -= n;
	}
	list_entry(manifest, sum, size, name);
	if (read_padding(fd, size, err) < 0)
		return -1;
	return r->on_file_end ? r->on_file_end(name, r->arg, err) : 0;
}

/* The line behind the manifest's own; whether the seal is right is not for here to say. */
static int read_seal(const struct archive_reader *r, const struct buf *manifest,
		     char line[SEAL_LEN + 1], bool has_seal, struct err *err)
{
	char *id = line + strlen(SEAL_WORD), *seal = id + BACKUP_KEY_ID_SIZE;

	if (!has_seal)
		return r->on_seal ? r->on_seal(NULL, NULL, manifest->data, manifest->len,
					       r->arg, err)
				  : 0;
	if (!str_starts(line, SEAL_WORD) || !span(id, HEX, BACKUP_KEY_ID_SIZE - 1) ||
	    id[BACKUP_KEY_ID_SIZE - 1] != ' ' || !span(seal, HEX, SHA256_HEX_SIZE - 1) ||
	    line[SEAL_LEN - 1] != '\n')
		return damaged(err, "a seal that is none", "");
	id[BACKUP_KEY_ID_SIZE - 1] = '\0';
	line[SEAL_LEN - 1] = '\0';
	return r->on_seal
		       ? r->on_seal(id, seal, manifest->data, manifest->len, r->arg, err)
		       : 0;
}

/* The manifest must be what was read before it, and nothing may follow. */
static int read_end(int fd, const struct archive_reader *r, uint64_t size,
		    struct buf *manifest, struct err *err)
{
	cleanup_free char *text = NULL;
	char last[2 * BLOCK], line[SEAL_LEN + 1] = "";
	bool eof = false, has_seal;

	end_manifest(manifest);
	has_seal = size == manifest->len + SEAL_LEN;
	if (!buf_ok(manifest) || (size != manifest->len && !has_seal))
		return damaged(err, "files are missing or changed", "");
	text = xmalloc(manifest->len);
	if (get(fd, text, manifest->len, NULL, err) < 0 ||
	    get(fd, line, has_seal ? SEAL_LEN : 0, NULL, err) < 0 ||
	    read_padding(fd, size, err) < 0)
		return -1;
	if (memcmp(text, manifest->data, manifest->len) != 0)
		return damaged(err, "a file does not have the bytes that were saved", "");
	if (get(fd, last, sizeof(last), NULL, err) < 0)
		return -1;
	if (memcmp(last, zeros, BLOCK) != 0 || memcmp(last + BLOCK, zeros, BLOCK) != 0)
		return damaged(err, "something follows the manifest", "");
	if (get(fd, last, 1, &eof, err) < 0)
		return -1;
	return eof ? read_seal(r, manifest, line, has_seal, err)
		   : damaged(err, "something follows its end", "");
}

int archive_read(int fd, const struct archive_reader *r, struct err *err)
{
	cleanup_buf struct buf manifest = {0};
	char header[BLOCK], name[NAME_BYTES + 1], last[NAME_BYTES + 1] = "";
	uint64_t size = 0;

	buf_init(&manifest, MANIFEST_MAX);
	buf_adds(&manifest, MANIFEST_HEAD);
	for (;;) {
		if (get(fd, header, BLOCK, NULL, err) < 0 ||
		    parse_header(header, name, &size, err) < 0)
			return -1;
		if (!last[0] && !str_eq(name, ARCHIVE_INFO))
			return damaged(err, "it does not begin as a backup", "");
		if (!is_next(last, name))
			return damaged(err, "a file that is twice or not in its place",
				       name);
		if (str_eq(name, MANIFEST_NAME))
			return read_end(fd, r, size, &manifest, err);
		if (read_file(fd, r, name, size, &manifest, err) < 0)
			return -1;
		memcpy(last, name, sizeof(last));
	}
}
