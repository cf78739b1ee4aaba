/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych restore: what is there already, and the exchange.
 */
#include "cli/backup/restore.h"

#include "cli/backup/archive.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

/* Rendered units belong to what is installed, not to what is stored: they are no content
 * of an installation, and stay where they are. */
#define BOUND "bind"

static int is_content(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	if (type == FTW_D && at->level == 1 && str_eq(path + at->base, BOUND))
		return FTW_SKIP_SUBTREE;
	return type != FTW_D && type != FTW_DP && !str_eq(path + at->base, "lock")
		       ? FTW_STOP
		       : FTW_CONTINUE;
}

/* Directories without a file are no installation. */
int restore_place_check(const struct restore *r, bool *ret_empty, struct err *err)
{
	int found = nftw(r->p.data, is_content, 16, FTW_PHYS | FTW_ACTIONRETVAL);

	if (found < 0 && errno != ENOENT)
		return err_sys(err, "look at %s", r->p.data);
	*ret_empty = found <= 0;
	if (!*ret_empty && !r->a->force)
		return err_set_id(err, ERRID_BACKUP_NOT_EMPTY, "%s", r->p.data);
	return 0;
}

int restore_lock(const char *dir, struct err *err)
{
	cleanup_free char *path = xasprintf("%s/lock", dir);
	cleanup_close int fd =
		open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(err, "%s", path);
	if (fs_lock(fd, NULL, err) < 0) {
		struct err why = *err;

		return err_set_id(err, ERRID_BACKUP_STATE,
				  "%s: %s (Lychgate: 'lych down' first; another restore: "
				  "wait for it)",
				  dir, why.msg);
	}
	return TAKE_FD(fd);
}

int restore_remove(const char *path, struct err *err)
{
	cleanup_free char *parent =
		xstrndup(path, (size_t)(strrchr(path, '/') - path) + 1);
	cleanup_close int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? err_sys(err, "%s", parent)
		      : fs_remove_beneath(fd, strrchr(path, '/') + 1, err);
}

/* While the file BESIDE-mark is there, the directory BESIDE is one that a restore makes, or
 * left: ours to remove. Without it the directory is somebody's: what a restore that was cut
 * off moved aside, or no restore at all. */
static char *mark_of(const struct restore *r)
{
	return xasprintf("%s-mark", r->new.data);
}

int restore_beside_make(struct restore *r, struct err *err)
{
	cleanup_free char *mark = mark_of(r);
	cleanup_close int fd = -1;

	if (access(mark, F_OK) < 0 && access(r->new.data, F_OK) == 0)
		return err_set_id(err, ERRID_BACKUP_FAILED,
				  "%s is there, and a restore that was cut off did not "
				  "make it: move it away",
				  r->new.data);
	if (restore_remove(r->new.data, err) < 0)
		return -1;
	fd = open(mark, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, "%s", mark);
	if (paths_make(&r->new, err) < 0)
		return -1;
	r->new_fd = open(r->new.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return r->new_fd < 0 ? err_sys(err, "%s", r->new.data) : 0;
}

void restore_beside_remove(const struct restore *r)
{
	cleanup_free char *mark = mark_of(r);
	struct err ignored = ERR_INIT;

	if (access(mark, F_OK) == 0 && restore_remove(r->new.data, &ignored) == 0)
		(void)unlink(mark);
}

/* From here on it is restored: what fails is said, and nothing is taken back. */
static void after_exchange(struct restore *r, bool was_empty)
{
	cleanup_free char *bound = xasprintf("%s/" BOUND, r->p.data);
	cleanup_free char *bound_before = xasprintf("%s/" BOUND, r->new.data);
	struct err ignored = ERR_INIT;

	/* the old directory now has the new one's name */
	if (renameat2(AT_FDCWD, bound_before, AT_FDCWD, bound, RENAME_NOREPLACE) < 0 &&
	    errno != ENOENT)
		was_empty = false;
	if (was_empty) {
		(void)!restore_remove(r->new.data, &ignored);
		return;
	}
	r->kept = xasprintf("%s.before-%llu", r->p.data,
			    (unsigned long long)(clock_wall_usec() / USEC_PER_SEC));
	if (renameat2(AT_FDCWD, r->new.data, AT_FDCWD, r->kept, RENAME_NOREPLACE) < 0) {
		free(r->kept);
		r->kept = xstrdup(r->new.data);
	}
}

int restore_exchange(struct restore *r, bool was_empty, struct err *err)
{
	cleanup_free char *mark = mark_of(r);

	if (syncfs(r->new_fd) < 0)
		return err_sys(err, "syncfs");
	/* what has its name afterwards is what was there before */
	if (unlink(mark) < 0)
		return err_sys(err, "%s", mark);
	if (renameat2(AT_FDCWD, r->new.data, AT_FDCWD, r->p.data, RENAME_EXCHANGE) < 0) {
		struct err ignored = ERR_INIT;

		(void)err_sys_id(err, ERRID_BACKUP_FAILED, "exchange %s", r->p.data);
		(void)!restore_remove(r->new.data, &ignored);
		return -1;
	}
	after_exchange(r, was_empty);
	return 0;
}

#define TERMS_MAX ((size_t)24 << 20) /* what the vessel reads */

int restore_own_terms(const struct restore *r, struct err *err)
{
	cleanup_free char *from = xasprintf("%s/" ARCHIVE_PRIVATE, r->p.data);
	cleanup_free char *bytes = NULL;
	size_t len = 0;

	if (access(from, F_OK) < 0)
		return 0;
	return fs_read_file(AT_FDCWD, from, TERMS_MAX, &bytes, &len, err) < 0
		       ? -1
		       : fs_write_atomic(r->new_fd, ARCHIVE_PRIVATE, bytes, len, 0600,
					 err);
}

/*
 * The configuration has its own place; one that is there is the user's. It names programs
 * that are started and hosts that get keys: one that nobody vouches for is never put there.
 */
const char *restore_config(const struct restore *r)
{
	cleanup_free char *from = xasprintf("%s/" ARCHIVE_CONFIG, r->p.data);
	cleanup_free char *dir = paths_config_dir(&r->p);
	cleanup_close int dirfd = -1;
	cleanup_free char *text = NULL;
	struct err ignored = ERR_INIT;
	size_t len;

	if (access(from, F_OK) < 0)
		return "none was saved";
	if (r->a->is_unsealed)
		return "not taken; the archive's is config/codex.yaml in the data "
		       "directory, to be read before any of it is used";
	if (access(r->p.config, F_OK) == 0)
		return "the one that is there stays; the saved one is config/codex.yaml "
		       "in the data directory";
	if (fs_mkdir_all(dir, 0700, &ignored) < 0 ||
	    (dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
	    fs_read_file(AT_FDCWD, from, 1 << 20, &text, &len, &ignored) < 0 ||
	    fs_write_atomic(dirfd, strrchr(r->p.config, '/') + 1, text, len, 0600,
			    &ignored) < 0)
		return "it could not be put in place; it is config/codex.yaml in the "
		       "data directory";
	return "restored";
}
