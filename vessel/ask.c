/* SPDX-License-Identifier: Apache-2.0 */
#include "vessel/ask.h"
#include "common/jsonw.h"
#include "common/str.h"
#include <string.h>

#define REQUEST_DEPTH_MAX 28
#define BLOCKS_DEPTH_MAX 8

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

static int check_keys(const struct json *rq, enum portal_kind d, struct err *err)
{
	const struct json *v;
	const char *name;

	for (size_t i = 0; json_obj_at(rq, i, &name, &v); i++) {
		enum json_kind kind = json_kind_of(v);
		const struct key *k = find_key(d, name);

		if (kind == JSON_NULL)
			continue;
		for (size_t j = 0; !k && j < ARRAY_SIZE(refused_keys); j++)
			if (str_eq(refused_keys[j], name) && !is_harmless(name, rq))
				return refused(err, refused_keys[j]);
		if (!k && !str_eq(name, "store"))
			return err_set_id(err, ERRID_BROKER_REQUEST,
					  "unknown key '%.64s'", name);
		if (k && !(k->kinds & (1u << kind)))
			return err_set_id(err, ERRID_BROKER_REQUEST, "%s: wrong type",
					  k->name);
	}
	return 0;
}

/* ---- what a block of a message names ---- */

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

/* Only what the request itself carries: "data:" URLs. */
static bool is_far_url(const struct json *block, const char *member)
{
	const struct json *o = obj_of(block, member);
	const char *url = o ? str_of(o, "url") : str_of(block, member);

	return *url && !str_starts(url, "data:");
}

static bool is_far_source(const struct json *source)
{
	const char *type = str_of(source, "type");

	return str_eq(type, "url") || str_eq(type, "file");
}

static int check_block(const struct json *block, unsigned depth, struct err *err);

static int check_content(const struct json *holder, const char *member, unsigned depth,
			 struct err *err)
{
	const struct json *list = NULL;

	if (json_get_arr(holder, member, true, SIZE_MAX, &list, NULL) < 0) {
		const struct json *one = obj_of(holder, member);

		return one ? check_block(one, depth + 1, err) : 0;
	}
	for (size_t i = 0; i < json_arr_len(list); i++)
		if (check_block(json_arr_at(list, i), depth + 1, err) < 0)
			return -1;
	return 0;
}

static int check_block(const struct json *block, unsigned depth, struct err *err)
{
	const struct json *file = obj_of(block, "file"),
			  *source = obj_of(block, "source");

	if (depth > BLOCKS_DEPTH_MAX)
		return bad(err, "messages are nested too deep");
	if (json_kind_of(block) != JSON_OBJECT)
		return 0;
	if (is_far_url(block, "image_url") || is_far_url(block, "video_url") ||
	    is_far_url(block, "audio_url"))
		return refused(err, "a URL in a message: send the bytes as a data: URL");
	if ((file && json_has(file, "file_id")) || json_has(block, "file_id"))
		return refused(err, "a file that is stored at the provider");
	if (source && is_far_source(source))
		return refused(err, "a source by URL or file: send its bytes");
	if (check_content(block, "content", depth, err) < 0)
		return -1;
	return source ? check_content(source, "content", depth, err) : 0;
}

static int check_messages(const struct json *rq, struct err *err)
{
	const struct json *messages = NULL;

	if (json_get_arr(rq, "messages", true, SIZE_MAX, &messages, NULL) < 0 ||
	    json_arr_len(messages) == 0)
		return bad(err, "messages: a list that is not empty");
	if (check_content(rq, "messages", 0, err) < 0)
		return -1;
	return check_content(rq, "system", 0, err);
}

/* A tool that the provider carries out itself has a type of its own. */
static bool is_own_tool(enum portal_kind d, const char *type)
{
	static const char *const anthropic[] = {"bash_", "text_editor_", "computer_",
						"memory_"};

	if (d == PORTAL_OPENAI)
		return str_eq(type, "function") || str_eq(type, "custom");
	if (!*type || str_eq(type, "custom"))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(anthropic); i++)
		if (str_starts(type, anthropic[i]))
			return true;
	return false;
}

static int check_tools(const struct json *rq, enum portal_kind d, struct err *err)
{
	const struct json *tools = NULL;

	if (json_get_arr(rq, "tools", true, SIZE_MAX, &tools, NULL) < 0)
		return 0;
	for (size_t i = 0; i < json_arr_len(tools); i++) {
		const struct json *t = json_arr_at(tools, i);

		if (json_kind_of(t) != JSON_OBJECT)
			return bad(err, "tools: a list of objects");
		if (!is_own_tool(d, str_of(t, "type")))
			return refused(err, "a tool that the provider carries out");
	}
	return 0;
}

/* ---- numbers ---- */

static int read_count(const struct json *rq, const char *key, uint64_t max, uint64_t *ret,
		      struct err *err)
{
	if (!json_has(rq, key) || json_is_null(rq, key))
		return 0;
	if (json_get_u64(rq, key, true, 1, max, ret, NULL) < 0)
		return err_set_id(err, ERRID_BROKER_REQUEST, "%s: 1 to %llu", key,
				  (unsigned long long)max);
	return 0;
}

static int read_output(const struct json *rq, struct ask *a, struct err *err)
{
	uint64_t n = 1, old = 0, now = 0;

	if (read_count(rq, "n", ASK_CHOICES_MAX, &n, err) < 0 ||
	    read_count(rq, "max_tokens", ASK_OUTPUT_MAX, &old, err) < 0 ||
	    read_count(rq, "max_completion_tokens", ASK_OUTPUT_MAX, &now, err) < 0)
		return -1;
	uint64_t each = now > old ? now : old;

	a->max_output = n * (each ? each : ASK_OUTPUT_DEFAULT);
	return 0;
}

static int read_stream(const struct json *rq, bool told, struct ask *a, struct err *err)
{
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
	if (options && json_has(options, "include_usage") &&
	    json_get_bool(options, "include_usage", true, &a->wants_usage, NULL) < 0)
		return bad(err, "include_usage: true or false");
	return 0;
}

int ask_read(const struct json *rq, enum portal_kind dialect, bool stream,
	     struct ask *ret, struct err *err)
{
	struct ask a = {.dialect = dialect};

	if (check_keys(rq, dialect, err) < 0 || check_messages(rq, err) < 0 ||
	    check_tools(rq, dialect, err) < 0 || read_output(rq, &a, err) < 0 ||
	    read_stream(rq, stream, &a, err) < 0)
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

int ask_rebuild(const struct ask *a, const struct json *rq, struct json **ret,
		struct err *err)
{
	cleanup_buf struct buf text;
	const struct json *v;
	const char *name;
	struct jsonw w;

	*ret = NULL;
	if (!asks_for_usage(a) || !json_has(rq, "stream_options"))
		return 0;
	/* its place is taken by ours */
	buf_init(&text, (size_t)8 << 20);
	jsonw_init(&w, &text);
	jsonw_obj(&w);
	for (size_t i = 0; json_obj_at(rq, i, &name, &v); i++) {
		if (str_eq(name, "stream_options"))
			continue;
		jsonw_key(&w, name);
		json_write(v, &w);
	}
	jsonw_obj_end(&w);
	if (!buf_ok(&text))
		return bad(err, "the request is too large");
	return json_parse(text.data, text.len, REQUEST_DEPTH_MAX, ret, err);
}

void ask_finish(const struct ask *a, struct buf *body)
{
	static const char more[] = ",\"stream_options\":{\"include_usage\":true}}";

	if (!asks_for_usage(a) || !buf_ok(body) || body->len < 2)
		return;
	/* a request has members: model and messages */
	body->len--;
	buf_add(body, more, sizeof(more) - 1);
}

uint64_t ask_input_estimate(size_t bytes)
{
	return ((uint64_t)bytes + ASK_BYTES_PER_TOKEN - 1) / ASK_BYTES_PER_TOKEN;
}

uint64_t ask_price(const struct conf_model *m, uint64_t input, uint64_t output)
{
	unsigned __int128 sum = (unsigned __int128)m->input_price * input +
				(unsigned __int128)m->output_price * output;

	sum = (sum + CONF_PRICE_PER - 1) / CONF_PRICE_PER;
	return sum > INT64_MAX ? INT64_MAX : (uint64_t)sum;
}

const char *ask_target(enum portal_kind dialect, const char *base_path)
{
	size_t n = strlen(base_path);

	if (dialect == PORTAL_OPENAI)
		return "/chat/completions";
	return n >= 3 && str_eq(base_path + n - 3, "/v1") ? "/messages" : "/v1/messages";
}
