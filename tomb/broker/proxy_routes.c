/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See proxy_routes.h.
 */
#include "tomb/broker/proxy_routes.h"

#include "common/proto/broker_proto.h"
#include "common/str.h"

#include <string.h>

/* SDKs name the revision of their calls in the query; it changes nothing here. */
static const char *const sdk[] = {"beta", NULL};
static const char *const paging[] = {"limit", "before_id",	"after_id",
				     "beta",  "client_version", NULL};
static const char *const gemini[] = {"alt", NULL};
static const char *const pages[] = {"pageSize", "pageToken", "filter", NULL};
static const char *const url[] = {"url", NULL};
static const char *const none[] = {NULL};

#define ASK(path, what, dialect) {HTTP_M_POST, path, what, dialect, sdk, NULL}
#define MODELS(path, what) {HTTP_M_GET, path, what, DIALECT_OPENAI, paging, NULL}
#define NO(method, path, dialect, instead)                                               \
	{method, path, NOT_SERVED, dialect, none, instead}
/* Which of the dialects the words are of is said by the path. */
#define REFUSED(path, dialect, instead)                                                  \
	NO(HTTP_M_GET, path, dialect, instead), NO(HTTP_M_POST, path, dialect, instead), \
		NO(HTTP_M_DELETE, path, dialect, instead)
/* One, and what is below it, with the version and without it. */
#define REFUSED_ALL(path, dialect, instead)                                              \
	REFUSED("/v1" path, dialect, instead), REFUSED(path, dialect, instead),          \
		REFUSED("/v1" path "/", dialect, instead),                               \
		REFUSED(path "/", dialect, instead)

#define COMPLETIONS                                                                      \
	"completions of a bare text; ask POST /v1/chat/completions, with the text as a " \
	"message"
#define STORED                                                                           \
	"nothing is stored at a provider: of the Responses API there is POST "           \
	"/v1/responses, with the whole conversation as input"
#define OLLAMA                                                                           \
	"Ollama's own API; its server has OpenAI's too: POST /v1/chat/completions, "     \
	"/v1/embeddings, GET /v1/models"
#define GEMINI                                                                           \
	"this part of Gemini's API; served are POST "                                    \
	"/v1beta/models/MODEL:generateContent, "                                         \
	":streamGenerateContent?alt=sse, :countTokens, GET /v1beta/models"
#define VERTEX                                                                           \
	"Vertex AI, whose host and path name a project of Google's cloud; ask Gemini's " \
	"API: "                                                                          \
	"POST /v1beta/models/MODEL:generateContent"
#define OTHER                                                                            \
	"files, batches, pictures and sounds of a provider; served are POST "            \
	"/v1/chat/completions, /v1/responses, /v1/embeddings, /v1/messages, "            \
	"/v1/messages/count_tokens, GET /v1/models"

const struct proxy_route proxy_routes[] = {
	ASK(BROKER_PATH_CHAT, ASK_CHAT, DIALECT_OPENAI),
	ASK("/chat/completions", ASK_CHAT, DIALECT_OPENAI),
	ASK("/v1/responses", ASK_RESPONSES, DIALECT_OPENAI),
	ASK("/responses", ASK_RESPONSES, DIALECT_OPENAI),
	ASK("/v1/embeddings", ASK_EMBEDDINGS, DIALECT_OPENAI),
	ASK("/embeddings", ASK_EMBEDDINGS, DIALECT_OPENAI),
	ASK(BROKER_PATH_MESSAGES, ASK_MESSAGES, DIALECT_ANTHROPIC),
	ASK("/messages", ASK_MESSAGES, DIALECT_ANTHROPIC),
	ASK("/v1/messages/count_tokens", ASK_COUNT_TOKENS, DIALECT_ANTHROPIC),
	ASK("/messages/count_tokens", ASK_COUNT_TOKENS, DIALECT_ANTHROPIC),
	MODELS(BROKER_PATH_MODELS, LIST_MODELS),
	MODELS("/models", LIST_MODELS),
	MODELS(BROKER_PATH_MODELS "/", SHOW_MODEL),
	MODELS("/models/", SHOW_MODEL),
	{HTTP_M_POST, BROKER_PATH_GEMINI, ASK_GEMINI, DIALECT_GEMINI, gemini, NULL},
	{HTTP_M_POST, "/models/", ASK_GEMINI, DIALECT_GEMINI, gemini, NULL},
	{HTTP_M_GET, "/v1beta/models", LIST_MODELS, DIALECT_GEMINI, pages, NULL},
	{HTTP_M_GET, BROKER_PATH_GEMINI, SHOW_MODEL, DIALECT_GEMINI, pages, NULL},
	{HTTP_M_GET, BROKER_PATH_FETCH, FETCH, DIALECT_PLAIN, url, NULL},
	{HTTP_M_POST, BROKER_PATH_FETCH, FETCH, DIALECT_PLAIN, url, NULL},
	{HTTP_M_GET, BROKER_PATH_NPM, PACKAGE_NPM, DIALECT_PLAIN, none, NULL},
	{HTTP_M_GET, BROKER_PATH_PYPI, PACKAGE_PYPI, DIALECT_PLAIN, none, NULL},
	{HTTP_M_GET, BROKER_PATH_CARGO, PACKAGE_CARGO, DIALECT_PLAIN, none, NULL},
	{HTTP_M_GET, BROKER_PATH_GO, PACKAGE_GO, DIALECT_PLAIN, none, NULL},
	/* known, and not served */
	REFUSED_ALL("/completions", DIALECT_OPENAI, COMPLETIONS),
	NO(HTTP_M_GET, "/v1/responses", DIALECT_OPENAI, STORED),
	NO(HTTP_M_GET, "/responses", DIALECT_OPENAI, STORED),
	REFUSED("/v1/responses/", DIALECT_OPENAI, STORED),
	REFUSED("/responses/", DIALECT_OPENAI, STORED),
	REFUSED_ALL("/conversations", DIALECT_OPENAI, STORED),
	REFUSED_ALL("/files", DIALECT_OPENAI, OTHER),
	REFUSED_ALL("/uploads", DIALECT_OPENAI, OTHER),
	REFUSED_ALL("/vector_stores", DIALECT_OPENAI, OTHER),
	REFUSED_ALL("/batches", DIALECT_OPENAI, OTHER),
	REFUSED_ALL("/moderations", DIALECT_OPENAI, OTHER),
	REFUSED_ALL("/images", DIALECT_OPENAI, OTHER),
	REFUSED_ALL("/audio", DIALECT_OPENAI, OTHER),
	REFUSED_ALL("/messages/batches", DIALECT_ANTHROPIC, OTHER),
	REFUSED("/v1beta/", DIALECT_GEMINI, GEMINI),
	REFUSED("/v1alpha/", DIALECT_GEMINI, GEMINI),
	REFUSED("/v1beta1/", DIALECT_GEMINI, VERTEX),
	REFUSED("/upload/", DIALECT_GEMINI, OTHER),
	REFUSED("/api/", DIALECT_PLAIN, OLLAMA),
};
const size_t proxy_n_routes = ARRAY_SIZE(proxy_routes);

enum proxy_dialect proxy_dialect_of(const char *path)
{
	if (!path)
		return DIALECT_OPENAI;
	for (size_t i = 0; i < proxy_n_routes; i++) {
		const struct proxy_route *r = &proxy_routes[i];
		bool is_below = r->path[strlen(r->path) - 1] == '/';

		if (is_below ? str_starts(path, r->path) : str_eq(path, r->path))
			return r->dialect;
	}
	if (str_starts(path, BROKER_PATH_MESSAGES))
		return DIALECT_ANTHROPIC;
	return str_starts(path, "/v1/") ? DIALECT_OPENAI : DIALECT_PLAIN;
}

const char *proxy_method_name(const struct proxy_route *r)
{
	return r->method == HTTP_M_POST	    ? "POST"
	       : r->method == HTTP_M_DELETE ? "DELETE"
					    : "GET";
}

size_t proxy_body_max(const struct proxy_route *r)
{
	if (r->method != HTTP_M_POST)
		return 0;
	return r->what == FETCH ? INTENT_FETCH_BODY_MAX_BYTES : INTENT_REQUEST_MAX_BYTES;
}

bool proxy_takes_headers(enum proxy_what what)
{
	return what == FETCH || what == ASK_MESSAGES || what == ASK_COUNT_TOKENS ||
	       what == PACKAGE_PYPI;
}
