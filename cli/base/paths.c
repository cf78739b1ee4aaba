/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See paths.h.
 */
#include "cli/base/paths.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/un.h>

/* Installed: PREFIX/bin/lych, PREFIX/libexec/lychgate/ and PREFIX/lib/lychgate/, wherever
 * PREFIX is; mk/install.mk says the same. */
#define LIBEXEC "libexec/lychgate"
#define LIB "lib/lychgate"

/* Relative values are ignored, as the XDG specification says. */
static const char *env_dir(const char *name)
{
	const char *v = getenv(name);

	return v && v[0] == '/' ? v : NULL;
}

static char *strip_slashes(char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	return path;
}

static int resolve_data(struct paths *p, struct err *err)
{
	const char *own = getenv("LYCHGATE_DATA"), *xdg = env_dir("XDG_DATA_HOME");

	if (own && own[0]) {
		if (own[0] != '/')
			return err_set_id(err, ERRID_CORE_USAGE,
					  "LYCHGATE_DATA is not an absolute path");
		p->data = xstrdup(own);
	} else if (xdg) {
		p->data = xasprintf("%s/lychgate", xdg);
	} else {
		p->data = xasprintf("%s/.local/share/lychgate", p->home);
	}
	strip_slashes(p->data);
	return 0;
}

int paths_resolve(struct paths *ret, struct err *err)
{
	const char *home = env_dir("HOME"), *run = env_dir("XDG_RUNTIME_DIR");
	const char *config = env_dir("XDG_CONFIG_HOME");
	struct paths p = {0};

	if (!home) {
		const struct passwd *pw = getpwuid(getuid());

		if (!pw || !pw->pw_dir || pw->pw_dir[0] != '/')
			return err_set_id(
				err, ERRID_CORE_USAGE,
				"HOME is not set and this user has no home directory");
		home = pw->pw_dir;
	}
	p.home = strip_slashes(xstrdup(home));
	if (resolve_data(&p, err) < 0) {
		paths_done(&p);
		return -1;
	}
	if (run) {
		p.runtime_parent = strip_slashes(xstrdup(run));
		p.runtime = xasprintf("%s/lychgate", p.runtime_parent);
	} else {
		p.runtime = xasprintf("%s/run", p.data);
	}
	p.api_dir = xasprintf("%s/api", p.runtime);
	p.work_dir = xasprintf("%s/work", p.runtime);
	p.pg_dir = xasprintf("%s/pg", p.runtime);
	p.audit_dir = xasprintf("%s/audit", p.runtime);
	p.api_sock = xasprintf("%s/vessel.sock", p.api_dir);
	if (config)
		p.config = xasprintf("%s/lychgate/codex.yaml", config);
	else
		p.config = xasprintf("%s/.config/lychgate/codex.yaml", p.home);
	if (str_has_control(p.data, strlen(p.data)) ||
	    str_has_control(p.runtime, strlen(p.runtime))) {
		paths_done(&p);
		return err_set_id(
			err, ERRID_CORE_USAGE,
			"a directory of ours has control characters in its name");
	}
	*ret = p;
	return 0;
}

void paths_done(struct paths *p)
{
	free(p->home);
	free(p->data);
	free(p->runtime);
	free(p->runtime_parent);
	free(p->api_dir);
	free(p->work_dir);
	free(p->pg_dir);
	free(p->audit_dir);
	free(p->api_sock);
	free(p->config);
	*p = (struct paths){0};
}

/* A directory that must be ours and closed to others; id: what is said otherwise. */
static int check_private(const char *path, enum err_id id, struct err *err)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return err_sys_id(err, id, "%s", path);
	if (!S_ISDIR(st.st_mode))
		return err_set_id(err, id, "%s: not a directory", path);
	if (st.st_uid != getuid())
		return err_set_id(err, id, "%s: belongs to uid %u, not to you", path,
				  st.st_uid);
	if (st.st_mode & 077)
		return err_set_id(err, id, "%s: mode %04o, must be 0700", path,
				  st.st_mode & 07777);
	return 0;
}

/* Where `make install` put files of programs in PREFIX/share/lychgate, which is the data
 * directory's own place when PREFIX is ~/.local. */
static int check_former_install(const char *data, struct err *err)
{
	static const char *const former[] = {"profiles", "apparmor", "quadlet"};
	cleanup_buf struct buf found;
	struct stat st;

	buf_init(&found, 256);
	for (size_t i = 0; i < ARRAY_SIZE(former); i++) {
		cleanup_free char *dir = xasprintf("%s/%s", data, former[i]);

		if (lstat(dir, &st) == 0)
			buf_addf(&found, " %s", former[i]);
	}
	if (found.len == 0)
		return 0;
	if (lstat(data, &st) < 0)
		return err_sys_id(err, ERRID_START_DATA, "%s", data);
	return err_set_id(err, ERRID_START_DATA,
			  "%s, mode %04o, holds files of programs that an older 'make "
			  "install' put there; they are not needed there any more: cd "
			  "'%s' && rm -r%s && chmod 0700 .",
			  data, st.st_mode & 07777, data, buf_str(&found));
}

/* No program's file below it: what restores or removes the data would take it along. */
static int check_apart(const char *data, struct err *err)
{
	cleanup_free char *self = NULL;
	cleanup_free char *real = realpath(data, NULL);

	if (!real)
		return err_sys_id(err, ERRID_START_DATA, "%s", data);
	if (paths_self(&self, err) < 0)
		return -1;
	if (path_is_below(self, real))
		return err_set_id(err, ERRID_START_DATA,
				  "%s: Lychgate's own programs are installed below it "
				  "(%s)",
				  data, self);
	return 0;
}

int paths_check_data(const struct paths *p, struct err *err)
{
	struct stat st;

	if (lstat(p->data, &st) < 0 && errno == ENOENT)
		return 0;
	if (check_former_install(p->data, err) < 0 ||
	    check_private(p->data, ERRID_START_DATA, err) < 0)
		return -1;
	return check_apart(p->data, err);
}

static int check_socket_length(const struct paths *p, struct err *err)
{
	const struct {
		const char *dir, *name;
	} sockets[] = {
		{p->api_dir, "vessel.sock"},	   {p->work_dir, "vessel.sock"},
		{p->work_dir, "tomb-tomb_1.sock"}, {p->pg_dir, ".s.PGSQL.5432"},
		{p->audit_dir, "scribe.sock"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(sockets); i++) {
		size_t len = strlen(sockets[i].dir) + 1 + strlen(sockets[i].name);

		if (len >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
			return err_set_id(
				err, ERRID_START_SOCKET,
				"%s/%s: %zu bytes, a unix socket's path has at most "
				"%zu; use a shorter XDG_RUNTIME_DIR or LYCHGATE_DATA",
				sockets[i].dir, sockets[i].name, len,
				sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1);
	}
	return 0;
}

int paths_make(const struct paths *p, struct err *err)
{
	static const char *const below[] = {
		"phylactery",	  "phylactery/log",
		"vessel",	  "vessel/blobs",
		"vessel/uploads", "vessel/output",
		"vessel/reactor", "reactor",
		"audit",	  "tomb",
		"tomb/jobs",	  "tomb/artifacts",
		"tomb/cache",	  "tomb/quarantine",
		"secrets",	  "log",
	};
	const char *const run[] = {p->runtime, p->api_dir, p->work_dir, p->pg_dir,
				   p->audit_dir};
	struct err why = ERR_INIT;

	if (check_socket_length(p, err) < 0)
		return -1;
	if (p->runtime_parent &&
	    check_private(p->runtime_parent, ERRID_START_SOCKET, err) < 0)
		return -1;
	if (fs_mkdir_all(p->data, 0700, &why) < 0)
		return err_set_id(err, ERRID_START_DATA, "%s", why.msg);
	if (paths_check_data(p, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(below); i++) {
		cleanup_free char *dir = xasprintf("%s/%s", p->data, below[i]);

		if (fs_mkdir_all(dir, 0700, err) < 0 ||
		    check_private(dir, ERRID_START_DATA, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(run); i++)
		if (fs_mkdir_all(run[i], 0700, err) < 0 ||
		    check_private(run[i], ERRID_START_SOCKET, err) < 0)
			return -1;
	return 0;
}

bool path_is_below(const char *path, const char *top)
{
	size_t n = str_eq(top, "/") ? 0 : strlen(top);

	return strncmp(path, top, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

int paths_self(char **ret, struct err *err)
{
	char buf[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", buf, sizeof(buf) - 1);

	if (n < 0)
		return err_sys(err, "readlink /proc/self/exe");
	buf[n] = '\0';
	*ret = xstrdup(buf);
	return 0;
}

int paths_program(const char *name, char **ret, struct err *err)
{
	cleanup_free char *self = NULL;
	char *places[2];
	int dir;

	if (paths_self(&self, err) < 0)
		return -1;
	dir = (int)(strrchr(self, '/') - self);
	places[0] = xasprintf("%.*s/%s", dir, self, name);
	places[1] = xasprintf("%.*s/../" LIBEXEC "/%s", dir, self, name);
	for (size_t i = 0; i < ARRAY_SIZE(places) && !*ret; i++)
		if (access(places[i], X_OK) == 0)
			*ret = TAKE_PTR(places[i]);
	if (!*ret)
		(void)err_set_id(err, ERRID_START_TOOL, "%s is neither %s nor %s", name,
				 places[0], places[1]);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		free(places[i]);
	return *ret ? 0 : -1;
}

int paths_installed(const char *name, char **ret, struct err *err)
{
	char *slash;

	if (paths_self(ret, err) < 0)
		return -1;
	/* PREFIX/bin/lych: its directory, and that directory's */
	for (int up = 0; up < 2; up++) {
		slash = strrchr(*ret, '/');
		if (slash)
			*slash = '\0';
	}
	slash = *ret;
	*ret = xasprintf("%s/" LIB "/%s", slash, name);
	free(slash);
	return 0;
}

char *paths_config_dir(const struct paths *p)
{
	return xstrndup(p->config, (size_t)(strrchr(p->config, '/') - p->config));
}
