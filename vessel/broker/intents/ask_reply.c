/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See ask_reply.h.
 */
#include "vessel/broker/intents/ask_reply.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/intents/ask_text.h"
#include <string.h>

#define REPLY_DEPTH_MAX 28 /* a request's, in an event that says it again */
#define TOKENS_MAX ((uint64_t)1 << 40)
/* Four characters are a token in most texts, and an event has one or more of them. */
#define TOKEN_CHARS 8u	/* a text has at least so many on the whole */
#define TOKEN_EVENTS 2u /* some send half of one */
/* What is no guess: the longest tokens there are, and a letter an event. */
#define TOKEN_CHARS_MAX 128u
#define TOKEN_EVENTS_MAX 16u

struct ask_reply {
	enum portal_kind dialect;
	enum portal_api api;
	bool is_stream;
	bool hides_usage; /* the chunk with it was our wish, not the job's */
	bool is_raw;	  /* too large: passes unread from here on */
	struct event_stream lines;
	struct buf kept;	/* of a reply that is no stream: all of it */
	uint64_t chars, events; /* of text that came */
	struct ask_usage usage;
};

struct ask_reply *ask_reply_new(const struct ask *a, bool is_stream)
{
	struct ask_reply *r = xnew(struct ask_reply);

	r->dialect = a->dialect;
	r->api = a->api;
	r->is_stream = is_stream;
	r->hides_usage = a->dialect == PORTAL_OPENAI && a->api == API_CHAT && a->stream &&
			 !a->wants_usage;
	event_stream_init(&r->lines, ASK_EVENT_MAX_BYTES);
	buf_init(&r->kept, ASK_REPLY_MAX_BYTES);
	return r;
}

void ask_reply_free(struct ask_reply *r)
{
	if (!r)
		return;
	event_stream_done(&r->lines);
	buf_done(&r->kept);
	free(r);
}

static uint64_t max_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static bool has_text(const struct ask_reply *r)
{
	return r->api != API_EMBEDDINGS && !ask_only_counts(r->api);
}

struct ask_usage ask_reply_usage(const struct ask_reply *r)
{
	uint64_t came = max_of(r->chars / TOKEN_CHARS, r->events / TOKEN_EVENTS);
	struct ask_usage u = r->usage;

	if (u.tokens.output < came)
		u.is_known = false;
	u.tokens.output = max_of(u.tokens.output, came);
	return u;
}

uint64_t ask_reply_least(const struct ask_reply *r)
{
	return max_of(r->chars / TOKEN_CHARS_MAX, r->events / TOKEN_EVENTS_MAX);
}

/* ---- usage ---- */

static bool read_tokens(const struct json *usage, const char *key, uint64_t *ret)
{
	return !json_is_null(usage, key) &&
	       json_get_u64(usage, key, true, 0, TOKENS_MAX, ret, NULL) == 0;
}

static void read_openai(struct ask_reply *r, const struct json *usage)
{
	uint64_t input = 0, output = 0, cached = 0;
	struct ask_tokens *t = &r->usage.tokens;
	const struct json *details = NULL;

	if (!read_tokens(usage, "prompt_tokens", &input) ||
	    !read_tokens(usage, "completion_tokens", &output))
		return;
	if (json_get_obj(usage, "prompt_tokens_details", true, &details, NULL) == 0)
		(void)!read_tokens(details, "cached_tokens", &cached);
	/* of several the largest holds */
	t->input = max_of(t->input, input);
	t->output = max_of(t->output, output);
	t->cache_read = cached;
	r->usage.is_known = true;
}

/* In the words of the Responses API; of embeddings only the input. */
static void read_responses(struct ask_reply *r, const struct json *usage)
{
	const bool is_input = r->api == API_EMBEDDINGS;
	struct ask_tokens *t = &r->usage.tokens;
	uint64_t input = 0, output = 0, cached = 0;
	const struct json *details = NULL;

	if (!read_tokens(usage, is_input ? "prompt_tokens" : "input_tokens", &input) ||
	    (!is_input && !read_tokens(usage, "output_tokens", &output)))
		return;
	if (json_get_obj(usage, "input_tokens_details", true, &details, NULL) == 0)
		(void)!read_tokens(details, "cached_tokens", &cached);
	t->input = max_of(t->input, input);
	t->output = max_of(t->output, output);
	t->cache_read = cached;
	r->usage.is_known = true;
}

/* Running totals; the three parts of the input are told apart. */
static void read_anthropic(struct ask_reply *r, const struct json *usage, bool is_last)
{
	uint64_t input = 0, written = 0, cached = 0, output = 0;
	struct ask_tokens *t = &r->usage.tokens;

	(void)!read_tokens(usage, "input_tokens", &input);
	(void)!read_tokens(usage, "cache_creation_input_tokens", &written);
	(void)!read_tokens(usage, "cache_read_input_tokens", &cached);
	(void)!read_tokens(usage, "output_tokens", &output);
	t->cache_write = max_of(t->cache_write, written);
	t->cache_read = max_of(t->cache_read, cached);
	t->input = max_of(t->input, input + written + cached);
	t->output = max_of(t->output, output);
	if (is_last)
		r->usage.is_known = true;
}

/* It says how the answer ended, or that there is none. */
static bool is_last_of_gemini(const struct json *j)
{
	const struct json *v = NULL;

	if (json_get_obj(j, "promptFeedback", true, &v, NULL) == 0 &&
	    json_has(v, "blockReason"))
		return true;
	if (json_get_arr(j, "candidates", true, SIZE_MAX, &v, NULL) < 0)
		return false;
	for (size_t i = 0; i < json_arr_len(v); i++)
		if (json_kind_of(json_arr_at(v, i)) == JSON_OBJECT &&
		    json_has(json_arr_at(v, i), "finishReason"))
			return true;
	return false;
}

/* Running totals, in each event. What was thought is output, beside the candidates; a total that
 * says more than its parts is believed. */
static void read_gemini(struct ask_reply *r, const struct json *j)
{
	uint64_t input = 0, answer = 0, thought = 0, cached = 0, total = 0;
	struct ask_tokens *t = &r->usage.tokens;
	const struct json *usage = NULL;

	if (json_get_obj(j, "usageMetadata", true, &usage, NULL) < 0 ||
	    !read_tokens(usage, "promptTokenCount", &input))
		return;
	(void)!read_tokens(usage, "candidatesTokenCount", &answer);
	(void)!read_tokens(usage, "thoughtsTokenCount", &thought);
	(void)!read_tokens(usage, "cachedContentTokenCount", &cached);
	(void)!read_tokens(usage, "totalTokenCount", &total);
	t->input = max_of(t->input, input);
	t->output = max_of(t->output, answer + thought);
	if (total > input)
		t->output = max_of(t->output, total - input);
	t->cache_read = max_of(t->cache_read, cached);
	if (!r->is_stream || is_last_of_gemini(j))
		r->usage.is_known = true;
}

/* True when this event is the usage that only we wanted. */
static bool read_value(struct ask_reply *r, const struct json *j)
{
	const struct json *usage = NULL, *message = NULL, *choices = NULL;

	if (r->dialect == PORTAL_GEMINI) {
		read_gemini(r, j);
		return false;
	}
	/* in an event of that API it is the response's */
	if (r->api == API_RESPONSES && r->is_stream &&
	    json_get_obj(j, "response", true, &j, NULL) < 0)
		return false;
	(void)!json_get_obj(j, "usage", true, &usage, NULL);
	if (usage && (r->api == API_RESPONSES || r->api == API_EMBEDDINGS)) {
		read_responses(r, usage);
		return false;
	}
	if (r->dialect == PORTAL_ANTHROPIC) {
		if (usage)
			read_anthropic(r, usage, true);
		else if (json_get_obj(j, "message", true, &message, NULL) == 0 &&
			 json_get_obj(message, "usage", true, &usage, NULL) == 0)
			read_anthropic(r, usage, false);
		return false;
	}
	if (!usage)
		return false;
	read_openai(r, usage);
	return r->hides_usage &&
	       json_get_arr(j, "choices", true, SIZE_MAX, &choices, NULL) == 0 &&
	       json_arr_len(choices) == 0;
}

static bool read_text(struct ask_reply *r, const char *text, size_t len)
{
	cleanup_json struct json *j = NULL;

	/* most events have none: they are not parsed */
	if (!memmem(text, len, "\"usage", 6) ||
	    json_parse(text, len, REPLY_DEPTH_MAX, &j, NULL) < 0)
		return false;
	return read_value(r, j);
}

/* ---- events ---- */

/* The Responses API says each text again, whole, when it is done: no more than came in
 * deltas, unless none did. */
static bool repeats(const struct ask_reply *r, const struct buf *data)
{
	return r->api == API_RESPONSES &&
	       !memmem(buf_str(data), data->len, "\"delta\"", 7);
}

static void event_done(struct ask_reply *r, struct buf *out)
{
	const struct buf *event = &r->lines.event, *data = &r->lines.data;
	size_t chars = has_text(r) ? ask_text_chars(buf_str(data), data->len) : 0;

	if (repeats(r, data)) {
		r->chars = max_of(r->chars, chars);
	} else {
		r->chars += chars;
		r->events += chars > 0;
	}
	if (!read_text(r, buf_str(data), data->len))
		buf_add(out, event->data, event->len);
}

/* What is not read may be text, all of it. */
static void pass_raw(struct ask_reply *r, const char *data, size_t len, struct buf *out)
{
	buf_add(out, data, len);
	r->chars += has_text(r) ? len : 0;
}

static void begin_raw(struct ask_reply *r)
{
	r->is_raw = true;
	r->usage.is_known = false;
	event_stream_done(&r->lines);
	buf_done(&r->kept);
}

static void feed_stream(struct ask_reply *r, const char *data, size_t len,
			struct buf *out)
{
	struct event_line line;

	for (;;) {
		switch (event_stream_take(&r->lines, &data, &len, &line)) {
		case EVENT_NONE:
			return;
		case EVENT_LINE:
			break;
		case EVENT_END:
			event_done(r, out);
			break;
		case EVENT_TOO_LONG:
			pass_raw(r, r->lines.event.data, r->lines.event.len, out);
			pass_raw(r, data, len, out);
			begin_raw(r);
			return;
		}
	}
}

void ask_reply_feed(struct ask_reply *r, const void *data, size_t len, struct buf *out)
{
	if (len == 0)
		return;
	if (r->is_raw) {
		pass_raw(r, data, len, out);
	} else if (r->is_stream) {
		feed_stream(r, data, len, out);
	} else if (len > r->kept.max - r->kept.len) {
		/* which went on already */
		r->chars = has_text(r) ? r->kept.len : 0;
		pass_raw(r, data, len, out);
		begin_raw(r);
	} else {
		buf_add(out, data, len);
		buf_add(&r->kept, data, len);
	}
}

void ask_reply_end(struct ask_reply *r, struct buf *out)
{
	struct event_line line;

	if (r->is_raw)
		return;
	if (r->is_stream) {
		(void)event_stream_end(&r->lines, &line);
		if (r->lines.event.len) /* without its blank line */
			event_done(r, out);
		event_stream_done(&r->lines);
	} else if (r->kept.len) {
		r->chars = has_text(r) ? ask_text_chars(r->kept.data, r->kept.len) : 0;
		(void)read_text(r, r->kept.data, r->kept.len);
	}
	buf_done(&r->kept);
}
