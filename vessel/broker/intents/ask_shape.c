/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Theory of operation. A shape is a table of keys, each with the kinds that its value may
 * have and, where that is not all, what else is looked at: further blocks, a nested shape,
 * bytes. check_object() holds an object against a table, and nothing else does; null is
 * fine everywhere, it says nothing. Which table belongs to a block is said by its `type`,
 * as the provider reads it.
 */
#include "vessel/broker/intents/ask_shape.h"
#include "common/str.h"
#include <string.h>

#define BLOCKS_DEPTH_MAX 8

enum {
	SHAPE_BOOL = 1 << JSON_BOOL,
	SHAPE_NUMBER = 1 << JSON_NUMBER,
	SHAPE_STRING = 1 << JSON_STRING,
	SHAPE_ARRAY = 1 << JSON_ARRAY,
	SHAPE_OBJECT = 1 << JSON_OBJECT,
	SHAPE_ANY = SHAPE_BOOL | SHAPE_NUMBER | SHAPE_STRING | SHAPE_ARRAY | SHAPE_OBJECT,
};

enum what {
	PLAIN,	/* its kind is all */
	BLOCKS, /* a list of blocks, where it is no string */
	LOCAL,	/* a data: URL */
	BYTES,	/* base64, or a data: URL */
	SHAPED, /* an object of the table `in` */
	SOURCE, /* Anthropic's source: its type says which table */
	FAR,	/* known, and what is behind it lies elsewhere */
};

struct key {
	const char *name;
	unsigned kinds;
	enum what what;
	const struct key *in; /* SHAPED */
};
#define END {NULL, 0, PLAIN, NULL}

/* A kind of block. keys NULL: it is refused. */
struct shape {
	const char *type;
	const struct key *keys;
};

struct check {
	enum portal_kind dialect;
	size_t message; /* from 0, for the text of a refusal */
	const char *place;
};

/* ---- what an OpenAI message may be ---- */

static const struct key image_url_keys[] = {
	{"url", SHAPE_STRING, LOCAL, NULL},
	{"detail", SHAPE_STRING, PLAIN, NULL},
	END,
};
static const struct key media_url_keys[] = {{"url", SHAPE_STRING, LOCAL, NULL}, END};
static const struct key input_audio_keys[] = {
	{"data", SHAPE_STRING, BYTES, NULL},
	{"format", SHAPE_STRING, PLAIN, NULL},
	END,
};
static const struct key file_keys[] = {
	{"file_data", SHAPE_STRING, BYTES, NULL},
	{"filename", SHAPE_STRING, PLAIN, NULL},
	{"file_id", SHAPE_ANY, FAR, NULL},
	END,
};

#define TYPE {"type", SHAPE_STRING, PLAIN, NULL}
#define CACHE {"cache_control", SHAPE_OBJECT, PLAIN, NULL}

static const struct key text_keys[] = {
	TYPE,
	CACHE,
	{"text", SHAPE_STRING, PLAIN, NULL},
	{"annotations", SHAPE_ARRAY, PLAIN, NULL},
	END,
};
static const struct key refusal_keys[] = {
	TYPE,
	{"refusal", SHAPE_STRING, PLAIN, NULL},
	END,
};
/* llama.cpp and vLLM take a string in the place of the object. */
static const struct key image_part_keys[] = {
	TYPE,
	CACHE,
	{"image_url", SHAPE_OBJECT | SHAPE_STRING, SHAPED, image_url_keys},
	END,
};
static const struct key video_part_keys[] = {
	TYPE,
	{"video_url", SHAPE_OBJECT | SHAPE_STRING, SHAPED, media_url_keys},
	END,
};
static const struct key audio_url_part_keys[] = {
	TYPE,
	{"audio_url", SHAPE_OBJECT | SHAPE_STRING, SHAPED, media_url_keys},
	END,
};
static const struct key audio_part_keys[] = {
	TYPE,
	{"input_audio", SHAPE_OBJECT, SHAPED, input_audio_keys},
	END,
};
static const struct key file_part_keys[] = {
	TYPE,
	CACHE,
	{"file", SHAPE_OBJECT, SHAPED, file_keys},
	END,
};

static const struct shape openai_parts[] = {
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
static const struct key openai_message_keys[] = {
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
	END,
};
static const struct key prediction_keys[] = {
	TYPE,
	{"content", SHAPE_STRING | SHAPE_ARRAY, BLOCKS, NULL},
	END,
};

/* ---- what an Anthropic message may be ---- */

static const struct key base64_source_keys[] = {
	TYPE,
	{"media_type", SHAPE_STRING, PLAIN, NULL},
	{"data", SHAPE_STRING, BYTES, NULL},
	END,
};
static const struct key text_source_keys[] = {
	TYPE,
	{"media_type", SHAPE_STRING, PLAIN, NULL},
	{"data", SHAPE_STRING, PLAIN, NULL},
	END,
};
static const struct key content_source_keys[] = {
	TYPE,
	{"content", SHAPE_STRING | SHAPE_ARRAY, BLOCKS, NULL},
	END,
};
static const struct shape sources[] = {
	{"base64", base64_source_keys},
	{"text", text_source_keys},
	{"content", content_source_keys},
	{NULL, NULL},
};

static const struct key text_block_keys[] = {
	TYPE,
	CACHE,
	{"text", SHAPE_STRING, PLAIN, NULL},
	/* of an earlier answer: where it had its words from */
	{"citations", SHAPE_ARRAY, PLAIN, NULL},
	END,
};
static const struct key image_block_keys[] = {
	TYPE,
	CACHE,
	{"source", SHAPE_OBJECT, SOURCE, NULL},
	END,
};
static const struct key document_keys[] = {
	TYPE,
	CACHE,
	{"source", SHAPE_OBJECT, SOURCE, NULL},
	{"title", SHAPE_STRING, PLAIN, NULL},
	{"context", SHAPE_STRING, PLAIN, NULL},
	{"citations", SHAPE_OBJECT, PLAIN, NULL},
	END,
};
/* Its source is a word for the reader, which nobody opens. */
static const struct key search_result_keys[] = {
	TYPE,
	CACHE,
	{"source", SHAPE_STRING, PLAIN, NULL},
	{"title", SHAPE_STRING, PLAIN, NULL},
	{"content", SHAPE_ARRAY, BLOCKS, NULL},
	{"citations", SHAPE_OBJECT, PLAIN, NULL},
	END,
};
static const struct key thinking_keys[] = {
	TYPE,
	{"thinking", SHAPE_STRING, PLAIN, NULL},
	{"signature", SHAPE_STRING, PLAIN, NULL},
	END,
};
static const struct key redacted_keys[] = {
	TYPE,
	{"data", SHAPE_STRING, PLAIN, NULL},
	END,
};
static const struct key tool_use_keys[] = {
	TYPE,
	CACHE,
	{"id", SHAPE_STRING, PLAIN, NULL},
	{"name", SHAPE_STRING, PLAIN, NULL},
	{"input", SHAPE_ANY, PLAIN, NULL},
	{"caller", SHAPE_OBJECT, PLAIN, NULL},
	END,
};
static const struct key tool_result_keys[] = {
	TYPE,
	CACHE,
	{"tool_use_id", SHAPE_STRING, PLAIN, NULL},
	{"content", SHAPE_STRING | SHAPE_ARRAY, BLOCKS, NULL},
	{"is_error", SHAPE_BOOL, PLAIN, NULL},
	END,
};
static const struct key tool_reference_keys[] = {
	TYPE,
	CACHE,
	{"tool_name", SHAPE_STRING, PLAIN, NULL},
	END,
};
static const struct key compaction_keys[] = {
	TYPE,
	CACHE,
	{"content", SHAPE_STRING, PLAIN, NULL},
	{"encrypted_content", SHAPE_STRING, PLAIN, NULL},
	END,
};

static const struct shape anthropic_blocks[] = {
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

static const struct key anthropic_message_keys[] = {
	{"role", SHAPE_STRING, PLAIN, NULL},
	{"content", SHAPE_STRING | SHAPE_ARRAY, BLOCKS, NULL},
	END,
};

/* ---- tools that the job carries out ---- */

static const struct key function_keys[] = {
	{"name", SHAPE_STRING, PLAIN, NULL},
	{"description", SHAPE_STRING, PLAIN, NULL},
	{"parameters", SHAPE_OBJECT, PLAIN, NULL},
	{"strict", SHAPE_BOOL, PLAIN, NULL},
	END,
};
static const struct key custom_keys[] = {
	{"name", SHAPE_STRING, PLAIN, NULL},
	{"description", SHAPE_STRING, PLAIN, NULL},
	{"format", SHAPE_OBJECT, PLAIN, NULL},
	END,
};
static const struct key openai_tool_keys[] = {
	TYPE,
	CACHE,
	{"function", SHAPE_OBJECT, SHAPED, function_keys},
	{"custom", SHAPE_OBJECT, SHAPED, custom_keys},
	END,
};
static const struct key anthropic_tool_keys[] = {
	TYPE,
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
	END,
};

/* ---- refusals ---- */

static int bad(const struct check *c, const char *what, const char *name, struct err *err)
{
	return err_set_id(err, ERRID_BROKER_REQUEST, "%s, entry %zu: %s%s%.64s%s",
			  c->place, c->message + 1, what, *name ? " '" : "", name,
			  *name ? "'" : "");
}

static int refused(struct err *err, const char *what, const char *name)
{
	return err_set_id(err, ERRID_BROKER_FEATURE, "%s%s%.64s%s", what,
			  *name ? " '" : "", name, *name ? "'" : "");
}

/* ---- one object ---- */

static int check_blocks(const struct check *c, const struct json *list, unsigned depth,
			struct err *err);
static int check_object(const struct check *c, const struct json *obj,
			const struct key *keys, unsigned depth, struct err *err);

/* The shape of that type; "" when there is none that says what it is. */
static const char *type_of(const struct json *obj)
{
	const char *type = "";

	return json_get_str(obj, "type", true, SIZE_MAX, &type, NULL) == 0 ? type : "";
}

static const struct key *find(const struct shape *shapes, const char *type)
{
	for (; shapes->type; shapes++)
		if (str_eq(shapes->type, type))
			return shapes->keys;
	return NULL;
}

/* Base64 and what else is written for it has no colon: a scheme ends in one. */
static bool is_local(const char *s, bool also_bytes)
{
	return str_starts(s, "data:") || (also_bytes && !strchr(s, ':'));
}

static int check_source(const struct check *c, const struct json *source, unsigned depth,
			struct err *err)
{
	const char *type = type_of(source);
	const struct key *keys = find(sources, type);

	if (!keys)
		return refused(err, "a source that lies elsewhere (send its bytes): type",
			       type);
	return check_object(c, source, keys, depth + 1, err);
}

static int check_value(const struct check *c, const struct key *k, const struct json *v,
		       unsigned depth, struct err *err)
{
	enum json_kind kind = json_kind_of(v);
	enum what what = k->what;
	const char *text = "";

	if (what == FAR)
		return refused(err, "a file that is stored at the provider:", k->name);
	if (!(k->kinds & (1u << kind)))
		return bad(c, "wrong type:", k->name, err);
	if (kind == JSON_STRING && json_as_str(v, SIZE_MAX, &text, err) < 0)
		return -1;
	if (what == SHAPED && kind == JSON_STRING)
		what = LOCAL;
	if (what == BLOCKS && kind == JSON_ARRAY)
		return check_blocks(c, v, depth + 1, err);
	if (what == SHAPED)
		return check_object(c, v, k->in, depth + 1, err);
	if (what == SOURCE)
		return check_source(c, v, depth, err);
	if ((what == LOCAL || what == BYTES) && !is_local(text, what == BYTES))
		return refused(err, "a URL (send the bytes, or a data: URL):", k->name);
	return 0;
}

struct members {
	const struct check *check;
	const struct key *keys;
	unsigned depth;
	struct err *err;
	int result;
};

static void on_member(const char *name, const struct json *v, void *arg)
{
	struct members *m = arg;
	const struct key *k = m->keys;

	if (m->result < 0)
		return;
	while (k->name && !str_eq(k->name, name))
		k++;
	if (!k->name)
		m->result = bad(m->check, "unknown key", name, m->err);
	else if (json_kind_of(v) != JSON_NULL)
		m->result = check_value(m->check, k, v, m->depth, m->err);
}

static int check_object(const struct check *c, const struct json *obj,
			const struct key *keys, unsigned depth, struct err *err)
{
	struct members m = {c, keys, depth, err, 0};

	if (depth > BLOCKS_DEPTH_MAX)
		return bad(c, "nested too deep", "", err);
	json_obj_each(obj, on_member, &m);
	return m.result;
}

static int check_block(const struct check *c, const struct json *block, unsigned depth,
		       struct err *err)
{
	const struct key *keys;
	const char *type;

	if (json_kind_of(block) != JSON_OBJECT)
		return bad(c, "content is a text or a list of objects", "", err);
	type = type_of(block);
	if (!*type)
		return bad(c, "a part of content has no type", "", err);
	keys = find(c->dialect == PORTAL_OPENAI ? openai_parts : anthropic_blocks, type);
	if (!keys)
		return refused(err, "content of a type that is not passed on:", type);
	return check_object(c, block, keys, depth, err);
}

static int check_blocks(const struct check *c, const struct json *list, unsigned depth,
			struct err *err)
{
	if (depth > BLOCKS_DEPTH_MAX)
		return bad(c, "nested too deep", "", err);
	for (size_t i = 0; i < json_arr_len(list); i++)
		if (check_block(c, json_arr_at(list, i), depth, err) < 0)
			return -1;
	return 0;
}

/* ---- the request's members ---- */

/* A list of objects of one shape; 0 also when it is not there. */
static int check_list(const struct json *rq, struct check *c, const struct key *keys,
		      struct err *err)
{
	const struct json *list = NULL;

	if (!json_has(rq, c->place) || json_is_null(rq, c->place))
		return 0;
	if (json_get_arr(rq, c->place, true, SIZE_MAX, &list, NULL) < 0)
		return err_set_id(err, ERRID_BROKER_REQUEST, "%s: a list of objects",
				  c->place);
	for (c->message = 0; c->message < json_arr_len(list); c->message++) {
		const struct json *one = json_arr_at(list, c->message);

		if (json_kind_of(one) != JSON_OBJECT)
			return bad(c, "it is no object", "", err);
		if (check_object(c, one, keys, 0, err) < 0)
			return -1;
	}
	return 0;
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
	static const struct key system_key = {"system", SHAPE_STRING | SHAPE_ARRAY,
					      BLOCKS, NULL};
	const struct key *keys =
		d == PORTAL_OPENAI ? openai_message_keys : anthropic_message_keys;
	struct check c = {.dialect = d, .place = "messages"};
	const struct json *one = NULL;

	if (json_get_arr(rq, "messages", true, SIZE_MAX, &one, NULL) < 0 ||
	    json_arr_len(one) == 0)
		return err_set_id(err, ERRID_BROKER_REQUEST,
				  "messages: a list that is not empty");
	if (check_list(rq, &c, keys, err) < 0 || check_calls(rq, err) < 0)
		return -1;
	c.place = "system";
	c.message = 0;
	if (json_get_arr(rq, "system", true, SIZE_MAX, &one, NULL) == 0 &&
	    check_value(&c, &system_key, one, 0, err) < 0)
		return -1;
	c.place = "prediction";
	if (json_get_obj(rq, "prediction", true, &one, NULL) == 0)
		return check_object(&c, one, prediction_keys, 0, err);
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
	const char *type = type_of(tool);

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
	struct check c = {.dialect = d, .place = "functions"};
	const struct json *tools = NULL;

	if (check_list(rq, &c, function_keys, err) < 0)
		return -1;
	if (json_get_arr(rq, "tools", true, SIZE_MAX, &tools, NULL) < 0)
		return 0; /* its kind was looked at with the request's keys */
	for (size_t i = 0; i < json_arr_len(tools); i++) {
		const struct json *t = json_arr_at(tools, i);

		if (json_kind_of(t) == JSON_OBJECT && !is_own_tool(d, t))
			return refused(
				err, "a tool that the provider carries out:", type_of(t));
	}
	c.place = "tools";
	return check_list(
		rq, &c, d == PORTAL_OPENAI ? openai_tool_keys : anthropic_tool_keys, err);
}
