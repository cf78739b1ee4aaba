/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See ask_cost.h.
 */
#include "vessel/broker/intents/ask_cost.h"
#include "common/proto/broker_proto.h"
#include "common/str.h"
#include "vessel/broker/intents/ask_gemini.h"
#include <string.h>
#include <strings.h>

#define BLOCKS_DEPTH_MAX 8

/* Betas that cost nothing by themselves, without their dates: what some of them open costs
 * something, and is refused or counted where the request asks for it. */
static const char *const free_betas[] = {
	"advanced-tool-use",
	"advisor-tool",
	"afk-mode",
	"cache-diagnosis",
	"claude-code",
	"code-execution",
	"code-execution-web-tools",
	"compact",
	"computer-use",
	"context-hint",
	"context-management",
	"dev-full-thinking",
	"effort",
	"extended-cache-ttl",
	"files-api",
	"fine-grained-tool-streaming",
	"inline-tools",
	"interleaved-thinking",
	"max-tokens-3-5-sonnet",
	"mcp-client",
	"mcp-servers",
	"mid-conversation-output-config",
	"mid-conversation-system",
	"mid-conversation-system-clear-at",
	"mid-conversation-tool-changes",
	"model-context-window-exceeded",
	"oauth",
	"output-128k",
	"pdfs",
	"prompt-caching",
	"prompt-caching-scope",
	"redact-thinking",
	"server-side-fallback",
	"skills",
	"structured-outputs",
	"task-budgets",
	"thinking-binding-controls",
	"thinking-display-updates",
	"thinking-token-count",
	"token-counting",
	"token-efficient-tools",
	"tool-examples",
	"tool-search-tool",
	"web-fetch",
	"web-search",
};

static int bad(struct err *err, const char *what)
{
	return err_set_id(err, ERRID_BROKER_REQUEST, "%s", what);
}

static int costs(struct err *err, const char *what)
{
	return err_set_id(err, ERRID_BROKER_PRICE, "%s", what);
}

/* ---- reading; the kinds of values are looked at, whoever looked before ---- */

static const char *str_of(const struct json *obj, const char *key)
{
	const char *s = NULL;

	if (json_kind_of(obj) != JSON_OBJECT ||
	    json_get_str(obj, key, true, SIZE_MAX, &s, NULL) < 0)
		return NULL;
	return s;
}

static const struct json *child(const struct json *obj, const char *key)
{
	const struct json *v = NULL;

	if (json_kind_of(obj) != JSON_OBJECT ||
	    (json_get_obj(obj, key, true, &v, NULL) < 0 &&
	     json_get_arr(obj, key, true, SIZE_MAX, &v, NULL) < 0))
		return NULL;
	return v;
}

static bool is_one_of(const char *s, const char *const *list, size_t n)
{
	for (size_t i = 0; s && i < n; i++)
		if (str_eq(s, list[i]))
			return true;
	return false;
}

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

static int read_output(const struct json *rq, struct ask_cost *c, struct err *err)
{
	const struct json *thinking = child(rq, "thinking");
	uint64_t old = 0, now = 0;

	c->choices = 1;
	if (c->api == API_RESPONSES)
		return read_count(rq, "max_output_tokens", ASK_OUTPUT_MAX, &c->asked,
				  err);
	if (read_count(rq, "n", ASK_CHOICES_MAX, &c->choices, err) < 0 ||
	    read_count(rq, "max_tokens", ASK_OUTPUT_MAX, &old, err) < 0 ||
	    read_count(rq, "max_completion_tokens", ASK_OUTPUT_MAX, &now, err) < 0)
		return -1;
	/* of two that differ both hold */
	c->asked = !old || (now && now < old) ? now : old;
	if (json_kind_of(thinking) == JSON_OBJECT &&
	    read_count(thinking, "budget_tokens", ASK_OUTPUT_MAX, &c->thinking, err) < 0)
		return -1;
	return 0;
}

/* ---- what a message carries ---- */

static const char *const picture_types[] = {"image/png", "image/jpeg", "image/jpg",
					    "image/gif", "image/webp"};

/* "data:image/png;base64,..." */
static bool is_picture_url(const char *url)
{
	for (size_t i = 0; url && i < ARRAY_SIZE(picture_types); i++) {
		size_t n = strlen(picture_types[i]);

		if (str_starts(url, "data:") &&
		    strncasecmp(url + 5, picture_types[i], n) == 0 &&
		    strncasecmp(url + 5 + n, ";base64,", 8) == 0)
			return true;
	}
	return false;
}

static void count_picture(struct ask_cost *c, const char *bytes)
{
	c->pictures++;
	c->picture_bytes += strlen(bytes);
}

static void image_url(struct ask_cost *c, const struct json *block)
{
	const struct json *o = child(block, "image_url");
	const char *url = o ? str_of(o, "url") : str_of(block, "image_url");

	if (is_picture_url(url))
		count_picture(c, url);
	else
		c->has_documents = true;
}

static void image(struct ask_cost *c, const struct json *block)
{
	const struct json *source = child(block, "source");
	const char *type = str_of(source, "type"), *data = str_of(source, "data"),
		   *media = str_of(source, "media_type");

	if (type && str_eq(type, "base64") && data &&
	    is_one_of(media, picture_types, ARRAY_SIZE(picture_types)))
		count_picture(c, data);
	else
		c->has_documents = true;
}

static bool is_cited(const struct json *block)
{
	return json_has(block, "citations") && !json_is_null(block, "citations");
}

static void look_at(struct ask_cost *c, const struct json *v, unsigned depth);

static void document(struct ask_cost *c, const struct json *block, unsigned depth)
{
	const struct json *source = child(block, "source");
	const char *type = str_of(source, "type");

	/* citations add words of the provider's to every sentence */
	if (is_cited(block) || !type)
		c->has_documents = true;
	else if (str_eq(type, "content"))
		look_at(c, child(source, "content"), depth + 1);
	else if (!str_eq(type, "text"))
		c->has_documents = true;
}

/* Without a type: text, when it has nothing else. */
static bool is_bare_text(const struct json *block)
{
	const struct json *v;
	const char *key;

	for (size_t i = 0; json_obj_at(block, i, &key, &v); i++)
		if (!str_eq(key, "text") && !str_eq(key, "cache_control"))
			return false;
	return true;
}

static void block(struct ask_cost *c, const struct json *b, unsigned depth)
{
	static const char *const texts[] = {
		"text",	       "thinking",    "redacted_thinking", "tool_use",
		"tool_result", "refusal",     "tool_reference",	   "compaction",
		"input_text",  "output_text", "summary_text",	   "reasoning_text"};
	static const char *const sounds[] = {"input_audio", "audio_url", "audio"};
	const char *type = str_of(b, "type");

	if (is_one_of(type, texts, ARRAY_SIZE(texts)))
		look_at(c, child(b, "content"), depth + 1);
	else if (type && (str_eq(type, "image_url") || str_eq(type, "input_image")))
		image_url(c, b);
	else if (type && str_eq(type, "image"))
		image(c, b);
	else if (type && str_eq(type, "document"))
		document(c, b, depth);
	else if (type && str_eq(type, "search_result") && !is_cited(b))
		look_at(c, child(b, "content"), depth + 1);
	else if (is_one_of(type, sounds, ARRAY_SIZE(sounds)))
		c->has_audio = true;
	else if (type || !is_bare_text(b))
		c->has_documents = true; /* nobody here knows what it is */
}

static void look_at(struct ask_cost *c, const struct json *v, unsigned depth)
{
	if (depth > BLOCKS_DEPTH_MAX)
		c->has_documents = true;
	else if (json_kind_of(v) == JSON_OBJECT)
		block(c, v, depth);
	for (size_t i = 0; depth <= BLOCKS_DEPTH_MAX && json_kind_of(v) == JSON_ARRAY &&
			   i < json_arr_len(v);
	     i++)
		look_at(c, json_arr_at(v, i), depth + 1);
}

static void read_messages(const struct json *rq, struct ask_cost *c)
{
	const struct json *messages = child(rq, "messages");

	look_at(c, child(rq, "system"), 0);
	for (size_t i = 0;
	     json_kind_of(messages) == JSON_ARRAY && i < json_arr_len(messages); i++) {
		const struct json *m = json_arr_at(messages, i);

		look_at(c, child(m, "content"), 0);
		c->has_audio = c->has_audio || child(m, "audio");
	}
}

/* What is an item's own is text; its content, and what a tool answered, are blocks. */
static void read_items(const struct json *rq, struct ask_cost *c)
{
	const struct json *input = child(rq, "input");

	for (size_t i = 0; json_kind_of(input) == JSON_ARRAY && i < json_arr_len(input);
	     i++) {
		const struct json *item = json_arr_at(input, i);

		look_at(c, child(item, "content"), 0);
		look_at(c, child(item, "output"), 0);
	}
}

/* ---- what else costs ---- */

static void read_tools(const struct json *rq, struct ask_cost *c)
{
	const struct json *tools = child(rq, "tools");

	c->has_tools = tools || child(rq, "functions");
	for (size_t i = 0; json_kind_of(tools) == JSON_ARRAY && i < json_arr_len(tools);
	     i++) {
		const char *type = str_of(json_arr_at(tools, i), "type");

		c->own_tools +=
			type && !str_eq(type, "function") && !str_eq(type, "custom");
	}
}

/* Edits that take something away pass; to compact, the provider asks a model again. */
static int check_edits(const struct json *rq, struct err *err)
{
	const struct json *management = child(rq, "context_management");
	const struct json *edits = child(management, "edits");

	/* a list of the Responses API has nothing but that */
	if (json_arr_len(management) > 0)
		return costs(err, "context_management");
	for (size_t i = 0; json_kind_of(edits) == JSON_ARRAY && i < json_arr_len(edits);
	     i++) {
		const char *type = str_of(json_arr_at(edits, i), "type");

		if (!type || !str_starts(type, "clear_"))
			return costs(err,
				     "context_management: an edit that asks a model");
	}
	return 0;
}

static bool is_text_only(const struct json *modalities)
{
	for (size_t i = 0; i < json_arr_len(modalities); i++) {
		const char *s = NULL;

		if (json_as_str(json_arr_at(modalities, i), SIZE_MAX, &s, NULL) < 0 ||
		    !str_eq(s, "text"))
			return false;
	}
	return true;
}

static int read_more(const struct json *rq, struct ask_cost *c, struct err *err)
{
	const struct json *modalities = child(rq, "modalities");

	/* what of it was not used is billed all the same, beyond every cap */
	if (json_has(rq, "prediction") && !json_is_null(rq, "prediction"))
		return costs(err, "prediction");
	if (child(rq, "audio") ||
	    (json_kind_of(modalities) == JSON_ARRAY && !is_text_only(modalities)))
		c->has_audio = true;
	c->tier = str_of(rq, "service_tier");
	c->speed = str_of(rq, "speed");
	c->geo = str_of(rq, "inference_geo");
	return check_edits(rq, err);
}

/* Wherever it stands: what is no block's costs nothing, and is taken for one. */
static void see_cache(enum json_piece what, const char *key, const char *text, size_t len,
		      void *arg)
{
	struct ask_cost *c = arg;

	if (what == JSON_PIECE_KEY && strcasecmp(text, "cache_control") == 0)
		c->writes_cache = true;
	if (what == JSON_PIECE_STRING && key && strcasecmp(key, "ttl") == 0 &&
	    !(len == 2 && memcmp(text, "5m", 2) == 0))
		c->writes_cache_long = true;
}

int ask_cost_read(const struct json *rq, enum portal_api api, struct ask_cost *ret,
		  struct err *err)
{
	struct ask_cost c = {.api = api, .choices = 1};

	if (api == API_GENERATE)
		return ask_gemini_cost(rq, ret, err);
	if (!ask_only_counts(api) &&
	    (read_output(rq, &c, err) < 0 || read_more(rq, &c, err) < 0))
		return -1;
	if (api == API_MESSAGES && c.choices != 1)
		return bad(err, "n");
	if (api == API_RESPONSES)
		read_items(rq, &c);
	else if (!ask_only_counts(api))
		read_messages(rq, &c);
	read_tools(rq, &c);
	json_visit(rq, see_cache, &c);
	*ret = c;
	return 0;
}

/* ---- prices ---- */

static uint64_t max_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static const struct conf_extra *find_extra(const struct conf_model *m, const char *kind,
					   const char *name, size_t len)
{
	size_t n = strlen(kind);

	for (size_t i = 0; i < m->n_extras; i++) {
		const char *s = m->extra[i].name;

		if (strncmp(s, kind, n) == 0 && strlen(s) == n + len &&
		    memcmp(s + n, name, len) == 0)
			return &m->extra[i];
	}
	return NULL;
}

static int use_extra(const struct conf_model *m, const char *kind, const char *name,
		     size_t len, bool is_free, struct ask_prices *p, struct err *err)
{
	const struct conf_extra *x = find_extra(m, kind, name, len);

	if (!x && is_free)
		return 0;
	if (!x)
		return err_set_id(err, ERRID_BROKER_PRICE, "%s%.*s has no price", kind,
				  (int)(len < 64 ? len : 64), name);
	p->input = max_of(p->input, x->input_price);
	p->output = max_of(p->output, x->output_price);
	/* one of which it is not known leaves it unknown */
	p->context = p->context && x->context ? max_of(p->context, x->context) : 0;
	return 0;
}

static bool has_form(const char *s, const char *form)
{
	for (; *form; s++, form++)
		if (*form == 'd' ? *s < '0' || *s > '9' : *s != *form)
			return false;
	return true;
}

/* "name-2026-01-31" or "name-20260131" without its date. */
static size_t undated(const char *s, size_t len)
{
	static const char *const forms[] = {"-dddd-dd-dd", "-dddddddd"};

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		size_t n = strlen(forms[i]);

		if (len > n && has_form(s + len - n, forms[i]))
			return len - n;
	}
	return len;
}

static bool is_free_beta(const struct conf_portal *portal, const char *name, size_t len)
{
	size_t n = undated(name, len);

	for (size_t i = 0; i < portal->n_betas; i++)
		if (strlen(portal->beta[i]) == len &&
		    memcmp(portal->beta[i], name, len) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(free_betas); i++)
		if (strlen(free_betas[i]) == n && memcmp(free_betas[i], name, n) == 0)
			return true;
	return false;
}

static int use_betas(const char *betas, const struct conf_portal *portal,
		     const struct conf_model *m, struct ask_prices *p, struct err *err)
{
	for (const char *s = betas; s && *s;) {
		size_t len = strcspn(s, ",");

		if (use_extra(m, "beta:", s, len, is_free_beta(portal, s, len), p, err) <
		    0)
			return -1;
		s += len + (s[len] == ',');
	}
	return 0;
}

static int use_word(const struct conf_model *m, const char *kind, const char *word,
		    const char *const *free_words, size_t n, struct ask_prices *p,
		    struct err *err)
{
	return word ? use_extra(m, kind, word, strlen(word),
				is_one_of(word, free_words, n), p, err)
		    : 0;
}

/* Read where nothing is said, what is written to the cache costs a quarter more than other
 * input, and twice as much when it stays there long: Anthropic's prices, and those of who
 * passes such a request on. */
static void cache_prices(const struct ask_cost *c, const struct conf_portal *portal,
			 const struct conf_model *m, struct ask_prices *p)
{
	bool is_extra = p->input != m->input_price || p->output != m->output_price;
	uint64_t quarter = p->input + (p->input + 3) / 4;

	p->cache_read = is_extra ? p->input : m->cache_read_price;
	if (portal->kind != PORTAL_ANTHROPIC && !c->writes_cache)
		p->cache_write = p->input;
	else if (m->has_cache_write && !is_extra)
		p->cache_write = m->cache_write_price;
	else
		p->cache_write = max_of(quarter, m->cache_write_price);
	if (c->writes_cache_long)
		p->cache_write = max_of(p->cache_write, 2 * p->input);
}

int ask_prices_of(const struct ask_cost *c, const char *betas,
		  const struct conf_portal *portal, const struct conf_model *m,
		  struct ask_prices *ret, struct err *err)
{
	static const char *const tiers[] = {"auto",	"default",	 "flex",
					    "standard", "standard_only", "unspecified"},
				 *const speeds[] = {"standard"},
				 *const geos[] = {"global"};
	struct ask_prices p = {.input = m->input_price,
			       .output = m->output_price,
			       .context = m->context};

	if (use_betas(betas, portal, m, &p, err) < 0 ||
	    use_word(m, "service_tier:", c->tier, tiers, ARRAY_SIZE(tiers), &p, err) <
		    0 ||
	    use_word(m, "speed:", c->speed, speeds, ARRAY_SIZE(speeds), &p, err) < 0 ||
	    use_word(m, "inference_geo:", c->geo, geos, ARRAY_SIZE(geos), &p, err) < 0 ||
	    (c->has_audio && use_extra(m, "audio", "", 0, false, &p, err) < 0))
		return -1;
	if ((c->has_documents || c->has_audio) && !p.context)
		return costs(err,
			     "a document, a film or a sound: how many tokens it is "
			     "only the model's context bounds, which codex.yaml does "
			     "not name");
	cache_prices(c, portal, m, &p);
	*ret = p;
	return 0;
}

/* ---- how much ---- */

uint64_t ask_input_most(const struct ask_cost *c, const struct ask_prices *p,
			const struct conf_model *m, size_t bytes)
{
	uint64_t text = bytes > c->picture_bytes ? bytes - c->picture_bytes : 0;
	uint64_t most = text + c->pictures * m->picture + ASK_FRAME_TOKENS +
			(c->has_tools ? ASK_TOOLS_TOKENS : 0) +
			(uint64_t)c->own_tools * ASK_TOOLS_TOKENS;

	if (ask_only_counts(c->api))
		return 0;
	if (p->context && (c->has_documents || c->has_audio || most > p->context))
		return p->context;
	return most;
}

int ask_output(const struct ask_cost *c, const struct conf_model *m, uint64_t *ret_least,
	       uint64_t *ret_most, struct err *err)
{
	bool has_none = c->api == API_EMBEDDINGS || ask_only_counts(c->api);
	uint64_t most = c->asked	? c->asked
			: m->max_output ? m->max_output
					: ASK_OUTPUT_DEFAULT;
	uint64_t least = ASK_OUTPUT_LEAST;

	if (m->max_output && most > m->max_output)
		most = m->max_output;
	/* a provider refuses a cap that its own thinking would fill; where the job's was below
	 * that already, the two mean something else */
	if (c->thinking && (!c->asked || c->asked > c->thinking)) {
		least = max_of(least, c->thinking + 1);
		if (most < least)
			return err_set_id(err, ERRID_BROKER_REQUEST,
					  "thinking.budget_tokens: of the %llu tokens of "
					  "an answer that codex.yaml allows (max_output)",
					  (unsigned long long)most);
	}
	*ret_least = has_none ? 0 : least < most ? least : most;
	*ret_most = has_none ? 0 : most;
	return 0;
}

static uint64_t rounded(unsigned __int128 sum)
{
	sum = (sum + CONF_PRICE_PER - 1) / CONF_PRICE_PER;
	return sum > INT64_MAX ? INT64_MAX : (uint64_t)sum;
}

uint64_t ask_price(const struct ask_prices *p, const struct ask_tokens *t)
{
	uint64_t read = t->cache_read < t->input ? t->cache_read : t->input;
	uint64_t rest = t->input - read;
	uint64_t written = t->cache_write < rest ? t->cache_write : rest;

	return rounded((unsigned __int128)p->input * (rest - written) +
		       (unsigned __int128)p->cache_read * read +
		       (unsigned __int128)p->cache_write * written +
		       (unsigned __int128)p->output * t->output);
}

uint64_t ask_price_input(const struct ask_cost *c, const struct ask_prices *p,
			 uint64_t input)
{
	uint64_t price = max_of(p->input, p->cache_read);

	if (c->writes_cache)
		price = max_of(price, p->cache_write);
	return rounded((unsigned __int128)price * input);
}
