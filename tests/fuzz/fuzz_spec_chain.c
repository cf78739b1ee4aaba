/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job's spec on its whole way: from outside into the vessel, as it is stored to the tomb, as a
 * block to the sandbox. What one takes the next one takes and means the same by; and so it is
 * with what the tomb takes that no vessel wrote.
 */
#include "common/base64.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/proto/job_spec.h"
#include "common/str.h"
#include "sandbox/contract/sandbox.h"
#include "tomb/spec/spec.h"
#include "vessel/api/spec.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char codex[] = "version: \"1\"\n"
			    "registries:\n"
			    "  npm: {url: \"https://npm.example.org\"}\n"
			    "  pypi: {url: \"https://pypi.example.org/simple\"}\n"
			    "  cargo: {url: \"https://crates.example.org\"}\n"
			    "  go: {url: \"https://go.example.org\"}\n"
			    "ward:\n- {host: a.example, action: allow}\n"
			    "- {registry: npm, action: allow}\n"
			    "- {registry: cargo, action: allow}\n"
			    "- {registry: go, action: allow}\n"
			    "- {registry: pypi, action: allow}\n";
static const struct broker_key key = {"lych-key"};

/* ---- vessel and tomb ------------------------------------------------------------------ */

/* The bytes that one of three keys gave. */
static void check_bytes(const char *text, const char *base64, const char *data,
			size_t len)
{
	cleanup_free char *want = NULL;
	size_t want_len = 0;

	if (base64) {
		if (base64_decode(base64, strlen(base64), &want, &want_len, NULL) < 0)
			abort();
	} else if (text) {
		want = xstrdup(text);
		want_len = strlen(text);
	}
	assert(len == want_len && (len == 0 || memcmp(data, want, len) == 0));
}

static void check_list(const char *const *want, size_t n, char *const *got, size_t n_got)
{
	assert(n == n_got);
	for (size_t i = 0; i < n; i++)
		assert(str_eq(want[i], got[i]));
}

static void check_command(const struct spec *v, const struct tomb_spec *t)
{
	assert(!v->script == !t->script && !v->script == !t->interpreter);
	if (v->script)
		assert(str_eq(v->script, t->script) &&
		       str_eq(v->interpreter, t->interpreter));
	check_list(v->argv, v->n_argv, t->argv, t->n_argv);
	check_bytes(v->stdin_text, v->stdin_base64, t->stdin_data, t->stdin_len);
	assert(!v->stdin_stream == !t->stdin_stream);
	assert(v->tty.cols == t->tty.cols && v->tty.rows == t->tty.rows);
	assert(!v->tty.cols || str_eq(v->tty.term, t->tty.term));
	assert(str_eq(v->stdin_blob ? v->stdin_blob : "", t->stdin_blob));
	assert(str_eq(v->input ? v->input : "", t->input_blob));
	assert(v->n_env == t->n_env);
	for (size_t i = 0; i < v->n_env; i++)
		assert(str_eq(v->env[i].name, t->env[i].name) &&
		       str_eq(v->env[i].value, t->env[i].value));
}

static void check_files(const struct spec *v, const struct tomb_spec *t)
{
	assert(v->n_files == t->n_files);
	for (size_t i = 0; i < v->n_files; i++) {
		const struct spec_file *a = &v->files[i];
		const struct tomb_file *b = &t->files[i];

		assert(str_eq(a->path, b->path) && !a->blob == !b->blob[0]);
		assert(b->mode == (a->executable ? 0755u : 0644u));
		assert(!a->blob || str_eq(a->blob, b->blob));
		check_bytes(a->content, a->base64, b->data, b->len);
	}
	check_list(v->artifacts, v->n_artifacts, t->globs, t->n_globs);
}

static void check_deps(const struct deps *a, const struct deps *b)
{
	check_list((const char *const *)a->pypi, a->n_pypi, b->pypi, b->n_pypi);
	check_list((const char *const *)a->npm, a->n_npm, b->npm, b->n_npm);
	check_list((const char *const *)a->cargo, a->n_cargo, b->cargo, b->n_cargo);
	check_list((const char *const *)a->go, a->n_go, b->go, b->n_go);
	assert(!a->npm_lock == !b->npm_lock);
	if (a->npm_lock)
		assert(str_eq(a->npm_lock, b->npm_lock) &&
		       str_eq(a->npm_package, b->npm_package));
}

static void check_stored(const struct spec *v, const struct tomb_spec *t)
{
	check_command(v, t);
	check_files(v, t);
	check_deps(&v->deps, &t->deps);
	assert(v->memory_bytes == t->memory_bytes && v->disk_bytes == t->disk_bytes &&
	       v->output_bytes == t->output_bytes && v->timeout_ms == t->timeout_ms &&
	       v->processes == t->processes && v->cpus == t->cpus);
	assert(v->network_loopback == t->loopback && v->egress == t->egress &&
	       v->explain == t->explain);
	assert(str_eq(v->profile, "read") == t->read_only);
}

/* ---- tomb and sandbox ------------------------------------------------------------------ */

static bool has_variable(const struct sbx_spec *s, const char *name, const char *value)
{
	cleanup_free char *pair = xasprintf("%s=%s", name, value);
	size_t n = strlen(name) + 1, times = 0;
	bool found = false;

	for (char **e = s->env; *e; e++) {
		times += strncmp(*e, pair, n) == 0;
		found = found || str_eq(*e, pair);
	}
	return found && times == 1;
}

/* What of the sandbox's is the job's, and nothing of it is anything else. */
static void check_job(const struct tomb_spec *t, const struct sbx_spec *s)
{
	char *const script[] = {t->interpreter, xstrdup("./" SCRIPT_NAME)};
	size_t n = 0;

	while (s->argv[n])
		n++;
	check_list((const char *const *)(t->script ? script : t->argv),
		   t->script ? 2 : t->n_argv, s->argv, n);
	for (size_t i = 0; i < t->n_env; i++)
		assert(has_variable(s, t->env[i].name, t->env[i].value));
	assert(s->explain == t->explain && s->workspace_ro == t->read_only);
	free(script[1]);
}

static void check_block(const struct tomb_spec *t, enum tomb_spec_use use,
			enum sbx_grade grade)
{
	const struct tomb_spec_place place = {
		.grade = grade, .workspace = "1.1/work", .tools = "/tools", .key = &key};
	cleanup_buf struct buf block;
	struct err err = ERR_INIT;
	bool is_job = use == SPEC_USE_JOB;
	struct sbx_spec s;

	buf_init(&block, (size_t)SPAWN_SPEC_MAX_BYTES + 1);
	if (tomb_spec_block(t, use, &place, &block, &err) < 0 ||
	    sbx_spec_parse_block(block.data, block.len, &s, &err) < 0 ||
	    sbx_spec_base_workspace(&s, "/jobs", &err) < 0)
		abort();
	assert(s.grade == grade && str_eq(s.hostname, SBX_HOSTNAME));
	assert(s.timeout_usec == t->timeout_ms * USEC_PER_MSEC &&
	       s.memory_bytes == t->memory_bytes && s.disk_bytes == t->disk_bytes &&
	       s.output_bytes == t->disk_bytes && s.processes == t->processes &&
	       s.cpus == t->cpus);
	assert((s.net == NET_LOOPBACK) ==
	       (use == SPEC_USE_DEPS_FETCH || (is_job && t->loopback)));
	assert(str_eq(s.workspace, use == SPEC_USE_DEPS_FETCH ? "/jobs/1.1/work/" DEPS_DIR
							      : "/jobs/1.1/work"));
	assert(s.n_mounts == 0 && !s.cwd && !s.cgroup && !s.hostname_chosen && !s.json);
	if (is_job)
		check_job(t, &s);
	else
		assert(!s.workspace_ro && !s.explain && s.argv[0]);
	sbx_spec_done(&s);
}

static void check_blocks(const struct tomb_spec *t)
{
	bool needs_full = deps_any(&t->deps);

	assert(t->memory_bytes >= LIMIT_MEMORY_MIN && t->disk_bytes >= LIMIT_DISK_MIN);
	check_block(t, SPEC_USE_JOB, GRADE_FULL);
	if (!needs_full)
		check_block(t, SPEC_USE_JOB, GRADE_FLOOR);
	if (t->input_blob[0])
		check_block(t, SPEC_USE_UNPACK, GRADE_FULL);
	if (needs_full) {
		check_block(t, SPEC_USE_DEPS_FETCH, GRADE_FULL);
		check_block(t, SPEC_USE_DEPS_INSTALL, GRADE_FULL);
	}
}

/* ---- all of it -------------------------------------------------------------------------- */

static void check_chain(const struct spec *v)
{
	cleanup_buf struct buf stored;
	struct err err = ERR_INIT;
	struct tomb_spec t;

	buf_init(&stored, SPEC_MAX_BYTES);
	if (spec_write(v, &stored, &err) < 0) {
		assert(err.id == ERRID_SPEC_SIZE);
		return;
	}
	if (tomb_spec_parse(stored.data, stored.len, &t, &err) < 0)
		abort();
	check_stored(v, &t);
	check_blocks(&t);
	tomb_spec_done(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct conf conf;
	cleanup_spec struct spec v = {0};
	struct err err = ERR_INIT;
	struct tomb_spec t;

	if (!conf.slots && conf_parse(codex, strlen(codex), &conf, &err) < 0)
		abort();
	if (spec_parse(data, size, &conf, &v, &err) == 0) {
		if (!*v.request_id && spec_set_request_id(&v, "fuzz", &err) < 0)
			abort();
		check_chain(&v);
	}
	if (tomb_spec_parse(data, size, &t, &err) == 0) {
		check_blocks(&t);
		tomb_spec_done(&t);
	}
	return 0;
}
