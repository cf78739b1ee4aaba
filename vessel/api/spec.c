/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Theory of operation. common/json/json.c has refused everything that is not one
 * strict JSON object before a key is looked at. Each group of keys has one
 * reader below; a reader takes a key by its type, checks it, and stores a pointer
 * into the tree. What is not read is refused by the list of known keys.
 */
#include "vessel/api/spec.h"
#include "common/base64.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/id.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/proto/broker_proto.h"
#include "common/str.h"
#include "vessel/broker/ward.h"
#include <assert.h>

static int read_request_id(struct spec *s, struct err *err)
{
	const char *id = NULL;

	if (json_get_str(s->root, "request_id", false, REQUEST_ID_MAX_BYTES, &id, err) <
	    0)
		return -1;
	return id ? spec_set_request_id(s, id, err) : 0;
}

int spec_set_request_id(struct spec *s, const char *request_id, struct err *err)
{
	size_t len = strlen(request_id);

	if (len < 1 || len > REQUEST_ID_MAX_BYTES)
		return err_set_id(err, ERRID_SPEC_RANGE, "request_id: 1 to %d characters",
				  REQUEST_ID_MAX_BYTES);
	for (size_t i = 0; i < len; i++) {
		char c = request_id[i];
		bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9');

		if (!alnum && (i == 0 || !strchr("._:-", c)))
			return err_set_id(
				err, ERRID_SPEC_RANGE,
				"request_id: [A-Za-z0-9][A-Za-z0-9._:-]{0,127} only");
	}
	int r = str_copy(s->request_id, sizeof(s->request_id), request_id);
	assert(r == 0);
	return 0;
}

static int read_sha(const struct json *obj, const char *key, const char **ret,
		    struct err *err)
{
	uint8_t raw[SHA256_SIZE];

	if (json_get_str(obj, key, false, SHA256_HEX_SIZE - 1, ret, err) < 0)
		return -1;
	if (*ret && sha256_hex_parse(*ret, raw, NULL) < 0)
		return err_set_id(err, ERRID_SPEC_RANGE,
				  "%s: a sha256 is 64 lower-case hex digits", key);
	return 0;
}

static int read_base64(const struct json *obj, const char *key, const char **ret,
		       struct err *err)
{
	if (json_get_str(obj, key, false, SPEC_MAX_BYTES, ret, err) < 0)
		return -1;
	if (*ret && !base64_is_valid(*ret, strlen(*ret)))
		return err_set_id(err, ERRID_SPEC_RANGE,
				  "%s: not base64 (RFC 4648, padded)", key);
	return 0;
}

static int read_argv(struct spec *s, struct err *err)
{
	const struct json *arr = NULL;

	if (json_get_arr(s->root, "argv", true, SPEC_MAX_BYTES, &arr, err) < 0)
		return -1;
	size_t n = json_arr_len(arr);
	if (n < 1 || n > ARGV_MAX)
		return err_set_id(err, ERRID_SPEC_ARGV, "argv: %zu strings", n);
	s->argv = xcalloc(n, sizeof(*s->argv));
	for (size_t i = 0; i < n; i++) {
		struct err why = ERR_INIT;

		if (json_as_str(json_arr_at(arr, i), ARG_MAX_BYTES, &s->argv[i], &why) <
		    0)
			return err_set_id(err, ERRID_SPEC_ARGV, "argv[%zu]: %s", i,
					  why.msg);
	}
	if (s->argv[0][0] == '\0')
		return err_set_id(err, ERRID_SPEC_ARGV, "argv[0] is empty");
	s->n_argv = n;
	return 0;
}

static int read_command(struct spec *s, struct err *err)
{
	bool has_argv = json_has(s->root, "argv"),
	     has_script = json_has(s->root, "script");

	if (!has_argv && !has_script)
		return err_set_id(err, ERRID_SPEC_MISSING, "argv or script");
	if (has_argv && has_script)
		return err_set_id(err, ERRID_SPEC_ARGV,
				  "exactly one of argv and script, not both");
	if (has_argv) {
		if (json_has(s->root, "interpreter"))
			return err_set_id(err, ERRID_SPEC_ARGV,
					  "interpreter goes with script only");
		return read_argv(s, err);
	}
	s->interpreter = INTERPRETER_DEFAULT;
	if (json_get_str(s->root, "script", true, SPEC_MAX_BYTES, &s->script, err) < 0 ||
	    json_get_str(s->root, "interpreter", false, SPEC_PATH_MAX_BYTES,
			 &s->interpreter, err) < 0)
		return -1;
	return spec_interpreter_check(s->interpreter, err);
}

static int read_stdin(struct spec *s, struct err *err)
{
	if (json_get_str(s->root, "stdin", false, SPEC_MAX_BYTES, &s->stdin_text, err) <
		    0 ||
	    read_sha(s->root, "stdin_blob", &s->stdin_blob, err) < 0 ||
	    read_base64(s->root, "stdin_base64", &s->stdin_base64, err) < 0 ||
	    json_get_str(s->root, "stdin_stream", false, STREAM_NAME_SIZE - 1,
			 &s->stdin_stream, err) < 0)
		return -1;
	if (!!s->stdin_text + !!s->stdin_blob + !!s->stdin_base64 + !!s->stdin_stream > 1)
		return err_set_id(
			err, ERRID_SPEC_RANGE,
			"at most one of stdin, stdin_blob, stdin_base64, stdin_stream");
	if (s->stdin_stream && !spec_stream_is_valid(s->stdin_stream))
		return err_set_id(err, ERRID_SPEC_RANGE,
				  "stdin_stream: 32 lower-case hex digits");
	return 0;
}

static int read_file(const struct json *j, struct spec_file *f, struct err *err)
{
	static const char *const keys[] = {SPEC_FILE_KEYS};
	const char *mode = "0644";

	if (json_as_obj(j, err) < 0 ||
	    json_check_keys(j, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_str(j, "path", true, SPEC_PATH_MAX_BYTES, &f->path, err) < 0 ||
	    json_get_str(j, "content", false, SPEC_MAX_BYTES, &f->content, err) < 0 ||
	    read_base64(j, "base64", &f->base64, err) < 0 ||
	    read_sha(j, "blob", &f->blob, err) < 0 ||
	    json_get_str(j, "mode", false, 16, &mode, err) < 0)
		return -1;
	if (spec_file_check(f->path, err) < 0)
		return -1;
	if (!!f->content + !!f->base64 + !!f->blob != 1)
		return err_set_id(err, ERRID_SPEC_MISSING,
				  "exactly one of content, base64, blob");
	if (!str_eq(mode, "0644") && !str_eq(mode, "0755"))
		return err_set_id(err, ERRID_SPEC_RANGE, "mode: \"0644\" or \"0755\"");
	f->executable = str_eq(mode, "0755");
	return 0;
}

static int check_paths(const struct spec *s, struct err *err)
{
	cleanup_free const char **paths = xcalloc(s->n_files + 1, sizeof(*paths));

	for (size_t i = 0; i < s->n_files; i++)
		paths[i] = s->files[i].path;
	return spec_paths_check(paths, s->n_files, err);
}

static int read_files(struct spec *s, struct err *err)
{
	const struct json *arr = NULL;

	if (json_get_arr(s->root, "files", false, FILES_MAX, &arr, err) < 0)
		return -1;
	size_t n = arr ? json_arr_len(arr) : 0;
	s->files = xcalloc(n + 1, sizeof(*s->files));
	s->n_files = n;
	for (size_t i = 0; i < n; i++) {
		if (read_file(json_arr_at(arr, i), &s->files[i], err) < 0)
			return err_wrap(err, "files[%zu]", i);
	}
	return check_paths(s, err);
}

static int cmp_env(const void *a, const void *b)
{
	return strcmp(((const struct spec_env *)a)->name,
		      ((const struct spec_env *)b)->name);
}

static int read_env(struct spec *s, struct err *err)
{
	const struct json *obj = NULL, *val;
	const char *name;

	if (json_get_obj(s->root, "env", false, &obj, err) < 0)
		return -1;
	s->env = xcalloc(ENV_MAX, sizeof(*s->env));
	for (size_t i = 0; obj && json_obj_at(obj, i, &name, &val); i++) {
		if (i >= ENV_MAX)
			return err_set_id(err, ERRID_SPEC_ENV, "more than %d names",
					  ENV_MAX);
		if (!env_name_is_allowed(name, strlen(name)))
			return err_set_id(err, ERRID_SPEC_ENV, "%.64s", name);
		s->env[i].name = name;
		if (json_as_str(val, ARG_MAX_BYTES, &s->env[i].value, err) < 0)
			return err_wrap(err, "env.%s", name);
		s->n_env++;
	}
	if (s->n_env > 1)
		qsort(s->env, s->n_env, sizeof(*s->env), cmp_env);
	return 0;
}

/* Below min is a range error, above the ceiling names the ceiling. */
static int read_limit(const struct json *obj, const char *key, uint64_t min,
		      uint64_t ceiling, uint64_t *ret, struct err *err)
{
	if (!obj)
		return 0;
	uint64_t v = *ret;
	if (json_get_u64(obj, key, false, min, INT64_MAX, &v, err) < 0)
		return !err || err->id != ERRID_SPEC_RANGE
			       ? err_wrap(err, "limits")
			       : err_set_id(err, ERRID_SPEC_RANGE,
					    "limits.%s: not within %llu to %llu", key,
					    (unsigned long long)min,
					    (unsigned long long)ceiling);
	if (v > ceiling)
		return err_set_id(err, ERRID_SPEC_LIMIT, "limits.%s: %llu, ceiling %llu",
				  key, (unsigned long long)v,
				  (unsigned long long)ceiling);
	*ret = v;
	return 0;
}

static int read_limits(struct spec *s, const struct conf *c, struct err *err)
{
	static const char *const keys[] = {SPEC_LIMIT_KEYS};
	const struct json *obj = NULL;

	s->memory_bytes = c->memory_default;
	s->disk_bytes = c->disk_default;
	s->output_bytes = c->output_default;
	s->timeout_ms = c->timeout_default_usec / USEC_PER_MSEC;
	s->processes = c->processes_default;
	s->cpus = c->cpus_default;
	if (json_get_obj(s->root, "limits", false, &obj, err) < 0)
		return -1;
	if (obj && json_check_keys(obj, keys, ARRAY_SIZE(keys), err) < 0)
		return -1;
	if (read_limit(obj, "memory_bytes", LIMIT_MEMORY_MIN, c->memory_max,
		       &s->memory_bytes, err) < 0 ||
	    read_limit(obj, "disk_bytes", LIMIT_DISK_MIN, c->disk_max, &s->disk_bytes,
		       err) < 0 ||
	    read_limit(obj, "output_bytes", 1, c->output_max, &s->output_bytes, err) <
		    0 ||
	    read_limit(obj, "timeout_ms", 1, c->timeout_max_usec / USEC_PER_MSEC,
		       &s->timeout_ms, err) < 0 ||
	    read_limit(obj, "processes", 1, c->processes_max, &s->processes, err) < 0 ||
	    read_limit(obj, "cpus", 1, c->cpus_max, &s->cpus, err) < 0)
		return -1;
	return 0;
}

/* One of a closed list; *ret holds the default. */
static int read_word(const struct spec *s, const char *key, const char *const *words,
		     const char **ret, struct err *err)
{
	const char *got = *ret;

	if (json_get_str(s->root, key, false, 64, &got, err) < 0)
		return -1;
	for (size_t i = 0; words[i]; i++) {
		if (str_eq(words[i], got)) {
			*ret = words[i];
			return 0;
		}
	}
	cleanup_buf struct buf all = {.max = 256};

	for (size_t i = 0; words[i]; i++)
		buf_addf(&all, "%s%s", i ? ", " : "", words[i]);
	return err_set_id(err, ERRID_SPEC_RANGE, "%s: not one of: %s", key,
			  buf_str(&all));
}

static int read_words(struct spec *s, struct err *err)
{
	static const char *const networks[] = {"loopback", "none", NULL};
	static const char *const profiles[] = {"candidate", "read", NULL};
	static const char *const retries[] = {"on_lost", "never", NULL};
	const char *network = "loopback", *egress = "none";
	/* What was streamed is gone: nobody could give it to a second attempt. */
	const char *retry = s->stdin_stream ? "never" : "on_lost";
	uint64_t priority = 50;

	s->profile = "candidate";
	if (read_word(s, "network", networks, &network, err) < 0 ||
	    json_get_str(s->root, "egress", false, 64, &egress, err) < 0 ||
	    read_word(s, "profile", profiles, &s->profile, err) < 0 ||
	    read_word(s, "retry", retries, &retry, err) < 0 ||
	    json_get_bool(s->root, "explain", false, &s->explain, err) < 0 ||
	    json_get_u64(s->root, "priority", false, 0, 100, &priority, err) < 0)
		return -1;
	if (!egress_mode_from_name(egress, &s->egress))
		return err_set_id(err, ERRID_SPEC_RANGE,
				  "egress: none, brokered or registry");
	s->network_loopback = str_eq(network, "loopback");
	s->retry_on_lost = str_eq(retry, "on_lost");
	if (s->retry_on_lost && s->stdin_stream)
		return err_set_id(err, ERRID_SPEC_RANGE,
				  "retry: never, since a stdin_stream is not kept");
	s->priority = (unsigned)priority;
	return 0;
}

static int read_artifacts(struct spec *s, struct err *err)
{
	const struct json *arr = NULL;

	if (json_get_arr(s->root, "artifacts", false, GLOBS_MAX, &arr, err) < 0)
		return -1;
	size_t n = arr ? json_arr_len(arr) : 0;
	s->artifacts = xcalloc(n + 1, sizeof(*s->artifacts));
	for (size_t i = 0; i < n; i++) {
		const char *glob;
		struct err why = ERR_INIT;

		if (json_as_str(json_arr_at(arr, i), SPEC_PATH_MAX_BYTES, &glob, err) < 0)
			return err_wrap(err, "artifacts[%zu]", i);
		if (path_check_relative(glob, strlen(glob), &why) < 0)
			return err_set_id(err, ERRID_SPEC_PATH, "artifacts[%zu]: %s", i,
					  why.msg);
		s->artifacts[i] = glob;
	}
	s->n_artifacts = n;
	return 0;
}

/* Better refused now than after the job has waited for it. */
static int check_registry(const struct conf *conf, enum registry_kind kind,
			  struct err *err)
{
	struct ward_verdict verdict;
	struct ward_ask ask;

	if (!conf->broker.registry[kind].url.text)
		return err_set_id(err, ERRID_REGISTRY_NONE, "deps: %s",
				  registry_kind_name(kind));
	ward_ask_registry(&conf->broker, kind, IDENTITY_OWNER, &ask);
	return ward_decide(&conf->broker, &ask, &verdict, err);
}

static int read_deps(struct spec *s, const struct conf *conf, struct err *err)
{
	const char *npm = conf->broker.registry[REGISTRY_NPM].url.text;
	const struct deps *d = &s->deps;
	bool wanted[REGISTRY_KIND_MAX_];

	if (deps_read(s->root, npm ? npm : "", &s->deps, err) < 0)
		return -1;
	wanted[REGISTRY_NPM] = d->n_npm || d->npm_lock;
	wanted[REGISTRY_PYPI] = d->n_pypi;
	wanted[REGISTRY_CARGO] = d->n_cargo;
	wanted[REGISTRY_GO] = d->n_go;
	for (size_t i = 0; i < REGISTRY_KIND_MAX_; i++)
		if (wanted[i] && check_registry(conf, (enum registry_kind)i, err) < 0)
			return -1;
	return 0;
}

/* Keys of a later version: accepted only when they ask for nothing. */
static int check_later(const struct spec *s, struct err *err)
{
	static const char *const later[] = {SPEC_LATER_KEYS};

	for (size_t i = 0; i < ARRAY_SIZE(later); i++) {
		const struct json *v = NULL, *val;
		const char *key;

		if (!json_has(s->root, later[i]))
			continue;
		if (json_get_arr(s->root, later[i], true, SPEC_MAX_BYTES, &v, NULL) ==
			    0 &&
		    json_arr_len(v) == 0)
			continue;
		if (json_get_obj(s->root, later[i], true, &v, NULL) == 0 &&
		    !json_obj_at(v, 0, &key, &val))
			continue;
		return err_set_id(err, ERRID_SPEC_UNSUPPORTED, "%s", later[i]);
	}
	return 0;
}

/* Better refused now than after the job has run into it. */
static int check_egress(const struct spec *s, const struct conf *conf, struct err *err)
{
	const char *name = egress_mode_name(s->egress);

	if (s->egress == EGRESS_NONE)
		return 0;
	if (!s->network_loopback)
		return err_set_id(err, ERRID_SPEC_RANGE,
				  "egress: %s needs network loopback", name);
	for (size_t i = 0; i < s->n_env; i++)
		if (broker_env_is_reserved(s->egress, s->env[i].name))
			return err_set_id(err, ERRID_SPEC_ENV,
					  "%s is the broker's with egress %s",
					  s->env[i].name, name);
	return ward_could_permit(&conf->broker, IDENTITY_OWNER, s->egress, err);
}

static int read_all(struct spec *s, const struct conf *conf, struct err *err)
{
	static const char *const keys[] = {SPEC_KEYS};

	if (json_check_keys(s->root, keys, ARRAY_SIZE(keys), err) < 0 ||
	    read_request_id(s, err) < 0 || read_command(s, err) < 0 ||
	    read_stdin(s, err) < 0 || tty_read(s->root, &s->tty, err) < 0 ||
	    read_files(s, err) < 0 || read_sha(s->root, "input", &s->input, err) < 0 ||
	    read_env(s, err) < 0 || read_limits(s, conf, err) < 0 ||
	    read_words(s, err) < 0 || read_deps(s, conf, err) < 0 ||
	    read_artifacts(s, err) < 0 || check_egress(s, conf, err) < 0)
		return -1;
	return check_later(s, err);
}

int spec_parse(const void *data, size_t len, const struct conf *conf, struct spec *ret,
	       struct err *err)
{
	struct spec s = {0};

	memset(ret, 0, sizeof(*ret));
	if (len > SPEC_MAX_BYTES)
		return err_set_id(err, ERRID_SPEC_SIZE, "%zu bytes", len);
	if (json_parse(data, len, JSON_DEPTH_DEFAULT, &s.root, err) < 0)
		return -1;
	if (read_all(&s, conf, err) < 0) {
		spec_done(&s);
		return -1;
	}
	*ret = s;
	return 0;
}

void spec_done(struct spec *s)
{
	json_free(s->root);
	free(s->argv);
	free(s->files);
	free(s->env);
	free(s->artifacts);
	deps_done(&s->deps);
	memset(s, 0, sizeof(*s));
}

size_t spec_blobs(const struct spec *s)
{
	size_t n = 0;

	n += s->input != NULL;
	n += s->stdin_blob != NULL;
	for (size_t i = 0; i < s->n_files; i++)
		n += s->files[i].blob != NULL;
	return n;
}

const char *spec_blob(const struct spec *s, size_t i)
{
	if (s->input && i-- == 0)
		return s->input;
	if (s->stdin_blob && i-- == 0)
		return s->stdin_blob;
	for (size_t f = 0; f < s->n_files; f++) {
		if (s->files[f].blob && i-- == 0)
			return s->files[f].blob;
	}
	return NULL;
}
