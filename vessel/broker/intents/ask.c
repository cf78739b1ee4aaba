/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See ask.h.
 */
#include "vessel/broker/intents/ask.h"
#include "common/str.h"
#include "vessel/broker/intents/ask_gemini.h"
#include "vessel/broker/intents/ask_responses.h"
#include "vessel/broker/intents/ask_shape.h"
#include <assert.h>
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

static const struct key responses_keys[] = {
	{"model", IS_STRING},
	{"input", IS_STRING | IS_ARRAY},
	{"instructions", IS_STRING},
	{"stream", IS_BOOL},
	{"stream_options", IS_OBJECT},
	{"max_output_tokens", IS_NUMBER},
	{"max_tool_calls", IS_NUMBER},
	{"temperature", IS_NUMBER},
	{"top_p", IS_NUMBER},
	{"top_logprobs", IS_NUMBER},
	{"text", IS_OBJECT},
	{"reasoning", IS_OBJECT},
	{"include", IS_ARRAY},
	{"tools", IS_ARRAY},
	{"tool_choice", IS_STRING | IS_OBJECT},
	{"parallel_tool_calls", IS_BOOL},
	{"truncation", IS_STRING},
	{"service_tier", IS_STRING},
	{"metadata", IS_OBJECT},
	{"user", IS_STRING},
	{"safety_identifier", IS_STRING},
	{"prompt_cache_key", IS_STRING},
	{"prompt_cache_retention", IS_STRING},
	{"context_management", IS_ARRAY},
	/* codex */
	{"client_metadata", IS_OBJECT},
};

static const struct key embeddings_keys[] = {
	{"model", IS_STRING},	   {"input", IS_STRING | IS_ARRAY},
	{"dimensions", IS_NUMBER}, {"encoding_format", IS_STRING},
	{"user", IS_STRING},
};

static const struct key count_keys[] = {
	{"model", IS_STRING},
	{"messages", IS_ARRAY},
	{"system", IS_STRING | IS_ARRAY},
	{"tools", IS_ARRAY},
	{"tool_choice", IS_OBJECT},
	{"thinking", IS_OBJECT},
	{"output_config", IS_OBJECT},
	{"output_format", IS_OBJECT},
	{"cache_control", IS_OBJECT},
	{"context_management", IS_OBJECT},
	{"speed", IS_STRING},
};

static const struct key generate_keys[] = {
	{"contents", IS_ARRAY},	      {"systemInstruction", IS_OBJECT},
	{"tools", IS_ARRAY},	      {"toolConfig", IS_OBJECT},
	{"safetySettings", IS_ARRAY}, {"generationConfig", IS_OBJECT},
	{"serviceTier", IS_STRING},
};

static const struct key count_contents_keys[] = {{"contents", IS_ARRAY}};

#define KEYS_OF(list) list, ARRAY_SIZE(list)
static const struct {
	const struct key *keys;
	size_t n;
} lists[PORTAL_API_MAX_] = {
	[API_CHAT] = {KEYS_OF(openai_keys)},
	[API_RESPONSES] = {KEYS_OF(responses_keys)},
	[API_EMBEDDINGS] = {KEYS_OF(embeddings_keys)},
	[API_MESSAGES] = {KEYS_OF(anthropic_keys)},
	[API_COUNT_TOKENS] = {KEYS_OF(count_keys)},
	[API_GENERATE] = {KEYS_OF(generate_keys)},
	[API_COUNT_CONTENTS] = {KEYS_OF(count_contents_keys)},
};

/* Known, and refused: what makes the provider act for the job elsewhere, or keep something. */
static const struct {
	const char *key, *why;
} refused_keys[] = {
	{"web_search_options", ""},
	{"mcp_servers", ""},
	{"container", ""},
	{"moderation", ""},
	{"store", " (nothing is stored at the provider: leave it out, or false)"},
	{"previous_response_id",
	 " (nothing is stored at the provider: send the conversation as input)"},
	{"conversation",
	 " (nothing is stored at the provider: send the conversation as input)"},
	{"background", " (its answer would be stored at the provider: ask for a stream)"},
	{"prompt", " (it is stored at the provider: send its text)"},
	{"cachedContent",
	 " (it is stored at the provider: send the conversation as contents)"},
};

static int bad(struct err *err, const char *what)
{
	return err_set_id(err, ERRID_BROKER_REQUEST, "%s", what);
}

static const struct key *find_key(enum portal_api api, const char *name)
{
	for (size_t i = 0; i < lists[api].n; i++)
		if (str_eq(lists[api].keys[i].name, name))
			return &lists[api].keys[i];
	return NULL;
}

/* "store": false says what we want anyway, and so does "background". */
static bool is_harmless(const char *name, const struct json *obj)
{
	bool is_wanted = true;

	return (str_eq(name, "store") || str_eq(name, "background")) &&
	       json_get_bool(obj, name, true, &is_wanted, NULL) == 0 && !is_wanted;
}

struct keys_check {
	const struct json *request;
	enum portal_api api;
	struct err *err;
	int result;
};

/* No key of the API; which of the answers is it? */
static int check_other_key(const struct keys_check *c, const char *name)
{
	/* Anthropic's SDK goes on without it when it is told so (docs/PROTOCOL.md) */
	if (c->api == API_MESSAGES && str_eq(name, "thread"))
		return err_set_id(c->err, ERRID_BROKER_THREAD, "thread");
	for (size_t i = 0; i < ARRAY_SIZE(refused_keys); i++) {
		if (!str_eq(refused_keys[i].key, name))
			continue;
		if (is_harmless(name, c->request))
			return 0;
		return err_set_id(c->err, ERRID_BROKER_FEATURE, "%s%s", name,
				  refused_keys[i].why);
	}
	return err_set_id(c->err, ERRID_BROKER_REQUEST, "unknown key '%.64s'", name);
}

static int check_key(const struct keys_check *c, const char *name, const struct json *v)
{
	enum json_kind kind = json_kind_of(v);
	const struct key *k = find_key(c->api, name);

	if (kind == JSON_NULL)
		return 0;
	if (!k)
		return check_other_key(c, name);
	if (!(k->kinds & (1u << kind)))
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

static int check_keys(const struct json *rq, enum portal_api api, struct err *err)
{
	struct keys_check c = {rq, api, err, 0};

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
	static const char *const keys[] = {"include_obfuscation", "include_usage"};
	const size_t n_keys = a->api == API_CHAT ? 2 : 1;
	const struct json *options;
	bool stream = false;

	if (a->dialect == PORTAL_GEMINI) {
		a->stream = told;
		return 0;
	}
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
	if (options && json_check_keys(options, keys, n_keys, NULL) < 0)
		return bad(err, n_keys > 1 ? "stream_options: only include_usage"
					   : "stream_options: only include_obfuscation");
	if (options && json_has(options, "include_usage") &&
	    json_get_bool(options, "include_usage", true, &a->wants_usage, NULL) < 0)
		return bad(err, "include_usage: true or false");
	return 0;
}

/* Texts: a model reads numbers of tokens as well, but the gate does not. */
static int check_embedded(const struct json *rq, struct err *err)
{
	const struct json *list = NULL;
	const char *text = "";

	if (json_get_str(rq, "input", true, SIZE_MAX, &text, NULL) == 0)
		return 0;
	if (json_get_arr(rq, "input", true, SIZE_MAX, &list, NULL) < 0 ||
	    json_arr_len(list) == 0)
		return bad(err, "input: a text, or a list of texts");
	for (size_t i = 0; i < json_arr_len(list); i++)
		if (json_as_str(json_arr_at(list, i), SIZE_MAX, &text, NULL) < 0)
			return bad(err, "input: a text, or a list of texts (numbers of "
					"tokens are refused, since the gate can't read "
					"them)");
	return 0;
}

static int check_shape(const struct json *rq, enum portal_api api, struct err *err)
{
	enum portal_kind d = portal_api_kind(api);

	switch (api) {
	case API_RESPONSES:
		return ask_responses_input(rq, err) < 0 ? -1
							: ask_responses_tools(rq, err);
	case API_EMBEDDINGS:
		return check_embedded(rq, err);
	case API_CHAT:
	case API_MESSAGES:
	case API_COUNT_TOKENS:
		return ask_shape_messages(rq, d, err) < 0 ? -1
							  : ask_shape_tools(rq, d, err);
	case API_GENERATE:
	case API_COUNT_CONTENTS:
		return ask_gemini_shape(rq, err);
	case PORTAL_API_MAX_:
		break;
	}
	return err_set(err, ERR_INTERNAL, "no such API");
}

int ask_name(struct ask *a, const char *model, struct err *err)
{
	size_t len = strlen(model);

	if (len == 0 || len > ASK_MODEL_MAX_BYTES || str_has_control(model, len))
		return bad(err, "model: a name");
	a->model = model;
	return 0;
}

int ask_read(const struct json *rq, enum portal_api api, bool stream, struct ask *ret,
	     struct err *err)
{
	struct ask a = {.api = api, .dialect = portal_api_kind(api), .model = ""};

	if (check_keys(rq, api, err) < 0 || check_shape(rq, api, err) < 0 ||
	    read_stream(rq, stream, &a, err) < 0)
		return -1;
	if (a.dialect != PORTAL_GEMINI && ask_name(&a, str_of(rq, "model"), err) < 0)
		return -1;
	*ret = a;
	return 0;
}

/* ---- writing ---- */

/* A stream of chat completions whose usage we ask for. */
static bool asks_for_usage(const struct ask *a)
{
	return a->api == API_CHAT && a->stream && !a->wants_usage;
}

void ask_strip(const struct ask *a, struct json *rq)
{
	if (a->api == API_GENERATE) {
		json_obj_last(rq, "generationConfig");
		json_obj_del(json_obj_child(rq, "generationConfig"), "maxOutputTokens");
		return;
	}
	json_obj_del(rq, "max_tokens");
	json_obj_del(rq, "max_completion_tokens");
	if (a->api == API_RESPONSES) {
		json_obj_del(rq, "max_output_tokens");
		json_obj_del(rq, "store");
	}
	if (asks_for_usage(a))
		json_obj_del(rq, "stream_options");
}

static void put_members(const struct ask *a, enum portal_cap field, uint64_t cap,
			struct buf *body)
{
	const unsigned long long n = cap;

	switch (a->api) {
	case API_CHAT:
		buf_addf(body, ",\"%s\":%llu", portal_cap_name(field), n);
		break;
	case API_MESSAGES:
		buf_addf(body, ",\"max_tokens\":%llu", n);
		break;
	case API_RESPONSES:
		/* there it is the provider who stores by default */
		buf_addf(body, ",\"max_output_tokens\":%llu,\"store\":false", n);
		break;
	case API_EMBEDDINGS:
	case API_COUNT_TOKENS:
	case API_GENERATE:
	case API_COUNT_CONTENTS:
	case PORTAL_API_MAX_:
		break;
	}
	if (asks_for_usage(a))
		buf_adds(body, ",\"stream_options\":{\"include_usage\":true}");
}

/* Into the last member, which ask_strip() made generationConfig: "...,{}}" or "...,{...}}". */
static void put_in_last(uint64_t cap, struct buf *body)
{
	assert(body->len > 3 && memcmp(body->data + body->len - 2, "}}", 2) == 0);
	body->len -= 2;
	buf_addf(body, "%s\"maxOutputTokens\":%llu}}",
		 body->data[body->len - 1] == '{' ? "" : ",", (unsigned long long)cap);
}

void ask_finish(const struct ask *a, enum portal_cap field, uint64_t cap,
		struct buf *body)
{
	if (!buf_ok(body) || body->len < 2)
		return;
	if (a->api == API_GENERATE) {
		put_in_last(cap, body);
		return;
	}
	/* a request has members: a model and what it is asked */
	body->len--;
	put_members(a, field, cap, body);
	buf_addc(body, '}');
}

int ask_target(const struct ask *a, const char *base_path, char out[ASK_TARGET_SIZE],
	       struct err *err)
{
	/* before the model, and behind it; in a stream */
	static const struct {
		const char *path, *method, *streams;
	} targets[PORTAL_API_MAX_] = {
		[API_CHAT] = {"/chat/completions", "", ""},
		[API_RESPONSES] = {"/responses", "", ""},
		[API_EMBEDDINGS] = {"/embeddings", "", ""},
		[API_MESSAGES] = {"/v1/messages", "", ""},
		[API_COUNT_TOKENS] = {"/v1/messages/count_tokens", "", ""},
		[API_GENERATE] = {"/v1beta/models/", ":generateContent",
				  ":streamGenerateContent?alt=sse"},
		[API_COUNT_CONTENTS] = {"/v1beta/models/", ":countTokens", ""},
	};
	static const char *const versions[PORTAL_KIND_MAX_] = {
		[PORTAL_ANTHROPIC] = "/v1", [PORTAL_GEMINI] = "/v1beta"};
	const char *path = targets[a->api].path, *version = versions[a->dialect];
	size_t n = strlen(base_path), skip = version ? strlen(version) : 0;
	bool has_version = version && n >= skip && str_eq(base_path + n - skip, version);

	if (str_fmt(out, ASK_TARGET_SIZE, "%s%s%s", has_version ? path + skip : path,
		    a->dialect == PORTAL_GEMINI ? a->model : "",
		    a->stream && *targets[a->api].streams ? targets[a->api].streams
							  : targets[a->api].method) < 0)
		return bad(err, "model: its name is too long");
	return 0;
}
