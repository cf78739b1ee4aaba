/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych restore: what the archive says, and who made it. It is read twice, once before
 * anything is made and once as it is written, and both times all of it is checked: its
 * form (archive.h), the form of its rows (copy_text.h), its seal.
 */
#include "cli/backup/restore.h"

#include "cli/backup/archive.h"
#include "cli/backup/content.h"
#include "cli/base/cmd.h"
#include "cli/ui/prompt.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>

#define INFO_MAX ((size_t)1 << 20)
#define CODE_TEXT_MAX 1024
#define CODE_QUESTION "Recovery code of this archive: "
#define ATTEMPTS 3 /* at a terminal */
/* A configuration that nobody vouches for, and what the gate refuses by it. */
#define ASIDE_PRIVATE "config/private"

/* ---- who made it ----------------------------------------------------------------- */

static int read_code_file(const char *path, char *text, size_t *ret_len, struct err *err)
{
	cleanup_free char *all = NULL;
	int r = str_eq(path, "-")
			? prompt_secret(CODE_QUESTION, text, CODE_TEXT_MAX, ret_len, err)
			: fs_read_file(AT_FDCWD, path, CODE_TEXT_MAX, &all, ret_len, err);

	if (r < 0)
		return err->code == ERR_TOO_LARGE
			       ? err_set_id(err, ERRID_BACKUP_CODE, "it is too long")
			       : -1;
	if (all) {
		memcpy(text, all, *ret_len);
		explicit_bzero(all, *ret_len);
	}
	return 0;
}

/* The key that the code in text makes, when it is the one that is asked for. */
static int try_code(struct restore *r, const char *text, size_t len, const char *id,
		    struct err *err)
{
	struct backup_code code;
	struct backup_key key;

	if (backup_code_parse(text, len, &code, err) < 0)
		return -1;
	backup_key_of(&code, &key);
	explicit_bzero(&code, sizeof(code));
	if (!str_eq(key.id, id)) {
		(void)err_set_id(err, ERRID_BACKUP_CODE,
				 "it makes the key %s, the archive is sealed with %s",
				 key.id, id);
		backup_key_wipe(&key);
		return -1;
	}
	r->key = key;
	backup_key_wipe(&key);
	return 0;
}

static int ask_code(struct restore *r, const char *id, struct err *err)
{
	char text[CODE_TEXT_MAX + 1];
	size_t len = 0;
	int rc = -1;

	if (!r->a->code_file && !render_is_terminal(STDIN_FILENO))
		return err_set_id(err, ERRID_BACKUP_NO_CODE,
				  "it is sealed with the key %s, which is not this "
				  "machine's",
				  id);
	for (int i = 0; rc < 0 && i < ATTEMPTS; i++) {
		if (i > 0)
			cmd_tell(ERRID_NONE, err->msg);
		rc = r->a->code_file ? read_code_file(r->a->code_file, text, &len, err)
				     : prompt_secret(CODE_QUESTION, text, CODE_TEXT_MAX,
						     &len, err);
		if (rc < 0)
			break;
		rc = try_code(r, text, len, id, err);
		if (r->a->code_file)
			break;
	}
	explicit_bzero(text, sizeof(text));
	if (rc == 0)
		err_clear(err);
	return rc;
}

/* This machine's key, or the one of a code. */
static int find_key(struct restore *r, const char *id, struct err *err)
{
	bool has = false;

	if (backup_key_load(&r->p, &r->key, &has, err) < 0)
		return -1;
	if (!(has && str_eq(r->key.id, id))) {
		if (ask_code(r, id, err) < 0)
			return -1;
		r->key_is_new = !has;
	}
	r->has_key = true;
	return 0;
}

static int on_seal(const char *id, const char *seal, const void *data, size_t len,
		   void *arg, struct err *err)
{
	struct restore *r = arg;
	char right[SHA256_HEX_SIZE];

	if (r->a->is_unsealed)
		return 0;
	if (!id)
		return err_set_id(err, ERRID_BACKUP_UNSEALED, "%s", r->a->file);
	if (!r->has_key && find_key(r, id, err) < 0)
		return -1;
	backup_key_seal(&r->key, data, len, right);
	if (!str_eq(r->key.id, id) || !mem_eq_ct(right, seal, sizeof(right) - 1))
		return err_set_id(err, ERRID_BACKUP_SEAL, "key %s", id);
	return 0;
}

/* ---- what it says ---------------------------------------------------------------- */

static int begin_file(struct restore *r, const char *name, uint64_t size, struct err *err)
{
	r->bytes += size;
	r->in_info = str_eq(name, ARCHIVE_INFO);
	r->in_rows = str_eq(name, ARCHIVE_DATABASE);
	if (r->in_rows)
		copy_text_begin(&r->rows);
	if (r->in_info && size > INFO_MAX)
		return err_set_id(err, ERRID_BACKUP_DAMAGED,
				  "its description is too large");
	return 0;
}

static int on_info_file(const char *name, uint64_t size, void *arg, struct err *err)
{
	return begin_file(arg, name, size, err);
}

static int on_info_data(const void *data, size_t len, void *arg, struct err *err)
{
	struct restore *r = arg;

	if (r->in_info)
		buf_add(&r->info_text, data, len);
	return r->in_rows ? copy_text_add(&r->rows, data, len, err) : 0;
}

/* Of another format too: its name and its first file are for ever. */
static int read_info(struct restore *r, struct err *err)
{
	struct err why = ERR_INIT;
	const char *version = "";
	uint64_t format = 0;

	if (json_parse(r->info_text.data, r->info_text.len, JSON_DEPTH_DEFAULT, &r->info,
		       &why) < 0 ||
	    json_get_u64(r->info, "format", true, 1, UINT32_MAX, &format, &why) < 0 ||
	    json_get_str(r->info, "version", true, 64, &version, &why) < 0)
		return err_set_id(err, ERRID_BACKUP_DAMAGED, "its description: %s",
				  why.msg);
	if (format != ARCHIVE_FORMAT)
		return err_set_id(err, ERRID_BACKUP_VERSION,
				  "format %llu of version %s; this is %s, format %d",
				  (unsigned long long)format, version, LYCH_VERSION,
				  ARCHIVE_FORMAT);
	if (json_get_u64(r->info, "schema", true, CONTENT_SCHEMA_EVER, UINT32_MAX,
			 &r->schema, &why) < 0 ||
	    json_get_u64(r->info, "jobs", true, 0, INT64_MAX, &r->jobs, &why) < 0)
		return err_set_id(err, ERRID_BACKUP_DAMAGED, "its description: %s",
				  why.msg);
	return 0;
}

static bool is_known(const struct restore *r)
{
	return r->schema >= CONTENT_SCHEMA_FIRST && r->schema <= CONTENT_SCHEMA;
}

static int end_rows(const struct restore *r, struct err *err)
{
	uint64_t jobs;

	if (!is_known(r))
		return 0; /* said when all of it is known to be whole */
	if (copy_text_end(&r->rows, content_sections((unsigned)r->schema), err) < 0)
		return -1;
	jobs = copy_text_rows(&r->rows, CONTENT_JOBS);
	if (jobs != r->jobs)
		return err_set_id(err, ERRID_BACKUP_DAMAGED,
				  "%llu jobs are in it, there were %llu",
				  (unsigned long long)jobs, (unsigned long long)r->jobs);
	return 0;
}

static int on_info_end(const char *name UNUSED, void *arg, struct err *err)
{
	struct restore *r = arg;

	if (r->in_info)
		return read_info(r, err);
	return r->in_rows ? end_rows(r, err) : 0;
}

/* It lies beside the data directory for a moment, and its rows twice. */
static int check_room(const struct restore *r, struct err *err)
{
	cleanup_free char *parent =
		xstrndup(r->p.data, (size_t)(strrchr(r->p.data, '/') - r->p.data) + 1);
	struct statvfs v;
	uint64_t room;

	if (statvfs(r->p.data, &v) < 0 && statvfs(parent, &v) < 0)
		return 0; /* whoever makes it says why not */
	room = (uint64_t)v.f_bavail * v.f_frsize;
	if (room >= r->bytes)
		return 0;
	return err_set_id(err, ERRID_CORE_DISK_FULL,
			  "the archive has %llu MiB, beside %s there is room for %llu",
			  (unsigned long long)(r->bytes >> 20), r->p.data,
			  (unsigned long long)(room >> 20));
}

int restore_check(struct restore *r, int fd, struct err *err)
{
	const struct archive_reader reader = {.on_file = on_info_file,
					      .on_data = on_info_data,
					      .on_file_end = on_info_end,
					      .on_seal = on_seal,
					      .arg = r};

	buf_init(&r->info_text, INFO_MAX);
	if (archive_read(fd, &reader, err) < 0)
		return -1;
	if (!is_known(r))
		return err_set_id(err, ERRID_BACKUP_VERSION,
				  "its schema is %llu, this release knows %d to %d",
				  (unsigned long long)r->schema, CONTENT_SCHEMA_FIRST,
				  CONTENT_SCHEMA);
	return check_room(r, err);
}

/* ---- writing it ------------------------------------------------------------------ */

/* Where it comes to lie. Nothing reads what is below config/ but a person. */
static const char *place_of(const struct restore *r, const char *name)
{
	return r->a->is_unsealed && str_eq(name, ARCHIVE_PRIVATE) ? ASIDE_PRIVATE : name;
}

static int on_file(const char *name, uint64_t size, void *arg, struct err *err)
{
	struct restore *r = arg;
	const char *place = place_of(r, name), *slash = strrchr(place, '/');

	if (begin_file(r, name, size, err) < 0)
		return -1;
	if (r->in_info)
		return 0;
	if (slash) {
		cleanup_free char *dir = xstrndup(place, (size_t)(slash - place));

		if (fs_mkdir_beneath(r->new_fd, dir, 0700, err) < 0)
			return -1;
	}
	r->out =
		fs_open_beneath(r->new_fd, place, O_WRONLY | O_CREAT | O_EXCL, 0600, err);
	return r->out < 0 ? -1 : 0;
}

static int on_data(const void *data, size_t len, void *arg, struct err *err)
{
	struct restore *r = arg;

	if (r->in_rows && copy_text_add(&r->rows, data, len, err) < 0)
		return -1;
	return r->out < 0 ? 0 : fs_write_all(r->out, data, len, err);
}

static int on_file_end(const char *name UNUSED, void *arg, struct err *err)
{
	struct restore *r = arg;

	fd_close(&r->out);
	return r->in_rows ? end_rows(r, err) : 0;
}

/* The audit log's private key is in no archive: its scribe is told to begin with another. */
static int mark_log(const struct restore *r, struct err *err)
{
	cleanup_close int dir = -1;

	if (fs_mkdir_beneath(r->new_fd, "audit", 0700, err) < 0)
		return -1;
	dir = fs_open_beneath(r->new_fd, "audit", O_RDONLY | O_DIRECTORY, 0, err);
	return dir < 0 ? -1
		       : fs_write_atomic(dir, AUDIT_KEYS_FILE, AUDIT_KEYS_RESTORED,
					 strlen(AUDIT_KEYS_RESTORED), 0600, err);
}

int restore_extract(struct restore *r, int fd, struct err *err)
{
	const struct archive_reader reader = {.on_file = on_file,
					      .on_data = on_data,
					      .on_file_end = on_file_end,
					      .on_seal = on_seal,
					      .arg = r};
	int rc;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(err, "%s", r->a->file);
	rc = archive_read(fd, &reader, err);
	fd_close(&r->out);
	if (rc == 0)
		rc = mark_log(r, err);
	if (rc == 0 && syncfs(r->new_fd) < 0)
		rc = err_sys(err, "syncfs");
	return rc;
}
