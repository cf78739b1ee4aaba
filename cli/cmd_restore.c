/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lych restore: an installation from an archive of lych backup.
 *
 * Theory of operation
 *
 * Everything is made beside the data directory, in DATA.restore, and takes its place by one
 * rename when it is whole: before that a failure changes nothing, after it nothing is left
 * to do. Order: the archive is read to its end and checked; then a new cluster with new
 * passwords, the roles by `lych-vessel migrate`, the database from the dump, its schema by
 * migrate again, a new numbering of the audit outbox (lych.audit_restart: transaction ids of
 * another cluster mean nothing here), the files (which are checked a second time as they are
 * written), the number of jobs; then the exchange. What was there is kept as DATA.before-TIME.
 * For the pod (--pod) server and migration run in containers of their own, in the images and
 * with the secrets that the units name; the rest is the same.
 */
#include "cli/archive.h"
#include "cli/cmd.h"
#include "cli/render.h"
#include "cli/restore.h"
#include "cli/secret.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#define INFO_MAX ((size_t)1 << 20)
#define NAMES_MAX 512

/* ---- the archive ------------------------------------------------------------- */

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

static int check_archive(struct restore *r, int fd, struct err *err)
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

static int extract(struct restore *r, int fd, struct err *err)
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

/* ---- the database ------------------------------------------------------------ */

/* Where the server's programs see it too. */
static char *dump_path(const struct restore *r)
{
	return xasprintf("%s/phylactery/" ARCHIVE_DATABASE, r->new.data);
}

/* The roles first: the dump names them as owners, and has no password. */
static int fill_database(struct restore *r, struct err *err)
{
	cleanup_free char *dump = dump_path(r);
	cleanup_free char *dump_there = pgtool_path(&r->tool, dump);
	const char *const load[] = {"--clean",	       "--if-exists", "--create",
				    "--exit-on-error", "-d",	      "postgres",
				    dump_there,	       NULL};
	const char *const renumber[] = {"-X", "-q",
					"-d", "lychgate",
					"-v", "ON_ERROR_STOP=1",
					"-c", "SELECT lych.audit_restart()",
					NULL};
	uint64_t known = 0, jobs = 0;

	if (r->ops->migrate(r, err) < 0 ||
	    pgtool_number(&r->tool, "lychgate",
			  "SELECT max(version) FROM lych.schema_version", &known,
			  err) < 0)
		return -1;
	if (r->schema > known)
		return err_set_id(err, ERRID_BACKUP_VERSION,
				  "its schema is %llu, this release knows %llu",
				  (unsigned long long)r->schema,
				  (unsigned long long)known);
	if (pgtool_run(&r->tool, "pg_restore", load, NULL, err) < 0 ||
	    r->ops->migrate(r, err) < 0 ||
	    pgtool_run(&r->tool, "psql", renumber, NULL, err) < 0 ||
	    pgtool_number(&r->tool, "lychgate", "SELECT count(*) FROM lych.job", &jobs,
			  err) < 0)
		return -1;
	if (jobs < r->jobs)
		return err_set_id(err, ERRID_BACKUP_FAILED,
				  "%llu jobs arrived, there were %llu",
				  (unsigned long long)jobs, (unsigned long long)r->jobs);
	r->jobs = jobs;
	return 0;
}

/* ---- the place --------------------------------------------------------------- */

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
static int check_place(const struct restore *r, bool *ret_empty, struct err *err)
{
	*ret_empty = nftw(r->p.data, is_content, 16, FTW_PHYS | FTW_ACTIONRETVAL) == 0;
	if (!*ret_empty && !r->a->force)
		return err_set_id(err, ERRID_BACKUP_NOT_EMPTY, "%s", r->p.data);
	return 0;
}

static int take_lock(const char *dir, struct err *err)
{
	cleanup_free char *path = xasprintf("%s/lock", dir);
	cleanup_close int fd =
		open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(err, "%s", path);
	if (fs_lock(fd, NULL, err) < 0) {
		struct err why = *err;

		return err_set_id(err, ERRID_BACKUP_STATE, "%s: %s; 'lych down' first",
				  dir, why.msg);
	}
	return TAKE_FD(fd);
}

static int remove_beside(const char *path, struct err *err)
{
	cleanup_free char *parent =
		xstrndup(path, (size_t)(strrchr(path, '/') - path) + 1);
	cleanup_close int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? err_sys(err, "%s", parent)
		      : fs_remove_beneath(fd, strrchr(path, '/') + 1, err);
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
		(void)!remove_beside(r->new.data, &ignored);
		return;
	}
	r->kept = xasprintf("%s.before-%llu", r->p.data,
			    (unsigned long long)(clock_wall_usec() / USEC_PER_SEC));
	if (renameat2(AT_FDCWD, r->new.data, AT_FDCWD, r->kept, RENAME_NOREPLACE) < 0) {
		free(r->kept);
		r->kept = xstrdup(r->new.data);
	}
}

static int exchange(struct restore *r, bool was_empty, struct err *err)
{
	cleanup_free char *dump = dump_path(r);

	if (unlink(dump) < 0)
		return err_sys(err, "%s", dump);
	if (syncfs(r->new_fd) < 0)
		return err_sys(err, "syncfs");
	if (renameat2(AT_FDCWD, r->new.data, AT_FDCWD, r->p.data, RENAME_EXCHANGE) < 0)
		return err_sys_id(err, ERRID_BACKUP_FAILED, "exchange %s", r->p.data);
	after_exchange(r, was_empty);
	return 0;
}

/* The configuration has its own place; one that is there is the user's. */
static const char *place_config(struct restore *r)
{
	cleanup_free char *from = xasprintf("%s/" ARCHIVE_CONFIG, r->p.data);
	cleanup_free char *dir =
		xstrndup(r->p.config, (size_t)(strrchr(r->p.config, '/') - r->p.config));
	cleanup_close int dirfd = -1;
	cleanup_free char *text = NULL;
	struct err ignored = ERR_INIT;
	size_t len;

	if (access(from, F_OK) < 0)
		return "none was saved";
	if (access(r->p.config, F_OK) == 0)
		return "the one that is there stays; the saved one is config/codex.yaml "
		       "in "
		       "the data directory";
	if (fs_mkdir_all(dir, 0700, &ignored) < 0 ||
	    (dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
	    fs_read_file(AT_FDCWD, from, 1 << 20, &text, &len, &ignored) < 0 ||
	    fs_write_atomic(dirfd, strrchr(r->p.config, '/') + 1, text, len, 0600,
			    &ignored) < 0)
		return "it could not be put in place; it is config/codex.yaml in the "
		       "data "
		       "directory";
	return "restored";
}

/* ---- all of it --------------------------------------------------------------- */

struct names {
	char **name;
	size_t n;
};

static void names_add(const char *name, const char *kind UNUSED, void *arg)
{
	struct names *l = arg;

	l->name = xreallocarray(l->name, l->n + 1, sizeof(*l->name));
	l->name[l->n++] = xstrdup(name);
}

/* Those that the archive names and the store does not have. */
static void tell_missing(const struct restore *r, struct jsonw *w)
{
	cleanup_secret_store struct secret_store s = {.dirfd = -1};
	const struct json *names = NULL;
	struct err ignored = ERR_INIT;
	struct names have = {0};

	if (json_get_arr(r->info, "secrets", true, NAMES_MAX, &names, &ignored) < 0 ||
	    secret_store_open(r->ops->store, &r->p, &s, &ignored) < 0 ||
	    s.ops->list(&s, names_add, &have, &ignored) < 0)
		(void)fputs("the secrets could not be looked at: 'lych secret check'\n",
			    stderr);
	for (size_t i = 0; names && i < json_arr_len(names); i++) {
		const char *name = NULL;
		bool is_there = false;

		if (json_as_str(json_arr_at(names, i), 64, &name, &ignored) < 0 ||
		    !secret_find(name))
			continue;
		for (size_t k = 0; k < have.n; k++)
			is_there |= str_eq(name, have.name[k]);
		if (is_there)
			continue;
		jsonw_str(w, name);
		if (!r->a->json)
			(void)printf("set again: lych secret set %s%s\n", name,
				     r->a->pod ? " --store=podman" : "");
	}
	for (size_t k = 0; k < have.n; k++)
		free(have.name[k]);
	free(have.name);
}

static void say(struct restore *r, const char *config)
{
	cleanup_buf struct buf b = {0};
	struct jsonw w;

	buf_init(&b, 1 << 20);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_kstr(&w, "data", r->p.data);
	jsonw_ku64(&w, "jobs", r->jobs);
	jsonw_kstr(&w, "config", config);
	jsonw_kstr(&w, "kept", r->kept);
	if (!r->a->json)
		(void)printf("restored %llu jobs to %s; configuration: %s\n",
			     (unsigned long long)r->jobs, r->p.data, config);
	jsonw_key(&w, "secrets_to_set");
	jsonw_arr(&w);
	tell_missing(r, &w);
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	if (r->a->json)
		(void)puts(buf_str(&b));
	else if (r->kept)
		(void)printf("what was there is %s\n", r->kept);
}

static int build(struct restore *r, int fd, struct err *err)
{
	cleanup_free char *dump = dump_path(r);
	struct err second = ERR_INIT;
	int rc = -1;

	/* a rest of one that was cut off */
	if (remove_beside(r->new.data, err) < 0 || paths_make(&r->new, err) < 0)
		return -1;
	r->new_fd = open(r->new.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->new_fd < 0)
		return err_sys(err, "%s", r->new.data);
	conf_defaults(&r->conf);
	if ((access(r->p.config, F_OK) < 0 ||
	     conf_load(r->p.config, &r->conf, err) == 0) &&
	    extract(r, fd, err) == 0) {
		if (renameat(r->new_fd, ARCHIVE_DATABASE, AT_FDCWD, dump) < 0)
			(void)err_sys(err, "%s", dump);
		else if (r->ops->start(r, err) == 0)
			rc = fill_database(r, err);
	}
	conf_done(&r->conf);
	pgtool_close(&r->tool);
	if (r->ops->stop(r, rc == 0 ? err : &second) < 0)
		rc = -1;
	return rc;
}

static int restore(struct restore *r, struct err *err)
{
	cleanup_close int fd =
		open(r->a->file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	cleanup_close int lock = -1;
	cleanup_close int run_lock = -1;
	cleanup_close int pg_lock = -1;
	cleanup_free char *beside = NULL;
	cleanup_free char *phylactery = NULL;
	bool was_empty = true;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "%s", r->a->file);
	if (!S_ISREG(st.st_mode))
		return err_set_id(err, ERRID_BACKUP_DAMAGED, "%s is no regular file",
				  r->a->file);
	if (paths_resolve(&r->p, err) < 0 || check_archive(r, fd, err) < 0)
		return -1;
	if (paths_make(&r->p, err) < 0)
		return -1;
	lock = take_lock(r->p.data, err);
	run_lock = lock < 0 ? -1 : take_lock(r->p.runtime, err);
	phylactery = xasprintf("%s/phylactery", r->p.data);
	pg_lock = run_lock < 0 ? -1 : take_lock(phylactery, err); /* the pod's, too */
	if (pg_lock < 0 || check_place(r, &was_empty, err) < 0)
		return -1;
	beside = xasprintf("%s.restore", r->p.data);
	r->new = r->p;
	r->new.data = beside;
	if (build(r, fd, err) < 0 || exchange(r, was_empty, err) < 0) {
		struct err ignored = ERR_INIT;

		(void)!remove_beside(beside, &ignored);
		return -1;
	}
	say(r, place_config(r));
	return render_flush(err);
}

static error_t restore_parse(int key, char *arg, struct argp_state *state)
{
	struct restore_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case 'f':
		a->force = true;
		return 0;
	case 'p':
		a->pod = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->file)
			argp_usage(state);
		a->file = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->file)
			cmd_usage(state, "the archive's name is required");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_restore(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"force", 'f', NULL, 0,
		 "also where an installation is: it is moved aside", 0},
		{"pod", 'p', NULL, 0, "for the pod, with Podman's secrets and images", 0},
		{"json", 'j', NULL, 0, "answer in JSON", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = restore_parse,
		.args_doc = "FILE",
		.doc = "Make an installation from an archive of 'lych backup'. Nothing "
		       "may run. In embedded mode its database and work secrets are made "
		       "anew; the pod takes those that Podman has."};
	struct restore_args a = {0};
	struct restore r = {.a = &a, .new_fd = -1, .out = -1, .pg = {.lock_fd = -1}};
	struct err err = ERR_INIT;
	int rc;

	(void)argp_parse(&argp, argc, argv, 0, NULL, &a);
	r.ops = a.pod ? &restore_pod : &restore_embedded;
	rc = restore(&r, &err);
	json_free(r.info);
	buf_done(&r.info_text);
	fd_close(&r.new_fd);
	fd_close(&r.out);
	free(r.kept);
	paths_done(&r.p);
	return rc < 0 ? cmd_fail(&err, a.json) : 0;
}
