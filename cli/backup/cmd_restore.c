/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych restore: an installation from an archive of lych backup.
 *
 * Theory of operation
 *
 * An archive may come from anywhere. Before anything is made it is read to its end: that
 * it is whole, that its rows have the one form (copy_text.h), and by its seal that whoever
 * made it had the recovery code of this machine's person, or the code that is asked for.
 * --unsealed leaves that last question out, and with it all that would act by itself: its
 * configuration is laid aside, and no job of it begins before a person says so. Either way
 * nothing of an archive is executed or becomes part of a statement (restore_rows.c).
 *
 * Everything is made beside the data directory, in DATA.restore, and takes its place by one
 * rename when it is whole: before that a failure changes nothing, after it nothing is left
 * to do. Order: the files (checked a second time as they are written); a new cluster with
 * new passwords; the schema of the archive by `lych-vessel migrate`, its rows, the newest
 * schema by migrate again; a new numbering of the audit outbox (lych.audit_restart:
 * transaction ids of another cluster mean nothing here); then the exchange. What was there
 * is kept as DATA.before-TIME. For the pod (--pod) server and migration run in containers
 * of their own, in the images and with the secrets that the units name; the rest is the
 * same.
 */
#include "cli/backup/archive.h"
#include "cli/backup/restore.h"
#include "cli/base/cmd.h"
#include "cli/base/config_file.h"
#include "cli/secret/secret.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define NAMES_MAX 512

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

static void warn_unsealed(const struct restore *r)
{
	(void)fprintf(
		stderr,
		"lych: WARNING: the seal was not looked at. Whoever made this archive "
		"chose every job, result,\n"
		"      event and book in it, and its audit log proves nothing. %llu "
		"jobs that had not ended are\n"
		"      quarantined: look at each ('lych show'), then 'lych retry' or "
		"'lych rm'.\n",
		(unsigned long long)r->held);
}

static void say(struct restore *r, const char *config, const char *key)
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
	jsonw_kbool(&w, "sealed", !r->a->is_unsealed);
	jsonw_ku64(&w, "held", r->held);
	jsonw_kstr(&w, "key", key);
	if (!r->a->json)
		(void)printf("restored %llu jobs to %s; configuration: %s\n",
			     (unsigned long long)r->jobs, r->p.data, config);
	if (!r->a->json && key)
		(void)printf("the key of its seal is %s as " BACKUP_KEY_FILE
			     " beside codex.yaml\n",
			     key);
	jsonw_key(&w, "secrets_to_set");
	jsonw_arr(&w);
	tell_missing(r, &w);
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	if (r->a->json)
		(void)puts(buf_str(&b));
	else if (r->kept)
		(void)printf("what was there is %s\n", r->kept);
	if (r->a->is_unsealed)
		warn_unsealed(r);
}

/* From here on it is restored: what fails is said, and nothing is taken back. */
static const char *keep_key(const struct restore *r)
{
	struct err err = ERR_INIT;

	if (!r->key_is_new)
		return NULL;
	if (backup_key_keep(&r->p, &r->key, &err) == 0)
		return "kept";
	cmd_tell(err.id, err.msg);
	return "not kept";
}

static int build(struct restore *r, int fd, struct err *err)
{
	struct err second = ERR_INIT;
	int rc = -1;

	if (restore_beside_make(r, err) < 0)
		return -1;
	conf_defaults(&r->conf);
	if (config_load_or_defaults(r->p.config, &r->conf, err) == 0 &&
	    restore_extract(r, fd, err) == 0 &&
	    (!r->a->is_unsealed || restore_own_terms(r, err) == 0) &&
	    r->ops->start(r, err) == 0)
		rc = restore_rows(r, err);
	conf_done(&r->conf);
	pgtool_close(&r->tool);
	if (r->ops->stop(r, rc == 0 ? err : &second) < 0)
		rc = -1;
	return rc;
}

static int open_archive(const char *path, struct err *err)
{
	cleanup_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && errno == ELOOP)
		return err_set_id(err, ERRID_CORE_USAGE,
				  "%s is a link: name the archive itself", path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys_id(err,
				  errno == ENOENT ? ERRID_CORE_NO_FILE : ERRID_CORE_USAGE,
				  "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set_id(err, ERRID_BACKUP_DAMAGED, "%s is no regular file",
				  path);
	return TAKE_FD(fd);
}

/* All of it under the locks of who could be there: ours, a running Lychgate's, the pod's. */
static int restore_locked(struct restore *r, int fd, struct err *err)
{
	cleanup_close int lock = restore_lock(r->p.data, err);
	cleanup_close int run_lock = lock < 0 ? -1 : restore_lock(r->p.runtime, err);
	cleanup_free char *phylactery = xasprintf("%s/phylactery", r->p.data);
	cleanup_close int pg_lock = run_lock < 0 ? -1 : restore_lock(phylactery, err);
	bool was_empty = true;

	if (pg_lock < 0 || restore_place_check(r, &was_empty, err) < 0)
		return -1;
	if (build(r, fd, err) < 0 || restore_exchange(r, was_empty, err) < 0) {
		restore_beside_remove(r);
		return -1;
	}
	return 0;
}

static int restore(struct restore *r, struct err *err)
{
	cleanup_close int fd = open_archive(r->a->file, err);
	cleanup_free char *beside = NULL;
	struct err ignored = ERR_INIT;
	bool was_empty, was_there;

	/* what is refused here has made nothing */
	if (fd < 0 || paths_resolve(&r->p, err) < 0 || restore_check(r, fd, err) < 0 ||
	    restore_place_check(r, &was_empty, err) < 0)
		return -1;
	was_there = access(r->p.data, F_OK) == 0;
	beside = xasprintf("%s.restore", r->p.data);
	r->new = r->p;
	r->new.data = beside;
	if (paths_make(&r->p, err) < 0 || restore_locked(r, fd, err) < 0) {
		if (!was_there && restore_place_check(r, &was_empty, &ignored) == 0 &&
		    was_empty)
			(void)!restore_remove(r->p.data, &ignored);
		return -1;
	}
	say(r, restore_config(r), keep_key(r));
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
	case 'c':
		a->code_file = arg;
		return 0;
	case 'u':
		a->is_unsealed = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->file)
			return ARGP_ERR_UNKNOWN;
		a->file = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->file)
			cmd_usage(state, "the archive's name is required");
		if (a->is_unsealed && a->code_file)
			cmd_usage(state, "--unsealed asks for no code");
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
		{"code-file", 'c', "FILE", 0,
		 "where the recovery code is, when this machine does not have the key; "
		 "-: stdin",
		 0},
		{"unsealed", 'u', NULL, 0,
		 "whoever made it: its configuration is not taken, and its jobs that "
		 "have "
		 "not ended are quarantined",
		 0},
		{"json", 'j', NULL, 0, "answer in JSON", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = restore_parse,
		.args_doc = "FILE",
		.doc = "Make an installation from an archive of 'lych backup'. Nothing "
		       "may run. In embedded mode its database and work secrets are made "
		       "anew; the pod takes those that Podman has.\v"
		       "Examples:\n"
		       "  lych restore --force ~/lychgate.backup"};
	struct restore_args a = {0};
	struct restore r = {.a = &a, .new_fd = -1, .out = -1, .pg = {.lock_fd = -1}};
	struct err err = ERR_INIT;
	int rc;

	cmd_parse(&argp, argc, argv, 0, &a);
	r.ops = a.pod ? &restore_pod : &restore_embedded;
	rc = restore(&r, &err);
	backup_key_wipe(&r.key);
	json_free(r.info);
	buf_done(&r.info_text);
	fd_close(&r.new_fd);
	fd_close(&r.out);
	free(r.kept);
	paths_done(&r.p);
	return rc < 0 ? cmd_fail(&err, a.json) : 0;
}
