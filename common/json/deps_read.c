/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See deps_read.h.
 */
#include "common/json/deps_read.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/json/npm_lock.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/proto/deps.h"
#include "common/proto/job_spec.h"

#include <stdlib.h>

/* What a registry has, as the specification names it. */
struct kind {
	const char *key;
	size_t max;
	bool (*is_one)(const char *);
};

static int read_list(const struct json *deps, const struct kind *kind, char ***ret,
		     size_t *ret_n, struct err *err)
{
	const struct json *arr = NULL;
	const char *key = kind->key;
	size_t n;

	if (json_get_arr(deps, key, false, kind->max, &arr, err) < 0)
		return -1;
	n = arr ? json_arr_len(arr) : 0;
	if (n)
		*ret = xcalloc(n, sizeof(**ret));
	for (size_t i = 0; i < n; i++) {
		const char *text = NULL;

		if (json_as_str(json_arr_at(arr, i), DEPS_TEXT_MAX, &text, err) < 0)
			return err_wrap(err, "deps.%s[%zu]", key, i);
		if (!kind->is_one(text))
			return err_set_id(err, ERRID_SPEC_DEPS, "deps.%s[%zu]", key, i);
		(*ret)[(*ret_n)++] = xstrdup(text);
	}
	return 0;
}

static int read_lock(const struct json *deps, const char *registry, struct deps *d,
		     struct err *err)
{
	const struct json *lock = NULL;
	cleanup_buf struct buf text = {.max = SPEC_MAX_BYTES};
	cleanup_buf struct buf package = {.max = SPEC_MAX_BYTES};

	if (json_get_obj(deps, "npm_lock", false, &lock, err) < 0)
		return -1;
	if (!lock)
		return 0;
	if (d->n_npm)
		return err_set_id(err, ERRID_SPEC_DEPS, "npm or npm_lock, not both");
	if (npm_lock_write(lock, registry, &text, &package, err) < 0)
		return err_wrap(err, "deps.npm_lock");
	d->npm_lock = xstrdup(buf_str(&text));
	d->npm_package = xstrdup(buf_str(&package));
	return 0;
}

int deps_read(const struct json *spec, const char *registry, struct deps *ret,
	      struct err *err)
{
	static const char *const keys[] = {"pypi", "npm", "npm_lock", "cargo", "go"};
	static const struct kind pypi = {"pypi", DEPS_MAX, deps_is_requirement},
				 npm = {"npm", DEPS_MAX, deps_is_npm},
				 cargo = {"cargo", DEPS_LOCKED_MAX, deps_is_crate},
				 go = {"go", DEPS_LOCKED_MAX, deps_is_module};
	const struct json *obj = NULL, *arr = NULL;
	struct deps d = {.n_pypi = 0};

	if (!json_has(spec, "deps") ||
	    json_get_arr(spec, "deps", true, 0, &arr, NULL) == 0)
		return 0;
	if (json_get_obj(spec, "deps", true, &obj, err) < 0 ||
	    json_check_keys(obj, keys, ARRAY_SIZE(keys), err) < 0 ||
	    read_list(obj, &pypi, &d.pypi, &d.n_pypi, err) < 0 ||
	    read_list(obj, &npm, &d.npm, &d.n_npm, err) < 0 ||
	    read_list(obj, &cargo, &d.cargo, &d.n_cargo, err) < 0 ||
	    read_list(obj, &go, &d.go, &d.n_go, err) < 0 ||
	    read_lock(obj, registry, &d, err) < 0) {
		deps_done(&d);
		return -1;
	}
	*ret = d;
	return 0;
}

static void free_list(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

void deps_done(struct deps *d)
{
	free_list(d->pypi, d->n_pypi);
	free_list(d->npm, d->n_npm);
	free_list(d->cargo, d->n_cargo);
	free_list(d->go, d->n_go);
	free(d->npm_lock);
	free(d->npm_package);
	*d = (struct deps){.n_pypi = 0};
}

bool deps_any(const struct deps *d)
{
	return d->n_pypi || d->n_npm || d->npm_lock || d->n_cargo || d->n_go;
}
