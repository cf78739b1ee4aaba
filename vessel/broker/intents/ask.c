/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See ask.h.
 */
#include "vessel/broker/intents/ask.h"
#include "common/str.h"
#include "vessel/broker/intents/ask_shape.h"
#include <string.h>

enum {
	IS_BOOL = 1 << JSON_BOOL,
	IS_NUMBER = 1 << JSON_NUMBER,
	IS_STRING = 1 << JSON_STRING,
	IS_ARRAY = 1 << JSON_ARRAY,
	IS_OBJECT = 1 << JSON_OBJECT,
	IS_ANY = IS_BOOL | IS_NUMBER | IS_STRING | IS_ARRAY | IS_OBJECT,
};

struct key {
	const char *name;
	unsigned kinds; /* null is fine everywhere: it says nothing */
};

static const struct key openai_keys[] = {
	{"model", IS_STRING},
	{"messages", IS_ARRAY},
	{"stream", IS_BOOL},
	{"stream_options", IS_OBJECT},
	{"max_tokens", IS_NUMBER},
	{"max_completion_tokens", IS_NUMBER},
	{"n", IS_NUMBER},
	{"temperature", IS_NUMBER},
	{"top_p", IS_NUMBER},
	{"stop", IS_STRING | IS_ARRAY},
	{"seed", IS_NUMBER},
	{"frequency_penalty", IS_NUMBER},
	{"presence_penalty", IS_NUMBER},
	{"logit_bias", IS_OBJECT},
	{"logprobs", IS_BOOL},
	{"top_logprobs", IS_NUMBER},
	{"response_format", IS_OBJECT},
	{"tools", IS_ARRAY},
	{"tool_choice", IS_STRING | IS_OBJECT},
	{"parallel_tool_calls", IS_BOOL},
	{"functions", IS_ARRAY},
	{"function_call", IS_STRING | IS_OBJECT},
	{"modalities", IS_ARRAY},
	{"audio", IS_OBJECT},
	{"prediction", IS_OBJECT},
	{"reasoning_effort", IS_STRING},
	{"verbosity", IS_STRING},
	{"service_tier", IS_STRING},
	{"metadata", IS_OBJECT},
	{"user", IS_STRING},
	{"safety_identifier", IS_STRING},
	{"prompt_cache_key", IS_STRING},
	{"prompt_cache_retention", IS_STRING},
	/* llama.cpp, vLLM, Ollama */
	{"top_k", IS_NUMBER},
	{"min_p", IS_NUMBER},
	{"typical_p", IS_NUMBER},
	{"repeat_penalty", IS_NUMBER},
	{"repetition_penalty", IS_NUMBER},
	{"repeat_last_n", IS_NUMBER},
	{"mirostat", IS_NUMBER},
	{"mirostat_tau", IS_NUMBER},
	{"mirostat_eta", IS_NUMBER},
	{"min_tokens", IS_NUMBER},
	{"ignore_eos", IS_BOOL},
	{"cache_prompt", IS_BOOL},
	{"grammar", IS_STRING},
	{"json_schema", IS_OBJECT},
	{"chat_template_kwargs", IS_OBJECT},
	{"reasoning_format", IS_STRING},
};

static const struct key anthropic_keys[] = {
	{"model", IS_STRING},
	{"messages", IS_ARRAY},
	{"system", IS_STRING | IS_ARRAY},
	{"max_tokens", IS_NUMBER},
	{"stream", IS_BOOL},
	{"temperature", IS_NUMBER},
	{"top_p", IS_NUMBER},
	{"top_k", IS_NUMBER},
	{"stop_sequences", IS_ARRAY},
	{"metadata", IS_OBJECT},
	{"tools", IS_ARRAY},
	{"tool_choice", IS_OBJECT},
	{"thinking", IS_OBJECT},
	{"output_config", IS_OBJECT},
	{"output_format", IS_OBJECT},
	{"cache_control", IS_OBJECT},
	{"context_management", IS_OBJECT},
	{"service_tier", IS_STRING},
	{"speed", IS_STRING},
	{"inference_geo", IS_STRING},
};

/* Known, and refused: what makes the provider act for the job elsewhere. */
static const char *const refused_keys[] = {
	"web_search_options",	"mcp_servers",	"container",  "store",
	"previous_response_id", "conversation", "background", "moderation"};

static int bad(struct err *err, const char *what)
{
	return err_set_id(err, ERRID_BROKER_REQUEST, "%s", what);
}

static int refused(struct err *err, const char *what)
{
	return err_set_id(err, ERRID_BROKER_FEATURE, "%s", what);
}

static const struct key *find_key(enum portal_kind d, const char *name)
{
	const struct key *keys = d == PORTAL_OPENAI ? openai_keys : anthropic_keys;
	size_t n =
		d == PORTAL_OPENAI ? ARRAY_SIZE(openai_keys) : ARRAY_SIZE(anthropic_keys);

	for (size_t i = 0; i < n; i++)
		if (str_eq(keys[i].name, name))
			return &keys[i];
	return NULL;
}

/* "store": false says what we want anyway. */
static bool is_harmless(const char *name, const struct json *obj)
{
	bool store = true;

	return str_eq(name, "store") &&
	       json_get_bool(obj, name, true, &store, NULL) == 0 && !store;
}

struct keys_check {
	const struct json *request;
	enum portal_kind dialect;
	struct err *err;
	int result;
};

static int check_key(const struct keys_check *c, const char *name, const struct json *v)
{
	enum json_kind kind = json_kind_of(v);
	const struct key *k = find_key(c->dialect, name);

	if (kind == JSON_NULL)
		return 0;
	for (size_t j = 0; !k && j < ARRAY_SIZE(refused_keys); j++)
		if (str_eq(refused_keys[j], name) && !is_harmless(name, c->request))
			return refused(c->err, refused_keys[j]);
	if (!k && !str_eq(name, "store"))
		return err_set_id(c->err, ERRID_BROKER_REQUEST, "unknown key '%.64s'",
				  name);
	if (k && !(k->kinds & (1u << kind)))
		return err_set_id(c->err, ERRID_BROKER_REQUEST, "%s: wrong type",
				  k->name);
	return 0;
}

static void on_key(const char *name, const struct json *v, void *arg)
{
	struct keys_check *c = arg;

	if (c->result == 0)
		c->result = check_key(c, name, v);
}

static int check_keys(const struct json *rq, enum portal_kind d, struct err *err)
{
	struct keys_check c = {rq, d, err, 0};

	json_obj_each(rq, on_key, &c);
	return c.result;
}

static const char *str_of(const struct json *obj, const char *key)
{
	const char *s = NULL;

	if (json_get_str(obj, key, true, SIZE_MAX, &s, NULL) < 0)
		return "";
	return s;
}

static const struct json *obj_of(const struct json *obj, const char *key)
{
	const struct json *v = NULL;

	return json_get_obj(obj, key, true, &v, NULL) == 0 ? v : NULL;
}

/* ---- how it is answered ---- */

static int read_stream(const struct json *rq, bool told, struct ask *a, struct err *err)
{
	static const char *const keys[] = {"include_usage", "include_obfuscation"};
	const struct json *options;
	bool stream = false;

	if (!json_is_null(rq, "stream") &&
	    json_get_bool(rq, "stream", false, &stream, NULL) < 0)
		return bad(err, "stream: true or false");
	if (stream != told)
		return bad(err, "stream: not what the tomb says");
	a->stream = stream;
	options = obj_of(rq, "stream_options");
	if (options && !stream)
		return bad(err, "stream_options: only with stream");
	/* usage that comes all the time is none of the whole */
	if (options && json_check_keys(options, keys, ARRAY_SIZE(keys), NULL) < 0)
		return bad(err, "stream_options: only include_usage");
	if (options && json_has(options, "include_usage") &&
	    json_get_bool(options, "include_usage", true, &a->wants_usage, NULL) < 0)
		return bad(err, "include_usage: true or false");
	return 0;
}

int ask_read(const struct json *rq, enum portal_kind dialect, bool stream,
	     struct ask *ret, struct err *err)
{
	struct ask a = {.dialect = dialect};

	if (check_keys(rq, dialect, err) < 0 ||
	    ask_shape_messages(rq, dialect, err) < 0 ||
	    ask_shape_tools(rq, dialect, err) < 0 || read_stream(rq, stream, &a, err) < 0)
		return -1;
	a.model = str_of(rq, "model");
	if (!*a.model || strlen(a.model) > ASK_MODEL_MAX_BYTES ||
	    str_has_control(a.model, strlen(a.model)))
		return bad(err, "model: a name");
	*ret = a;
	return 0;
}

/* ---- writing ---- */

/* A stream of OpenAI's whose usage we ask for. */
static bool asks_for_usage(const struct ask *a)
{
	return a->dialect == PORTAL_OPENAI && a->stream && !a->wants_usage;
}

void ask_strip(const struct ask *a, struct json *rq)
{
	json_obj_del(rq, "max_tokens");
	json_obj_del(rq, "max_completion_tokens");
	if (asks_for_usage(a))
		json_obj_del(rq, "stream_options");
}

void ask_finish(const struct ask *a, enum portal_cap field, uint64_t cap,
		struct buf *body)
{
	const char *name =
		portal_cap_name(a->dialect == PORTAL_OPENAI ? field : CAP_MAX_TOKENS);

	if (!buf_ok(body) || body->len < 2)
		return;
	/* a request has members: model and messages */
	body->len--;
	buf_addf(body, ",\"%s\":%llu", name, (unsigned long long)cap);
	if (asks_for_usage(a))
		buf_adds(body, ",\"stream_options\":{\"include_usage\":true}");
	buf_addc(body, '}');
}

const char *ask_target(enum portal_kind dialect, const char *base_path)
{
	size_t n = strlen(base_path);

	if (dialect == PORTAL_OPENAI)
		return "/chat/completions";
	return n >= 3 && str_eq(base_path + n - 3, "/v1") ? "/messages" : "/v1/messages";
}
