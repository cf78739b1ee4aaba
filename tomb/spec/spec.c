/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See spec.h.
 */
#include "tomb/spec/spec.h"

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/proto/spawn_proto.h"
#include "common/str.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Canonical JSON may write an absent value as null or leave the key out. */
static bool spec_has(const struct json *obj, const char *key)
{
	return json_has(obj, key) && !json_is_null(obj, key);
}

static int spec_str(const struct json *obj, const char *key, size_t max, const char **ret,
		    struct err *err)
{
	if (!spec_has(obj, key))
		return 0;
	return json_get_str(obj, key, true, max, ret, err);
}

static int spec_arr(const struct json *obj, const char *key, size_t max,
		    const struct json **ret, struct err *err)
{
	if (!spec_has(obj, key))
		return 0;
	return json_get_arr(obj, key, true, max, ret, err);
}

static int spec_bool(const struct json *obj, const char *key, bool *ret, struct err *err)
{
	return spec_has(obj, key) ? json_get_bool(obj, key, true, ret, err) : 0;
}

static int spec_sha(const struct json *obj, const char *key, char out[SHA256_HEX_SIZE],
		    struct err *err)
{
	const char *s = NULL;
	uint8_t raw[SHA256_SIZE];

	if (spec_str(obj, key, SHA256_HEX_SIZE, &s, err) < 0)
		return -1;
	if (!s)
		return 0;
	if (sha256_hex_parse(s, raw, err) < 0)
		return err_wrap(err, "%s", key);
	if (str_copy(out, SHA256_HEX_SIZE, s) < 0)
		return err_set_id(err, ERRID_SPEC_TYPE, "%s: not a sha256", key);
	return 0;
}

static int parse_argv(const struct json *obj, struct tomb_spec *s, struct err *err)
{
	const struct json *arr = NULL;
	const char *script = NULL, *interpreter = INTERPRETER_DEFAULT;
	size_t n;

	if (spec_arr(obj, "argv", ARGV_MAX, &arr, err) < 0 ||
	    spec_str(obj, "script", SPEC_MAX_BYTES, &script, err) < 0 ||
	    spec_str(obj, "interpreter", SPEC_PATH_MAX_BYTES, &interpreter, err) < 0)
		return -1;
	n = arr ? json_arr_len(arr) : 0;
	if ((n > 0) == (script != NULL))
		return err_set_id(err, ERRID_SPEC_ARGV, "exactly one of argv and script");
	if (script) {
		if (spec_interpreter_check(interpreter, err) < 0)
			return -1;
		s->script = xstrdup(script);
		s->interpreter = xstrdup(interpreter);
		return 0;
	}
	if (spec_has(obj, "interpreter"))
		return err_set_id(err, ERRID_SPEC_ARGV,
				  "interpreter goes with script only");
	s->argv = xcalloc(n, sizeof(*s->argv));
	for (size_t i = 0; i < n; i++) {
		const char *arg = NULL;

		if (json_as_str(json_arr_at(arr, i), ARG_MAX_BYTES, &arg, err) < 0)
			return err_wrap(err, "argv[%zu]", i);
		if (i == 0 && !arg[0])
			return err_set_id(err, ERRID_SPEC_ARGV, "argv[0] is empty");
		s->argv[s->n_argv++] = xstrdup(arg);
	}
	return 0;
}

static int parse_stdin(const struct json *obj, struct tomb_spec *s, struct err *err)
{
	const char *text = NULL, *b64 = NULL, *stream = NULL;

	if (spec_str(obj, "stdin", SPEC_MAX_BYTES, &text, err) < 0 ||
	    spec_str(obj, "stdin_base64", SPEC_MAX_BYTES, &b64, err) < 0 ||
	    spec_str(obj, "stdin_stream", STREAM_NAME_SIZE - 1, &stream, err) < 0 ||
	    spec_sha(obj, "stdin_blob", s->stdin_blob, err) < 0)
		return -1;
	if (text && !text[0])
		text = NULL; /* the default that canonical JSON fills in */
	if (b64 && !b64[0])
		b64 = NULL;
	if ((text != NULL) + (b64 != NULL) + (s->stdin_blob[0] != '\0') +
		    (stream != NULL) >
	    1)
		return err_set_id(err, ERRID_SPEC_TYPE, "more than one stdin");
	if (stream && !spec_stream_is_valid(stream))
		return err_set_id(err, ERRID_SPEC_RANGE, "stdin_stream");
	s->stdin_stream = stream != NULL;
	if (text) {
		s->stdin_data = xstrdup(text);
		s->stdin_len = strlen(text);
	}
	if (b64 &&
	    base64_decode(b64, strlen(b64), &s->stdin_data, &s->stdin_len, err) < 0)
		return err_wrap(err, "stdin_base64");
	return 0;
}

static int parse_file(const struct json *v, struct tomb_file *f, struct err *err)
{
	static const char *const keys[] = {SPEC_FILE_KEYS};
	const char *path = NULL, *content = NULL, *b64 = NULL, *mode = "0644";

	if (json_as_obj(v, err) < 0 ||
	    json_check_keys(v, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_str(v, "path", true, SPEC_PATH_MAX_BYTES, &path, err) < 0)
		return -1;
	if (spec_file_check(path, err) < 0)
		return -1;
	f->path = xstrdup(path);
	if (spec_str(v, "content", SPEC_MAX_BYTES, &content, err) < 0 ||
	    spec_str(v, "base64", SPEC_MAX_BYTES, &b64, err) < 0 ||
	    spec_sha(v, "blob", f->blob, err) < 0 ||
	    spec_str(v, "mode", 4, &mode, err) < 0)
		return -1;
	if ((content != NULL) + (b64 != NULL) + (f->blob[0] != '\0') != 1)
		return err_set_id(err, ERRID_SPEC_TYPE,
				  "%s: one of content, base64, blob", path);
	if (str_eq(mode, "0755"))
		f->mode = 0755;
	else if (str_eq(mode, "0644"))
		f->mode = 0644;
	else
		return err_set_id(err, ERRID_SPEC_RANGE, "%s: mode is 0644 or 0755",
				  path);
	if (content) {
		f->data = xstrdup(content);
		f->len = strlen(content);
	}
	if (b64 && base64_decode(b64, strlen(b64), &f->data, &f->len, err) < 0)
		return err_wrap(err, "%s", path);
	return 0;
}

static int parse_files(const struct json *obj, struct tomb_spec *s, struct err *err)
{
	const struct json *arr = NULL;
	size_t n;

	if (spec_arr(obj, "files", FILES_MAX, &arr, err) < 0)
		return -1;
	n = arr ? json_arr_len(arr) : 0;
	if (n)
		s->files = xcalloc(n, sizeof(*s->files));
	for (size_t i = 0; i < n; i++) {
		/* Counted first: what a failed parse has allocated is freed by _done. */
		if (parse_file(json_arr_at(arr, i), &s->files[s->n_files++], err) < 0)
			return err_wrap(err, "files[%zu]", i);
	}
	return 0;
}

static int parse_env(const struct json *obj, struct tomb_spec *s, struct err *err)
{
	const struct json *env = NULL, *val;
	const char *name;

	if (!spec_has(obj, "env"))
		return 0;
	if (json_get_obj(obj, "env", true, &env, err) < 0)
		return -1;
	for (size_t i = 0; json_obj_at(env, i, &name, &val); i++) {
		const char *text = NULL;

		if (i >= ENV_MAX || !env_name_is_allowed(name, strlen(name)))
			return err_set_id(err, ERRID_SPEC_ENV, "env: %.64s", name);
		if (json_as_str(val, ARG_MAX_BYTES, &text, err) < 0)
			return err_wrap(err, "env %s", name);
		if (!s->env)
			s->env = xcalloc(ENV_MAX, sizeof(*s->env));
		s->env[s->n_env].name = xstrdup(name);
		s->env[s->n_env++].value = xstrdup(text);
	}
	return 0;
}

static int parse_globs(const struct json *obj, struct tomb_spec *s, struct err *err)
{
	const struct json *arr = NULL;
	size_t n;

	if (spec_arr(obj, "artifacts", GLOBS_MAX, &arr, err) < 0)
		return -1;
	n = arr ? json_arr_len(arr) : 0;
	if (n)
		s->globs = xcalloc(n, sizeof(*s->globs));
	for (size_t i = 0; i < n; i++) {
		const char *glob = NULL;

		if (json_as_str(json_arr_at(arr, i), SPEC_PATH_MAX_BYTES, &glob, err) < 0)
			return err_wrap(err, "artifacts[%zu]", i);
		if (path_check_relative(glob, strlen(glob), err) < 0)
			return err_wrap(err, "artifacts[%zu]", i);
		s->globs[s->n_globs++] = xstrdup(glob);
	}
	return 0;
}

static int parse_limits(const struct json *obj, struct tomb_spec *s, struct err *err)
{
	static const char *const keys[] = {SPEC_LIMIT_KEYS};
	const struct json *l = NULL;
	uint64_t processes = LIMIT_PROCESSES_DEFAULT, cpus = LIMIT_CPUS_DEFAULT;

	s->memory_bytes = LIMIT_MEMORY_DEFAULT;
	s->disk_bytes = LIMIT_DISK_DEFAULT;
	s->output_bytes = LIMIT_OUTPUT_DEFAULT;
	s->timeout_ms = LIMIT_TIMEOUT_USEC_DEFAULT / 1000;
	s->processes = (unsigned)processes;
	s->cpus = (unsigned)cpus;
	if (!spec_has(obj, "limits"))
		return 0;
	if (json_get_obj(obj, "limits", true, &l, err) < 0 ||
	    json_check_keys(l, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_u64(l, "memory_bytes", false, LIMIT_MEMORY_MIN, LIMIT_MEMORY_MAX,
			 &s->memory_bytes, err) < 0 ||
	    json_get_u64(l, "disk_bytes", false, LIMIT_DISK_MIN, LIMIT_DISK_MAX,
			 &s->disk_bytes, err) < 0 ||
	    json_get_u64(l, "output_bytes", false, 1, LIMIT_OUTPUT_MAX, &s->output_bytes,
			 err) < 0 ||
	    json_get_u64(l, "timeout_ms", false, 1, LIMIT_TIMEOUT_USEC_MAX / 1000,
			 &s->timeout_ms, err) < 0 ||
	    json_get_u64(l, "processes", false, 1, LIMIT_PROCESSES_MAX, &processes, err) <
		    0 ||
	    json_get_u64(l, "cpus", false, 1, LIMIT_CPUS_MAX, &cpus, err) < 0)
		return err_wrap(err, "limits");
	s->processes = (unsigned)processes;
	s->cpus = (unsigned)cpus;
	return 0;
}

static int parse_modes(const struct json *obj, struct tomb_spec *s, struct err *err)
{
	static const char *const empty[] = {SPEC_LATER_KEYS};
	const char *network = "loopback", *egress = "none", *profile = "candidate";

	if (spec_str(obj, "network", 16, &network, err) < 0 ||
	    spec_str(obj, "egress", 16, &egress, err) < 0 ||
	    spec_str(obj, "profile", 16, &profile, err) < 0)
		return -1;
	if (!str_eq(network, "loopback") && !str_eq(network, "none"))
		return err_set_id(err, ERRID_SPEC_RANGE, "network: %.16s", network);
	if (!egress_mode_from_name(egress, &s->egress))
		return err_set_id(err, ERRID_SPEC_RANGE, "egress: %.16s", egress);
	if (s->egress != EGRESS_NONE && str_eq(network, "none"))
		return err_set_id(err, ERRID_SPEC_RANGE,
				  "egress: %s needs the loopback network", egress);
	for (size_t i = 0; i < s->n_env; i++)
		if (broker_env_is_reserved(s->egress, s->env[i].name))
			return err_set_id(err, ERRID_SPEC_ENV,
					  "env: %s is the broker's with egress %s",
					  s->env[i].name, egress);
	if (!str_eq(profile, "candidate") && !str_eq(profile, "read"))
		return err_set_id(err, ERRID_SPEC_RANGE, "profile: %.16s", profile);
	s->loopback = str_eq(network, "loopback");
	s->read_only = str_eq(profile, "read");
	/* Refused unless empty: a wish that nothing here carries out is not dropped. */
	for (size_t i = 0; i < ARRAY_SIZE(empty); i++) {
		const struct json *v = NULL;
		struct err ignored = ERR_INIT;
		const char *key;
		const struct json *val;

		if (!spec_has(obj, empty[i]))
			continue;
		if (json_get_arr(obj, empty[i], true, SPEC_MAX_BYTES, &v, &ignored) ==
		    0) {
			if (json_arr_len(v) == 0)
				continue;
		} else if (json_get_obj(obj, empty[i], true, &v, err) < 0) {
			return -1;
		} else if (!json_obj_at(v, 0, &key, &val)) {
			continue;
		}
		return err_set_id(err, ERRID_SPEC_UNSUPPORTED, "%s: must be empty",
				  empty[i]);
	}
	return 0;
}

int tomb_spec_parse(const void *data, size_t len, struct tomb_spec *ret, struct err *err)
{
	static const char *const keys[] = {SPEC_KEYS};
	cleanup_json struct json *obj = NULL;
	struct tomb_spec s = {.n_argv = 0};

	if (len > SPEC_MAX_BYTES)
		return err_set_id(err, ERRID_SPEC_SIZE, "%zu bytes", len);
	if (json_parse(data, len, JSON_DEPTH_DEFAULT, &obj, err) < 0 ||
	    json_check_keys(obj, keys, ARRAY_SIZE(keys), err) < 0)
		return -1;
	if (parse_argv(obj, &s, err) < 0 || parse_stdin(obj, &s, err) < 0 ||
	    tty_read(obj, &s.tty, err) < 0 || parse_files(obj, &s, err) < 0 ||
	    parse_env(obj, &s, err) < 0 || parse_globs(obj, &s, err) < 0 ||
	    parse_limits(obj, &s, err) < 0 || parse_modes(obj, &s, err) < 0 ||
	    spec_bool(obj, "explain", &s.explain, err) < 0 ||
	    deps_read(obj, NULL, &s.deps, err) < 0 ||
	    spec_sha(obj, "input", s.input_blob, err) < 0) {
		tomb_spec_done(&s);
		return -1;
	}
	*ret = s;
	return 0;
}

static void free_strings(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

void tomb_spec_done(struct tomb_spec *s)
{
	free_strings(s->argv, s->n_argv);
	free_strings(s->globs, s->n_globs);
	for (size_t i = 0; i < s->n_files; i++) {
		free(s->files[i].path);
		free(s->files[i].data);
	}
	free(s->files);
	for (size_t i = 0; i < s->n_env; i++) {
		free(s->env[i].name);
		free(s->env[i].value);
	}
	free(s->env);
	deps_done(&s->deps);
	free(s->script);
	free(s->interpreter);
	free(s->stdin_data);
	*s = (struct tomb_spec){.n_argv = 0};
}

static void block_str(struct buf *out, const char *s)
{
	buf_add(out, s, strlen(s) + 1);
}

static void block_opt(struct buf *out, const char *opt, const char *value)
{
	block_str(out, opt);
	block_str(out, value);
}

static void block_u64(struct buf *out, const char *opt, uint64_t v)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, v);
	block_opt(out, opt, text);
}

static void block_env(const char *name, const char *value, void *arg)
{
	struct buf *out = arg;

	block_str(out, "--env");
	buf_adds(out, name);
	buf_addc(out, '=');
	block_str(out, value);
}

struct default_env {
	const struct tomb_spec *spec;
	struct buf *out;
};

/* What the job sets itself counts: whether it finds what it asked for is its own affair. */
static void block_default_env(const char *name, const char *value, void *arg)
{
	const struct default_env *b = arg;

	for (size_t i = 0; i < b->spec->n_env; i++)
		if (str_eq(b->spec->env[i].name, name))
			return;
	block_env(name, value, b->out);
}

static void block_job(const struct tomb_spec *s, const struct tomb_spec_place *place,
		      struct buf *out)
{
	struct default_env defaults = {s, out};
	bool full = place->grade == GRADE_FULL;

	if (s->explain)
		block_str(out, "--explain");
	block_str(out, "--env");
	buf_adds(out, "PATH=" JOB_PATH ":");
	block_str(out, full ? BROKER_TOOLS : place->tools);
	for (size_t i = 0; i < s->n_env; i++)
		block_env(s->env[i].name, s->env[i].value, out);
	broker_env(place->grade, s->egress, place->key, block_env, out);
	if (s->egress != EGRESS_NONE && place->planted)
		block_default_env(place->planted_as, place->planted, &defaults);
	/* only grade full has dependencies */
	deps_env(&s->deps, s->egress, block_default_env, &defaults);
	if (s->tty.cols)
		block_default_env("TERM", s->tty.term, &defaults);
	block_str(out, "--");
	if (s->script) {
		block_str(out, s->interpreter);
		block_str(out, "./" SCRIPT_NAME);
	}
	for (size_t i = 0; i < s->n_argv; i++)
		block_str(out, s->argv[i]);
}

enum egress_mode tomb_spec_egress(const struct tomb_spec *s, enum tomb_spec_use use)
{
	if (use == SPEC_USE_DEPS_FETCH)
		return EGRESS_REGISTRY;
	return use == SPEC_USE_JOB ? s->egress : EGRESS_NONE;
}

/* The commands that are the tomb's own. An archive's "./" says nothing of the folder that it is
 * unpacked in. */
static void block_own(const struct tomb_spec *s, enum tomb_spec_use use, struct buf *out)
{
	static const char *const tar[] = {
		"tar", "-x", "-f", "-", "--no-same-owner", "--no-overwrite-dir"};

	if (use == SPEC_USE_DEPS_FETCH)
		broker_env_mirrors(block_env, out);
	block_str(out, "--");
	if (use == SPEC_USE_DEPS_FETCH)
		deps_fetch_argv(&s->deps, out);
	else if (use == SPEC_USE_DEPS_INSTALL)
		deps_install_argv(&s->deps, out);
	for (size_t i = 0; use == SPEC_USE_UNPACK && i < ARRAY_SIZE(tar); i++)
		block_str(out, tar[i]);
}

static void block_workspace(const struct tomb_spec *s, enum tomb_spec_use use,
			    const struct tomb_spec_place *place, struct buf *out)
{
	block_str(out,
		  s->read_only && use == SPEC_USE_JOB ? "--workspace-ro" : "--workspace");
	buf_adds(out, place->workspace);
	block_str(out, use == SPEC_USE_DEPS_FETCH ? "/" DEPS_DIR : "");
}

int tomb_spec_block(const struct tomb_spec *s, enum tomb_spec_use use,
		    const struct tomb_spec_place *place, struct buf *out, struct err *err)
{
	char timeout[32];

	buf_reset(out);
	block_opt(out, "--grade", sbx_grade_name(place->grade));
	block_workspace(s, use, place, out);
	/* Unpacking and installing have no business with a network either. */
	block_opt(out, "--network",
		  (s->loopback && use == SPEC_USE_JOB) || use == SPEC_USE_DEPS_FETCH
			  ? "loopback"
			  : "none");
	(void)snprintf(timeout, sizeof(timeout), "%" PRIu64 "ms", s->timeout_ms);
	block_opt(out, "--timeout", timeout);
	block_u64(out, "--memory", s->memory_bytes);
	block_u64(out, "--disk", s->disk_bytes);
	block_u64(out, "--file-size", s->disk_bytes);
	block_u64(out, "--processes", s->processes);
	block_u64(out, "--cpus", s->cpus);
	if (use == SPEC_USE_JOB)
		block_job(s, place, out);
	else
		block_own(s, use, out);
	if (!buf_ok(out) || out->len > SPAWN_SPEC_MAX_BYTES)
		return err_set_id(err, ERRID_SPEC_SIZE,
				  "the sandbox's arguments are too long");
	return 0;
}
