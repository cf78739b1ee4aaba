/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Valid requests of every dialect, and what makes them wrong in one place: another kind of
 * value there, the value in a list or an object, another spelling of its key. For the fuzz
 * target and for the test that tries each place with each wrong value.
 */
#ifndef LYCH_TESTS_SUPPORT_MUTATE_H
#define LYCH_TESTS_SUPPORT_MUTATE_H

#include "common/attr.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/str.h"
#include <ctype.h>

#define MUTATE_TEXT_MAX ((size_t)1 << 20)
#define MUTATE_DEPTH 28

#define MUTATE_FAR "https://far.example/x"
#define MUTATE_OPENAI 0
#define MUTATE_ANTHROPIC 1
#define MUTATE_FETCH 2
#define MUTATE_RESPONSES 3
#define MUTATE_GEMINI 4
#define MUTATE_KINDS 5

struct mutate_seed {
	unsigned dialect;
	const char *text;
};

static const struct mutate_seed mutate_seeds[] = {
	{MUTATE_OPENAI,
	 "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"s\"},"
	 "{\"role\":\"user\",\"name\":\"n\",\"content\":[{\"type\":\"text\",\"text\":"
	 "\"t\"},"
	 "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,AA==\","
	 "\"detail\":\"low\"}},"
	 "{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"AA==\",\"format\":"
	 "\"wav\"}},"
	 "{\"type\":\"file\",\"file\":{\"filename\":\"f\",\"file_data\":\"data:a/"
	 "b;base64,\"}}"
	 "]},{\"role\":\"assistant\",\"content\":null,\"refusal\":null,\"tool_calls\":[{"
	 "\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"f\","
	 "\"arguments\":\"{}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"call_1\","
	 "\"content\":[{\"type\":\"text\",\"text\":\"r\"}]}],"
	 "\"max_completion_tokens\":5,\"n\":2,\"stop\":[\"x\"],\"temperature\":0.5,"
	 "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":"
	 "\"d\",\"parameters\":{\"type\":\"object\",\"properties\":{}},\"strict\":true}}]"
	 ","
	 "\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"f\"}},"
	 "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"j\"}}"
	 ","
	 "\"stream\":true,\"stream_options\":{\"include_usage\":true},"
	 "\"prediction\":{\"type\":\"content\",\"content\":[{\"type\":\"text\",\"text\":"
	 "\"p\"}]},\"metadata\":{\"a\":\"b\"},\"logit_bias\":{\"7\":1},\"store\":false}"},
	{MUTATE_ANTHROPIC,
	 "{\"model\":\"m\",\"max_tokens\":9,\"system\":[{\"type\":\"text\",\"text\":"
	 "\"s\","
	 "\"cache_control\":{\"type\":\"ephemeral\"}}],\"messages\":[{\"role\":\"user\","
	 "\"content\":[{\"type\":\"text\",\"text\":\"t\"},{\"type\":\"image\",\"source\":"
	 "{"
	 "\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"AA==\"}},{\"type\":"
	 "\"document\",\"title\":\"d\",\"source\":{\"type\":\"content\",\"content\":[{"
	 "\"type\":\"text\",\"text\":\"c\"}]},\"citations\":{\"enabled\":true}},{"
	 "\"type\":"
	 "\"search_result\",\"source\":\"s\",\"title\":\"t\",\"content\":[{\"type\":"
	 "\"text\","
	 "\"text\":\"c\"}]}]},{\"role\":\"assistant\",\"content\":[{\"type\":"
	 "\"thinking\","
	 "\"thinking\":\"h\",\"signature\":\"AA==\"},{\"type\":\"redacted_thinking\","
	 "\"data\":\"AA==\"},{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"f\","
	 "\"input\":{\"a\":[1]}}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_"
	 "result\","
	 "\"tool_use_id\":\"toolu_1\",\"is_error\":false,\"content\":[{\"type\":"
	 "\"image\","
	 "\"source\":{\"type\":\"base64\",\"media_type\":\"image/"
	 "png\",\"data\":\"AA==\"}}]}]}"
	 "],\"tools\":[{\"name\":\"f\",\"description\":\"d\",\"input_schema\":{\"type\":"
	 "\"object\"},\"cache_control\":{\"type\":\"ephemeral\"}},{\"type\":\"bash_"
	 "20250124\","
	 "\"name\":\"bash\"}],\"tool_choice\":{\"type\":\"auto\"},\"thinking\":{\"type\":"
	 "\"enabled\",\"budget_tokens\":1024},\"stop_sequences\":[\"x\"],\"top_k\":3,"
	 "\"metadata\":{\"user_id\":\"u\"},\"stream\":true}"},
	{MUTATE_RESPONSES,
	 "{\"model\":\"m\",\"instructions\":\"i\",\"input\":[{\"role\":\"user\","
	 "\"content\":"
	 "[{\"type\":\"input_text\",\"text\":\"t\"},{\"type\":\"input_image\",\"detail\":"
	 "\"low\",\"image_url\":\"data:image/png;base64,AA==\"},{\"type\":\"input_file\","
	 "\"filename\":\"f\",\"file_data\":\"data:a/"
	 "b;base64,\"}]},{\"type\":\"reasoning\","
	 "\"id\":\"rs_1\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"s\"}],"
	 "\"encrypted_content\":\"AA==\"},{\"type\":\"message\",\"id\":\"msg_1\","
	 "\"role\":"
	 "\"assistant\",\"status\":\"completed\",\"content\":[{\"type\":\"output_text\","
	 "\"text\":\"y\",\"annotations\":[]}]},{\"type\":\"function_call\",\"call_id\":"
	 "\"call_1\",\"name\":\"f\",\"arguments\":\"{}\"},{\"type\":"
	 "\"function_call_output\",\"call_id\":\"call_1\",\"output\":[{\"type\":"
	 "\"input_image\",\"image_url\":\"data:image/png;base64,AA==\"}]}],\"tools\":[{"
	 "\"type\":\"function\",\"name\":\"f\",\"parameters\":{\"type\":\"object\"}},{"
	 "\"type\":\"namespace\",\"name\":\"n\",\"tools\":[{\"type\":\"custom\",\"name\":"
	 "\"c\",\"format\":{\"type\":\"text\"}}]}],\"tool_choice\":{\"type\":"
	 "\"function\","
	 "\"name\":\"f\"},\"include\":[\"reasoning.encrypted_content\"],\"text\":{"
	 "\"format\":"
	 "{\"type\":\"text\"}},\"reasoning\":{\"effort\":\"low\"},\"max_output_tokens\":"
	 "50,"
	 "\"store\":false,\"background\":false,\"stream\":true}"},
	{MUTATE_GEMINI,
	 "{\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":\"t\"},{\"inlineData\":{"
	 "\"mimeType\":\"image/png\",\"data\":\"AA==\"},\"mediaResolution\":{\"level\":"
	 "\"l\"}}]},{\"role\":\"model\",\"parts\":[{\"text\":\"h\",\"thought\":true},{"
	 "\"functionCall\":{\"id\":\"a1\",\"name\":\"f\",\"args\":{\"a\":[1]}},"
	 "\"thoughtSignature\":\"AA==\"}]},{\"role\":\"user\",\"parts\":[{"
	 "\"functionResponse\":{\"id\":\"a1\",\"name\":\"f\",\"response\":{\"r\":1},"
	 "\"parts\":[{\"inlineData\":{\"mimeType\":\"audio/"
	 "wav\",\"data\":\"AA==\"}}]}}]}],"
	 "\"systemInstruction\":{\"parts\":[{\"text\":\"s\"}]},\"tools\":[{"
	 "\"functionDeclarations\":[{\"name\":\"f\",\"description\":\"d\",\"parameters\":"
	 "{"
	 "\"type\":\"object\"}}]}],\"toolConfig\":{\"functionCallingConfig\":{\"mode\":"
	 "\"ANY\",\"allowedFunctionNames\":[\"f\"]}},\"safetySettings\":[{\"category\":"
	 "\"c\",\"threshold\":\"t\"}],\"generationConfig\":{\"candidateCount\":2,"
	 "\"maxOutputTokens\":50,\"temperature\":0.5,\"stopSequences\":[\"x\"],"
	 "\"responseSchema\":{\"type\":\"string\"},\"responseModalities\":[\"TEXT\"],"
	 "\"thinkingConfig\":{\"includeThoughts\":true,\"thinkingBudget\":9}}}"},
	{MUTATE_FETCH,
	 "{\"seq\":1,\"method\":\"POST\",\"url\":\"https://a.example/x?y\",\"headers\":[["
	 "\"accept\",\"text/plain\"],[\"content-type\",\"text/"
	 "plain\"]],\"body\":\"aGk=\"}"},
};

/* What takes a value's place. */
static const char *const mutate_values[] = {
	"null",
	"true",
	"7",
	"-1.5",
	"18446744073709551615",
	"\"\"",
	"\"x\"",
	"\"" MUTATE_FAR "\"",
	"[]",
	"[\"" MUTATE_FAR "\"]",
	"[null]",
	"[[7]]",
	"{}",
	"{\"type\":7}",
	"{\"type\":\"text\",\"url\":\"" MUTATE_FAR "\"}",
	"{\"url\":[\"" MUTATE_FAR "\"]}",
};
enum {
	MUTATE_IN_LIST = ARRAY_SIZE(mutate_values),
	MUTATE_IN_OBJECT,
	MUTATE_UPPER_KEY,   /* of the value's key: "TYPE" */
	MUTATE_CAPITAL_KEY, /* "Type" */
	MUTATE_TWICE,	    /* the value, and under "X" beside it */
	MUTATE_OPS,
};

struct mutation {
	size_t place; /* of a value, in the order in which they stand; 0: the first member */
	unsigned op;
	size_t at;
	struct jsonw *w;
	bool done;
};

static void mutate_value(const struct json *v, struct mutation *m);

static void mutate_key(const char *key, unsigned op, struct jsonw *w)
{
	char text[64];
	size_t n = 0;

	for (; key[n] && n < sizeof(text) - 1; n++)
		text[n] = op == MUTATE_UPPER_KEY || (op == MUTATE_CAPITAL_KEY && n == 0)
				  ? (char)toupper((unsigned char)key[n])
				  : key[n];
	text[n] = '\0';
	jsonw_key(w, text);
}

static void mutate_member(const char *key, const struct json *v, void *arg)
{
	struct mutation *m = arg;

	mutate_key(key, m->at == m->place ? m->op : 0, m->w);
	if (m->at == m->place && m->op == MUTATE_TWICE) {
		mutate_value(v, m);
		jsonw_key(m->w, "X");
		json_write(v, m->w);
		return;
	}
	mutate_value(v, m);
}

static void mutate_inside(const struct json *v, struct mutation *m)
{
	switch (json_kind_of(v)) {
	case JSON_OBJECT:
		jsonw_obj(m->w);
		json_obj_each(v, mutate_member, m);
		jsonw_obj_end(m->w);
		break;
	case JSON_ARRAY:
		jsonw_arr(m->w);
		for (size_t i = 0; i < json_arr_len(v); i++)
			mutate_value(json_arr_at(v, i), m);
		jsonw_arr_end(m->w);
		break;
	case JSON_NULL:
	case JSON_BOOL:
	case JSON_NUMBER:
	case JSON_STRING:
		json_write(v, m->w);
		break;
	}
}

static void mutate_value(const struct json *v, struct mutation *m)
{
	if (m->at++ != m->place) {
		mutate_inside(v, m);
		return;
	}
	m->done = true;
	if (m->op < ARRAY_SIZE(mutate_values)) {
		jsonw_raw(m->w, mutate_values[m->op], strlen(mutate_values[m->op]));
		m->at = SIZE_MAX / 2; /* what stood there is counted no more */
		return;
	}
	if (m->op == MUTATE_IN_LIST)
		jsonw_arr(m->w);
	if (m->op == MUTATE_IN_OBJECT) {
		jsonw_obj(m->w);
		jsonw_key(m->w, "k");
	}
	mutate_inside(v, m);
	if (m->op == MUTATE_IN_LIST)
		jsonw_arr_end(m->w);
	if (m->op == MUTATE_IN_OBJECT)
		jsonw_obj_end(m->w);
}

/* The request with one mutation, into out (initialised by the caller). False: there is no
 * such place. */
static inline bool mutate(const struct json *request, size_t place, unsigned op,
			  struct buf *out)
{
	struct jsonw w;
	struct mutation m = {.place = place, .op = op, .w = &w};

	jsonw_init(&w, out);
	mutate_inside(request, &m);
	return m.done;
}

#endif
