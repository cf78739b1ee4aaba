/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lych restore: what the archive says. It is read twice, once before anything is made and
 * once as it is written, and both times all of it is checked: its form (archive.h), and the
 * form of its rows (copy_text.h).
 */
#include "cli/restore.h"

#include "cli/archive.h"
#include "cli/content.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>

#define INFO_MAX ((size_t)1 << 20)

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
	if (json_get_u64(r->info, "schema", true, CONTENT_SCHEMA_FIRST, UINT32_MAX,
			 &r->schema, &why) < 0 ||
	    json_get_u64(r->info, "jobs", true, 0, INT64_MAX, &r->jobs, &why) < 0)
		return err_set_id(err, ERRID_BACKUP_DAMAGED, "its description: %s",
				  why.msg);
	return 0;
}

static int end_rows(const struct restore *r, struct err *err)
{
	uint64_t jobs;

	if (r->schema > CONTENT_SCHEMA)
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
					      .arg = r};

	buf_init(&r->info_text, INFO_MAX);
	if (archive_read(fd, &reader, err) < 0)
		return -1;
	if (r->schema > CONTENT_SCHEMA)
		return err_set_id(err, ERRID_BACKUP_VERSION,
				  "its schema is %llu, this release knows %d",
				  (unsigned long long)r->schema, CONTENT_SCHEMA);
	return check_room(r, err);
}

/* ---- writing it ------------------------------------------------------------------ */

static int on_file(const char *name, uint64_t size, void *arg, struct err *err)
{
	struct restore *r = arg;
	const char *slash = strrchr(name, '/');

	if (begin_file(r, name, size, err) < 0)
		return -1;
	if (r->in_info)
		return 0;
	if (slash) {
		cleanup_free char *dir = xstrndup(name, (size_t)(slash - name));

		if (fs_mkdir_beneath(r->new_fd, dir, 0700, err) < 0)
			return -1;
	}
	r->out = fs_open_beneath(r->new_fd, name, O_WRONLY | O_CREAT | O_EXCL, 0600, err);
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

int restore_extract(struct restore *r, int fd, struct err *err)
{
	const struct archive_reader reader = {.on_file = on_file,
					      .on_data = on_data,
					      .on_file_end = on_file_end,
					      .arg = r};
	int rc;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(err, "%s", r->a->file);
	rc = archive_read(fd, &reader, err);
	fd_close(&r->out);
	if (rc == 0 && syncfs(r->new_fd) < 0)
		rc = err_sys(err, "syncfs");
	return rc;
}
