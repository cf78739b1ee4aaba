/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See ask_shape.h; the tables of what messages and tools may be.
 */
#include "vessel/broker/intents/ask_shape.h"
#include "common/str.h"
#include "vessel/broker/intents/ask_keys.h"
#include <string.h>

/* ---- what an OpenAI message may be ---- */

static const struct ask_key image_url_keys[] = {
	{"url", SHAPE_STRING, LOCAL, NULL},
	{"detail", SHAPE_STRING, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key media_url_keys[] = {{"url", SHAPE_STRING, LOCAL, NULL},
						ASK_KEYS_END};
static const struct ask_key input_audio_keys[] = {
	{"data", SHAPE_STRING, BYTES, NULL},
	{"format", SHAPE_STRING, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key file_keys[] = {
	{"file_data", SHAPE_STRING, BYTES, NULL},
	{"filename", SHAPE_STRING, PLAIN, NULL},
	{"file_id", SHAPE_ANY, FAR, NULL},
	ASK_KEYS_END,
};

#define CACHE {"cache_control", SHAPE_OBJECT, PLAIN, NULL}

static const struct ask_key text_keys[] = {
	ASK_KEY_TYPE,
	CACHE,
	{"text", SHAPE_STRING, PLAIN, NULL},
	{"annotations", SHAPE_ARRAY, PLAIN, NULL},
	/* @openai/agents has the rest of the answer beside its text */
	{"role", SHAPE_STRING, PLAIN, NULL},
	{"refusal", SHAPE_STRING, PLAIN, NULL},
	{"tool_calls", SHAPE_ARRAY, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key refusal_keys[] = {
	ASK_KEY_TYPE,
	{"refusal", SHAPE_STRING, PLAIN, NULL},
	ASK_KEYS_END,
};
/* llama.cpp and vLLM take a string in the place of the object. */
static const struct ask_key image_part_keys[] = {
	ASK_KEY_TYPE,
	CACHE,
	{"image_url", SHAPE_OBJECT | SHAPE_STRING, SHAPED, image_url_keys},
	ASK_KEYS_END,
};
static const struct ask_key video_part_keys[] = {
	ASK_KEY_TYPE,
	{"video_url", SHAPE_OBJECT | SHAPE_STRING, SHAPED, media_url_keys},
	ASK_KEYS_END,
};
static const struct ask_key audio_url_part_keys[] = {
	ASK_KEY_TYPE,
	{"audio_url", SHAPE_OBJECT | SHAPE_STRING, SHAPED, media_url_keys},
	ASK_KEYS_END,
};
static const struct ask_key audio_part_keys[] = {
	ASK_KEY_TYPE,
	{"input_audio", SHAPE_OBJECT, SHAPED, input_audio_keys},
	ASK_KEYS_END,
};
static const struct ask_key file_part_keys[] = {
	ASK_KEY_TYPE,
	CACHE,
	{"file", SHAPE_OBJECT, SHAPED, file_keys},
	ASK_KEYS_END,
};

static const struct ask_shape openai_parts[] = {
	{"text", text_keys},
	{"refusal", refusal_keys},
	{"image_url", image_part_keys},
	{"video_url", video_part_keys},
	{"audio_url", audio_url_part_keys},
	{"input_audio", audio_part_keys},
	{"file", file_part_keys},
	{NULL, NULL},
};

/* What a client has from an answer it sends again as it was: `parsed` (the SDK's own),
 * `reasoning*` (vLLM, llama.cpp, OpenRouter), `extra_content` (Gemini's signatures). */
static const struct ask_key openai_message_keys[] = {
	{"role", SHAPE_STRING, PLAIN, NULL},
	{"content", SHAPE_STRING | SHAPE_ARRAY, BLOCKS, NULL},
	{"name", SHAPE_STRING, PLAIN, NULL},
	{"refusal", SHAPE_STRING, PLAIN, NULL},
	{"tool_calls", SHAPE_ARRAY, PLAIN, NULL},
	{"tool_call_id", SHAPE_STRING, PLAIN, NULL},
	{"function_call", SHAPE_OBJECT, PLAIN, NULL},
	{"audio", SHAPE_OBJECT, PLAIN, NULL},
	{"annotations", SHAPE_ARRAY, PLAIN, NULL},
	{"parsed", SHAPE_ANY, PLAIN, NULL},
	{"reasoning", SHAPE_STRING, PLAIN, NULL},
	{"reasoning_content", SHAPE_STRING, PLAIN, NULL},
	{"reasoning_details", SHAPE_ARRAY, PLAIN, NULL},
	{"extra_content", SHAPE_OBJECT, PLAIN, NULL},
	{"prefix", SHAPE_BOOL, PLAIN, NULL},
	CACHE,
	ASK_KEYS_END,
};
static const struct ask_key prediction_keys[] = {
	ASK_KEY_TYPE,
	{"content", SHAPE_STRING | SHAPE_ARRAY, BLOCKS, NULL},
	ASK_KEYS_END,
};

/* ---- what an Anthropic message may be ---- */

static const struct ask_key base64_source_keys[] = {
	ASK_KEY_TYPE,
	{"media_type", SHAPE_STRING, PLAIN, NULL},
	{"data", SHAPE_STRING, BYTES, NULL},
	ASK_KEYS_END,
};
static const struct ask_key text_source_keys[] = {
	ASK_KEY_TYPE,
	{"media_type", SHAPE_STRING, PLAIN, NULL},
	{"data", SHAPE_STRING, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key content_source_keys[] = {
	ASK_KEY_TYPE,
	{"content", SHAPE_STRING | SHAPE_ARRAY, BLOCKS, NULL},
	ASK_KEYS_END,
};
static const struct ask_shape sources[] = {
	{"base64", base64_source_keys},
	{"text", text_source_keys},
	{"content", content_source_keys},
	{NULL, NULL},
};

static const struct ask_key text_block_keys[] = {
	ASK_KEY_TYPE,
	CACHE,
	{"text", SHAPE_STRING, PLAIN, NULL},
	/* of an earlier answer: where it had its words from */
	{"citations", SHAPE_ARRAY, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key image_block_keys[] = {
	ASK_KEY_TYPE,
	CACHE,
	{"source", SHAPE_OBJECT, SOURCE, NULL},
	ASK_KEYS_END,
};
static const struct ask_key document_keys[] = {
	ASK_KEY_TYPE,
	CACHE,
	{"source", SHAPE_OBJECT, SOURCE, NULL},
	{"title", SHAPE_STRING, PLAIN, NULL},
	{"context", SHAPE_STRING, PLAIN, NULL},
	{"citations", SHAPE_OBJECT, PLAIN, NULL},
	ASK_KEYS_END,
};
/* Its source is a word for the reader, which nobody opens. */
static const struct ask_key search_result_keys[] = {
	ASK_KEY_TYPE,
	CACHE,
	{"source", SHAPE_STRING, PLAIN, NULL},
	{"title", SHAPE_STRING, PLAIN, NULL},
	{"content", SHAPE_ARRAY, BLOCKS, NULL},
	{"citations", SHAPE_OBJECT, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key thinking_keys[] = {
	ASK_KEY_TYPE,
	{"thinking", SHAPE_STRING, PLAIN, NULL},
	{"signature", SHAPE_STRING, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key redacted_keys[] = {
	ASK_KEY_TYPE,
	{"data", SHAPE_STRING, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key tool_use_keys[] = {
	ASK_KEY_TYPE,
	CACHE,
	{"id", SHAPE_STRING, PLAIN, NULL},
	{"name", SHAPE_STRING, PLAIN, NULL},
	{"input", SHAPE_ANY, PLAIN, NULL},
	{"caller", SHAPE_OBJECT, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key tool_result_keys[] = {
	ASK_KEY_TYPE,
	CACHE,
	{"tool_use_id", SHAPE_STRING, PLAIN, NULL},
	{"content", SHAPE_STRING | SHAPE_ARRAY, BLOCKS, NULL},
	{"is_error", SHAPE_BOOL, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key tool_reference_keys[] = {
	ASK_KEY_TYPE,
	CACHE,
	{"tool_name", SHAPE_STRING, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key compaction_keys[] = {
	ASK_KEY_TYPE,
	CACHE,
	{"content", SHAPE_STRING, PLAIN, NULL},
	{"encrypted_content", SHAPE_STRING, PLAIN, NULL},
	ASK_KEYS_END,
};

static const struct ask_shape anthropic_blocks[] = {
	{"text", text_block_keys},
	{"image", image_block_keys},
	{"document", document_keys},
	{"search_result", search_result_keys},
	{"thinking", thinking_keys},
	{"redacted_thinking", redacted_keys},
	{"tool_use", tool_use_keys},
	{"tool_result", tool_result_keys},
	{"tool_reference", tool_reference_keys},
	{"compaction", compaction_keys},
	{NULL, NULL},
};

static const struct ask_key anthropic_message_keys[] = {
	{"role", SHAPE_STRING, PLAIN, NULL},
	{"content", SHAPE_STRING | SHAPE_ARRAY, BLOCKS, NULL},
	ASK_KEYS_END,
};

/* ---- tools that the job carries out ---- */

static const struct ask_key function_keys[] = {
	{"name", SHAPE_STRING, PLAIN, NULL},
	{"description", SHAPE_STRING, PLAIN, NULL},
	{"parameters", SHAPE_OBJECT, PLAIN, NULL},
	{"strict", SHAPE_BOOL, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key custom_keys[] = {
	{"name", SHAPE_STRING, PLAIN, NULL},
	{"description", SHAPE_STRING, PLAIN, NULL},
	{"format", SHAPE_OBJECT, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key openai_tool_keys[] = {
	ASK_KEY_TYPE,
	CACHE,
	{"function", SHAPE_OBJECT, SHAPED, function_keys},
	{"custom", SHAPE_OBJECT, SHAPED, custom_keys},
	ASK_KEYS_END,
};
static const struct ask_key anthropic_tool_keys[] = {
	ASK_KEY_TYPE,
	CACHE,
	{"name", SHAPE_STRING, PLAIN, NULL},
	{"description", SHAPE_STRING, PLAIN, NULL},
	{"input_schema", SHAPE_OBJECT, PLAIN, NULL},
	{"input_examples", SHAPE_ARRAY, PLAIN, NULL},
	{"strict", SHAPE_BOOL, PLAIN, NULL},
	{"defer_loading", SHAPE_BOOL, PLAIN, NULL},
	{"eager_input_streaming", SHAPE_BOOL, PLAIN, NULL},
	{"allowed_callers", SHAPE_ARRAY, PLAIN, NULL},
	{"max_characters", SHAPE_NUMBER, PLAIN, NULL},
	{"display_width_px", SHAPE_NUMBER, PLAIN, NULL},
	{"display_height_px", SHAPE_NUMBER, PLAIN, NULL},
	{"display_number", SHAPE_NUMBER, PLAIN, NULL},
	{"enable_zoom", SHAPE_BOOL, PLAIN, NULL},
	ASK_KEYS_END,
};

/* ---- the request's members ---- */

static struct ask_check check_of(enum portal_kind d, const char *place)
{
	return (struct ask_check){
		.blocks = d == PORTAL_OPENAI ? openai_parts : anthropic_blocks,
		.sources = sources,
		.place = place,
	};
}

static int check_calls(const struct json *rq, struct err *err)
{
	const struct json *messages = NULL, *calls;

	if (json_get_arr(rq, "messages", true, SIZE_MAX, &messages, err) < 0)
		return -1;
	for (size_t i = 0; i < json_arr_len(messages); i++) {
		calls = NULL;
		if (json_get_arr(json_arr_at(messages, i), "tool_calls", true, SIZE_MAX,
				 &calls, NULL) < 0)
			continue;
		for (size_t k = 0; k < json_arr_len(calls); k++)
			if (json_kind_of(json_arr_at(calls, k)) != JSON_OBJECT)
				return err_set_id(err, ERRID_BROKER_REQUEST,
						  "messages, entry %zu: tool_calls: a "
						  "list of objects",
						  i + 1);
	}
	return 0;
}

int ask_shape_messages(const struct json *rq, enum portal_kind d, struct err *err)
{
	static const struct ask_key system_key = {"system", SHAPE_STRING | SHAPE_ARRAY,
						  BLOCKS, NULL};
	const struct ask_key *keys =
		d == PORTAL_OPENAI ? openai_message_keys : anthropic_message_keys;
	struct ask_check c = check_of(d, "messages");
	const struct json *one = NULL;

	if (json_get_arr(rq, "messages", true, SIZE_MAX, &one, NULL) < 0 ||
	    json_arr_len(one) == 0)
		return err_set_id(err, ERRID_BROKER_REQUEST,
				  "messages: a list that is not empty");
	if (ask_check_list(rq, &c, keys, err) < 0 || check_calls(rq, err) < 0)
		return -1;
	c.place = "system";
	c.entry = 0;
	if (json_get_arr(rq, "system", true, SIZE_MAX, &one, NULL) == 0 &&
	    ask_check_value(&c, &system_key, one, 0, err) < 0)
		return -1;
	c.place = "prediction";
	if (json_get_obj(rq, "prediction", true, &one, NULL) == 0)
		return ask_check_object(&c, one, prediction_keys, 0, err);
	return 0;
}

/* "bash_20250124": a tool of the provider's making that the client carries out. */
static bool is_dated(const char *type, const char *name)
{
	size_t n = strlen(name);

	return str_starts(type, name) && type[n] == '_' && type[n + 1] &&
	       strspn(type + n + 1, "0123456789") == strlen(type + n + 1);
}

/* A tool that the provider carries out itself has a type of its own. */
static bool is_own_tool(enum portal_kind d, const struct json *tool)
{
	static const char *const anthropic[] = {"bash", "text_editor", "computer",
						"memory"};
	const char *type = ask_type_of(tool);

	if (d == PORTAL_OPENAI)
		return str_eq(type, "function") || str_eq(type, "custom");
	if (!json_has(tool, "type") || json_is_null(tool, "type") ||
	    str_eq(type, "custom"))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(anthropic); i++)
		if (is_dated(type, anthropic[i]))
			return true;
	return false;
}

int ask_shape_tools(const struct json *rq, enum portal_kind d, struct err *err)
{
	struct ask_check c = check_of(d, "functions");
	const struct json *tools = NULL;

	if (ask_check_list(rq, &c, function_keys, err) < 0)
		return -1;
	if (json_get_arr(rq, "tools", true, SIZE_MAX, &tools, NULL) < 0)
		return 0; /* its kind was looked at with the request's keys */
	for (size_t i = 0; i < json_arr_len(tools); i++) {
		const struct json *t = json_arr_at(tools, i);

		if (json_kind_of(t) == JSON_OBJECT && !is_own_tool(d, t))
			return ask_refused(err, "a tool that the provider carries out:",
					   ask_type_of(t));
	}
	c.place = "tools";
	return ask_check_list(
		rq, &c, d == PORTAL_OPENAI ? openai_tool_keys : anthropic_tool_keys, err);
}
