/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See npm_lock.h.
 */
#include "common/json/npm_lock.h"

#include "common/jsonw.h"
#include "common/proto/broker_proto.h"
#include "common/str.h"
#include <stdio.h>
#include <string.h>

#define NPMJS "https://registry.npmjs.org/"
#define TEXT_MAX 2048
#define ITEMS_MAX 4096
#define MODULES "node_modules/"

/* One entry of `packages` on its way from j to w. */
struct pin {
	const char *place; /* its key */
	const struct json *j;
	const char *registry;
	struct jsonw *w;
};

static int refuse(const struct pin *p, const char *why, struct err *err)
{
	return err_set_id(err, ERRID_SPEC_DEPS, "'%.200s': %s", p->place, why);
}

/* ---- grammar ---------------------------------------------------------------- */

/* "a", "@b/c"; capitals are of old packages. 0: none. */
static size_t name_len(const char *s)
{
	size_t scope = *s == '@' ? 1 + str_run(s + 1, "._~-") : 0, n;

	if (scope && (scope == 1 || s[scope] != '/'))
		return 0;
	scope += scope > 0;
	n = str_run(s + scope, "._~-");
	return n && s[scope] != '.' ? scope + n : 0;
}

static bool is_name(const char *s)
{
	size_t n = name_len(s);

	return n && !s[n];
}

/* "node_modules/a/node_modules/@b/c": where npm puts what comes from a registry. */
static bool is_place(const char *s)
{
	while (str_starts(s, MODULES)) {
		size_t n = name_len(s + strlen(MODULES));

		s += strlen(MODULES) + n;
		if (n && !*s)
			return true;
		if (!n || *s++ != '/')
			return false;
	}
	return false;
}

static bool is_version(const char *s)
{
	return *s && !s[str_run(s, ".+-")];
}

/* Versions, operators, tags, and another name for all of that; never a place. */
static bool is_range(const char *s)
{
	if (str_starts(s, "npm:")) {
		size_t n;

		s += strlen("npm:");
		n = name_len(s);
		if (!n || (s[n] && s[n] != '@'))
			return false;
		s += n + (s[n] == '@');
	}
	return !s[str_run(s, ".+-_*^~<>=|, ")];
}

/* One digest or more, as the Subresource Integrity of W3C writes them. */
static bool is_integrity(const char *s)
{
	static const char *const kinds[] = {"sha512-", "sha384-", "sha256-", "sha1-"};

	do {
		size_t kind = 0, n;

		s += *s == ' ';
		for (size_t i = 0; !kind && i < ARRAY_SIZE(kinds); i++)
			if (str_starts(s, kinds[i]))
				kind = strlen(kinds[i]);
		n = kind ? str_run(s + kind, "+/=") : 0;
		if (n < 28) /* a SHA-1 in base64 */
			return false;
		s += kind + n;
	} while (*s == ' ');
	return !*s;
}

/* Below a registry: no segment that leads elsewhere, no query. */
static bool is_file_path(const char *s)
{
	const char *whole = s;

	for (; *s; s++) {
		bool begins = s == whole || s[-1] == '/';

		if (*s == '%' ? !str_starts(s, "%2f") && !str_starts(s, "%2F")
			      : str_run(s, "@._~+/-") == 0)
			return false;
		if (begins && (*s == '/' || *s == '.'))
			return false;
	}
	return s > whole && s[-1] != '/';
}

/* ---- the members of a pin ----------------------------------------------------- */

static const char *below(const char *url, const char *registry)
{
	size_t n = strlen(registry);

	n -= n && registry[n - 1] == '/';
	return strncmp(url, registry, n) == 0 && url[n] == '/' ? url + n + 1 : NULL;
}

static int write_resolved(const struct pin *p, struct err *err)
{
	const char *url = NULL, *path = NULL;
	char ours[sizeof(NPMJS) + TEXT_MAX];

	if (json_get_str(p->j, "resolved", false, TEXT_MAX, &url, err) < 0)
		return -1;
	if (!url)
		return 0;
	if (!p->registry) {
		jsonw_kstr(p->w, "resolved", url);
		return 0;
	}
	if (!(path = below(url, NPMJS)) && !(path = below(url, p->registry)))
		path = below(url, BROKER_URL BROKER_PATH_NPM);
	if (!path || !is_file_path(path))
		return refuse(p, "resolved is no file of the registry", err);
	(void)snprintf(ours, sizeof(ours), NPMJS "%s", path);
	jsonw_kstr(p->w, "resolved", ours);
	return 0;
}

static int write_text(const struct pin *p, const char *key, bool (*is_one)(const char *),
		      bool required, struct err *err)
{
	const char *s = NULL;

	if (json_get_str(p->j, key, required, TEXT_MAX, &s, err) < 0)
		return err_wrap(err, "'%.200s'", p->place);
	if (!s)
		return 0;
	if (!is_one(s))
		return err_set_id(err, ERRID_SPEC_DEPS, "'%.200s': %s '%.100s'", p->place,
				  key, s);
	jsonw_kstr(p->w, key, s);
	return 0;
}

static int write_ranges(const struct pin *p, const char *key, struct err *err)
{
	const struct json *map = NULL, *val;
	const void *at = NULL;
	const char *name, *range = NULL;
	struct err none = ERR_INIT;

	if (json_get_obj(p->j, key, false, &map, err) < 0)
		return err_wrap(err, "'%.200s'", p->place);
	if (!map)
		return 0;
	jsonw_key(p->w, key);
	jsonw_obj(p->w);
	while (json_obj_next(map, &at, &name, &val)) {
		if (!is_name(name) || json_as_str(val, TEXT_MAX, &range, &none) < 0 ||
		    !is_range(range))
			return err_set_id(err, ERRID_SPEC_DEPS,
					  "'%.200s': %s '%.100s' is no range of versions",
					  p->place, key, name);
		jsonw_kstr(p->w, name, range);
	}
	jsonw_obj_end(p->w);
	return 0;
}

static int write_all_ranges(const struct pin *p, struct err *err)
{
	static const char *const keys[] = {"dependencies", "optionalDependencies",
					   "peerDependencies"};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (write_ranges(p, keys[i], err) < 0)
			return -1;
	return 0;
}

/* {"a": {"optional": true}} */
static int write_peer_meta(const struct pin *p, struct err *err)
{
	static const char key[] = "peerDependenciesMeta";
	const struct json *map = NULL, *val;
	const void *at = NULL;
	const char *name;
	struct err none = ERR_INIT;

	if (json_get_obj(p->j, key, false, &map, err) < 0)
		return err_wrap(err, "'%.200s'", p->place);
	if (!map)
		return 0;
	jsonw_key(p->w, key);
	jsonw_obj(p->w);
	while (json_obj_next(map, &at, &name, &val)) {
		bool optional = false;

		if (!is_name(name) ||
		    json_get_bool(val, "optional", false, &optional, &none) < 0)
			return refuse(p, key, err);
		jsonw_key(p->w, name);
		jsonw_obj(p->w);
		jsonw_kbool(p->w, "optional", optional);
		jsonw_obj_end(p->w);
	}
	jsonw_obj_end(p->w);
	return 0;
}

static int write_strings(const struct pin *p, const char *key, struct err *err)
{
	const struct json *arr = NULL;
	const char *s = NULL;

	if (json_get_arr(p->j, key, false, ITEMS_MAX, &arr, err) < 0)
		return err_wrap(err, "'%.200s'", p->place);
	if (!arr)
		return 0;
	jsonw_key(p->w, key);
	jsonw_arr(p->w);
	for (size_t i = 0; i < json_arr_len(arr); i++) {
		if (json_as_str(json_arr_at(arr, i), TEXT_MAX, &s, err) < 0)
			return err_wrap(err, "'%.200s': %s", p->place, key);
		jsonw_str(p->w, s);
	}
	jsonw_arr_end(p->w);
	return 0;
}

static int write_bin(const struct pin *p, struct err *err)
{
	const struct json *map = NULL, *val;
	const void *at = NULL;
	const char *name, *path = NULL;
	struct err none = ERR_INIT;

	if (json_get_obj(p->j, "bin", false, &map, err) < 0)
		return err_wrap(err, "'%.200s'", p->place);
	if (!map)
		return 0;
	jsonw_key(p->w, "bin");
	jsonw_obj(p->w);
	while (json_obj_next(map, &at, &name, &val)) {
		if (!is_name(name) || json_as_str(val, TEXT_MAX, &path, &none) < 0)
			return refuse(p, "bin", err);
		jsonw_kstr(p->w, name, path);
	}
	jsonw_obj_end(p->w);
	return 0;
}

static int write_flags(const struct pin *p, struct err *err)
{
	static const char *const keys[] = {"dev",  "optional", "devOptional",
					   "peer", "inBundle", "hasInstallScript"};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		bool on = false;

		if (json_get_bool(p->j, keys[i], false, &on, err) < 0)
			return err_wrap(err, "'%.200s'", p->place);
		if (on)
			jsonw_kbool(p->w, keys[i], true);
	}
	return 0;
}

/* ---- the whole ----------------------------------------------------------------- */

/* What a bundle brings has no digest of its own: it is part of what has one. */
static int write_pin(const struct pin *p, struct err *err)
{
	static const char *const lists[] = {"os", "cpu", "libc", "bundleDependencies"};
	bool in_bundle = false;

	if (!is_place(p->place))
		return refuse(p, "a pin's key is node_modules/NAME", err);
	if (json_has(p->j, "link"))
		return refuse(p, "a link to a directory is not of the registry", err);
	if (json_get_bool(p->j, "inBundle", false, &in_bundle, err) < 0 ||
	    write_text(p, "name", is_name, false, err) < 0 ||
	    write_text(p, "version", is_version, true, err) < 0 ||
	    write_resolved(p, err) < 0 ||
	    write_text(p, "integrity", is_integrity, !in_bundle, err) < 0 ||
	    write_all_ranges(p, err) < 0 || write_peer_meta(p, err) < 0 ||
	    write_bin(p, err) < 0 || write_flags(p, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		if (write_strings(p, lists[i], err) < 0)
			return -1;
	return 0;
}

static int write_root(const struct pin *p, struct err *err)
{
	if (!p->j)
		return refuse(p, "no root among its packages", err);
	if (json_has(p->j, "workspaces"))
		return refuse(p, "workspaces are not of the registry", err);
	jsonw_kstr(p->w, "name", "job");
	jsonw_kstr(p->w, "version", "0.0.0");
	return write_all_ranges(p, err) < 0 ||
			       write_ranges(p, "devDependencies", err) < 0 ||
			       write_peer_meta(p, err) < 0
		       ? -1
		       : 0;
}

static const struct json *member(const struct json *obj, const char *key)
{
	const struct json *ret = NULL;
	struct err none = ERR_INIT;

	return json_get_obj(obj, key, true, &ret, &none) < 0 ? NULL : ret;
}

static int write_packages(const struct json *packages, const char *registry,
			  struct jsonw *w, struct err *err)
{
	const void *at = NULL;
	struct pin p = {.registry = registry, .w = w};

	while (json_obj_next(packages, &at, &p.place, &p.j)) {
		bool is_root = !*p.place;

		if (is_root)
			p.place = "the root";
		jsonw_key(w, is_root ? "" : p.place);
		jsonw_obj(w);
		if ((is_root ? write_root(&p, err) : write_pin(&p, err)) < 0)
			return -1;
		jsonw_obj_end(w);
	}
	return 0;
}

int npm_lock_write(const struct json *j, const char *registry, struct buf *lock,
		   struct buf *package, struct err *err)
{
	const struct json *packages = NULL;
	struct jsonw w;
	struct pin root = {.place = "the root", .registry = registry, .w = &w};
	uint64_t version;

	if (json_get_u64(j, "lockfileVersion", true, 2, 3, &version, err) < 0 ||
	    json_get_obj(j, "packages", true, &packages, err) < 0)
		return err_wrap(err, "package-lock.json of npm 7 or later");
	jsonw_init(&w, package);
	jsonw_obj(&w);
	root.j = member(packages, "");
	if (write_root(&root, err) < 0)
		return -1;
	jsonw_kbool(&w, "private", true);
	jsonw_obj_end(&w);
	jsonw_init(&w, lock);
	jsonw_obj(&w);
	jsonw_ku64(&w, "lockfileVersion", 3);
	jsonw_kbool(&w, "requires", true);
	jsonw_key(&w, "packages");
	jsonw_obj(&w);
	if (write_packages(packages, registry, &w, err) < 0)
		return -1;
	jsonw_obj_end(&w);
	jsonw_obj_end(&w);
	return buf_ok(lock) && buf_ok(package)
		       ? 0
		       : err_set_id(err, ERRID_SPEC_DEPS, "more than %zu bytes",
				    lock->max);
}
