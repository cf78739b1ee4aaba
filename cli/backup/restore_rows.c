/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych restore: the database. The archive has rows and nothing else. The schema is made by
 * migrate, of the version that the rows are of; then psql reads them into it as the tables'
 * owner, who is no superuser, by statements of ours alone; then migrate goes on to the
 * newest. Whatever the rows say, they are values in columns of known tables.
 */
#include "cli/backup/restore.h"

#include "cli/backup/archive.h"
#include "cli/backup/content.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>

static int make_schema(struct restore *r, struct err *err)
{
	char version[24];
	uint64_t have = 0;
	int n = str_fmt(version, sizeof(version), "%llu", (unsigned long long)r->schema);

	assert(n == 0);
	if (r->ops->migrate(r, version, err) < 0 ||
	    pgtool_number(&r->tool, "lychgate",
			  "SELECT max(version) FROM lych.schema_version", &have, err) < 0)
		return -1;
	if (have != r->schema)
		return err_set_id(err, ERRID_BACKUP_VERSION,
				  "its schema is %llu, the vessel's program knows %llu",
				  (unsigned long long)r->schema,
				  (unsigned long long)have);
	return 0;
}

static int load(const struct restore *r, struct err *err)
{
	cleanup_free char *path = xasprintf("%s/" ARCHIVE_DATABASE, r->new.data);
	cleanup_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct content_script script;

	if (fd < 0)
		return err_sys(err, "%s", path);
	content_load((unsigned)r->schema, &script);
	if (pgtool_script(&r->tool, script.statement, fd, -1, true, ERRID_BACKUP_DAMAGED,
			  err) < 0)
		return -1;
	return unlink(path) < 0 ? err_sys(err, "%s", path) : 0;
}

/* What no constraint of the tables says. */
static int check(struct restore *r, struct err *err)
{
	uint64_t broken = 0, jobs = 0;

	if (pgtool_number(&r->tool, "lychgate", content_broken, &broken, err) < 0 ||
	    pgtool_number(&r->tool, "lychgate", "SELECT count(*) FROM lych.job", &jobs,
			  err) < 0)
		return -1;
	if (broken) {
		cleanup_free char *why = content_broken_why(broken);

		return err_set_id(err, ERRID_BACKUP_DAMAGED, "%s", why);
	}
	if (jobs != r->jobs)
		return err_set_id(err, ERRID_BACKUP_FAILED,
				  "%llu jobs arrived, there were %llu",
				  (unsigned long long)jobs, (unsigned long long)r->jobs);
	return 0;
}

int restore_rows(struct restore *r, struct err *err)
{
	struct content_script finish;

	content_finish(r->a->is_unsealed, &finish);
	if (make_schema(r, err) < 0 || load(r, err) < 0 ||
	    r->ops->migrate(r, NULL, err) < 0 || check(r, err) < 0)
		return -1;
	if (r->a->is_unsealed &&
	    pgtool_number(&r->tool, "lychgate", content_unended, &r->held, err) < 0)
		return -1;
	return pgtool_script(&r->tool, finish.statement, -1, -1, true,
			     ERRID_BACKUP_DAMAGED, err);
}
