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
 */
#include "cli/archive.h"
#include "cli/cmd.h"
#include "cli/pgtool.h"
#include "cli/proc.h"
#include "cli/render.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/net/json.h"
#include "common/proto.h"
#include "common/str.h"
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define INFO_MAX ((size_t)1 << 20)
#define START_TIMEOUT (60 * USEC_PER_SEC)
#define MIGRATE_TIMEOUT (300 * USEC_PER_SEC)
#define NAMES_MAX 512

struct restore_args {
	bool json, force;
	const char *file;
};

struct restore {
	const struct restore_args *a;
	struct paths p;	  /* of the user */
	struct paths new; /* the same, with data beside it; borrows */
	int new_fd, out;  /* DATA.restore; the file that is being written */
	struct pg_cluster pg;
	struct pgtool tool;
	pid_t server;
	struct buf info_text;
	struct json *info;
	uint64_t schema, postgres_major, jobs;
	char *vessel;
	char *kept; /* DATA.before-TIME, when something was there */
	bool in_info;
};

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

static int server_start(struct restore *r, struct err *err)
{
	usec_t deadline = clock_boot_usec() + START_TIMEOUT;
	cleanup_env char **argv = NULL;
	cleanup_env char **env = proc_env();
	cleanup_close int log = -1;

	if (pg_configure(&r->new, &r->pg, err) < 0)
		return -1;
	argv = pg_server_argv(&r->new, &r->pg);
	log = open(r->pg.log, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
		   0600);
	if (log < 0)
		return err_sys(err, "%s", r->pg.log);
	const struct proc_spec spec = {
		.argv = (const char *const *)argv,
		.env = (const char *const *)env,
		.in = -1,
		.out = log,
		.err = log,
		.ready_fd = -1,
		.death_signal = SIGINT,
	};

	if (proc_start(&spec, &r->server, err) < 0)
		return -1;
	while (!pg_is_ready(&r->pg, r->server)) {
		struct timespec nap = {.tv_nsec = 20 * 1000 * 1000};

		bool is_dead = waitpid(r->server, NULL, WNOHANG) == r->server;

		if (is_dead)
			r->server = 0;
		if (is_dead || clock_boot_usec() >= deadline)
			return err_set_id(err, ERRID_START_DB, "see %s", r->pg.log);
		(void)nanosleep(&nap, NULL);
	}
	return 0;
}

static int server_stop(struct restore *r, struct err *err)
{
	int status = 0;

	if (r->server <= 0)
		return 0;
	(void)kill(r->server, SIGINT);
	while (waitpid(r->server, &status, 0) < 0 && errno == EINTR)
		;
	r->server = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set_id(err, ERRID_START_DB,
				  "the new cluster did not stop cleanly, see %s",
				  r->pg.log);
	return 0;
}

static int migrate(struct restore *r, struct err *err)
{
	cleanup_free char *secrets = xasprintf("%s/secrets", r->new.data);
	cleanup_env char **env = proc_env();
	const char *const argv[] = {
		r->vessel, "migrate", "--pg-dir", r->new.pg_dir, "--secrets",
		secrets,   "--tomb",  TOMB_NAME,  NULL,
	};

	return proc_run(argv, (const char *const *)env, NULL, MIGRATE_TIMEOUT,
			ERRID_START_MIGRATION, NULL, err);
}

/* The roles first: the dump names them as owners, and has no password. */
static int fill_database(struct restore *r, struct err *err)
{
	cleanup_free char *dump = xasprintf("%s/" ARCHIVE_DATABASE, r->new.data);
	cleanup_free char *secrets = xasprintf("%s/secrets", r->new.data);
	const char *const load[] = {
		"--clean", "--if-exists", "--create", "--exit-on-error",
		"-d",	   "postgres",	  dump,	      NULL};
	const char *const renumber[] = {"-X", "-q",
					"-d", "lychgate",
					"-v", "ON_ERROR_STOP=1",
					"-c", "SELECT lych.audit_restart()",
					NULL};
	uint64_t known = 0, jobs = 0;

	if (migrate(r, err) < 0 ||
	    pgtool_open(&r->tool, &r->pg, r->new.pg_dir, secrets, r->new.data, err) < 0 ||
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
	    migrate(r, err) < 0 ||
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

static int is_content(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	return type != FTW_D && type != FTW_DP && !str_eq(path + at->base, "lock");
}

/* Directories without a file are no installation. */
static int check_place(const struct restore *r, bool *ret_empty, struct err *err)
{
	*ret_empty = nftw(r->p.data, is_content, 16, FTW_PHYS) == 0;
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

static int exchange(struct restore *r, bool was_empty, struct err *err)
{
	cleanup_free char *dump = xasprintf("%s/" ARCHIVE_DATABASE, r->new.data);
	struct err ignored = ERR_INIT;

	if (unlink(dump) < 0)
		return err_sys(err, "%s", dump);
	if (syncfs(r->new_fd) < 0)
		return err_sys(err, "syncfs");
	if (renameat2(AT_FDCWD, r->new.data, AT_FDCWD, r->p.data, RENAME_EXCHANGE) < 0)
		return err_sys_id(err, ERRID_BACKUP_FAILED, "exchange %s", r->p.data);
	/* from here on it is restored; the old one now has the new one's name */
	if (was_empty) {
		(void)!remove_beside(r->new.data, &ignored);
		return 0;
	}
	r->kept = xasprintf("%s.before-%llu", r->p.data,
			    (unsigned long long)(clock_wall_usec() / USEC_PER_SEC));
	if (renameat2(AT_FDCWD, r->new.data, AT_FDCWD, r->kept, RENAME_NOREPLACE) < 0) {
		free(r->kept);
		r->kept = xstrdup(r->new.data);
	}
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

static void say(struct restore *r, const char *config)
{
	static const char *const made[] = {"lychgate_db_migrate", "lychgate_db_vessel",
					   "lychgate_db_watchdog", "lychgate_db_tomb",
					   "lychgate_work"};
	const struct json *names = NULL;
	cleanup_buf struct buf b = {0};
	struct err ignored = ERR_INIT;
	struct jsonw w;

	buf_init(&b, 1 << 20);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_kstr(&w, "data", r->p.data);
	jsonw_ku64(&w, "jobs", r->jobs);
	jsonw_kstr(&w, "config", config);
	jsonw_kstr(&w, "kept", r->kept);
	jsonw_key(&w, "secrets_to_set");
	jsonw_arr(&w);
	if (json_get_arr(r->info, "secrets", true, NAMES_MAX, &names, &ignored) < 0)
		names = NULL;
	if (!r->a->json)
		(void)printf("restored %llu jobs to %s; configuration: %s\n",
			     (unsigned long long)r->jobs, r->p.data, config);
	for (size_t i = 0; names && i < json_arr_len(names); i++) {
		const char *name = NULL;
		bool is_made = false;

		if (json_as_str(json_arr_at(names, i), 64, &name, &ignored) < 0 ||
		    str_has_control(name, strlen(name)))
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(made); k++)
			is_made |= str_eq(name, made[k]);
		if (is_made)
			continue;
		jsonw_str(&w, name);
		if (!r->a->json)
			(void)printf("set again: lych secret set %s\n", name);
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	if (r->a->json)
		(void)puts(buf_str(&b));
	else if (r->kept)
		(void)printf("what was there is %s\n", r->kept);
}

static int build(struct restore *r, int fd, struct err *err)
{
	struct conf conf = {0};
	int rc = -1;

	/* a rest of one that was cut off */
	if (remove_beside(r->new.data, err) < 0 || paths_make(&r->new, err) < 0)
		return -1;
	r->new_fd = open(r->new.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->new_fd < 0)
		return err_sys(err, "%s", r->new.data);
	conf_defaults(&conf);
	if ((access(r->p.config, F_OK) < 0 || conf_load(r->p.config, &conf, err) == 0) &&
	    paths_program("lych-vessel", &r->vessel, err) == 0 &&
	    extract(r, fd, err) == 0 &&
	    pg_prepare(&r->new, conf.postgres_bin, NULL, &r->pg, err) == 0) {
		if (r->postgres_major > r->pg.major)
			(void)err_set_id(err, ERRID_BACKUP_VERSION,
					 "its database is of PostgreSQL %llu, here is %u",
					 (unsigned long long)r->postgres_major,
					 r->pg.major);
		else if (server_start(r, err) == 0)
			rc = fill_database(r, err);
	}
	conf_done(&conf);
	pgtool_close(&r->tool);
	if (server_stop(r, rc == 0 ? err : &(struct err)ERR_INIT) < 0)
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
		{"json", 'j', NULL, 0, "answer in JSON", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = restore_parse,
		.args_doc = "FILE",
		.doc = "Make an installation from an archive of 'lych backup'. Nothing "
		       "may "
		       "run; its database and work secrets are made anew."};
	struct restore_args a = {0};
	struct restore r = {.a = &a, .new_fd = -1, .out = -1, .pg = {.lock_fd = -1}};
	struct err err = ERR_INIT;
	int rc;

	(void)argp_parse(&argp, argc, argv, 0, NULL, &a);
	rc = restore(&r, &err);
	pg_cluster_done(&r.pg);
	json_free(r.info);
	buf_done(&r.info_text);
	fd_close(&r.new_fd);
	fd_close(&r.out);
	free(r.vessel);
	free(r.kept);
	paths_done(&r.p);
	return rc < 0 ? cmd_fail(&err, a.json) : 0;
}
