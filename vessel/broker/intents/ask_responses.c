/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See ask_responses.h; the tables of items, of parts of their content, and of tools.
 */
#include "vessel/broker/intents/ask_responses.h"
#include "common/str.h"
#include "vessel/broker/intents/ask_keys.h"
#include <stdint.h>

/* ---- parts of content ---- */

/* `parsed` is the SDK's own, beside what it sends again. */
static const struct ask_key text_keys[] = {
	ASK_KEY_TYPE,
	{"text", SHAPE_STRING, PLAIN, NULL},
	{"annotations", SHAPE_ARRAY, PLAIN, NULL},
	{"logprobs", SHAPE_ARRAY, PLAIN, NULL},
	{"parsed", SHAPE_ANY, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key refusal_keys[] = {
	ASK_KEY_TYPE,
	{"refusal", SHAPE_STRING, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key image_keys[] = {
	ASK_KEY_TYPE,
	{"image_url", SHAPE_STRING, LOCAL, NULL},
	{"detail", SHAPE_STRING, PLAIN, NULL},
	{"file_id", SHAPE_ANY, FAR, NULL},
	ASK_KEYS_END,
};
static const struct ask_key file_keys[] = {
	ASK_KEY_TYPE,
	{"file_data", SHAPE_STRING, BYTES, NULL},
	{"filename", SHAPE_STRING, PLAIN, NULL},
	{"detail", SHAPE_STRING, PLAIN, NULL},
	{"file_url", SHAPE_STRING, LOCAL, NULL},
	{"file_id", SHAPE_ANY, FAR, NULL},
	ASK_KEYS_END,
};
static const struct ask_key sound_keys[] = {
	{"data", SHAPE_STRING, BYTES, NULL},
	{"format", SHAPE_STRING, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key audio_keys[] = {
	ASK_KEY_TYPE,
	{"input_audio", SHAPE_OBJECT, SHAPED, sound_keys},
	ASK_KEYS_END,
};

static const struct ask_shape parts[] = {
	{"input_text", text_keys},   {"output_text", text_keys},
	{"summary_text", text_keys}, {"reasoning_text", text_keys},
	{"text", text_keys},	     {"refusal", refusal_keys},
	{"input_image", image_keys}, {"input_file", file_keys},
	{"input_audio", audio_keys}, {NULL, NULL},
};

/* ---- items ---- */

/* clang-format off */
/* of each item */
#define ITEM_KEYS \
	ASK_KEY_TYPE, \
	{"id", SHAPE_STRING, PLAIN, NULL}, \
	{"status", SHAPE_STRING, PLAIN, NULL}, \
	{"created_by", SHAPE_STRING, PLAIN, NULL}
#define CALL_ID {"call_id", SHAPE_STRING, PLAIN, NULL}
/* of each call of a function and its result */
#define CALL_KEYS \
	ITEM_KEYS, \
	CALL_ID, \
	{"caller", SHAPE_OBJECT, PLAIN, NULL}, \
	{"name", SHAPE_STRING, PLAIN, NULL}
/* clang-format on */

static const struct ask_key message_keys[] = {
	ITEM_KEYS,
	{"role", SHAPE_STRING, PLAIN, NULL},
	{"content", SHAPE_STRING | SHAPE_ARRAY, BLOCKS, NULL},
	{"phase", SHAPE_STRING, PLAIN, NULL},
	ASK_KEYS_END,
};
/* Its encrypted content is the provider's own, and opaque. */
static const struct ask_key reasoning_keys[] = {
	ITEM_KEYS,
	{"summary", SHAPE_ARRAY, BLOCKS, NULL},
	{"content", SHAPE_ARRAY, BLOCKS, NULL},
	{"encrypted_content", SHAPE_STRING, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key compaction_keys[] = {
	ITEM_KEYS,
	{"encrypted_content", SHAPE_STRING, PLAIN, NULL},
	ASK_KEYS_END,
};
/* `parsed_arguments` as `parsed`. */
static const struct ask_key function_call_keys[] = {
	CALL_KEYS,
	{"namespace", SHAPE_STRING, PLAIN, NULL},
	{"arguments", SHAPE_STRING, PLAIN, NULL},
	{"parsed_arguments", SHAPE_ANY, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key custom_call_keys[] = {
	CALL_KEYS,
	{"namespace", SHAPE_STRING, PLAIN, NULL},
	{"input", SHAPE_STRING, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key output_keys[] = {
	CALL_KEYS,
	{"output", SHAPE_STRING | SHAPE_ARRAY, BLOCKS, NULL},
	ASK_KEYS_END,
};
/* The two tools of OpenAI's making that a client carries out: what is asked for is an
 * object of theirs, the answer a text. */
static const struct ask_key shell_call_keys[] = {
	ITEM_KEYS,
	CALL_ID,
	{"action", SHAPE_OBJECT, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key patch_call_keys[] = {
	ITEM_KEYS,
	CALL_ID,
	{"operation", SHAPE_OBJECT, PLAIN, NULL},
	ASK_KEYS_END,
};

static const struct ask_shape items[] = {
	{"message", message_keys},
	{"reasoning", reasoning_keys},
	{"compaction", compaction_keys},
	{"function_call", function_call_keys},
	{"function_call_output", output_keys},
	{"custom_tool_call", custom_call_keys},
	{"custom_tool_call_output", output_keys},
	{"local_shell_call", shell_call_keys},
	{"local_shell_call_output", output_keys},
	{"apply_patch_call", patch_call_keys},
	{"apply_patch_call_output", output_keys},
	{NULL, NULL},
};

/* ---- tools that the job carries out ---- */

static const struct ask_key function_keys[] = {
	ASK_KEY_TYPE,
	{"name", SHAPE_STRING, PLAIN, NULL},
	{"description", SHAPE_STRING, PLAIN, NULL},
	{"parameters", SHAPE_OBJECT, PLAIN, NULL},
	{"output_schema", SHAPE_OBJECT, PLAIN, NULL},
	{"strict", SHAPE_BOOL, PLAIN, NULL},
	{"defer_loading", SHAPE_BOOL, PLAIN, NULL},
	{"allowed_callers", SHAPE_ARRAY, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key custom_keys[] = {
	ASK_KEY_TYPE,
	{"name", SHAPE_STRING, PLAIN, NULL},
	{"description", SHAPE_STRING, PLAIN, NULL},
	{"format", SHAPE_OBJECT, PLAIN, NULL},
	{"defer_loading", SHAPE_BOOL, PLAIN, NULL},
	{"allowed_callers", SHAPE_ARRAY, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key bare_keys[] = {ASK_KEY_TYPE, ASK_KEYS_END};

static const struct ask_shape own_tools[] = {
	{"function", function_keys},
	{"custom", custom_keys},
	{"local_shell", bare_keys},
	{"apply_patch", bare_keys},
	{NULL, NULL},
};

/* ---- the request's members ---- */

/* A message says its role, and need not say its type; without either it is a reference. */
static const struct ask_key *item_shape(const struct json *item)
{
	const char *type = ask_type_of(item);

	if (!*type)
		return json_has(item, "role") ? message_keys : NULL;
	return ask_shape_find(items, type);
}

static int check_item(const struct ask_check *c, const struct json *item, struct err *err)
{
	const char *type = ask_type_of(item);
	const struct ask_key *keys;

	if (json_kind_of(item) != JSON_OBJECT)
		return ask_bad(c, "it is no object", "", err);
	keys = item_shape(item);
	if (keys)
		return ask_check_object(c, item, keys, 0, err);
	if (!*type || str_eq(type, "item_reference"))
		return ask_refused(
			err,
			"an item that is stored at the provider (send the item "
			"itself, with include: reasoning.encrypted_content)",
			"");
	return ask_refused(err, "an item of a type that is not passed on:", type);
}

int ask_responses_input(const struct json *rq, struct err *err)
{
	struct ask_check c = {.blocks = parts, .place = "input"};
	const struct json *input = NULL;
	const char *text = "";

	if (json_get_str(rq, "input", true, SIZE_MAX, &text, NULL) == 0)
		return 0;
	if (json_get_arr(rq, "input", true, SIZE_MAX, &input, NULL) < 0 ||
	    json_arr_len(input) == 0)
		return err_set_id(err, ERRID_BROKER_REQUEST,
				  "input: a text, or a list that is not empty");
	for (; c.entry < json_arr_len(input); c.entry++)
		if (check_item(&c, json_arr_at(input, c.entry), err) < 0)
			return -1;
	return 0;
}

static int check_tool(const struct ask_check *c, const struct json *tool, bool may_group,
		      struct err *err);

/* Functions under one name; none of them is another such group. */
static int check_namespace(const struct ask_check *c, const struct json *group,
			   struct err *err)
{
	static const struct ask_key keys[] = {
		ASK_KEY_TYPE,
		{"name", SHAPE_STRING, PLAIN, NULL},
		{"description", SHAPE_STRING, PLAIN, NULL},
		{"tools", SHAPE_ARRAY, PLAIN, NULL},
		ASK_KEYS_END,
	};
	const struct json *tools = NULL;

	if (ask_check_object(c, group, keys, 0, err) < 0)
		return -1;
	if (json_get_arr(group, "tools", true, SIZE_MAX, &tools, NULL) < 0)
		return ask_bad(c, "a list is expected:", "tools", err);
	for (size_t i = 0; i < json_arr_len(tools); i++)
		if (check_tool(c, json_arr_at(tools, i), false, err) < 0)
			return -1;
	return 0;
}

static int check_tool(const struct ask_check *c, const struct json *tool, bool may_group,
		      struct err *err)
{
	const char *type = ask_type_of(tool);
	const struct ask_key *keys = ask_shape_find(own_tools, type);

	if (json_kind_of(tool) != JSON_OBJECT)
		return ask_bad(c, "it is no object", "", err);
	if (may_group && str_eq(type, "namespace"))
		return check_namespace(c, tool, err);
	if (!keys)
		return ask_refused(err, "a tool that the provider carries out:", type);
	return ask_check_object(c, tool, keys, 0, err);
}

/* A word, or an object that names tools of the request. */
static int check_choice(const struct json *rq, struct err *err)
{
	const struct json *choice = NULL;
	const char *type;

	if (json_get_obj(rq, "tool_choice", true, &choice, NULL) < 0)
		return 0;
	type = ask_type_of(choice);
	if (!ask_shape_find(own_tools, type) && !str_eq(type, "allowed_tools"))
		return ask_refused(
			err, "tool_choice: a tool that the provider carries out:", type);
	return 0;
}

int ask_responses_tools(const struct json *rq, struct err *err)
{
	struct ask_check c = {.blocks = parts, .place = "tools"};
	const struct json *tools = NULL;

	if (check_choice(rq, err) < 0)
		return -1;
	if (json_get_arr(rq, "tools", true, SIZE_MAX, &tools, NULL) < 0)
		return 0; /* its kind was looked at with the request's keys */
	for (; c.entry < json_arr_len(tools); c.entry++)
		if (check_tool(&c, json_arr_at(tools, c.entry), true, err) < 0)
			return -1;
	return 0;
}
