/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of every dialect that are wrong in one place or a few: the reader of the vessel
 * refuses them by a typed error or takes them, and what it takes names nothing that the
 * provider would fetch. The first byte chooses the request; each four bytes behind it are a
 * mutation (place, what), or, when the first byte is 0xff, the rest is the request itself.
 */
#include "tests/support/mutate.h"
#include "vessel/broker/intents/ask.h"
#include "vessel/broker/intents/ask_cost.h"
#include "vessel/broker/intents/fetch.h"
#include "vessel/gate/parts.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUTATIONS_MAX 6

/* Of a model's own words and a tool's arguments the keys say nothing to the provider. */
static bool is_free(const char *key)
{
	static const char *const keys[] = {
		"input",     "parsed",	    "tool_calls",	 "function_call",
		"citations", "annotations", "reasoning_details", "extra_content",
		"caller",    "audio",	    "cache_control",	 "logprobs",
		"action",    "operation",   "parsed_arguments",	 "args",
		"response"};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (str_eq(keys[i], key))
			return true;
	return false;
}

static void check_near(const char *key, const struct json *v);

static void check_member(const char *key, const struct json *v, void *arg)
{
	(void)arg;
	if (!is_free(key))
		check_near(key, v);
}

/* Below a key that has "url" in any spelling stands nothing but data. */
static void check_near(const char *key, const struct json *v)
{
	const char *text = "";

	if (json_kind_of(v) == JSON_STRING && strcasestr(key, "url"))
		assert(json_as_str(v, SIZE_MAX, &text, NULL) == 0 &&
		       str_starts(text, "data:"));
	assert(!(strcasestr(key, "file_id") || strcasestr(key, "fileUri") ||
		 strcasestr(key, "fileData")) ||
	       json_kind_of(v) == JSON_NULL);
	for (size_t i = 0; i < json_arr_len(v); i++)
		check_near(key, json_arr_at(v, i));
	json_obj_each(v, check_member, NULL);
}

/* What is sent has one cap, ours, and no more tokens than are reserved for it. */
static void write_on(const struct ask *a, const struct ask_cost *cost, struct json *rq)
{
	static const struct conf_model model = {.picture = 1};
	cleanup_gate_parts struct gate_parts *parts = gate_parts_new();
	cleanup_json struct json *sent = NULL;
	cleanup_buf struct buf out = {0};
	struct jsonw w;
	uint64_t cap = 0, most;
	bool is_stored = true;
	size_t len;

	ask_strip(a, rq);
	gate_parts_add_json(parts, rq);
	buf_init(&out, MUTATE_TEXT_MAX);
	jsonw_init(&w, &out);
	gate_parts_write_json(parts, 0, rq, &w);
	len = out.len;
	ask_finish(a, CAP_MAX_COMPLETION_TOKENS, 77, &out);
	assert(buf_ok(&out) && out.len <= len + ASK_FINISH_BYTES &&
	       json_parse(out.data, out.len, MUTATE_DEPTH + 1, &sent, NULL) == 0);
	if (a->api == API_GENERATE) {
		const struct json *config = NULL;

		assert(json_get_obj(sent, "generationConfig", true, &config, NULL) == 0 &&
		       json_get_u64(config, "maxOutputTokens", true, 77, 77, &cap,
				    NULL) == 0);
		return;
	}
	assert(json_get_u64(sent,
			    a->api == API_CHAT	      ? "max_completion_tokens"
			    : a->api == API_RESPONSES ? "max_output_tokens"
						      : "max_tokens",
			    true, 77, 77, &cap, NULL) == 0);
	assert(json_has(sent, "max_tokens") + json_has(sent, "max_completion_tokens") +
		       json_has(sent, "max_output_tokens") ==
	       1);
	if (a->api == API_RESPONSES)
		assert(json_get_bool(sent, "store", true, &is_stored, NULL) == 0 &&
		       !is_stored);
	most = ask_input_most(cost, &(struct ask_prices){.context = 0}, &model, out.len);
	assert(most + cost->picture_bytes >= out.len);
}

static void read_as_ask(struct json *rq, enum portal_api api, bool stream)
{
	static const struct conf_portal portal = {.kind = PORTAL_OPENAI};
	static const struct conf_model model = {.picture = 1, .context = 9};
	const struct json *messages = NULL;
	struct err err = ERR_INIT;
	struct ask_prices prices;
	struct ask_cost cost;
	struct ask a;
	uint64_t least, most;

	if (ask_read(rq, api, stream, &a, &err) < 0 ||
	    ask_cost_read(rq, api, &cost, &err) < 0 ||
	    ask_prices_of(&cost, NULL, &portal, &model, &prices, &err) < 0 ||
	    ask_output(&cost, &model, &least, &most, &err) < 0) {
		assert(err.id != ERRID_NONE && err.msg[0]);
		return;
	}
	if (api == API_GENERATE) {
		assert(json_get_arr(rq, "contents", true, SIZE_MAX, &messages, NULL) ==
		       0);
		check_near("contents", messages);
	} else if (api != API_RESPONSES) {
		assert(json_get_arr(rq, "messages", true, SIZE_MAX, &messages, NULL) ==
		       0);
		check_near("messages", messages);
	} else if (json_get_arr(rq, "input", true, SIZE_MAX, &messages, NULL) == 0) {
		check_near("items", messages);
	}
	assert(least >= 1 && least <= most && cost.choices >= 1);
	write_on(&a, &cost, rq);
}

static void read_as_fetch(const struct json *intent)
{
	cleanup_fetch struct fetch f = {.body = NULL};
	enum reason reason = REASON_NONE;
	struct err err = ERR_INIT;

	if (fetch_read(intent, 4096, &f, &reason, &err) < 0)
		assert(err.id != ERRID_NONE);
}

static void read_all(struct json *rq, unsigned dialect)
{
	static const enum portal_api apis[MUTATE_KINDS] = {
		[MUTATE_OPENAI] = API_CHAT,
		[MUTATE_ANTHROPIC] = API_MESSAGES,
		[MUTATE_RESPONSES] = API_RESPONSES,
		[MUTATE_GEMINI] = API_GENERATE,
	};

	for (int stream = 0; stream < 2 && dialect != MUTATE_FETCH; stream++)
		read_as_ask(rq, apis[dialect], stream);
	if (dialect == MUTATE_FETCH)
		read_as_fetch(rq);
}

static struct json *parse(const char *text, size_t len)
{
	struct json *j = NULL;

	return json_parse(text, len, MUTATE_DEPTH, &j, NULL) == 0 ? j : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct mutate_seed *seed;
	struct json *j;

	if (size == 0)
		return 0;
	if (data[0] == 0xff) {
		j = parse((const char *)data + 1, size - 1);
		for (unsigned d = 0; j && d < MUTATE_KINDS; d++)
			read_all(j, d);
		json_free(j);
		return 0;
	}
	seed = &mutate_seeds[data[0] % ARRAY_SIZE(mutate_seeds)];
	j = parse(seed->text, strlen(seed->text));
	assert(j);
	for (size_t at = 1, n = 0; j && at + 4 <= size && n < MUTATIONS_MAX;
	     at += 4, n++) {
		size_t place = (size_t)data[at] << 8 | data[at + 1];
		cleanup_buf struct buf out;
		struct json *next;

		buf_init(&out, MUTATE_TEXT_MAX);
		if (!mutate(j, place % 160, data[at + 2] % MUTATE_OPS, &out) ||
		    !buf_ok(&out))
			continue;
		next = parse(out.data, out.len);
		json_free(j);
		j = next;
	}
	if (j)
		read_all(j, seed->dialect);
	json_free(j);
	return 0;
}
