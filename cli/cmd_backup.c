/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lych backup: database, blobs, output, audit log and configuration as one file, of
 * embedded mode or (--pod) of the pod, whose database is dumped inside its container. Live:
 * the database first, as one snapshot, then the files. So every blob that the snapshot
 * names is in it (they are removed only with a job that was forgotten), and the audit log
 * has all that the database knows, or more. Secrets are named, not copied.
 */
#include "cli/archive.h"
#include "cli/cmd.h"
#include "cli/pgtool.h"
#include "cli/render.h"
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
#include <sys/syscall.h>

#define INFO_MAX ((size_t)1 << 20)

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

/* What is saved, and what reads the database of it. */
struct source {
	struct paths paths;
	struct pgtool tool;
	const char *store; /* of the secrets: secret.h */
	char *tmp;	   /* a private directory that the tool sees too */
};

/* Podman may hold others' secrets too. */
static void write_name(const char *name, const char *kind UNUSED, void *arg)
{
	if (secret_find(name))
		jsonw_str(arg, name);
}

static int write_info(const struct source *from, bool has_config, struct buf *b,
		      struct err *err)
{
	cleanup_secret_store struct secret_store s = {.dirfd = -1};
	const struct pgtool *t = &from->tool;
	uint64_t schema = 0, jobs = 0;
	char at[RFC3339_SIZE];
	struct jsonw w;

	if (pgtool_number(t, "lychgate", "SELECT max(version) FROM lych.schema_version",
			  &schema, err) < 0 ||
	    pgtool_number(t, "lychgate", "SELECT count(*) FROM lych.job", &jobs, err) <
		    0 ||
	    secret_store_open(from->store, &from->paths, &s, err) < 0)
		return -1;
	clock_rfc3339(clock_wall_usec(), at);
	jsonw_init(&w, b);
	jsonw_obj(&w);
	jsonw_ku64(&w, "format", 1);
	jsonw_kstr(&w, "version", LYCH_VERSION);
	jsonw_kstr(&w, "created_at", at);
	jsonw_ku64(&w, "schema", schema);
	jsonw_ku64(&w, "postgres_major", t->major);
	jsonw_ku64(&w, "jobs_before", jobs);
	jsonw_kbool(&w, "config", has_config);
	jsonw_key(&w, "secrets");
	jsonw_arr(&w);
	if (s.ops->list(&s, write_name, &w, err) < 0)
		return -1;
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	return buf_ok(b) ? 0 : err_set(err, ERR_TOO_LARGE, "the secrets' names");
}

static int fill(const struct source *from, struct archive_writer *w, struct err *err)
{
	const struct paths *p = &from->paths;
	cleanup_close int data = open(p->data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_close int tmpfd = open(from->tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_free char *dump = xasprintf("%s/" ARCHIVE_DATABASE, from->tmp);
	cleanup_free char *dump_there = pgtool_path(&from->tool, dump);
	const char *const args[] = {"-F", "custom",   "-f", dump_there,
				    "-d", "lychgate", NULL};
	bool has_config = access(p->config, F_OK) == 0;
	cleanup_buf struct buf info = {0};

	buf_init(&info, INFO_MAX);
	if (data < 0 || tmpfd < 0)
		return err_sys(err, "%s", p->data);
	if (write_info(from, has_config, &info, err) < 0 ||
	    archive_add(w, ARCHIVE_INFO, info.data, info.len, err) < 0 ||
	    pgtool_run(&from->tool, "pg_dump", args, NULL, err) < 0 ||
	    archive_add_file(w, ARCHIVE_DATABASE, tmpfd, ARCHIVE_DATABASE, err) < 0)
		return -1;
	if (has_config) {
		cleanup_free char *text = NULL;
		size_t len;

		if (fs_read_file(AT_FDCWD, p->config, 1 << 20, &text, &len, err) < 0 ||
		    archive_add(w, ARCHIVE_CONFIG, text, len, err) < 0)
			return -1;
	}
	/* what the gate refuses: digests of terms and files, none of their text */
	if (faccessat(data, ARCHIVE_PRIVATE, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
	    archive_add_file(w, ARCHIVE_PRIVATE, data, ARCHIVE_PRIVATE, err) < 0)
		return -1;
	if (archive_add_tree(w, "vessel/blobs", data, "vessel/blobs", err) < 0 ||
	    archive_add_tree(w, "vessel/output", data, "vessel/output", err) < 0 ||
	    archive_add_tree(w, "audit", data, "audit", err) < 0)
		return -1;
	return archive_end(w, err);
}

/* Complete under its name or not there; never over another file. */
static int write_archive(const struct source *from, const char *file,
			 struct archive_writer *w, struct err *err)
{
	cleanup_free char *part = xasprintf("%s.part", file);
	cleanup_close int fd =
		open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return err_sys_id(err, ERRID_BACKUP_FAILED, "%s", part);
	archive_begin(w, fd);
	r = fchmod(fd, 0600) < 0 ? err_sys(err, "chmod") : fill(from, w, err);
	if (r == 0 && renameat2(AT_FDCWD, part, AT_FDCWD, file, RENAME_NOREPLACE) < 0)
		r = err_sys_id(err,
			       errno == EEXIST ? ERRID_STORE_EXISTS : ERRID_BACKUP_FAILED,
			       "%s", file);
	if (r < 0)
		(void)unlink(part);
	return r;
}

static void say(const struct backup_args *a, const struct archive_writer *w)
{
	cleanup_buf struct buf b = {0};
	char size[32];
	struct jsonw j;

	if (!a->json) {
		render_size(size, w->bytes);
		(void)printf("%s: %llu files, %s; secrets are named in it, not copied\n",
			     a->file, (unsigned long long)w->files, size);
		return;
	}
	buf_init(&b, 65536);
	jsonw_init(&j, &b);
	jsonw_obj(&j);
	jsonw_kstr(&j, "file", a->file);
	jsonw_ku64(&j, "files", w->files);
	jsonw_ku64(&j, "bytes", w->bytes);
	jsonw_obj_end(&j);
	(void)puts(buf_str(&b));
}

/* The directory is made; whoever opened the source removes it. */
static int make_tmp(struct source *from, const char *dir, struct err *err)
{
	cleanup_free char *name = xasprintf("%s/backup.XXXXXX", dir);

	if (!mkdtemp(name))
		return err_sys(err, "%s", name);
	from->tmp = TAKE_PTR(name);
	return 0;
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
}

static int save(struct source *from, const struct backup_args *a, struct err *err)
{
	struct archive_writer w = {.fd = -1};
	int r = write_archive(from, a->file, &w, err);

	if (r == 0) {
		say(a, &w);
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
	if ((access(p->config, F_OK) < 0 || conf_load(p->config, &conf, err) == 0) &&
	    pg_find(p, conf.postgres_bin, &pg, err) == 0 &&
	    make_tmp(from, p->data, err) == 0 &&
	    pgtool_open(&from->tool, &pg, pg_dir, secrets, from->tmp, err) == 0)
		r = save(from, a, err);
	pgtool_close(&from->tool);
	pg_cluster_done(&pg);
	conf_done(&conf);
	return r;
}

/* The dump is written where the container writes its cluster: that directory is ours. */
static int backup_pod(struct source *from, const struct backup_args *a, struct err *err)
{
	cleanup_free char *outside = xasprintf("%s/phylactery", from->paths.data);
	cleanup_podman struct podman podman = {0};
	int r = -1;

	from->store = "podman";
	if (podman_open(&podman, err) < 0)
		return -1;
	if (pgtool_open_container(&from->tool, &podman, "lychgate-phylactery", outside,
				  err) < 0) {
		struct err why = *err;

		(void)err_set_id(err, ERRID_BACKUP_STATE,
				 "the pod's database does not answer ('systemctl --user "
				 "start lychgate-pod'): %s",
				 why.msg);
	} else if (make_tmp(from, outside, err) == 0) {
		r = save(from, a, err);
	}
	pgtool_close(&from->tool);
	return r;
}

static int backup(const struct backup_args *a, struct err *err)
{
	struct source from = {0};
	int r = -1;

	if (paths_resolve(&from.paths, err) < 0)
		return -1;
	if (access(a->file, F_OK) == 0)
		(void)err_set_id(err, ERRID_STORE_EXISTS, "%s", a->file);
	else
		r = a->pod ? backup_pod(&from, a, err) : backup_embedded(&from, a, err);
	remove_tmp(&from);
	paths_done(&from.paths);
	return r;
}

int cmd_backup(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"pod", 'p', NULL, 0, "of the pod, not of embedded mode", 0},
		{"json", 'j', NULL, 0, "answer in JSON", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = backup_parse,
		.args_doc = "FILE",
		.doc = "Save database, blobs, output, audit log and configuration of a "
		       "running Lychgate in one file. Secrets are only named."};
	struct backup_args a = {0};
	struct err err = ERR_INIT;

	(void)argp_parse(&argp, argc, argv, 0, NULL, &a);
	return backup(&a, &err) < 0 ? cmd_fail(&err, a.json) : 0;
}
