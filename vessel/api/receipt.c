/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See receipt.h. The result is a tomb's word: what of it is not of its form is left out, and however
 * long it is, the rest fits.
 */
#include "vessel/api/receipt.h"
#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/json/json.h"
#include "common/proto.h"
#include "common/proto/job_spec.h"
#include "common/proto/spawn_proto.h"
#include "common/str.h"
#include "vessel/api/api.h"
#include <string.h>

#define WALL_MAX_BYTES 32
#define SIGNAL_MAX_BYTES 32

static void write_sum(struct jsonw *w, const char *key, const void *data, size_t len)
{
	uint8_t sum[SHA256_SIZE];
	char hex[SHA256_HEX_SIZE];

	jsonw_key(w, key);
	if (!data) {
		jsonw_null(w);
		return;
	}
	sha256_of(data, len, sum);
	hex_encode(sum, sizeof(sum), hex);
	jsonw_obj(w);
	jsonw_ku64(w, "bytes", len);
	jsonw_kstr(w, "sha256", hex);
	jsonw_obj_end(w);
}

/* A list as sha256sum(1) writes it: its digest and what is in it. */
struct list {
	struct sha256 *sum;
	uint64_t n, bytes;
};

static void list_add(struct list *l, const char *sha256, const char *name)
{
	sha256_add(l->sum, sha256, strlen(sha256));
	sha256_add(l->sum, "  ", 2);
	sha256_add(l->sum, name, strlen(name));
	sha256_add(l->sum, "\n", 1);
	l->n++;
}

static void list_write(struct list *l, struct jsonw *w, const char *key, bool has_bytes)
{
	char hex[SHA256_HEX_SIZE];

	sha256_hex(l->sum, hex);
	sha256_free(l->sum);
	jsonw_key(w, key);
	jsonw_obj(w);
	jsonw_ku64(w, "count", l->n);
	if (has_bytes)
		jsonw_ku64(w, "bytes", l->bytes);
	jsonw_kstr(w, "sha256", hex);
	jsonw_obj_end(w);
}

static const char *text_of(const struct json *o, const char *key, size_t max)
{
	const char *s = NULL;

	return json_get_str(o, key, true, max, &s, NULL) == 0 && *s ? s : NULL;
}

/* Blobs; what stands in the spec itself has the spec's digest. */
static void write_inputs(struct jsonw *w, const struct queue_job *j)
{
	cleanup_json struct json *spec = NULL;
	struct list l = {.sum = sha256_new()};
	const struct json *files = NULL;
	const char *sha;

	if (j->spec &&
	    json_parse(j->spec, j->spec_len, JSON_DEPTH_DEFAULT, &spec, NULL) == 0) {
		if ((sha = text_of(spec, "input", SHA256_HEX_SIZE - 1)))
			list_add(&l, sha, "input");
		if ((sha = text_of(spec, "stdin_blob", SHA256_HEX_SIZE - 1)))
			list_add(&l, sha, "stdin");
		if (json_get_arr(spec, "files", true, FILES_MAX, &files, NULL) < 0)
			files = NULL;
	}
	for (size_t i = 0; files && i < json_arr_len(files); i++) {
		const struct json *f = json_arr_at(files, i);
		const char *path = text_of(f, "path", 4095);

		if (path && (sha = text_of(f, "blob", SHA256_HEX_SIZE - 1)))
			list_add(&l, sha, path);
	}
	list_write(&l, w, "inputs", false);
}

/* One that is not acceptable has no list to be compared with. */
static void write_artifacts(struct jsonw *w, const struct json *result)
{
	struct list l = {.sum = sha256_new()};
	size_t n = result ? job_artifacts(result) : 0;

	for (size_t i = 0; i < n; i++) {
		struct job_artifact a;

		if (job_artifact_at(result, i, &a, NULL) < 0)
			continue;
		list_add(&l, a.sha256, a.path);
		l.bytes += a.size;
	}
	list_write(&l, w, "artifacts", true);
}

/* Its limits, and what each layer is made of, have the digest of the result. */
static void write_walls(struct jsonw *w, const struct json *result)
{
	const struct json *walls = NULL, *layers = NULL;
	const char *grade, *layer;
	uint64_t abi = 0;

	jsonw_key(w, "walls");
	if (!result || json_get_obj(result, "walls", true, &walls, NULL) < 0 ||
	    !(grade = text_of(walls, "grade", WALL_MAX_BYTES)) ||
	    json_get_u64(walls, "landlock_abi", true, 0, UINT32_MAX, &abi, NULL) < 0 ||
	    json_get_arr(walls, "layers", true, SPAWN_LAYERS_MAX, &layers, NULL) < 0) {
		jsonw_null(w); /* nobody told of any */
		return;
	}
	jsonw_obj(w);
	jsonw_kstr(w, "grade", grade);
	jsonw_ku64(w, "landlock_abi", abi);
	jsonw_key(w, "layers");
	jsonw_arr(w);
	for (size_t i = 0; i < json_arr_len(layers); i++)
		if (json_as_str(json_arr_at(layers, i), WALL_MAX_BYTES, &layer, NULL) ==
		    0)
			jsonw_str(w, layer);
	jsonw_arr_end(w);
	jsonw_obj_end(w);
}

static void write_end(struct jsonw *w, const struct json *result)
{
	const struct json *denials = NULL;
	int64_t code = 0;

	jsonw_key(w, "exit_code");
	if (result && json_get_i64(result, "exit_code", true, INT32_MIN, INT32_MAX, &code,
				   NULL) == 0)
		jsonw_i64(w, code);
	else
		jsonw_null(w);
	jsonw_kstr(w, "signal", text_of(result, "signal", SIGNAL_MAX_BYTES));
	if (result &&
	    json_get_arr(result, "denials", true, JSON_MEMBERS_MAX, &denials, NULL) < 0)
		denials = NULL;
	jsonw_ku64(w, "denials", denials ? json_arr_len(denials) : 0);
}

static void write_output(struct jsonw *w, const struct receipt_output *o,
			 const struct json *result, enum output_stream s)
{
	const char *name = output_stream_name(s);
	bool is_cut = false, is_told;
	char key[32];

	is_told = str_fmt(key, sizeof(key), "%s_truncated", name) == 0 && result &&
		  json_get_bool(result, key, true, &is_cut, NULL) == 0;
	jsonw_key(w, name);
	jsonw_obj(w);
	jsonw_ku64(w, "bytes", o->bytes[s]);
	jsonw_kstr(w, "sha256", o->sha256[s]);
	jsonw_key(w, "truncated");
	if (is_told)
		jsonw_bool(w, is_cut);
	else
		jsonw_null(w);
	jsonw_ku64(w, "damaged_bytes", o->damaged[s]);
	jsonw_obj_end(w);
}

/* What its broker let through and refused, and what that took. A job without a broker has neither. */
static void write_broker(struct jsonw *w, const struct queue_job *j,
			 const struct job_spent *spent)
{
	const struct budget_amounts *a = &spent->amounts;

	if (!spent->has_book && !job_may_ask(j)) {
		jsonw_kstr(w, "spent", NULL);
		jsonw_kstr(w, "decisions", NULL);
		return;
	}
	api_put_amounts(w, "spent", a);
	jsonw_key(w, "decisions");
	jsonw_obj(w);
	jsonw_ki64(w, "allowed", a->n[BUDGET_REQUESTS] + a->n[BUDGET_PACKAGES]);
	jsonw_ki64(w, "denied", a->n[BUDGET_DENIALS]);
	jsonw_obj_end(w);
}

static const char *or_null(const char *s)
{
	return s && *s ? s : NULL;
}

bool receipt_write(const struct queue_job *j, int64_t epoch,
		   const struct receipt_output *output, const struct job_spent *spent,
		   struct buf *out)
{
	cleanup_json struct json *result = NULL;
	struct jsonw w;

	if (!job_state_is_final(j->state))
		return false;
	if (job_result_parse(j, &result, NULL) < 0)
		result = NULL;
	jsonw_init(&w, out);
	jsonw_obj(&w);
	jsonw_ku64(&w, "v", 1);
	jsonw_ki64(&w, "job", j->id);
	jsonw_kstr(&w, "request_id", or_null(j->request_id));
	jsonw_ki64(&w, "epoch", epoch);
	jsonw_kstr(&w, "state", job_state_name(j->state));
	jsonw_kstr(&w, "class",
		   j->fail_class == FAIL_NONE ? NULL : fail_class_name(j->fail_class));
	jsonw_kbool(&w, "contained", j->taint && *j->taint);
	jsonw_ki64(&w, "attempts", j->attempts);
	jsonw_kstr(&w, "created_at", or_null(j->created_at));
	jsonw_kstr(&w, "started_at", or_null(j->started_at));
	jsonw_kstr(&w, "finished_at", or_null(j->finished_at));
	write_sum(&w, "spec", j->spec, j->spec_len);
	write_inputs(&w, j);
	write_sum(&w, "result", j->result, j->result_len);
	write_end(&w, result);
	for (unsigned s = 0; s < OUTPUT_STREAM_MAX_; s++)
		write_output(&w, output, result, (enum output_stream)s);
	write_artifacts(&w, result);
	write_walls(&w, result);
	write_broker(&w, j, spent);
	jsonw_obj_end(&w);
	return buf_ok(out);
}
