/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See ask_gemini.h; the tables of what contents, tools and settings may be.
 */
#include "vessel/broker/intents/ask_gemini.h"
#include "common/str.h"
#include "vessel/broker/intents/ask_keys.h"
#include <string.h>
#include <strings.h>

/* ---- contents ---- */

static const struct ask_key blob_keys[] = {
	{"mimeType", SHAPE_STRING, PLAIN, NULL},
	{"data", SHAPE_STRING, BYTES, NULL},
	{"displayName", SHAPE_STRING, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key call_keys[] = {
	{"id", SHAPE_STRING, PLAIN, NULL},
	{"name", SHAPE_STRING, PLAIN, NULL},
	{"args", SHAPE_OBJECT, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key response_part_keys[] = {
	{"inlineData", SHAPE_OBJECT, SHAPED, blob_keys},
	{"fileData", SHAPE_ANY, FAR, NULL},
	ASK_KEYS_END,
};
static const struct ask_key response_keys[] = {
	{"id", SHAPE_STRING, PLAIN, NULL},
	{"name", SHAPE_STRING, PLAIN, NULL},
	{"response", SHAPE_OBJECT, PLAIN, NULL},
	{"parts", SHAPE_ARRAY, EACH, response_part_keys},
	{"willContinue", SHAPE_BOOL, PLAIN, NULL},
	{"scheduling", SHAPE_STRING, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key resolution_keys[] = {
	{"level", SHAPE_STRING, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key video_keys[] = {
	{"startOffset", SHAPE_STRING, PLAIN, NULL},
	{"endOffset", SHAPE_STRING, PLAIN, NULL},
	{"fps", SHAPE_NUMBER, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key part_keys[] = {
	{"text", SHAPE_STRING, PLAIN, NULL},
	{"thought", SHAPE_BOOL, PLAIN, NULL},
	{"thoughtSignature", SHAPE_STRING, PLAIN, NULL},
	{"inlineData", SHAPE_OBJECT, SHAPED, blob_keys},
	{"functionCall", SHAPE_OBJECT, SHAPED, call_keys},
	{"functionResponse", SHAPE_OBJECT, SHAPED, response_keys},
	{"mediaResolution", SHAPE_OBJECT, SHAPED, resolution_keys},
	{"videoMetadata", SHAPE_OBJECT, SHAPED, video_keys},
	{"fileData", SHAPE_ANY, FAR, NULL},
	ASK_KEYS_END,
};
static const struct ask_key content_keys[] = {
	{"role", SHAPE_STRING, PLAIN, NULL},
	{"parts", SHAPE_ARRAY, EACH, part_keys},
	ASK_KEYS_END,
};

/* ---- tools and settings ---- */

static const struct ask_key declaration_keys[] = {
	{"name", SHAPE_STRING, PLAIN, NULL},
	{"description", SHAPE_STRING, PLAIN, NULL},
	{"behavior", SHAPE_STRING, PLAIN, NULL},
	{"parameters", SHAPE_OBJECT, PLAIN, NULL},
	{"parametersJsonSchema", SHAPE_ANY, PLAIN, NULL},
	{"response", SHAPE_OBJECT, PLAIN, NULL},
	{"responseJsonSchema", SHAPE_ANY, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key tool_keys[] = {
	{"functionDeclarations", SHAPE_ARRAY, EACH, declaration_keys},
	ASK_KEYS_END,
};
static const struct ask_key calling_keys[] = {
	{"mode", SHAPE_STRING, PLAIN, NULL},
	{"allowedFunctionNames", SHAPE_ARRAY, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key tool_config_keys[] = {
	{"functionCallingConfig", SHAPE_OBJECT, SHAPED, calling_keys},
	ASK_KEYS_END,
};
static const struct ask_key safety_keys[] = {
	{"category", SHAPE_STRING, PLAIN, NULL},
	{"threshold", SHAPE_STRING, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key thinking_keys[] = {
	{"includeThoughts", SHAPE_BOOL, PLAIN, NULL},
	{"thinkingBudget", SHAPE_NUMBER, PLAIN, NULL},
	{"thinkingLevel", SHAPE_STRING, PLAIN, NULL},
	ASK_KEYS_END,
};
static const struct ask_key generation_keys[] = {
	{"stopSequences", SHAPE_ARRAY, PLAIN, NULL},
	{"responseMimeType", SHAPE_STRING, PLAIN, NULL},
	{"responseSchema", SHAPE_OBJECT, PLAIN, NULL},
	{"responseJsonSchema", SHAPE_ANY, PLAIN, NULL},
	{"responseModalities", SHAPE_ARRAY, PLAIN, NULL},
	{"candidateCount", SHAPE_NUMBER, PLAIN, NULL},
	{"maxOutputTokens", SHAPE_NUMBER, PLAIN, NULL},
	{"temperature", SHAPE_NUMBER, PLAIN, NULL},
	{"topP", SHAPE_NUMBER, PLAIN, NULL},
	{"topK", SHAPE_NUMBER, PLAIN, NULL},
	{"seed", SHAPE_NUMBER, PLAIN, NULL},
	{"presencePenalty", SHAPE_NUMBER, PLAIN, NULL},
	{"frequencyPenalty", SHAPE_NUMBER, PLAIN, NULL},
	{"responseLogprobs", SHAPE_BOOL, PLAIN, NULL},
	{"logprobs", SHAPE_NUMBER, PLAIN, NULL},
	{"enableEnhancedCivicAnswers", SHAPE_BOOL, PLAIN, NULL},
	{"mediaResolution", SHAPE_STRING, PLAIN, NULL},
	{"thinkingConfig", SHAPE_OBJECT, SHAPED, thinking_keys},
	{"speechConfig", SHAPE_OBJECT, PLAIN, NULL},
	ASK_KEYS_END,
};

/* The request's members that are objects. */
static const struct ask_key member_keys[] = {
	{"systemInstruction", SHAPE_OBJECT, SHAPED, content_keys},
	{"toolConfig", SHAPE_OBJECT, SHAPED, tool_config_keys},
	{"generationConfig", SHAPE_OBJECT, SHAPED, generation_keys},
};

static bool is_there(const struct json *obj, const char *key)
{
	return json_has(obj, key) && !json_is_null(obj, key);
}

/* NULL: no such list. */
static const struct json *list_of(const struct json *obj, const char *key)
{
	const struct json *v = NULL;

	if (json_kind_of(obj) != JSON_OBJECT ||
	    json_get_arr(obj, key, true, SIZE_MAX, &v, NULL) < 0)
		return NULL;
	return v;
}

static const struct json *object_of(const struct json *obj, const char *key)
{
	const struct json *v = NULL;

	if (json_kind_of(obj) != JSON_OBJECT ||
	    json_get_obj(obj, key, true, &v, NULL) < 0)
		return NULL;
	return v;
}

static int refuse_those(const struct json *list, const char *const *names, size_t n,
			const char *what, struct err *err)
{
	for (size_t i = 0; i < json_arr_len(list); i++)
		for (size_t k = 0; k < n; k++)
			if (json_kind_of(json_arr_at(list, i)) == JSON_OBJECT &&
			    is_there(json_arr_at(list, i), names[k]))
				return ask_refused(err, what, names[k]);
	return 0;
}

/* What the provider's own tools said and were told, as the API has it in later turns. */
static int refuse_traces(const struct json *contents, struct err *err)
{
	static const char *const names[] = {"executableCode", "codeExecutionResult",
					    "toolCall", "toolResponse"};

	for (size_t i = 0; i < json_arr_len(contents); i++)
		if (refuse_those(list_of(json_arr_at(contents, i), "parts"), names,
				 ARRAY_SIZE(names),
				 "what a tool of the provider left:", err) < 0)
			return -1;
	return 0;
}

static int check_contents(const struct json *rq, struct err *err)
{
	struct ask_check c = {.place = "contents"};
	const struct json *contents = list_of(rq, "contents");

	if (json_arr_len(contents) == 0)
		return err_set_id(err, ERRID_BROKER_REQUEST,
				  "contents: a list that is not empty");
	return refuse_traces(contents, err) < 0
		       ? -1
		       : ask_check_list(rq, &c, content_keys, err);
}

int ask_gemini_shape(const struct json *rq, struct err *err)
{
	static const char *const tools[] = {
		"googleSearch", "googleSearchRetrieval", "codeExecution", "urlContext",
		"fileSearch",	"computerUse",		 "googleMaps",	  "mcpServers",
		"retrieval",	"enterpriseWebSearch"};
	struct ask_check c = {.place = "tools"};

	if (check_contents(rq, err) < 0 ||
	    refuse_those(list_of(rq, "tools"), tools, ARRAY_SIZE(tools),
			 "a tool that the provider carries out:", err) < 0 ||
	    ask_check_list(rq, &c, tool_keys, err) < 0)
		return -1;
	c.place = "safetySettings";
	if (ask_check_list(rq, &c, safety_keys, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(member_keys); i++) {
		const struct json *v = object_of(rq, member_keys[i].name);

		c.place = member_keys[i].name;
		c.entry = 0;
		if (v && ask_check_value(&c, &member_keys[i], v, 0, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- what it costs ---- */

static bool has_prefix(const char *type, const char *prefix)
{
	return strncasecmp(type, prefix, strlen(prefix)) == 0;
}

static void count_blob(struct ask_cost *c, const struct json *blob)
{
	static const char *const pictures[] = {"image/png",  "image/jpeg", "image/webp",
					       "image/heic", "image/heif", "image/gif"};
	const char *type = "", *data = "";

	(void)!json_get_str(blob, "mimeType", true, SIZE_MAX, &type, NULL);
	(void)!json_get_str(blob, "data", true, SIZE_MAX, &data, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(pictures); i++)
		if (strcasecmp(type, pictures[i]) == 0) {
			c->pictures++;
			c->picture_bytes += strlen(data);
			return;
		}
	/* a film has its sound with it, which is priced as sound is */
	if (has_prefix(type, "audio/") || has_prefix(type, "video/"))
		c->has_audio = true;
	else
		c->has_documents = true;
}

static void count_parts(struct ask_cost *c, const struct json *parts)
{
	for (size_t i = 0; i < json_arr_len(parts); i++) {
		const struct json *part = json_arr_at(parts, i),
				  *blob = object_of(part, "inlineData"),
				  *more = list_of(object_of(part, "functionResponse"),
						  "parts");

		if (blob)
			count_blob(c, blob);
		for (size_t k = 0; k < json_arr_len(more); k++) {
			blob = object_of(json_arr_at(more, k), "inlineData");
			if (blob)
				count_blob(c, blob);
		}
	}
}

static int read_count(const struct json *config, const char *key, uint64_t max,
		      uint64_t *ret, struct err *err)
{
	if (!config || !is_there(config, key))
		return 0;
	if (json_get_u64(config, key, true, 1, max, ret, NULL) < 0)
		return err_set_id(err, ERRID_BROKER_REQUEST, "%s: 1 to %llu", key,
				  (unsigned long long)max);
	return 0;
}

/* Text is what prices are for; sound has a price of its own, a picture has none here. */
static int read_modalities(const struct json *config, struct ask_cost *c, struct err *err)
{
	const struct json *list = list_of(config, "responseModalities");

	c->has_audio = c->has_audio || object_of(config, "speechConfig");
	for (size_t i = 0; i < json_arr_len(list); i++) {
		const char *name = "";

		if (json_as_str(json_arr_at(list, i), SIZE_MAX, &name, NULL) < 0)
			return err_set_id(err, ERRID_BROKER_REQUEST,
					  "responseModalities: a list of names");
		if (strcasecmp(name, "AUDIO") == 0)
			c->has_audio = true;
		else if (strcasecmp(name, "TEXT") != 0)
			return err_set_id(err, ERRID_BROKER_PRICE,
					  "responseModalities: %.32s", name);
	}
	return 0;
}

int ask_gemini_cost(const struct json *rq, struct ask_cost *ret, struct err *err)
{
	const struct json *config = object_of(rq, "generationConfig"),
			  *contents = list_of(rq, "contents");
	struct ask_cost c = {.api = API_GENERATE, .choices = 1};
	const char *tier = NULL;

	if (read_count(config, "candidateCount", ASK_CHOICES_MAX, &c.choices, err) < 0 ||
	    read_count(config, "maxOutputTokens", ASK_OUTPUT_MAX, &c.asked, err) < 0 ||
	    read_modalities(config, &c, err) < 0)
		return -1;
	for (size_t i = 0; i < json_arr_len(contents); i++)
		count_parts(&c, list_of(json_arr_at(contents, i), "parts"));
	count_parts(&c, list_of(object_of(rq, "systemInstruction"), "parts"));
	c.has_tools = json_arr_len(list_of(rq, "tools")) > 0;
	if (is_there(rq, "serviceTier") &&
	    json_get_str(rq, "serviceTier", true, SIZE_MAX, &tier, NULL) == 0)
		c.tier = tier;
	*ret = c;
	return 0;
}
