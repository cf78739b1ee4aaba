/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Embedded mode's secrets: <data>/secrets/NAME, 0600 in a directory 0700 of ours.
 */
#include "cli/secret/secret.h"

#include "cli/base/litter.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/id.h"
#include "common/mem.h"
#include "common/proto/key.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

void secret_value_wipe(struct secret_value *v)
{
	explicit_bzero(v, sizeof(*v));
}

int secret_value_check(const struct secret_value *v, size_t min, struct err *err)
{
	if (v->len < min || v->len > SECRET_VALUE_MAX_BYTES)
		return err_set_id(err, ERRID_SECRET_VALUE, "%zu bytes; taken are %zu..%d",
				  v->len, min, SECRET_VALUE_MAX_BYTES);
	for (size_t i = 0; i < v->len; i++)
		if (v->s[i] < 0x21 || v->s[i] > 0x7e)
			return err_set_id(err, ERRID_SECRET_VALUE,
					  "byte %zu is a blank, a control character or "
					  "no ASCII",
					  i + 1);
	return 0;
}

int secret_key_check(const struct secret_value *v, bool is_local, struct err *err)
{
	size_t at;

	if (secret_value_check(v, is_local ? 1 : SECRET_VALUE_MIN_BYTES, err) < 0)
		return -1;
	at = strcspn(v->s, KEY_SIGNS_REFUSED);
	if (at == v->len || (is_local && v->len < KEY_LOOKED_FOR_MIN_BYTES))
		return 0;
	return err_set_id(err, ERRID_SECRET_VALUE,
			  "byte %zu is '%c': a key has no %%, \" or backslash in it",
			  at + 1, v->s[at]);
}

void secret_value_generate(struct secret_value *ret)
{
	unsigned char raw[SECRET_GENERATED_BYTES];

	random_bytes(raw, sizeof(raw));
	hex_encode(raw, sizeof(raw), ret->s);
	ret->len = 2 * sizeof(raw);
	explicit_bzero(raw, sizeof(raw));
}

static int open_files(struct secret_store *s, struct err *err)
{
	struct stat st;

	s->where = xasprintf("%s/secrets", s->paths->data);
	s->dirfd = open(s->where, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->dirfd < 0)
		return err_sys_id(
			err, errno == ENOENT ? ERRID_SECRET_MISSING : ERRID_SECRET_FILE,
			"%s", s->where);
	if (fstat(s->dirfd, &st) < 0)
		return err_sys(err, "%s", s->where);
	if (st.st_uid != getuid() || (st.st_mode & 077))
		return err_set_id(err, ERRID_SECRET_FILE,
				  "%s must be yours with mode 0700", s->where);
	return 0;
}

static int files_list(struct secret_store *s,
		      void (*on_name)(const char *name, const char *kind, void *arg),
		      void *arg, struct err *err)
{
	cleanup_close int fd = openat(s->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d)
		return err_sys_id(err, ERRID_SECRET_FILE, "list %s", s->where);
	fd = -1; /* the DIR's now */
	while ((errno = 0, e = readdir(d)))
		if (!str_eq(e->d_name, ".") && !str_eq(e->d_name, ".."))
			on_name(e->d_name, "file", arg);
	if (errno)
		return err_sys_id(err, ERRID_SECRET_FILE, "list %s", s->where);
	return 0;
}

static int files_read(struct secret_store *s, const char *name, struct secret_value *ret,
		      struct err *err)
{
	if (fs_read_secret(s->dirfd, name, ret->s, sizeof(ret->s), err) < 0)
		return -1;
	ret->len = strlen(ret->s);
	return 0;
}

/* Of a lych that was killed between writing and renaming: the value, in clear. */
static void sweep(const struct secret_store *s, const char *name, bool is_worse)
{
	cleanup_free char *before = xasprintf("%s.", name);
	const struct litter l = {before, sizeof(struct request_id) - 1, ".tmp", false,
				 is_worse};

	litter_sweep(s->where, &l);
}

/* Until it is closed nobody else writes or removes: of two that set a secret one sees the other's. */
static int lock_files(const struct secret_store *s, struct err *err)
{
	cleanup_close int fd = openat(s->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fs_flock_soon(fd) < 0)
		return err_sys_id(err, ERRID_SECRET_FILE, "lock %s", s->where);
	return TAKE_FD(fd);
}

static int files_write(struct secret_store *s, const char *name,
		       const struct secret_value *v, bool replace, struct err *err)
{
	cleanup_close int lock = lock_files(s, err);
	struct stat st;

	if (lock < 0)
		return -1;
	if (fstatat(s->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (!replace)
			return err_set_id(err, ERRID_SECRET_EXISTS, "%s/%s", s->where,
					  name);
		if (!S_ISREG(st.st_mode) || st.st_uid != getuid())
			return err_set_id(err, ERRID_SECRET_FILE, "%s/%s", s->where,
					  name);
	} else if (errno != ENOENT) {
		return err_sys_id(err, ERRID_SECRET_FILE, "%s/%s", s->where, name);
	}
	sweep(s, name, false);
	return fs_write_atomic(s->dirfd, name, v->s, v->len, 0600, err);
}

static int files_remove(struct secret_store *s, const char *name, struct err *err)
{
	cleanup_close int lock = lock_files(s, err);

	if (lock < 0)
		return -1;
	sweep(s, name, true);
	if (unlinkat(s->dirfd, name, 0) == 0)
		return 0;
	return errno == ENOENT ? err_set_id(err, ERRID_SECRET_MISSING,
					    "secret '%.80s' is missing", name)
			       : err_sys_id(err, ERRID_SECRET_FILE, "remove %s/%s",
					    s->where, name);
}

const struct secret_store_ops secret_files = {
	.name = "files",
	.list = files_list,
	.read = files_read,
	.write = files_write,
	.remove = files_remove,
};

int secret_store_open(const char *name, const struct paths *p, struct secret_store *ret,
		      struct err *err)
{
	*ret = (struct secret_store){.paths = p, .dirfd = -1};
	if (str_eq(name, "files")) {
		ret->ops = &secret_files;
		return open_files(ret, err);
	}
	if (str_eq(name, "podman")) {
		ret->ops = &secret_podman;
		return secret_podman_open(ret, err);
	}
	return err_set_id(err, ERRID_CORE_USAGE, "--store=%.40s: files or podman", name);
}
