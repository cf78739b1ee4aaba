/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See job.h.
 */
#include "vessel/api/job.h"
#include "common/json/json.h"
#include "common/proto/denied.h"
#include "common/str.h"
#include "common/text/hazard.h"
#include "vessel/api/api.h"
#include "vessel/broker/budget.h"
#include <string.h>

static void kstr_or_null(struct jsonw *w, const char *key, const char *s)
{
	jsonw_kstr(w, key, s && *s ? s : NULL);
}

/* What was not UTF-8 has become three bytes for each. */
#define DENIED_TEXT_MAX_BYTES (3 * sizeof(((struct spawn_denied *)0)->object))

static bool denial_is_valid(const struct json *d)
{
	static const char *const keys[] = {"act",   "wall",  "call",  "object",
					   "errno", "count", "grant", "withheld"};
	const char *act, *wall, *call, *sys, *text;
	uint32_t number;
	uint64_t count;

	return json_as_obj(d, NULL) == 0 &&
	       json_check_keys(d, keys, ARRAY_SIZE(keys), NULL) == 0 &&
	       json_get_str(d, "act", true, 32, &act, NULL) == 0 &&
	       json_get_str(d, "wall", true, 32, &wall, NULL) == 0 &&
	       json_get_str(d, "call", true, 64, &call, NULL) == 0 &&
	       json_get_str(d, "errno", true, 32, &sys, NULL) == 0 &&
	       json_get_str(d, "object", true, DENIED_TEXT_MAX_BYTES, &text, NULL) == 0 &&
	       json_get_str(d, "grant", true, DENIED_TEXT_MAX_BYTES, &text, NULL) == 0 &&
	       json_get_str(d, "withheld", false, DENIED_TEXT_MAX_BYTES, &text, NULL) ==
		       0 &&
	       json_get_u64(d, "count", true, 1, UINT32_MAX, &count, NULL) == 0 &&
	       spawn_act_from_name(act, &number) && spawn_wall_from_name(wall, &number);
}

/* An older tomb's result has none. */
static bool denials_are_valid(const struct json *result)
{
	const struct json *arr = NULL;

	if (!json_has(result, "denials"))
		return true;
	if (json_get_arr(result, "denials", true, SPAWN_DENIED_MAX, &arr, NULL) < 0)
		return false;
	for (size_t i = 0; i < json_arr_len(arr); i++)
		if (!denial_is_valid(json_arr_at(arr, i)))
			return false;
	return true;
}

static void write_unacceptable(struct jsonw *w, const char *why)
{
	jsonw_obj(w);
	jsonw_ku64(w, "v", 0);
	jsonw_kstr(w, "detail", why);
	jsonw_obj_end(w);
}

static void write_result(struct jsonw *w, const struct queue_job *j)
{
	cleanup_json struct json *result = NULL;

	jsonw_key(w, "result");
	if (!j->result) {
		jsonw_null(w);
	} else if (job_result_parse(j, &result, NULL) < 0) {
		write_unacceptable(w, "the tomb's result was not acceptable JSON");
	} else if (!denials_are_valid(result)) {
		write_unacceptable(w, "the denials in the tomb's result were none");
	} else {
		json_write(result, w);
	}
}

/* One that came with an archive may be anything. */
static void write_spec(struct jsonw *w, const struct queue_job *j)
{
	cleanup_json struct json *spec = NULL;
	struct err ignored = ERR_INIT;

	jsonw_key(w, "spec");
	if (j->spec &&
	    json_parse(j->spec, j->spec_len, JSON_DEPTH_DEFAULT, &spec, &ignored) == 0)
		jsonw_raw(w, j->spec, j->spec_len);
	else
		jsonw_null(w);
}

static void write_parts(struct jsonw *w, const struct queue_job *j, unsigned parts)
{
	jsonw_ki64(w, "id", j->id);
	kstr_or_null(w, "request_id", j->request_id);
	jsonw_kstr(w, "state", job_state_name(j->state));
	kstr_or_null(w, "class",
		     j->fail_class == FAIL_NONE ? NULL : fail_class_name(j->fail_class));
	kstr_or_null(w, "phase", j->phase);
	jsonw_ki64(w, "attempts", j->attempts);
	jsonw_ki64(w, "lost", j->lost);
	kstr_or_null(w, "created_at", j->created_at);
	kstr_or_null(w, "started_at", j->started_at);
	kstr_or_null(w, "finished_at", j->finished_at);
	kstr_or_null(w, "tomb", j->owner);
	kstr_or_null(w, "taint", j->taint);
	if (parts & JOB_SPEC)
		write_spec(w, j);
	if (parts & JOB_RESULT)
		write_result(w, j);
}

void job_write(struct jsonw *w, const struct queue_job *j, unsigned parts)
{
	jsonw_obj(w);
	write_parts(w, j, parts);
	jsonw_obj_end(w);
}

void job_spent_take(struct job_spent *s, const struct budget_row *rows, size_t n)
{
	s->is_counted = true;
	s->has_book = n > 0;
	if (n > 0)
		s->amounts = rows[0].spent;
}

void job_write_spent(struct jsonw *w, const struct queue_job *j, unsigned parts,
		     const struct job_spent *spent)
{
	jsonw_obj(w);
	write_parts(w, j, parts);
	if (spent->has_book) {
		api_put_amounts(w, "spent", &spent->amounts);
	} else {
		jsonw_key(w, "spent");
		jsonw_null(w);
	}
	jsonw_obj_end(w);
}

static bool has_word(const struct queue_job *j, const char *word)
{
	return memmem(j->spec, j->spec_len, word, strlen(word)) != NULL;
}

bool job_may_ask(const struct queue_job *j)
{
	cleanup_json struct json *spec = NULL;
	enum egress_mode mode = EGRESS_NONE;
	const char *egress = NULL;

	/* most may not, and need not be parsed for that */
	if (!j->spec || (!has_word(j, egress_mode_name(EGRESS_BROKERED)) &&
			 !has_word(j, egress_mode_name(EGRESS_REGISTRY))))
		return false;
	return json_parse(j->spec, j->spec_len, JSON_DEPTH_DEFAULT, &spec, NULL) == 0 &&
	       json_get_str(spec, "egress", false, 32, &egress, NULL) == 0 && egress &&
	       egress_mode_from_name(egress, &mode) && mode != EGRESS_NONE;
}

int job_result_parse(const struct queue_job *j, struct json **ret, struct err *err)
{
	struct err why = ERR_INIT;

	if (!j->result)
		return err_set_id(err, ERRID_STORE_ARTIFACT, "no result yet");
	if (json_parse(j->result, j->result_len, JSON_DEPTH_DEFAULT, ret, &why) < 0)
		return err_set_id(err, ERRID_STORE_ARTIFACT,
				  "the tomb's result was not acceptable JSON: %.200s",
				  why.msg);
	return 0;
}

static const struct json *artifact_list(const struct json *result)
{
	const struct json *arr = NULL;

	if (json_get_arr(result, "artifacts", true, ARTIFACTS_MAX, &arr, NULL) < 0)
		return NULL;
	return arr;
}

size_t job_artifacts(const struct json *result)
{
	const struct json *arr = artifact_list(result);

	return arr ? json_arr_len(arr) : 0;
}

int job_artifact_at(const struct json *result, size_t i, struct job_artifact *ret,
		    struct err *err)
{
	const struct json *arr = artifact_list(result), *a;
	struct job_artifact art = {.klass = "file"};
	uint8_t raw[SHA256_SIZE];

	if (!arr || i >= json_arr_len(arr))
		return err_set_id(err, ERRID_STORE_ARTIFACT, "artifact %zu", i);
	a = json_arr_at(arr, i);
	if (json_as_obj(a, NULL) < 0 ||
	    json_get_str(a, "path", true, 4095, &art.path, NULL) < 0 ||
	    json_get_str(a, "sha256", true, SHA256_HEX_SIZE - 1, &art.sha256, NULL) < 0 ||
	    json_get_str(a, "class", false, 64, &art.klass, NULL) < 0 ||
	    json_get_u64(a, "size", true, 0, BLOB_MAX_BYTES, &art.size, NULL) < 0 ||
	    path_check_relative(art.path, strlen(art.path), NULL) < 0 ||
	    !hazard_is_plain(art.path) || hazard_of(art.path) ||
	    sha256_hex_parse(art.sha256, raw, NULL) < 0)
		return err_set_id(err, ERRID_STORE_ARTIFACT,
				  "artifact %zu of the tomb's result is not acceptable",
				  i);
	*ret = art;
	return 0;
}
