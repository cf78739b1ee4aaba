/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See receipt.h.
 */
#include "cli/pod/receipt.h"

#include "cli/base/trusted.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fs.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <errno.h>
#include <limits.h>

#define FILE_MAX_BYTES ((size_t)256 << 10)
#define FORMAT 1

static int bad(struct err *err)
{
	err->id = ERRID_BIND_RECEIPT;
	err->code = err_info(ERRID_BIND_RECEIPT)->code;
	return -1;
}

bool receipt_knows_name(const struct receipt *r, const char *name)
{
	for (size_t i = 0; i < r->n_known; i++)
		if (str_eq(r->known[i].name, name))
			return true;
	return false;
}

bool receipt_knows(const struct receipt *r, const char *name, const char *sha256)
{
	for (size_t i = 0; i < r->n_known; i++)
		if (str_eq(r->known[i].name, name) && str_eq(r->known[i].sha256, sha256))
			return true;
	return false;
}

static void add(struct receipt_file **list, size_t *n, const struct receipt_file *f)
{
	*list = xreallocarray(*list, *n + 1, sizeof(**list));
	(*list)[(*n)++] = *f;
}

void receipt_take_units(struct receipt *r, const char *profile, const struct unit_set *s)
{
	free(r->file);
	r->file = NULL;
	r->n_files = 0;
	(void)snprintf(r->profile, sizeof(r->profile), "%s", profile);
	(void)snprintf(r->version, sizeof(r->version), "%s", LYCH_VERSION);
	clock_rfc3339(clock_wall_usec(), r->time);
	for (size_t i = 0; i < s->n; i++) {
		struct receipt_file f = {0};

		(void)snprintf(f.name, sizeof(f.name), "%s", s->unit[i].name);
		(void)snprintf(f.sha256, sizeof(f.sha256), "%s", s->unit[i].sha256);
		add(&r->file, &r->n_files, &f);
		if (receipt_knows(r, f.name, f.sha256))
			continue;
		/* The oldest go first; what is installed was written among the last. */
		if (r->n_known == RECEIPT_KNOWN_MAX)
			memmove(r->known, r->known + 1, --r->n_known * sizeof(*r->known));
		add(&r->known, &r->n_known, &f);
	}
}

void receipt_done(struct receipt *r)
{
	free(r->file);
	free(r->known);
	free(r->directory);
	*r = (struct receipt){0};
}

/* ---- as JSON ---------------------------------------------------------------- */

static int parse_list(const struct json *j, const char *key, size_t max,
		      struct receipt_file **ret, size_t *ret_n, struct err *err)
{
	static const char *const keys[] = {"name", "sha256"};
	const struct json *list = NULL;

	if (json_get_arr(j, key, true, max, &list, err) < 0)
		return -1;
	for (size_t i = 0; i < json_arr_len(list); i++) {
		const struct json *v = json_arr_at(list, i);
		const char *name = NULL, *sha256 = NULL;
		struct receipt_file f = {0};
		uint8_t digest[SHA256_SIZE];

		if (json_as_obj(v, err) < 0 ||
		    json_check_keys(v, keys, ARRAY_SIZE(keys), err) < 0 ||
		    json_get_str(v, "name", true, UNIT_NAME_MAX - 1, &name, err) < 0 ||
		    json_get_str(v, "sha256", true, SHA256_HEX_SIZE - 1, &sha256, err) <
			    0 ||
		    sha256_hex_parse(sha256, digest, err) < 0)
			return err_wrap(err, "%s[%zu]", key, i);
		if (!unit_name_is_ours(name))
			return err_set(err, ERR_INVALID,
				       "%s[%zu]: '%s' is no unit of ours", key, i, name);
		(void)snprintf(f.name, sizeof(f.name), "%s", name);
		(void)snprintf(f.sha256, sizeof(f.sha256), "%s", sha256);
		add(ret, ret_n, &f);
	}
	return 0;
}

static int parse_body(const struct json *j, struct receipt *r, struct err *err)
{
	static const char *const keys[] = {"receipt", "lychgate", "profile",  "time",
					   "files",   "known",	  "directory"};
	const char *profile = NULL, *version = NULL, *when = NULL, *directory = NULL;
	uint64_t format = 0;

	if (json_check_keys(j, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_u64(j, "receipt", true, FORMAT, FORMAT, &format, err) < 0 ||
	    json_get_str(j, "lychgate", true, sizeof(r->version) - 1, &version, err) <
		    0 ||
	    json_get_str(j, "profile", true, sizeof(r->profile) - 1, &profile, err) < 0 ||
	    json_get_str(j, "time", true, sizeof(r->time) - 1, &when, err) < 0 ||
	    json_get_str(j, "directory", false, PATH_MAX - 1, &directory, err) < 0 ||
	    parse_list(j, "files", UNITS_MAX, &r->file, &r->n_files, err) < 0 ||
	    parse_list(j, "known", RECEIPT_KNOWN_MAX, &r->known, &r->n_known, err) < 0)
		return -1;
	if (directory && directory[0] != '/')
		return err_set(err, ERR_INVALID, "directory is not absolute");
	(void)snprintf(r->version, sizeof(r->version), "%s", version);
	(void)snprintf(r->profile, sizeof(r->profile), "%s", profile);
	(void)snprintf(r->time, sizeof(r->time), "%s", when);
	r->directory = directory ? xstrdup(directory) : NULL;
	return 0;
}

int receipt_parse(const char *text, size_t len, struct receipt *ret, struct err *err)
{
	cleanup_json struct json *j = NULL;
	struct receipt r = {0};

	if (json_parse(text, len, 8, &j, err) < 0)
		return bad(err);
	if (parse_body(j, &r, err) < 0) {
		receipt_done(&r);
		return bad(err);
	}
	*ret = r;
	return 0;
}

int receipt_load(const char *path, struct receipt *ret, struct err *err)
{
	cleanup_free char *text = NULL;
	size_t len;

	if (access(path, F_OK) < 0 && errno == ENOENT)
		return err_set_id(err, ERRID_BIND_NONE, "%s does not exist", path);
	if (trusted_read(path, FILE_MAX_BYTES, ERRID_BIND_RECEIPT, &text, &len, err) < 0)
		return -1;
	if (receipt_parse(text, len, ret, err) < 0)
		return err_wrap(err, "%s", path);
	return 0;
}

static void write_list(struct jsonw *w, const char *key, const struct receipt_file *f,
		       size_t n)
{
	jsonw_key(w, key);
	jsonw_arr(w);
	for (size_t i = 0; i < n; i++) {
		jsonw_obj(w);
		jsonw_kstr(w, "name", f[i].name);
		jsonw_kstr(w, "sha256", f[i].sha256);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
}

int receipt_save(int dirfd, const char *name, const struct receipt *r, struct err *err)
{
	cleanup_buf struct buf b = {0};
	struct jsonw w;

	buf_init(&b, FILE_MAX_BYTES);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_ku64(&w, "receipt", FORMAT);
	jsonw_kstr(&w, "lychgate", r->version);
	jsonw_kstr(&w, "profile", r->profile);
	jsonw_kstr(&w, "time", r->time);
	if (r->directory)
		jsonw_kstr(&w, "directory", r->directory);
	write_list(&w, "files", r->file, r->n_files);
	write_list(&w, "known", r->known, r->n_known);
	jsonw_obj_end(&w);
	buf_addc(&b, '\n');
	if (!buf_ok(&b))
		return err_set_id(err, ERRID_BIND_RECEIPT, "the receipt is too large");
	return fs_write_atomic(dirfd, name, b.data, b.len, 0600, err);
}
