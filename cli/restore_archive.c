/* SPDX-License-Identifier: Apache-2.0 */
/* lych restore: what the archive says. */
#include "cli/restore.h"

#include "cli/archive.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>

#define INFO_MAX ((size_t)1 << 20)

static int on_info(const char *name, uint64_t size, void *arg, struct err *err)
{
	struct restore *r = arg;

	r->in_info = str_eq(name, ARCHIVE_INFO);
	if (r->in_info && size > INFO_MAX)
		return err_set_id(err, ERRID_BACKUP_DAMAGED,
				  "its description is too large");
	return 0;
}

static int on_info_data(const void *data, size_t len, void *arg, struct err *err)
{
	struct restore *r = arg;

	(void)err;
	if (r->in_info)
		buf_add(&r->info_text, data, len);
	return 0;
}

int restore_check(struct restore *r, int fd, struct err *err)
{
	const struct archive_reader reader = {
		.on_file = on_info, .on_data = on_info_data, .arg = r};
	const char *version;
	uint64_t format = 0;

	buf_init(&r->info_text, INFO_MAX);
	if (archive_read(fd, &reader, err) < 0)
		return -1;
	if (json_parse(r->info_text.data, r->info_text.len, JSON_DEPTH_DEFAULT, &r->info,
		       err) < 0 ||
	    json_get_u64(r->info, "format", true, 1, UINT32_MAX, &format, err) < 0 ||
	    json_get_u64(r->info, "schema", true, 1, UINT32_MAX, &r->schema, err) < 0 ||
	    json_get_u64(r->info, "postgres_major", true, 1, 999, &r->postgres_major,
			 err) < 0 ||
	    json_get_u64(r->info, "jobs_before", true, 0, INT64_MAX, &r->jobs, err) < 0 ||
	    json_get_str(r->info, "version", true, 64, &version, err) < 0) {
		struct err why = *err;

		return err_set_id(err, ERRID_BACKUP_DAMAGED, "its description: %s",
				  why.msg);
	}
	if (format != 1)
		return err_set_id(err, ERRID_BACKUP_VERSION,
				  "format %llu of version %s; this is %s",
				  (unsigned long long)format, version, LYCH_VERSION);
	return 0;
}

static int on_file(const char *name, uint64_t size UNUSED, void *arg, struct err *err)
{
	struct restore *r = arg;
	const char *slash = strrchr(name, '/');

	fd_close(&r->out);
	if (str_eq(name, ARCHIVE_INFO))
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

	return r->out < 0 ? 0 : fs_write_all(r->out, data, len, err);
}

int restore_extract(struct restore *r, int fd, struct err *err)
{
	const struct archive_reader reader = {
		.on_file = on_file, .on_data = on_data, .arg = r};
	int rc;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(err, "%s", r->a->file);
	rc = archive_read(fd, &reader, err);
	fd_close(&r->out);
	if (rc == 0 && syncfs(r->new_fd) < 0)
		rc = err_sys(err, "syncfs");
	return rc;
}
