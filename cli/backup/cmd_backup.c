/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych backup: database, blobs, output, audit log and configuration as one sealed file, of
 * embedded mode or (--pod) of the pod, whose database is read inside its container. Live:
 * the database first, the rows of one snapshot (content.h), then the files. So every blob
 * that the snapshot names is in it (they are removed only with a job that was forgotten),
 * and the audit log has all that the database knows, or more. Secrets are named, not copied.
 */
#include "cli/backup/archive.h"
#include "cli/backup/content.h"
#include "cli/backup/copy_text.h"
#include "cli/backup/pgtool.h"
#include "cli/base/cmd.h"
#include "cli/base/config_file.h"
#include "cli/secret/secret.h"
#include "cli/ui/progress.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <argp.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#define INFO_MAX ((size_t)1 << 20)
#define CHUNK ((size_t)64 << 10)

struct backup_args {
	bool json, pod;
	const char *file;
};

static error_t backup_parse(int key, char *arg, struct argp_state *state)
{
	struct backup_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case 'p':
		a->pod = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->file)
			return ARGP_ERR_UNKNOWN;
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

/* What is saved, and what reads the database of it. */
struct source {
	struct paths paths;
	struct pgtool tool;
	const char *store; /* of the secrets: secret.h */
	char *tmp;	   /* a private directory */
	int tmp_fd;	   /* of it, locked as long as it is in use */
	struct backup_key key;
	int first_fd; /* backup_key_lock(): the key is new; -1: it is not */
	char code[BACKUP_CODE_SIZE]; /* of a new one, shown once */
};

/* ---- the key ----------------------------------------------------------------- */

/* Of a descriptor that was closed the program made /dev/null. */
static int refuse_nowhere(int fd, const char *what, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, "%s", what);
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
		return err_set_id(
			err, ERRID_BACKUP_FAILED,
			"the first backup shows the recovery code, once, and %s "
			"goes nowhere: run it where somebody reads that",
			what);
	return 0;
}

static bool is_first(const struct source *from)
{
	return from->first_fd >= 0;
}

static int take_key(struct source *from, const struct backup_args *a, struct err *err)
{
	struct backup_code code;
	bool has = false;

	if (backup_key_load(&from->paths, &from->key, &has, err) < 0)
		return -1;
	if (has)
		return 0;
	/* Of several first ones at once one is the first. */
	if (backup_key_lock(&from->paths, &from->first_fd, err) < 0 ||
	    backup_key_load(&from->paths, &from->key, &has, err) < 0)
		return -1;
	if (has) {
		fd_close(&from->first_fd);
		return 0;
	}
	if (refuse_nowhere(a->json ? STDOUT_FILENO : STDERR_FILENO,
			   a->json ? "stdout" : "stderr", err) < 0)
		return -1;
	backup_code_new(&code);
	backup_key_of(&code, &from->key);
	backup_code_write(&code, from->code);
	explicit_bzero(&code, sizeof(code));
	return 0;
}

static int tell_code(const struct source *from, struct err *err)
{
	int n = fprintf(
		stderr,
		"\n  The recovery code of this machine's backups. It is shown this "
		"once:\n\n      %s\n\n"
		"  Write it down and keep it elsewhere: a restore on another machine "
		"asks for it,\n  and so does one here when " BACKUP_KEY_FILE
		" beside codex.yaml is lost.\n\n",
		from->code);

	return n < 0 || fflush(stderr) != 0
		       ? err_sys_id(err, ERRID_BACKUP_FAILED, "show the recovery code")
		       : 0;
}

/* ---- what is in it --------------------------------------------------------------- */

/* Podman may hold others' secrets too. */
static void write_name(const char *name, const char *kind UNUSED, void *arg)
{
	if (secret_find(name))
		jsonw_str(arg, name);
}

struct rows {
	int fd;
	uint64_t schema, jobs;
};

static int write_info(const struct source *from, const struct rows *rows, bool has_config,
		      struct buf *b, struct err *err)
{
	cleanup_secret_store struct secret_store s = {.dirfd = -1};
	char at[RFC3339_SIZE];
	struct jsonw w;

	if (secret_store_open(from->store, &from->paths, &s, err) < 0)
		return -1;
	clock_rfc3339(clock_wall_usec(), at);
	jsonw_init(&w, b);
	jsonw_obj(&w);
	jsonw_ku64(&w, "format", ARCHIVE_FORMAT);
	jsonw_kstr(&w, "version", LYCH_VERSION);
	jsonw_kstr(&w, "created_at", at);
	jsonw_ku64(&w, "schema", rows->schema);
	jsonw_ku64(&w, "jobs", rows->jobs);
	jsonw_kbool(&w, "config", has_config);
	jsonw_key(&w, "secrets");
	jsonw_arr(&w);
	if (s.ops->list(&s, write_name, &w, err) < 0)
		return -1;
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	return buf_ok(b) ? 0 : err_set_id(err, ERRID_CORE_TOO_LARGE, "names");
}

/* What a restore would refuse is no backup: it is read as one would read it. */
static int check_rows(struct rows *rows, struct err *err)
{
	cleanup_free char *chunk = xmalloc(CHUNK);
	struct err why = ERR_INIT;
	struct copy_text text;
	ssize_t n;

	if (lseek(rows->fd, 0, SEEK_SET) < 0)
		return err_sys(err, ARCHIVE_DATABASE);
	copy_text_begin(&text);
	while ((n = read(rows->fd, chunk, CHUNK)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "read " ARCHIVE_DATABASE);
		if (copy_text_add(&text, chunk, (size_t)n, &why) < 0)
			return err_set_id(err, ERRID_BACKUP_FAILED, "%s", why.msg);
	}
	if (copy_text_end(&text, content_sections((unsigned)rows->schema), &why) < 0)
		return err_set_id(err, ERRID_BACKUP_FAILED, "%s", why.msg);
	rows->jobs = copy_text_rows(&text, CONTENT_JOBS);
	return 0;
}

static int save_rows(const struct source *from, int tmpfd, struct rows *rows,
		     struct err *err)
{
	struct content_script script;

	rows->fd = fs_open_beneath(tmpfd, ARCHIVE_DATABASE, O_RDWR | O_CREAT | O_EXCL,
				   0600, err);
	if (rows->fd < 0 || pgtool_number(&from->tool, "lychgate",
					  "SELECT max(version) FROM lych.schema_version",
					  &rows->schema, err) < 0)
		return -1;
	if (rows->schema < CONTENT_SCHEMA_FIRST || rows->schema > CONTENT_SCHEMA)
		return err_set_id(err, ERRID_BACKUP_VERSION,
				  "the database is at schema %llu, this program knows %d "
				  "to %d",
				  (unsigned long long)rows->schema, CONTENT_SCHEMA_FIRST,
				  CONTENT_SCHEMA);
	content_save((unsigned)rows->schema, &script);
	if (pgtool_script(&from->tool, script.statement, -1, rows->fd, false,
			  ERRID_BACKUP_FAILED, err) < 0)
		return -1;
	return check_rows(rows, err);
}

static int add_config(const struct source *from, struct archive_writer *w,
		      struct err *err)
{
	cleanup_free char *text = NULL;
	size_t len;

	return fs_read_file(AT_FDCWD, from->paths.config, 1 << 20, &text, &len, err) < 0
		       ? -1
		       : archive_add(w, ARCHIVE_CONFIG, text, len, err);
}

static int fill(const struct source *from, struct archive_writer *w, struct err *err)
{
	const struct paths *p = &from->paths;
	cleanup_close int data = open(p->data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_close int tmpfd = open(from->tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool has_config = access(p->config, F_OK) == 0;
	cleanup_buf struct buf info = {0};
	struct rows rows = {.fd = -1};
	int r;

	buf_init(&info, INFO_MAX);
	if (data < 0 || tmpfd < 0)
		return err_sys(err, "%s", p->data);
	r = save_rows(from, tmpfd, &rows, err);
	fd_close(&rows.fd);
	if (r < 0 || write_info(from, &rows, has_config, &info, err) < 0 ||
	    archive_add(w, ARCHIVE_INFO, info.data, info.len, err) < 0 ||
	    archive_add_file(w, ARCHIVE_DATABASE, tmpfd, ARCHIVE_DATABASE, err) < 0 ||
	    (has_config && add_config(from, w, err) < 0))
		return -1;
	/* what the gate refuses: digests of terms and files, none of their text */
	if (faccessat(data, ARCHIVE_PRIVATE, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
	    archive_add_file(w, ARCHIVE_PRIVATE, data, ARCHIVE_PRIVATE, err) < 0)
		return -1;
	if (archive_add_tree(w, "vessel/blobs", data, "vessel/blobs", err) < 0 ||
	    archive_add_tree(w, "vessel/output", data, "vessel/output", err) < 0 ||
	    archive_add_tree(w, "audit", data, "audit", err) < 0)
		return -1;
	return archive_end(w, &from->key, err);
}

static void say(const struct source *from, const struct backup_args *a,
		const struct archive_writer *w)
{
	cleanup_buf struct buf b = {0};
	char size[32];
	struct jsonw j;

	if (!a->json) {
		render_size(size, w->bytes);
		(void)printf("%s: %llu files, %s, sealed; secrets are named in it, not "
			     "copied\n",
			     a->file, (unsigned long long)w->files, size);
		return;
	}
	buf_init(&b, 65536);
	jsonw_init(&j, &b);
	jsonw_obj(&j);
	jsonw_kstr(&j, "file", a->file);
	jsonw_ku64(&j, "files", w->files);
	jsonw_ku64(&j, "bytes", w->bytes);
	jsonw_kstr(&j, "key", from->key.id);
	if (is_first(from))
		jsonw_kstr(&j, "recovery_code", from->code);
	jsonw_obj_end(&j);
	(void)puts(buf_str(&b));
	explicit_bzero(b.data, b.len);
}

/* Nobody may read an archive before it is whole; so this mode also tells one that was left
 * unfinished from every other file. */
#define PART_MODE 0200

static bool is_named(const char *path, const struct stat *st)
{
	struct stat now;

	return lstat(path, &now) == 0 && now.st_dev == st->st_dev &&
	       now.st_ino == st->st_ino;
}

static bool is_left(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1 &&
	       (st->st_mode & 07777) == PART_MODE;
}

/*
 * The file that an archive grows in, locked as long as it does. One that a killed backup left
 * is begun anew. -EAGAIN: it was renamed or removed meanwhile.
 */
static int try_part(const char *part, int *ret_fd, struct err *err)
{
	int flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	cleanup_close int fd = open(part, flags | O_CREAT | O_EXCL, PART_MODE);
	bool is_new = fd >= 0, is_locked;
	struct stat st = {0};

	if (fd < 0 && errno != EEXIST)
		return err_sys_id(err, ERRID_BACKUP_FAILED, "%s", part);
	if (!is_new && (fd = open(part, flags)) < 0 && errno == ENOENT)
		return -EAGAIN;
	is_locked = fd >= 0 && fs_flock_soon(fd) == 0;
	if (fd >= 0 && !is_locked && errno == EWOULDBLOCK)
		return err_set_id(err, ERRID_BACKUP_FAILED,
				  "another backup is writing %s: wait for that one, or "
				  "give another name",
				  part);
	if (fd >= 0 && (fstat(fd, &st) < 0 || !is_named(part, &st)))
		return -EAGAIN;
	/* where a file system has no locks, only a new file is surely nobody else's */
	if (!is_new && (!is_locked || !is_left(&st)))
		return err_set_id(
			err, ERRID_BACKUP_FAILED,
			"%s is there, and no backup left it unfinished: move it "
			"away, or give the archive another name",
			part);
	if (fchmod(fd, PART_MODE) < 0 || ftruncate(fd, 0) < 0)
		return err_sys_id(err, ERRID_BACKUP_FAILED, "%s", part);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int open_part(const char *part, int *ret_fd, struct err *err)
{
	int r = -EAGAIN;

	for (int i = 0; i < 10 && r == -EAGAIN; i++)
		r = try_part(part, ret_fd, err);
	if (r != -EAGAIN)
		return r;
	return err_set_id(err, ERRID_BACKUP_FAILED,
			  "%s: other backups make and remove it all the time, give "
			  "another name",
			  part);
}

/*
 * Complete under its name or not there; never over another file. When it has its name, a
 * person has been shown the code and the machine has the key: in that order, for a code of
 * no key is harmless, and a key whose code nobody has is not.
 */
static int write_archive(const struct source *from, const struct backup_args *a,
			 struct archive_writer *w, struct err *err)
{
	cleanup_free char *grows = xasprintf("%s/vessel", from->paths.data);
	cleanup_free char *part = xasprintf("%s.part", a->file);
	cleanup_close int fd = -1;
	int r;

	if (open_part(part, &fd, err) < 0)
		return -1;
	archive_begin(w, fd);
	progress_begin("saving", progress_weigh(grows), true, a->json);
	r = fill(from, w, err);
	progress_end();
	if (r == 0 && is_first(from)) {
		if (a->json)
			say(from, a, w);
		else
			r = tell_code(from, err);
		if (r == 0)
			r = render_flush(err);
		if (r == 0)
			r = backup_key_keep(&from->paths, &from->key, err);
		if (r < 0) /* it may have been read */
			(void)err_wrap(err, "no archive was made, and no code that was "
					    "shown is one: the next time shows another");
	}
	if (r == 0 && fchmod(fd, 0600) < 0)
		r = err_sys_id(err, ERRID_BACKUP_FAILED, "chmod %s", part);
	if (r == 0 && renameat2(AT_FDCWD, part, AT_FDCWD, a->file, RENAME_NOREPLACE) < 0)
		r = err_sys_id(err,
			       errno == EEXIST ? ERRID_STORE_EXISTS : ERRID_BACKUP_FAILED,
			       "%s", a->file);
	if (r < 0)
		(void)unlink(part);
	return r;
}

/* ---- of what ------------------------------------------------------------------- */

#define TMP_NAME "backup."
#define TMP_NAME_LEN (sizeof(TMP_NAME "XXXXXX") - 1)

/* What killed backups left of their rows: nobody holds its lock. */
static void sweep_tmp(const char *dir)
{
	cleanup_dir DIR *d = opendir(dir);
	struct err ignored = ERR_INIT;
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		cleanup_close int fd = -1;
		struct stat st;

		if (!str_starts(e->d_name, TMP_NAME) || strlen(e->d_name) != TMP_NAME_LEN)
			continue;
		fd = openat(dirfd(d), e->d_name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
		    fs_flock_soon(fd) == 0)
			(void)!fs_remove_beneath(dirfd(d), e->d_name, &ignored);
	}
}

/* -EAGAIN: another backup took it for one that was left, before it was locked. */
static int try_tmp(struct source *from, const char *dir, struct err *err)
{
	cleanup_free char *name = xasprintf("%s/" TMP_NAME "XXXXXX", dir);
	cleanup_close int fd = -1;
	struct stat st;

	if (!mkdtemp(name))
		return err_sys(err, "%s", name);
	fd = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -EAGAIN : err_sys(err, "%s", name);
	/* where a file system has no locks, nothing is taken for one that was left */
	if ((flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) ||
	    fstat(fd, &st) < 0 || !is_named(name, &st))
		return -EAGAIN;
	from->tmp = TAKE_PTR(name);
	from->tmp_fd = TAKE_FD(fd);
	return 0;
}

/* The directory is made; whoever opened the source removes it. */
static int make_tmp(struct source *from, const char *dir, struct err *err)
{
	int r = -EAGAIN;

	sweep_tmp(dir);
	for (int i = 0; i < 10 && r == -EAGAIN; i++)
		r = try_tmp(from, dir, err);
	return r != -EAGAIN ? r
			    : err_set_id(err, ERRID_BACKUP_FAILED,
					 "%s: other backups remove what this one makes, "
					 "try again",
					 dir);
}

static void remove_tmp(struct source *from)
{
	cleanup_close int parent = -1;
	struct err ignored = ERR_INIT;
	char *slash;

	if (!from->tmp)
		return;
	slash = strrchr(from->tmp, '/');
	*slash = '\0';
	parent = open(from->tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)!fs_remove_beneath(parent, slash + 1, &ignored);
	free(from->tmp);
	from->tmp = NULL;
	fd_close(&from->tmp_fd);
}

static int save(struct source *from, const struct backup_args *a, struct err *err)
{
	struct archive_writer w = {.fd = -1};
	int r = write_archive(from, a, &w, err);

	if (r == 0 && !(a->json && is_first(from))) {
		say(from, a, &w);
		r = render_flush(err);
	}
	archive_done(&w);
	return r;
}

static int backup_embedded(struct source *from, const struct backup_args *a,
			   struct err *err)
{
	const struct paths *p = &from->paths;
	cleanup_free char *secrets = xasprintf("%s/secrets", p->data);
	cleanup_free char *pg_dir = NULL;
	struct starter_state state = {0};
	struct pg_cluster pg = {.lock_fd = -1};
	struct conf conf = {0};
	int r = -1;

	if (starter_state_read(p, &state, err) < 0 || !str_eq(state.state, "up")) {
		free(state.runtime);
		return err_set_id(err, ERRID_BACKUP_STATE,
				  "nothing runs on %s: 'lych up' first, the database "
				  "must answer ('--pod' saves the pod)",
				  p->data);
	}
	pg_dir = xasprintf("%s/pg", state.runtime);
	free(state.runtime);
	from->store = "files";
	conf_defaults(&conf);
	if (config_load_or_defaults(p->config, &conf, err) == 0 &&
	    pg_find(p, conf.postgres_bin, &pg, err) == 0 &&
	    make_tmp(from, p->data, err) == 0 &&
	    pgtool_open(&from->tool, &pg, pg_dir, secrets, from->tmp, err) == 0)
		r = save(from, a, err);
	pgtool_close(&from->tool);
	pg_cluster_done(&pg);
	conf_done(&conf);
	return r;
}

static int backup_pod(struct source *from, const struct backup_args *a, struct err *err)
{
	cleanup_podman struct podman podman = {0};
	int r = -1;

	from->store = "podman";
	if (podman_open(&podman, err) < 0)
		return -1;
	if (pgtool_open_container(&from->tool, &podman, "lychgate-phylactery", err) < 0) {
		struct err why = *err;

		(void)err_set_id(err, ERRID_BACKUP_STATE,
				 "the pod's database does not answer ('systemctl --user "
				 "start lychgate-pod'): %s",
				 why.msg);
	} else if (make_tmp(from, from->paths.data, err) == 0) {
		r = save(from, a, err);
	}
	pgtool_close(&from->tool);
	return r;
}

static int backup(const struct backup_args *a, struct err *err)
{
	struct source from = {.first_fd = -1, .tmp_fd = -1};
	int r = -1;

	if (paths_resolve(&from.paths, err) < 0)
		return -1;
	if (access(a->file, F_OK) == 0)
		(void)err_set_id(err, ERRID_STORE_EXISTS, "%s", a->file);
	else if (take_key(&from, a, err) == 0)
		r = a->pod ? backup_pod(&from, a, err) : backup_embedded(&from, a, err);
	remove_tmp(&from);
	fd_close(&from.first_fd);
	paths_done(&from.paths);
	explicit_bzero(&from, sizeof(from));
	return r;
}

int cmd_backup(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"pod", 'p', NULL, 0, "of the pod, not of embedded mode", 0},
		{"json", 'j', NULL, 0, "answer in JSON", 0},
		{0}};
	static const struct argp argp = {
		.options = options,
		.parser = backup_parse,
		.args_doc = "FILE",
		.doc = "Save database, blobs, output, audit log and configuration of a "
		       "running Lychgate in one sealed file. Secrets are only named. The "
		       "first time a recovery code is shown, once.\vExamples:\n"
		       "  lych backup ~/lychgate.backup"};
	struct backup_args a = {0};
	struct err err = ERR_INIT;

	cmd_parse(&argp, argc, argv, 0, &a);
	return backup(&a, &err) < 0 ? cmd_fail(&err, a.json) : 0;
}
