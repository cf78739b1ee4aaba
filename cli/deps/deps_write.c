/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See deps_write.h.
 */
#include "cli/deps/deps_write.h"

#include "cli/deps/lock_lines.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/json/json.h"
#include "common/json/npm_lock.h"
#include "common/proto/job_spec.h"
#include "common/str.h"

#include <fcntl.h>

#define LOCK_FILE_MAX ((size_t)8 << 20) /* with what is left out of the spec */

/* What is named on the command line, and what a lock file says of it. */
struct named {
	const char *key;
	const char *const *list;
	size_t n;
	bool (*is_one)(const char *);
	bool locked;
	const char *option, *file;
	int (*read)(const char *text, size_t len, lock_put *put, void *arg,
		    struct err *err);
};

static int read_lock(const struct deps_files *files, const char *option, const char *name,
		     char **ret, size_t *ret_len, struct err *err)
{
	cleanup_free char *path = files->path_of(files->arg, name);

	if (!path)
		return err_set_id(err, ERRID_CORE_USAGE,
				  "--dep %s: no %s among --file and --dir", option, name);
	return fs_read_file(AT_FDCWD, path, LOCK_FILE_MAX, ret, ret_len, err);
}

static int write_npm_lock(const struct deps_files *files, struct jsonw *w,
			  struct err *err)
{
	cleanup_buf struct buf lock = {.max = SPEC_MAX_BYTES};
	cleanup_buf struct buf package = {.max = SPEC_MAX_BYTES};
	cleanup_free char *text = NULL;
	cleanup_json struct json *j = NULL;
	size_t len;

	if (read_lock(files, "npm-lock", "package-lock.json", &text, &len, err) < 0 ||
	    json_parse(text, len, NPM_LOCK_DEPTH_MAX, &j, err) < 0 ||
	    npm_lock_write(j, NULL, &lock, &package, err) < 0)
		return err_wrap(err, "--dep npm-lock");
	jsonw_key(w, "npm_lock");
	jsonw_raw(w, buf_str(&lock), lock.len);
	return 0;
}

struct lines {
	const struct named *of;
	struct jsonw *w;
	size_t n;
};

static int write_line(void *arg, const char *text, struct err *err)
{
	struct lines *l = arg;

	if (!l->of->is_one(text))
		return err_set_id(err, ERRID_SPEC_DEPS, "'%.200s'", text);
	if (++l->n > DEPS_LOCKED_MAX)
		return err_set_id(err, ERRID_SPEC_DEPS, "more than %d packages",
				  DEPS_LOCKED_MAX);
	jsonw_str(l->w, text);
	return 0;
}

static int write_locked(const struct deps_files *files, const struct named *of,
			struct jsonw *w, struct err *err)
{
	struct lines l = {.of = of, .w = w, .n = of->n};
	cleanup_free char *text = NULL;
	size_t len;

	if (read_lock(files, of->option, of->file, &text, &len, err) < 0)
		return -1;
	return of->read(text, len, write_line, &l, err) < 0
		       ? err_wrap(err, "--dep %s: %s", of->option, of->file)
		       : 0;
}

static int write_named(const struct deps_files *files, const struct named *of,
		       struct jsonw *w, struct err *err)
{
	if (!of->n && !of->locked)
		return 0;
	jsonw_key(w, of->key);
	jsonw_arr(w);
	for (size_t i = 0; i < of->n; i++) {
		if (!of->is_one(of->list[i]))
			return err_set_id(err, ERRID_SPEC_DEPS, "--dep %s:%.200s",
					  of->key, of->list[i]);
		jsonw_str(w, of->list[i]);
	}
	if (of->locked && write_locked(files, of, w, err) < 0)
		return -1;
	jsonw_arr_end(w);
	return 0;
}

int deps_write(const struct deps_args *a, const struct deps_files *files, struct jsonw *w,
	       struct err *err)
{
	const struct named all[] = {
		{.key = "pypi",
		 .list = a->pypi,
		 .n = a->n_pypi,
		 .is_one = deps_is_requirement},
		{.key = "npm", .list = a->npm, .n = a->n_npm, .is_one = deps_is_npm},
		{"cargo", a->cargo, a->n_cargo, deps_is_crate, a->cargo_lock,
		 "cargo-lock", "Cargo.lock", lock_lines_cargo},
		{"go", a->go, a->n_go, deps_is_module, a->go_sum, "go-sum", "go.sum",
		 lock_lines_go},
	};
	bool any = a->npm_lock;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		any = any || all[i].n || all[i].locked;
	if (!any)
		return 0;
	jsonw_key(w, "deps");
	jsonw_obj(w);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (write_named(files, &all[i], w, err) < 0)
			return -1;
	if (a->npm_lock && write_npm_lock(files, w, err) < 0)
		return -1;
	jsonw_obj_end(w);
	return 0;
}
