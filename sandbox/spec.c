/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * The description of one job: argv of the command line, or the NUL-separated block that
 * the tomb sends. One table of options serves both (the limits: spec_limits.c). Nothing
 * is opened here; the command line only asks for the names of existing paths (realpath),
 * the block asks nothing.
 */
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/kernel_files.h"
#include "common/mem.h"
#include "common/proto/sandbox_options.h"
#include "common/str.h"
#include "sandbox/contract/paths.h"
#include "sandbox/contract/sandbox.h"
#include "sandbox/spec_env.h"
#include "sandbox/spec_limits.h"
#include "sandbox/spec_mounts.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOUNTS_MAX 64
#define SPEC_ARGS_MAX 4096
#define ARG_BYTES_MAX ((size_t)128 << 10) /* MAX_ARG_STRLEN of the kernel */
#define ENV_NAME_MAX 128
#define VARIABLES_MAX (ENV_MAX + 32) /* those of a job's spec, and what the tomb adds */
#define TMP_DEFAULT ((uint64_t)256 << 20)
#define GRACE_MAX_USEC (60 * USEC_PER_SEC)
/* Below the usual 1024 of a user's other programs: by that they may pass descriptors while
 * a job has all of its own in flight (see unix(7), SCM_RIGHTS; the count is of the uid). */
#define NOFILE_DEFAULT 768
#define HOSTNAME_MAX 63

enum opt {
#define OPTION(symbol, name, kind, repeats) OPT_##symbol,
#include "common/proto/sandbox_options.def"
	OPT_MAX_
};

struct parse {
	struct sbx_spec *spec;
	bool from_block;
	size_t n_env, n_argv;
	bool seen[OPT_MAX_], limit_seen[SPEC_LIMIT_COUNT];
};

void sbx_spec_init(struct sbx_spec *s)
{
	*s = (struct sbx_spec){
		.grade = GRADE_FULL,
		.net = NET_LOOPBACK,
		.workspace_fd = -1,
		.cgroup_fd = -1,
		.grace_ms = 250,
		.timeout_usec = LIMIT_TIMEOUT_USEC_DEFAULT,
		.memory_bytes = LIMIT_MEMORY_DEFAULT,
		.disk_bytes = LIMIT_DISK_DEFAULT,
		.tmp_bytes = TMP_DEFAULT,
		.output_bytes = LIMIT_DISK_DEFAULT,
		.processes = LIMIT_PROCESSES_DEFAULT,
		.cpus = LIMIT_CPUS_DEFAULT,
		.nofile = NOFILE_DEFAULT,
	};
}

static void strings_free(char **list)
{
	for (char **p = list; p && *p; p++)
		free(*p);
	free(list);
}

void sbx_spec_done(struct sbx_spec *s)
{
	for (size_t i = 0; i < s->n_mounts; i++)
		free(s->mounts[i].path);
	free(s->mounts);
	free(s->workspace);
	fd_close(&s->workspace_fd);
	fd_close(&s->cgroup_fd);
	free(s->cwd);
	free(s->caller_cwd);
	strings_free(s->env);
	strings_free(s->argv);
	free(s->cgroup);
	free(s->hostname);
	sbx_spec_init(s);
}

static void strings_add(char ***list, size_t *n, const char *s)
{
	*list = xreallocarray(*list, *n + 2, sizeof(**list));
	(*list)[(*n)++] = xstrdup(s);
	(*list)[*n] = NULL;
}

/* An absolute path without "", "." or ".." components, without control bytes. */
static int check_absolute(const char *opt, const char *path, struct err *err)
{
	if (path[0] != '/')
		return err_set_id(err, ERRID_SPEC_PATH, "--%s: the path is not absolute",
				  opt);
	if (str_eq(path, "/"))
		return err_set_id(err, ERRID_SPEC_PATH, "--%s: '/' is refused", opt);
	if (path_check_relative(path + 1, strlen(path + 1), err) < 0)
		return err_wrap(err, "--%s", opt);
	return 0;
}

/* What a mount may not replace or expose: the kernel's own trees, sockets of the host's
 * services, and the places that the sandbox makes itself. */
static int check_mount_place(const char *opt, const char *path, struct err *err)
{
	static const char *const trees[] = {"/proc", "/sys",	 "/dev",
					    "/run",  "/var/run", "/work"};
	static const char *const exact[] = {"/tmp", "/etc", "/var"};

	for (size_t i = 0; i < ARRAY_SIZE(trees); i++)
		if (paths_is_below(path, trees[i]))
			return err_set_id(err, ERRID_SPEC_PATH,
					  "--%s: nothing of %s may be shown", opt,
					  trees[i]);
	for (size_t i = 0; i < ARRAY_SIZE(exact); i++)
		if (str_eq(path, exact[i]))
			return err_set_id(err, ERRID_SPEC_PATH,
					  "--%s: %s as a whole is refused", opt,
					  exact[i]);
	return 0;
}

/* The real, absolute name of something that exists (command line), or the absolute path
 * as given (block). */
static int take_path(struct parse *p, const char *opt, const char *value, char **ret,
		     struct err *err)
{
	cleanup_free char *path = NULL;

	if (p->from_block) {
		path = xstrdup(value);
	} else {
		path = realpath(value, NULL);
		if (!path)
			return err_sys_id(err, ERRID_SPEC_PATH, "--%s %s", opt, value);
	}
	if (check_absolute(opt, path, err) < 0)
		return -1;
	free(*ret);
	*ret = TAKE_PTR(path);
	return 0;
}

static int take_mount(struct parse *p, const char *opt, enum sbx_mount_kind kind,
		      const char *value, struct err *err)
{
	struct sbx_spec *s = p->spec;
	cleanup_free char *path = NULL;

	if (s->n_mounts >= MOUNTS_MAX)
		return err_set_id(err, ERRID_SPEC_RANGE, "more than %d paths",
				  MOUNTS_MAX);
	if (take_path(p, opt, value, &path, err) < 0 ||
	    check_mount_place(opt, path, err) < 0 ||
	    (!p->from_block && kernel_files_refuse_tree(path, ERRID_SPEC_PATH, err) < 0))
		return -1;
	for (size_t i = 0; i < s->n_mounts; i++)
		if (str_eq(s->mounts[i].path, path))
			return err_set_id(err, ERRID_SPEC_PATH, "%s is named twice",
					  path);
	s->mounts = xreallocarray(s->mounts, s->n_mounts + 1, sizeof(*s->mounts));
	s->mounts[s->n_mounts++] = (struct sbx_mount){kind, TAKE_PTR(path)};
	return 0;
}

/* The real directory above, and the last component as it is. Caller frees; NULL: err. */
static char *real_parent(const char *opt, const char *value, struct err *err)
{
	cleanup_free char *copy = xstrdup(value), *top = NULL;
	char *slash;

	for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
		copy[n - 1] = '\0';
	if (str_eq(copy, ".")) {
		top = getcwd(NULL, 0);
		if (!top)
			(void)err_sys_id(err, ERRID_SPEC_PATH,
					 "--%s .: the directory that you are in", opt);
		return TAKE_PTR(top);
	}
	if (str_eq(copy, "/"))
		return xstrdup(copy);
	slash = strrchr(copy, '/');
	if (slash)
		*slash = '\0';
	top = realpath(!slash ? "." : slash == copy ? "/" : copy, NULL);
	if (!top) {
		(void)err_sys_id(err, ERRID_SPEC_PATH, "--%s %s", opt, value);
		return NULL;
	}
	return xasprintf("%s/%s", str_eq(top, "/") ? "" : top, slash ? slash + 1 : copy);
}

/* The last component is not resolved: a symlink there is refused when it is opened. */
static int take_workspace(struct parse *p, const char *opt, const char *value,
			  struct err *err)
{
	cleanup_free char *path = NULL;

	if (p->spec->workspace)
		return err_set_id(err, ERRID_CORE_USAGE, "one workspace only");
	if (strstr(value, "/../") || str_starts(value, "../"))
		return err_set_id(err, ERRID_SPEC_PATH, "--%s: '..' is refused", opt);
	path = p->from_block ? xstrdup(value) : real_parent(opt, value, err);
	if (!path)
		return -1;
	if (path[0] == '/') {
		if (check_absolute(opt, path, err) < 0)
			return -1;
	} else if (path_check_relative(path, strlen(path), err) < 0) {
		return err_wrap(err, "--%s", opt);
	}
	p->spec->workspace = TAKE_PTR(path);
	p->spec->workspace_ro = str_eq(opt, "workspace-ro");
	return 0;
}

static int take_env(struct parse *p, const char *value, struct err *err)
{
	const char *eq = strchr(value, '=');
	size_t n = eq ? (size_t)(eq - value) : 0;

	if (n == 0 || n > ENV_NAME_MAX)
		return err_set_id(err, ERRID_SPEC_ENV, "--env wants NAME=VALUE");
	for (size_t i = 0; i < n; i++) {
		char c = value[i];
		bool letter =
			(c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';

		if (!letter && (i == 0 || c < '0' || c > '9'))
			return err_set_id(err, ERRID_SPEC_ENV,
					  "a name is letters, digits and '_'");
	}
	if (p->n_env >= VARIABLES_MAX)
		return err_set_id(err, ERRID_SPEC_ENV, "more than %d variables",
				  VARIABLES_MAX);
	for (size_t i = 0; i < p->n_env; i++)
		if (strncmp(p->spec->env[i], value, n + 1) == 0)
			return err_set_id(err, ERRID_SPEC_ENV, "%.*s is given twice",
					  (int)n, value);
	strings_add(&p->spec->env, &p->n_env, value);
	return 0;
}

static int take_hostname(struct parse *p, const char *value, struct err *err)
{
	size_t n = strlen(value);

	if (n == 0 || n > HOSTNAME_MAX || value[0] == '-' || value[0] == '.')
		return err_set_id(err, ERRID_SPEC_RANGE, "--hostname: 1 to %d characters",
				  HOSTNAME_MAX);
	if (strspn(value,
		   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.") !=
	    n)
		return err_set_id(err, ERRID_SPEC_RANGE,
				  "--hostname: letters, digits, '-' and '.'");
	free(p->spec->hostname);
	p->spec->hostname = xstrdup(value);
	p->spec->hostname_chosen = true;
	return 0;
}

/* The limits are options too, by their own names: spec_limits.c. */
enum option_kind { OPTION_WORD, OPTION_PATH, OPTION_FLAG };
static const struct option {
	const char *name;
	enum opt opt;
	enum option_kind kind;
	bool repeats;
} options[] = {
#define OPTION(symbol, name, kind, repeats) {name, OPT_##symbol, OPTION_##kind, repeats},
#include "common/proto/sandbox_options.def"
};

static int take_limit(struct parse *p, int i, const char *value, struct err *err)
{
	if (p->limit_seen[i])
		return err_set_id(err, ERRID_CORE_USAGE, "the limit %s is given twice",
				  spec_limit_name(i));
	p->limit_seen[i] = true;
	return spec_limit_set(p->spec, i, value, err);
}

/* NAME=VALUE */
static int take_limit_pair(struct parse *p, const char *value, struct err *err)
{
	size_t len = strcspn(value, "=");
	int i = spec_limit_find(value, len);

	if (i < 0)
		return spec_limit_unknown(value, len, err);
	if (value[len] != '=')
		return err_set_id(err, ERRID_CORE_USAGE, "--limit %s=VALUE",
				  spec_limit_name(i));
	return take_limit(p, i, value + len + 1, err);
}

static int take_grace(struct parse *p, const char *value, struct err *err)
{
	usec_t t;

	if (parse_duration_usec(value, 0, GRACE_MAX_USEC, &t, err) < 0)
		return err_wrap(err, "--grace");
	p->spec->grace_ms = (unsigned)(t / USEC_PER_MSEC);
	return 0;
}

static int take_option(struct parse *p, enum opt o, const char *name, const char *value,
		       struct err *err)
{
	struct sbx_spec *s = p->spec;

	if (o == OPT_GRADE) {
		if (!sbx_grade_from_name(value, &s->grade))
			return err_set_id(err, ERRID_SPEC_RANGE,
					  "--grade: full or floor");
		return 0;
	}
	if (o == OPT_NETWORK) {
		if (!str_eq(value, "loopback") && !str_eq(value, "none"))
			return err_set_id(err, ERRID_SPEC_RANGE,
					  "--network: loopback or none");
		s->net = str_eq(value, "none") ? NET_NONE : NET_LOOPBACK;
		return 0;
	}
	if (o == OPT_WORKSPACE || o == OPT_WORKSPACE_RO)
		return take_workspace(p, name, value, err);
	if (o == OPT_RO)
		return take_mount(p, name, MOUNT_RO, value, err);
	if (o == OPT_RW)
		return take_mount(p, name, MOUNT_RW, value, err);
	if (o == OPT_ROX)
		return take_mount(p, name, MOUNT_ROX, value, err);
	if (o == OPT_CGROUP)
		return take_path(p, name, value, &s->cgroup, err);
	if (o == OPT_HOSTNAME)
		return take_hostname(p, value, err);
	if (o == OPT_ENV)
		return take_env(p, value, err);
	if (o == OPT_GRACE)
		return take_grace(p, value, err);
	if (o == OPT_LIMIT)
		return take_limit_pair(p, value, err);
	/* --cwd names a place inside, which need not exist here. */
	if (!str_eq(value, "/") && check_absolute(name, value, err) < 0)
		return -1;
	s->cwd = xstrdup(value);
	return 0;
}

static int finish(struct parse *p, struct err *err)
{
	struct sbx_spec *s = p->spec;

	if (spec_mounts_judge(s, err) < 0)
		return -1;
	if (p->n_argv == 0 || s->argv[0][0] == '\0')
		return err_set_id(err, ERRID_SPEC_ARGV, "no command after '--'");
	if (s->tty && s->grade == GRADE_FLOOR)
		return err_set_id(err, ERRID_TTY_GRADE,
				  "--tty: grade floor has no terminals of its own");
	if (!s->hostname)
		s->hostname = xstrdup(SBX_HOSTNAME);
	spec_env_defaults(s);
	if (!s->workspace || s->workspace[0] == '/' || s->grade == GRADE_FULL)
		spec_env_home(s);
	if (!p->from_block)
		s->caller_cwd =
			getcwd(NULL, 0); /* NULL: it is gone; then the job starts in / */
	return 0;
}

static const struct option *find_option(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (strlen(options[i].name) == len &&
		    strncmp(options[i].name, name, len) == 0)
			return &options[i];
	return NULL;
}

static int take_flag(struct parse *p, const struct option *o, bool has_value,
		     struct err *err)
{
	if (has_value)
		return err_set_id(err, ERRID_CORE_USAGE, "--%s has no value", o->name);
	if (o->opt == OPT_TTY && p->from_block)
		return err_set_id(err, ERRID_CORE_USAGE,
				  "--%s is of a command line: nobody would be at it",
				  o->name);
	if (o->opt == OPT_JSON)
		p->spec->json = true;
	else if (o->opt == OPT_HOME)
		p->spec->show_home = true;
	else if (o->opt == OPT_TTY)
		p->spec->tty = true;
	else
		p->spec->explain = true;
	return 0;
}

/* The option at args[*i], which moves to its last string. */
static int parse_option(struct parse *p, size_t n, const char *const *args, size_t *i,
			struct err *err)
{
	const char *name = args[*i] + 2, *value = NULL;
	size_t len = strcspn(name, "=");
	const struct option *o = find_option(name, len);
	int limit = o ? -1 : spec_limit_find(name, len);

	if (!o && limit < 0)
		return sandbox_option_unknown(ERRID_CORE_USAGE, name, len, err);
	if (o && p->seen[o->opt] && !o->repeats)
		return err_set_id(err, ERRID_CORE_USAGE, "--%s is given twice", o->name);
	if (o)
		p->seen[o->opt] = true;
	if (o && o->kind == OPTION_FLAG)
		return take_flag(p, o, name[len] == '=', err);
	if (name[len] == '=')
		value = name + len + 1;
	else if (*i + 1 < n)
		value = args[++*i];
	if (!value)
		return err_set_id(err, ERRID_CORE_USAGE, "--%.*s wants a value", (int)len,
				  name);
	return o ? take_option(p, o->opt, o->name, value, err)
		 : take_limit(p, limit, value, err);
}

/* args: the strings after the program's name. */
static int parse_args(struct parse *p, size_t n, const char *const *args, struct err *err)
{
	size_t i = 0;

	for (; i < n && !str_eq(args[i], "--"); i++) {
		if (!str_starts(args[i], "--"))
			return err_set_id(
				err, ERRID_CORE_USAGE,
				"'%.40s' is not an option; the command comes after '--'",
				args[i]);
		if (parse_option(p, n, args, &i, err) < 0)
			return -1;
	}
	for (i++; i < n; i++) {
		if (p->n_argv >= SPEC_ARGS_MAX || strlen(args[i]) >= ARG_BYTES_MAX)
			return err_set_id(err, ERRID_SPEC_ARGV,
					  "the command is too long");
		strings_add(&p->spec->argv, &p->n_argv, args[i]);
	}
	return finish(p, err);
}

int sbx_spec_parse(int argc, char *const argv[], struct sbx_spec *ret, struct err *err)
{
	struct parse p = {.spec = ret};
	cleanup_free const char **args = NULL;
	size_t n = argc > 1 ? (size_t)argc - 1 : 0;

	sbx_spec_init(ret);
	args = xcalloc(n + 1, sizeof(*args));
	for (size_t i = 0; i < n; i++)
		args[i] = argv[i + 1];
	if (parse_args(&p, n, args, err) < 0) {
		sbx_spec_done(ret);
		return -1;
	}
	return 0;
}

int sbx_spec_parse_block(const char *block, size_t len, struct sbx_spec *ret,
			 struct err *err)
{
	struct parse p = {.spec = ret, .from_block = true};
	cleanup_free const char **args = NULL;
	size_t n = 0,
	       max = 2 * (VARIABLES_MAX + MOUNTS_MAX + OPT_MAX_ + SPEC_LIMIT_COUNT) +
		     SPEC_ARGS_MAX + 2;

	sbx_spec_init(ret);
	if (len == 0 || len > SPAWN_SPEC_MAX_BYTES || block[len - 1] != '\0')
		return err_set_id(err, ERRID_SPEC_SIZE,
				  "a block is 1 to %u bytes and ends with a NUL",
				  SPAWN_SPEC_MAX_BYTES);
	for (size_t at = 0; at < len; at += strlen(block + at) + 1)
		if (++n > max)
			return err_set_id(err, ERRID_SPEC_ARGV, "too many strings");
	args = xcalloc(n, sizeof(*args));
	n = 0;
	for (size_t at = 0; at < len; at += strlen(block + at) + 1)
		args[n++] = block + at;
	if (parse_args(&p, n, args, err) < 0) {
		sbx_spec_done(ret);
		return -1;
	}
	return 0;
}

int sbx_spec_base_workspace(struct sbx_spec *s, const char *jobs_dir, struct err *err)
{
	char *path;

	if (!s->workspace || s->workspace[0] == '/')
		return 0;
	if (check_absolute("jobs", jobs_dir, err) < 0)
		return -1;
	path = xasprintf("%s/%s", jobs_dir, s->workspace);
	free(s->workspace);
	s->workspace = path;
	spec_env_home(s);
	return 0;
}
