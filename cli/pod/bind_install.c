/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Units to where Quadlet looks for them, and away again. The former set is kept in memory
 * until the new one is proved: a process that is killed in between leaves files that the
 * receipt knows, so that the next run sets right what this one left.
 */
#include "cli/pod/bind.h"

#include "cli/local/up.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* Podman's own list of the files of our application. */
#define APP_LIST "." BIND_APP ".app"

struct kept {
	const char *name;
	char *text; /* NULL: it was not there */
};

struct former {
	struct kept *file;
	size_t n;
	const char **names;
	char *app_list;
};

static void former_done(struct former *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->file[i].text);
	free(f->file);
	free(f->names);
	free(f->app_list);
}

/* Where units go; -1: that directory is not there. */
struct places {
	int quadlets, host;
};

static void places_done(struct places *p)
{
	fd_close(&p->quadlets);
	fd_close(&p->host);
}
#define cleanup_places __attribute__((cleanup(places_done)))

static int open_place(const char *path, bool make, int *ret, struct err *err)
{
	if (make && fs_mkdir_all(path, 0700, err) < 0)
		return err_wrap(err, "%s", path);
	*ret = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret < 0 && (make || errno != ENOENT))
		return err_sys(err, "%s", path);
	return 0;
}

static int open_places(const struct bind *b, bool make, struct places *p, struct err *err)
{
	if (open_place(b->quadlets, make, &p->quadlets, err) < 0)
		return -1;
	return open_place(b->user_units, make, &p->host, err);
}

static int fd_of(const struct places *p, const char *name)
{
	return unit_is_of_host(name) ? p->host : p->quadlets;
}

static int former_read(const struct bind *b, const struct places *p, struct former *f,
		       struct err *err)
{
	struct err e = ERR_INIT;
	size_t n, len;

	bind_names(b, &f->names, &n);
	f->file = xcalloc(n + 1, sizeof(*f->file));
	for (size_t i = 0; i < n; i++) {
		enum bind_state state;

		f->file[f->n].name = f->names[i];
		if (bind_look(b, f->names[i], &state, &f->file[f->n].text, err) < 0)
			return -1;
		f->n++;
	}
	if (p->quadlets >= 0 &&
	    fs_read_file(p->quadlets, APP_LIST, 65536, &f->app_list, &len, &e) < 0 &&
	    e.code != ERR_NOT_FOUND) {
		*err = e;
		return -1;
	}
	return 0;
}

static int remove_file(int dirfd, const char *name, struct err *err)
{
	if (dirfd < 0)
		return 0;
	if (unlinkat(dirfd, name, 0) < 0 && errno != ENOENT)
		return err_sys(err, "remove %s", name);
	return 0;
}

/* Podman appends to its list: names that are gone would stay in it. */
static int remove_app_list(int dirfd, const char *text, struct err *err)
{
	for (const char *at = text; at && *at;) {
		size_t len = strcspn(at, "\n");
		cleanup_free char *name = xstrndup(at, len);

		if (len && !unit_name_is_ours(name))
			return err_set_id(err, ERRID_BIND_FOREIGN,
					  APP_LIST " lists %s, which is not ours", name);
		at += len + (at[len] == '\n');
	}
	return remove_file(dirfd, APP_LIST, err);
}

static int reload(const struct bind *b, struct err *err)
{
	static const char *const args[] = {"daemon-reload", NULL};

	return podman_systemctl(&b->podman, args, NULL, err);
}

int bind_can_install(const struct bind *b, struct err *err)
{
	cleanup_free char *missing =
		b->conf.pod.cgroups ? up_missing_controllers() : NULL;

	/* Podman would refuse to start them, and say that memory.max can't be opened. */
	if (missing)
		return err_set_id(err, ERRID_BIND_CONTROLLERS,
				  "pod.cgroups is required, but your user manager has no "
				  "%s",
				  missing);
	return reload(b, err);
}

/* ---- install ---------------------------------------------------------------- */

static int place(const struct bind *b, const struct places *p, bool host, struct err *err)
{
	for (size_t i = 0; i < b->units.n; i++) {
		const struct unit *u = &b->units.unit[i];

		if (unit_is_of_host(u->name) == host &&
		    fs_write_atomic(fd_of(p, u->name), u->name, u->text, u->len, 0644,
				    err) < 0)
			return -1;
	}
	return 0;
}

static int install_files(const struct bind *b, const struct places *p, struct err *err)
{
	const char *args[8] = {"quadlet", "install", "--reload-systemd=false"};
	size_t n = 3;

	if (place(b, p, true, err) < 0)
		return -1;
	if (!b->podman.installs)
		return place(b, p, false, err);
	if (b->podman.replaces)
		args[n++] = "--replace";
	args[n++] = b->staged;
	return podman_run(&b->podman, args, NULL, err);
}

/* Files of the former set that the new one has not; all, for a Podman that replaces none. */
static int remove_stale(const struct bind *b, const struct places *p,
			const struct former *f, struct err *err)
{
	bool all = b->podman.installs && !b->podman.replaces;

	if (remove_app_list(p->quadlets, f->app_list, err) < 0)
		return -1;
	for (size_t i = 0; i < f->n; i++)
		if ((all || !units_find(&b->units, f->file[i].name)) &&
		    remove_file(fd_of(p, f->file[i].name), f->file[i].name, err) < 0)
			return -1;
	return 0;
}

/* Each file, with our bytes. */
static int verify_files(const struct bind *b, struct err *err)
{
	for (size_t i = 0; i < b->units.n; i++) {
		const struct unit *u = &b->units.unit[i];
		cleanup_free char *text = NULL;
		enum bind_state state;

		if (bind_look(b, u->name, &state, &text, err) < 0)
			return -1;
		if (state == BIND_MISSING)
			return err_set(err, ERR_UPSTREAM, "%s did not arrive", u->name);
		if (state != BIND_OURS || !str_eq(text, u->text))
			return err_set(err, ERR_UPSTREAM, "%s arrived with other bytes",
				       u->name);
	}
	return 0;
}

/* A unit that Quadlet does not understand becomes no service, and nobody says so. */
static int verify_services(const struct bind *b, struct err *err)
{
	for (size_t i = 0; i < b->units.n; i++) {
		char service[UNIT_NAME_MAX + 32];
		const char *const args[] = {"show", "--property=LoadState", "--value",
					    service, NULL};
		cleanup_free char *out = NULL;

		if (unit_service(b->units.unit[i].name, service, sizeof(service), err) <
			    0 ||
		    podman_systemctl(&b->podman, args, &out, err) < 0)
			return -1;
		out[strcspn(out, "\n")] = '\0';
		if (!str_eq(out, "loaded"))
			return err_set(err, ERR_UPSTREAM,
				       "systemd has no %s (%s): Quadlet did not take %s",
				       service, out, b->units.unit[i].name);
	}
	return 0;
}

/* Quadlet starts its units by what they say; a .path is enabled by name. */
static int enable_paths(const struct bind *b, const char *verb, struct err *err)
{
	cleanup_free const char **names = NULL;
	size_t n;

	bind_names(b, &names, &n);
	for (size_t i = 0; i < n; i++) {
		const char *const args[] = {verb, "--now", names[i], NULL};
		enum bind_state state;

		if (!str_ends(names[i], ".path"))
			continue;
		if (bind_look(b, names[i], &state, NULL, err) < 0 ||
		    (state != BIND_MISSING &&
		     podman_systemctl(&b->podman, args, NULL, err) < 0))
			return -1;
	}
	return 0;
}

static int put_back(const struct bind *b, const struct places *p, const struct former *f,
		    struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < f->n; i++) {
		const struct kept *k = &f->file[i];
		int dirfd = fd_of(p, k->name);

		if (k->text ? fs_write_atomic(dirfd, k->name, k->text, strlen(k->text),
					      0644, err) < 0
			    : remove_file(dirfd, k->name, err) < 0)
			r = -1;
	}
	if (f->app_list ? fs_write_atomic(p->quadlets, APP_LIST, f->app_list,
					  strlen(f->app_list), 0644, err) < 0
			: remove_file(p->quadlets, APP_LIST, err) < 0)
		r = -1;
	return reload(b, err) < 0 ? -1 : r;
}

static int save_directory(struct bind *b, const char *directory, struct err *err)
{
	cleanup_close int fd = open(b->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(err, "%s", b->dir);
	free(b->receipt.directory);
	b->receipt.directory = directory ? xstrdup(directory) : NULL;
	return receipt_save(fd, BIND_RECEIPT, &b->receipt, err);
}

int bind_install(struct bind *b, struct err *err)
{
	__attribute__((cleanup(former_done))) struct former f = {0};
	cleanup_places struct places p = {-1, -1};
	struct err again = ERR_INIT;
	int r;

	if (open_places(b, true, &p, err) < 0 || former_read(b, &p, &f, err) < 0)
		return -1;
	r = remove_stale(b, &p, &f, err);
	if (r == 0)
		r = install_files(b, &p, err);
	if (r == 0)
		r = verify_files(b, err);
	if (r == 0)
		r = reload(b, err);
	if (r == 0)
		r = verify_services(b, err);
	if (r == 0)
		r = enable_paths(b, "enable", err);
	if (r == 0)
		return save_directory(b, b->quadlets, err);
	err->id = ERRID_BIND_INSTALL;
	err->code = err_info(ERRID_BIND_INSTALL)->code;
	if (put_back(b, &p, &f, &again) < 0)
		return err_wrap(err,
				"what was there before could NOT be put back (%s); first",
				again.msg);
	return -1;
}

/* ---- unbind ----------------------------------------------------------------- */

/* All services of ours that systemd has; it stops them in their order. */
static int stop_services(const struct bind *b, struct err *err)
{
	char service[UNITS_MAX + 1][UNIT_NAME_MAX + 32];
	const char *args[UNITS_MAX + 2] = {"stop"};
	cleanup_free const char **names = NULL;
	size_t n, n_args = 1;

	bind_names(b, &names, &n);
	for (size_t i = 0; i < n && n_args <= UNITS_MAX; i++) {
		const char *const show[] = {"show", "--property=LoadState", "--value",
					    service[n_args - 1], NULL};
		cleanup_free char *out = NULL;

		if (unit_service(names[i], service[n_args - 1], sizeof(service[0]), err) <
			    0 ||
		    podman_systemctl(&b->podman, show, &out, err) < 0)
			return -1;
		if (!str_starts(out, "loaded"))
			continue;
		args[n_args] = service[n_args - 1];
		n_args++;
	}
	return n_args == 1 ? 0 : podman_systemctl(&b->podman, args, NULL, err);
}

/* Quadlet makes a network at the start of its unit, and leaves it at the stop. Each bears
 * the name of its unit (quadlet/); one that somebody else's container uses stays. */
#define NETWORK_MARK "lych-network "

static int remove_networks(const struct bind *b, struct err *err)
{
	static const char form[] = NETWORK_MARK "{{.Name}}.";
	static const char *const list[] = {"network", "ls", "--format", form, NULL};
	cleanup_free const char **names = NULL;
	cleanup_free char *have = NULL;
	size_t n;

	bind_names(b, &names, &n);
	for (size_t i = 0; i < n; i++) {
		cleanup_free char *name = xstrndup(names[i], strcspn(names[i], "."));
		cleanup_free char *line = xasprintf(NETWORK_MARK "%s.", name);
		const char *const rm[] = {"network", "rm", name, NULL};

		if (!str_ends(names[i], ".network"))
			continue;
		if (!have && podman_run(&b->podman, list, &have, err) < 0)
			return -1;
		if (strstr(have, line) && podman_run(&b->podman, rm, NULL, err) < 0)
			return -1;
	}
	return 0;
}

static int remove_units(const struct bind *b, size_t *ret_removed, struct err *err)
{
	__attribute__((cleanup(former_done))) struct former f = {0};
	cleanup_places struct places p = {-1, -1};

	if (open_places(b, false, &p, err) < 0 || former_read(b, &p, &f, err) < 0)
		return -1;
	for (size_t i = 0; i < f.n; i++) {
		if (!f.file[i].text)
			continue;
		if (remove_file(fd_of(&p, f.file[i].name), f.file[i].name, err) < 0)
			return -1;
		++*ret_removed;
	}
	return remove_app_list(p.quadlets, f.app_list, err);
}

int bind_remove(struct bind *b, size_t *ret_removed, struct err *err)
{
	cleanup_close int data = -1;

	*ret_removed = 0;
	if (bind_check_files(b, err) < 0 || enable_paths(b, "disable", err) < 0 ||
	    stop_services(b, err) < 0 || remove_networks(b, err) < 0 ||
	    remove_units(b, ret_removed, err) < 0 || reload(b, err) < 0)
		return -1;
	/* Last, and only when all of it is gone: without the receipt nothing is ours. */
	data = open(b->paths.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (data < 0)
		return err_sys(err, "%s", b->paths.data);
	return fs_remove_beneath(data, "bind", err);
}
