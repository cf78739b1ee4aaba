/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See config_change.h. The file is changed by another one taking its name, when all of it was judged
 * as `lych config check` does and nobody has changed the old one meanwhile: whoever reads it at any
 * moment reads one or the other.
 */
#include "cli/local/config_change.h"

#include "cli/base/cmd.h"
#include "cli/base/config_file.h"
#include "cli/base/litter.h"
#include "cli/base/proc.h"
#include "cli/local/config_text.h"
#include "cli/local/config_walls.h"
#include "cli/local/ward_text.h"
#include "cli/ui/prompt.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/conf/conf.h"
#include "common/fs.h"
#include "common/id.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHELL "/bin/sh"
#define TELL_TIMEOUT (10 * USEC_PER_SEC)

struct codex {
	const char *path;
	char *dir; /* where it lies, followed to its end */
	const char *name;
	int dirfd;
	struct buf text;
	struct conf conf; /* what the text means */
	struct stat st;
};

static void codex_done(struct codex *c)
{
	buf_done(&c->text);
	conf_done(&c->conf);
	fd_close(&c->dirfd);
	free(c->dir);
}
#define cleanup_codex __attribute__((cleanup(codex_done)))

/* A link is refused by whoever reads it; here it would also be replaced by a file. */
static int refuse_link(const char *path, struct err *err)
{
	char target[512];
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	if (n < 0)
		return 0;
	target[n] = '\0';
	return err_set_id(
		err, ERRID_START_CONFIG_MODE,
		"%s is a symbolic link to %s: nothing was changed there; put the "
		"file itself in its place",
		path, target);
}

static int codex_open(struct codex *c, const char *path, struct err *err)
{
	cleanup_free char *parent = xstrdup(path);
	char *slash = strrchr(parent, '/');

	*c = (struct codex){.path = path, .dirfd = -1};
	buf_init(&c->text, CONF_FILE_MAX_BYTES);
	if (access(path, F_OK) < 0 && errno == ENOENT)
		return err_set_id(err, ERRID_START_NO_CONFIG, "%s", path);
	if (refuse_link(path, err) < 0)
		return -1;
	*slash = '\0';
	c->name = path + (slash + 1 - parent);
	c->dir = realpath(parent, NULL);
	if (!c->dir)
		return err_sys(err, "%s", parent);
	c->dirfd = fs_open_dir(c->dir, err);
	if (c->dirfd < 0 || fstatat(c->dirfd, c->name, &c->st, AT_SYMLINK_NOFOLLOW) < 0)
		return c->dirfd < 0 ? -1 : err_sys(err, "%s", path);
	if (conf_read_text(path, &c->text, err) < 0)
		return -1;
	/* another file could take its name all the same */
	if (!(c->st.st_mode & S_IWUSR))
		return err_set_id(err, ERRID_START_CONFIG_MODE,
				  "%s has mode %04o: nothing was changed", path,
				  c->st.st_mode & 07777);
	return config_accept(path, &c->text, &c->conf, err);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev &&
	       a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* The half-written one of a lych that was killed; who writes one has the lock that we have. */
static void sweep(const struct codex *c)
{
	cleanup_free char *before = xasprintf("%s.", c->name);
	const struct litter l = {before, sizeof(struct request_id) - 1, ".tmp", false,
				 true};

	litter_sweep(c->dir, &l);
}

/* text has been judged. */
static int codex_replace(const struct codex *c, const struct buf *text, struct err *err)
{
	/* two at once: the second sees what the first has done */
	cleanup_close int lock =
		openat(c->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat now;

	if (lock < 0 || fs_flock_soon(lock) < 0)
		return err_sys(err, "lock %s", c->dir);
	if (fstatat(c->dirfd, c->name, &now, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !is_same(&now, &c->st))
		return err_set_id(err, ERRID_START_CONFIG_RACE, "%s was not touched",
				  c->path);
	sweep(c);
	return fs_write_atomic(c->dirfd, c->name, text->data, text->len,
			       c->st.st_mode & 07777, err);
}

/* It stays so, whatever becomes of the word of it. */
static int told(const char *path, bool is_changed, struct err *err)
{
	if (render_flush(err) == 0)
		return 0;
	return err_wrap(
		err, is_changed ? "%s was changed, only not told" : "%s was not touched",
		path);
}

/* ---- set and unset ----------------------------------------------------------------------- */

static void tell_lowered(const char *line, void *arg UNUSED)
{
	cleanup_free char *text = xasprintf("this lowers a wall: %s", line);

	cmd_tell(ERRID_NONE, text);
}

static void put_lowered(const char *line, void *arg)
{
	jsonw_str(arg, line);
}

struct change {
	const char *key, *old, *value;
	const struct conf *from, *to;
};

static void tell_set(const char *path, const struct change *c, bool json)
{
	cleanup_buf struct buf out = {0};
	struct jsonw w;

	buf_init(&out, 65536);
	if (!json) {
		cleanup_free char *was = render_shown(c->old ? c->old : "its default");
		cleanup_free char *is = render_shown(c->value ? c->value : "its default");
		cleanup_free char *file = render_shown(path);

		(void)printf("%s: %s is %s (it was %s); it counts from the next start\n",
			     file, c->key, is, was);
		return;
	}
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_kbool(&w, "ok", true);
	jsonw_kstr(&w, "file", path);
	jsonw_kstr(&w, "key", c->key);
	jsonw_kstr(&w, "old", c->old);
	jsonw_kstr(&w, "new", c->value);
	jsonw_key(&w, "lowers");
	jsonw_arr(&w);
	config_walls_lowered(c->from, c->to, put_lowered, &w);
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	(void)puts(buf_str(&out));
}

int config_set(const char *path, const char *key, const char *value, bool json,
	       struct err *err)
{
	cleanup_codex struct codex c = {.dirfd = -1};
	cleanup_buf struct buf text = {.max = CONF_FILE_MAX_BYTES};
	cleanup_free char *old = NULL;
	struct conf conf;
	bool is_changed;
	int r;

	if (conf_key_check(key, err) < 0 || codex_open(&c, path, err) < 0)
		return -1;
	r = value ? config_text_set(buf_str(&c.text), key, value, &text, &old, err)
		  : config_text_unset(buf_str(&c.text), key, &text, &old, err);
	if (r < 0 || config_accept(path, &text, &conf, err) < 0)
		return err_wrap(err, "nothing was changed");
	config_walls_lowered(&c.conf, &conf, tell_lowered, NULL);
	is_changed = !str_eq(buf_str(&text), buf_str(&c.text));
	if (is_changed)
		r = codex_replace(&c, &text, err);
	if (r == 0) {
		tell_set(path, &(struct change){key, old, value, &c.conf, &conf}, json);
		r = told(path, is_changed, err);
	}
	conf_done(&conf);
	return r;
}

/* ---- a rule -------------------------------------------------------------------- */

static int put_back(const struct codex *c, struct err *err)
{
	struct err why = ERR_INIT;

	if (codex_replace(c, &c->text, &why) == 0)
		return err_wrap(err, "%s is as it was", c->path);
	return err_wrap(err, "%s could not be put back, and has the rule", c->path);
}

/* The file as it would be. */
static int with_rule(struct codex *c, const char *path, const char *rule,
		     struct buf *text, struct err *err)
{
	struct conf conf;

	if (codex_open(c, path, err) < 0)
		return -1;
	if (ward_text_add(buf_str(&c->text), rule, text, err) < 0 ||
	    config_accept(path, text, &conf, err) < 0) {
		struct err why = *err;

		if (why.id == ERRID_START_CONFIG)
			(void)err_set_id(err, ERRID_PROPOSAL_RULE, "%s", why.msg);
		return err_wrap(err, "nothing was changed");
	}
	conf_done(&conf);
	return 0;
}

int config_check_rule(const char *path, const char *rule, struct err *err)
{
	cleanup_codex struct codex c = {.dirfd = -1};
	cleanup_buf struct buf text = {.max = CONF_FILE_MAX_BYTES};

	return with_rule(&c, path, rule, &text, err);
}

int config_add_rule(const char *path, const char *rule, config_then *then, void *arg,
		    struct err *err)
{
	cleanup_codex struct codex c = {.dirfd = -1};
	cleanup_buf struct buf text = {.max = CONF_FILE_MAX_BYTES};

	if (with_rule(&c, path, rule, &text, err) < 0 ||
	    codex_replace(&c, &text, err) < 0)
		return -1;
	/* what others make of it from now on is theirs */
	if (fstatat(c.dirfd, c.name, &c.st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, "%s, which has the rule", path);
	return then(&text, arg, err) < 0 ? put_back(&c, err) : 0;
}

/* ---- edit ---------------------------------------------------------------------- */

/* What nobody named needs a person at a terminal: it would wait for keys that nobody types. NULL: none. */
static const char *choose_editor(struct err *err)
{
	static const char *const names[] = {"VISUAL", "EDITOR"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return value;
	}
	if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		return "vi";
	(void)err_set_id(err, ERRID_CORE_EDITOR,
			 "there is no terminal for vi, and no other editor is named; "
			 "'lych config set KEY VALUE' needs none");
	return NULL;
}

/* A shell, since EDITOR may have arguments: it is the person's own line. The file's name is an
 * argument of that shell, not part of the line. */
NORETURN static void editor_main(const char *editor, const char *file)
{
	cleanup_free char *line = xasprintf("%s \"$@\"", editor);
	cleanup_free char *arg = xstrdup(file);
	char shell[] = "sh", option[] = "-c";
	char *argv[] = {shell, option, line, shell, arg, NULL};
	struct sigaction dfl = {.sa_handler = SIG_DFL};

	(void)sigaction(SIGINT, &dfl, NULL);
	(void)sigaction(SIGQUIT, &dfl, NULL);
	(void)sigaction(SIGPIPE, &dfl, NULL);
	(void)sigaction(SIGXFSZ, &dfl, NULL);
	(void)execve(SHELL, argv, environ);
	_exit(127);
}

/* Is the program missing, as far as that can be told: its name is a plain word? The shell would say so in its
 * own words. */
static bool is_missing(const char *editor)
{
	size_t n = strspn(editor, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789_-+./");
	cleanup_free char *name = xasprintf("%.*s", (int)n, editor), *said = NULL;
	const char *const argv[] = {SHELL, "-c", "command -v \"$1\"", "sh", name, NULL};
	struct err ignored = ERR_INIT;
	int status = 0;

	return n > 0 && (!editor[n] || editor[n] == ' ') &&
	       proc_output(argv, (const char *const *)environ, NULL, TELL_TIMEOUT, &said,
			   &status, &ignored) == 0 &&
	       WIFEXITED(status) && WEXITSTATUS(status) != 0;
}

static int no_editor(const char *editor, struct err *err)
{
	return err_set_id(err, ERRID_START_TOOL,
			  "the editor, '%.200s': set EDITOR to one that is there",
			  editor);
}

static int run_editor(const char *file, struct err *err)
{
	const char *editor = choose_editor(err);
	int status = 0;
	pid_t pid;

	if (!editor)
		return -1;
	if (is_missing(editor))
		return no_editor(editor, err);
	(void)fflush(stdout);
	(void)signal(SIGINT, SIG_IGN); /* the editor's, which shares the terminal */
	(void)signal(SIGQUIT, SIG_IGN);
	pid = fork();
	if (pid == 0)
		editor_main(editor, file);
	if (pid < 0)
		return err_sys(err, "fork");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGQUIT, SIG_DFL);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status) &&
	    (WEXITSTATUS(status) == 127 || WEXITSTATUS(status) == 126))
		return no_editor(editor, err);
	return err_set_id(err, ERRID_CORE_EDITOR,
			  "the editor, '%.200s', failed; nothing was changed", editor);
}

/* 1: it is acceptable, in text; 0: it is not, and the person wants to go on. */
static int judge(const struct codex *c, const char *copy, struct buf *text,
		 struct err *err)
{
	struct err why = ERR_INIT;
	struct conf conf;
	bool again = false;

	if (access(copy, F_OK) < 0 && errno == ENOENT)
		return err_set_id(err, ERRID_CORE_EDITOR,
				  "the editor has removed its file; nothing was changed");
	buf_reset(text);
	if (conf_read_text(copy, text, &why) == 0 &&
	    config_accept(c->path, text, &conf, &why) == 0) {
		conf_done(&conf);
		return 1;
	}
	if (prompt_can_ask()) {
		cmd_tell(why.id, why.msg);
		if (prompt_yes("Edit it again?", &again, err) < 0)
			return -1;
		if (again)
			return 0;
	}
	*err = why;
	return err_wrap(err, "nothing was changed; your text is in %s", copy);
}

/* When does it count? */
static const char *counts(const struct buf *was, const struct buf *is)
{
	static const char *const reloaded[] = {"ward", "credentials", NULL};
	cleanup_buf struct buf a = {.max = CONF_FLAT_MAX_BYTES};
	cleanup_buf struct buf b = {.max = CONF_FLAT_MAX_BYTES};
	cleanup_free char *other = NULL, *any = NULL;
	struct err ignored = ERR_INIT;

	if (conf_flatten(buf_str(was), was->len, &a, &ignored) == 0 &&
	    conf_flatten(buf_str(is), is->len, &b, &ignored) == 0) {
		other = conf_flat_differs(buf_str(&a), buf_str(&b), reloaded);
		any = conf_flat_differs(buf_str(&a), buf_str(&b), reloaded + 2);
	}
	return any && !other ? "it counts from 'lych ward reload', or from the next "
			       "start"
			     : "it counts from the next start";
}

/* Edited until it is acceptable, or given up. */
static int edit(const struct codex *c, const char *copy, bool json, struct err *err)
{
	cleanup_buf struct buf text = {.max = CONF_FILE_MAX_BYTES};
	int r;

	do {
		if (run_editor(copy, err) < 0) {
			(void)unlink(copy);
			return -1;
		}
		r = judge(c, copy, &text, err);
	} while (r == 0);
	if (r < 0)
		return -1;
	bool is_changed = !str_eq(buf_str(&text), buf_str(&c->text));
	struct conf conf;

	if (config_accept(c->path, &text, &conf, err) < 0)
		return -1;
	config_walls_lowered(&c->conf, &conf, tell_lowered, NULL);
	conf_done(&conf);
	if (is_changed && codex_replace(c, &text, err) < 0)
		return err_wrap(err, "your text is in %s", copy);
	(void)unlink(copy);
	cleanup_free char *shown = render_shown(c->path);

	if (json)
		(void)printf("{\"ok\":true,\"changed\":%s}\n",
			     is_changed ? "true" : "false");
	else if (is_changed)
		(void)printf("%s written; %s\n", shown, counts(&c->text, &text));
	else
		(void)puts("nothing was changed");
	return told(c->path, is_changed, err);
}

int config_edit(const char *path, bool json, struct err *err)
{
	cleanup_codex struct codex c = {.dirfd = -1};
	cleanup_free char *copy = NULL;
	cleanup_close int fd = -1;

	if (codex_open(&c, path, err) < 0)
		return -1;
	copy = xasprintf("%s/codex-XXXXXX.yaml", c.dir);
	fd = mkostemps(copy, (int)strlen(".yaml"), O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "%s", copy);
	if (fs_write_all(fd, c.text.data, c.text.len, err) < 0) {
		(void)unlink(copy);
		return -1;
	}
	return edit(&c, copy, json, err);
}
