/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * What lies where, whose it is, and the private rendering.
 */
#include "cli/pod/bind.h"

#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define STAGE_NEW ".new"

static void hex_of(const char *text, size_t len, char out[SHA256_HEX_SIZE])
{
	uint8_t digest[SHA256_SIZE];

	sha256_of(text, len, digest);
	hex_encode(digest, sizeof(digest), out);
}

bool bind_is_present(const struct receipt_file *f, const char *text)
{
	char sha256[SHA256_HEX_SIZE];

	hex_of(text, strlen(text), sha256);
	return str_eq(sha256, f->sha256);
}

const char *bind_place(const struct bind *b, const char *name)
{
	return unit_is_of_host(name) ? b->user_units : b->quadlets;
}

int bind_look(const struct bind *b, const char *name, enum bind_state *ret,
	      char **ret_text, struct err *err)
{
	cleanup_free char *path = xasprintf("%s/%s", bind_place(b, name), name);
	cleanup_close int fd =
		open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	cleanup_free char *text = xmalloc(UNIT_MAX_BYTES + 1);
	char sha256[SHA256_HEX_SIZE];
	struct stat st;
	size_t len = 0;

	*ret = BIND_FOREIGN;
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		*ret = BIND_MISSING;
		return 0;
	}
	if (fd < 0 && errno == ELOOP)
		return 0;
	if (fd < 0)
		return err_sys(err, "%s", path);
	if (fstat(fd, &st) < 0)
		return err_sys(err, "%s", path);
	if (!S_ISREG(st.st_mode) || st.st_uid != getuid())
		return 0;
	while (len <= UNIT_MAX_BYTES) {
		ssize_t n = read(fd, text + len, UNIT_MAX_BYTES + 1 - len);

		if (n < 0)
			return err_sys(err, "read %s", path);
		if (n == 0)
			break;
		len += (size_t)n;
	}
	if (!receipt_knows_name(&b->receipt, name))
		return 0;
	*ret = BIND_CHANGED;
	if (len > UNIT_MAX_BYTES)
		return 0;
	text[len] = '\0';
	hex_of(text, len, sha256);
	if (receipt_knows(&b->receipt, name, sha256))
		*ret = BIND_OURS;
	if (ret_text)
		*ret_text = TAKE_PTR(text);
	return 0;
}

static void add_name(const char ***list, size_t *n, const char *name)
{
	for (size_t i = 0; i < *n; i++)
		if (str_eq((*list)[i], name))
			return;
	*list = xreallocarray(*list, *n + 1, sizeof(**list));
	(*list)[(*n)++] = name;
}

void bind_names(const struct bind *b, const char ***ret, size_t *ret_n)
{
	*ret = NULL;
	*ret_n = 0;
	for (size_t i = 0; i < b->units.n; i++)
		add_name(ret, ret_n, b->units.unit[i].name);
	for (size_t i = 0; i < b->receipt.n_known; i++)
		add_name(ret, ret_n, b->receipt.known[i].name);
}

static bool may_overwrite(const struct bind *b, const char *name)
{
	for (size_t i = 0; i < b->n_overwrite; i++)
		if (str_eq(b->overwrite[i], name))
			return true;
	return false;
}

/* What Quadlet or systemd would merge into a unit of ours can take back every wall of it:
 * drop-ins of the unit, of every name with its prefix, and of its type. */
static int check_drop_ins(const char *place, const char *name, struct err *err)
{
	const char *type = strrchr(name, '.');
	const char *dash = strchr(name, '-');
	cleanup_free char *own = xasprintf("%s/%s.d", place, name);
	cleanup_free char *prefixed =
		xasprintf("%s/%.*s%s.d", place, dash ? (int)(dash + 1 - name) : 0, name,
			  dash ? type : type + 1);
	cleanup_free char *typed = xasprintf("%s/%s.d", place, type + 1);
	const char *const dirs[] = {own, prefixed, typed};

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (access(dirs[i], F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR))
			return err_set_id(err, ERRID_BIND_FOREIGN,
					  "%s: a drop-in for a unit of ours", dirs[i]);
	return 0;
}

static int check_one(const struct bind *b, const char *name, struct err *err)
{
	const char *place = bind_place(b, name);
	char service[UNIT_NAME_MAX + 32];
	enum bind_state state;

	if (bind_look(b, name, &state, NULL, err) < 0)
		return -1;
	if (state == BIND_FOREIGN)
		return err_set_id(err, ERRID_BIND_FOREIGN, "%s/%s", place, name);
	if (state == BIND_CHANGED && !may_overwrite(b, name))
		return err_set_id(err, ERRID_BIND_CHANGED, "%s/%s", place, name);
	if (unit_service(name, service, sizeof(service), err) < 0 ||
	    check_drop_ins(place, name, err) < 0)
		return -1;
	return check_drop_ins(b->user_units, service, err);
}

int bind_check_files(const struct bind *b, struct err *err)
{
	cleanup_free const char **names = NULL;
	size_t n;

	bind_names(b, &names, &n);
	for (size_t i = 0; i < b->n_overwrite; i++) {
		size_t k = 0;

		while (k < n && !str_eq(names[k], b->overwrite[i]))
			k++;
		if (k == n)
			return err_set_id(err, ERRID_CORE_USAGE,
					  "--overwrite %s: no unit of Lychgate's",
					  b->overwrite[i]);
	}
	for (size_t i = 0; i < n; i++)
		if (check_one(b, names[i], err) < 0)
			return -1;
	return 0;
}

/* ---- the rendering ---------------------------------------------------------- */

/* Everything in the staged directory is ours by place; a name that could not be is a sign
 * that somebody keeps something there. */
static int check_staged(int dirfd, const char *which, struct err *err)
{
	int fd = openat(dirfd, which, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	cleanup_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (!dir) {
		(void)err_sys(err, "%s", which);
		if (fd >= 0)
			(void)close(fd);
		return -1;
	}
	while ((e = readdir(dir)))
		if (!str_eq(e->d_name, ".") && !str_eq(e->d_name, "..") &&
		    !unit_name_is_ours(e->d_name))
			return err_set_id(err, ERRID_BIND_FOREIGN,
					  "%s, in the directory of the rendered units",
					  e->d_name);
	return 0;
}

static int write_new(const struct bind *b, int dirfd, bool host, struct err *err)
{
	cleanup_close int fd = -1;

	if (fs_remove_beneath(dirfd, STAGE_NEW, err) < 0)
		return -1;
	if (mkdirat(dirfd, STAGE_NEW, 0700) < 0)
		return err_sys(err, "mkdir %s/" STAGE_NEW, b->dir);
	fd = openat(dirfd, STAGE_NEW, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "%s/" STAGE_NEW, b->dir);
	for (size_t i = 0; i < b->units.n; i++) {
		const struct unit *u = &b->units.unit[i];

		if (unit_is_of_host(u->name) == host &&
		    fs_write_atomic(fd, u->name, u->text, u->len, 0600, err) < 0)
			return -1;
	}
	return 0;
}

/* The new rendering in the place of the last, in one step. */
static int exchange(const struct bind *b, int dirfd, const char *which, struct err *err)
{
	if (renameat2(dirfd, STAGE_NEW, dirfd, which, RENAME_EXCHANGE) < 0 &&
	    (errno != ENOENT || renameat(dirfd, STAGE_NEW, dirfd, which) < 0))
		return err_sys(err, "rename to %s/%s", b->dir, which);
	return fs_remove_beneath(dirfd, STAGE_NEW, err);
}

int bind_stage(struct bind *b, struct err *err)
{
	cleanup_close int dirfd =
		open(b->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dirfd < 0)
		return err_sys(err, "%s", b->dir);
	if (check_staged(dirfd, BIND_APP, err) < 0 ||
	    check_staged(dirfd, BIND_HOST, err) < 0)
		return -1;
	receipt_take_units(&b->receipt, b->conf.pod.profile, &b->units);
	/* First: a file that is there without being named here would be nobody's. */
	if (receipt_save(dirfd, BIND_RECEIPT, &b->receipt, err) < 0)
		return -1;
	b->has_receipt = true;
	if (write_new(b, dirfd, false, err) < 0 ||
	    exchange(b, dirfd, BIND_APP, err) < 0 || write_new(b, dirfd, true, err) < 0)
		return -1;
	return exchange(b, dirfd, BIND_HOST, err);
}
