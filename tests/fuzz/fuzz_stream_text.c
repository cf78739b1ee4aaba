/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First byte: strict or not, and how many bytes the filters hold back. Second: how the rest is cut.
 * The filters change nothing, so a reader of his own, which adds up each text by its name and the
 * numbers on the way to it, must read the same before and behind, however much is held back. It
 * is the same however it is cut, what has gone through once goes through as it is, no
 * filter stays open and none keeps a byte.
 */
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/text/event_stream.h"
#include "common/text/stream_text.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OUT_MAX ((size_t)64 << 20)
#define TEXTS_MAX 256 /* beyond, nobody adds up */
#define DEPTH_MAX 24  /* as there */

/* ---- filters that hold back and change nothing -------------------------------------- */

struct tally {
	size_t keep, open, left;
};

struct hold {
	struct tally *t;
	struct buf text;
};

static void *hold_open(enum stream_text_form form, void *arg)
{
	struct hold *h = xnew(struct hold);

	assert(form == STREAM_TEXT_PLAIN || form == STREAM_TEXT_JSON);
	h->t = arg;
	h->t->open++;
	buf_init(&h->text, OUT_MAX);
	return h;
}

static void hold_feed(void *filter, const char *text, size_t len, struct buf *out)
{
	struct hold *h = filter;
	size_t n;

	buf_add(&h->text, text, len);
	n = h->text.len > h->t->keep ? h->text.len - h->t->keep : 0;
	/* whole characters */
	while (n > 0 && n < h->text.len && (h->text.data[n] & 0xc0) == 0x80)
		n--;
	buf_add(out, h->text.data, n);
	buf_consume(&h->text, n);
}

static void hold_release(void *filter, struct buf *out)
{
	struct hold *h = filter;

	buf_add(out, h->text.data, h->text.len);
	buf_consume(&h->text, h->text.len);
}

static size_t hold_held(const void *filter)
{
	return ((const struct hold *)filter)->text.len;
}

static void hold_close(void *filter)
{
	struct hold *h = filter;

	h->t->open--;
	h->t->left += h->text.len;
	buf_done(&h->text);
	free(h);
}

static const struct stream_text_ops strict_ops = {hold_open, hold_feed,	 hold_release,
						  hold_held, hold_close, true};
static const struct stream_text_ops lax_ops = {hold_open, hold_feed,  hold_release,
					       hold_held, hold_close, false};

static int run(bool is_strict, size_t keep, const void *data, size_t size, size_t piece,
	       struct buf *out)
{
	struct tally t = {.keep = keep};
	struct stream_text *s = stream_text_new(is_strict ? &strict_ops : &lax_ops, &t);
	struct err err = ERR_INIT;
	int done = 0;

	for (size_t at = 0; at < size && done == 0; at += piece)
		done = stream_text_feed(s, (const char *)data + at,
					size - at < piece ? size - at : piece, out, &err);
	if (done == 0)
		done = stream_text_end(s, out, &err);
	stream_text_free(s);
	assert(t.open == 0);
	assert(done < 0 || t.left == 0);
	assert(done == 0 || (is_strict && err.id == ERRID_EGRESS_REPLY));
	assert(buf_ok(out));
	return done;
}

/* ---- a reader ------------------------------------------------------------------------- */

struct texts {
	struct {
		char id[512];
		struct buf text;
	} one[TEXTS_MAX];
	size_t n;
	/* Of several elements that have no number a frame can't say which one it is. */
	bool is_vague;
};

static bool is_text_name(const char *key)
{
	static const char *const names[] = {
		"content",	     "text",	     "thinking",
		"reasoning_content", "reasoning",    "refusal",
		"arguments",	     "partial_json", "input",
	};

	for (size_t i = 0; key && i < ARRAY_SIZE(names); i++)
		if (str_eq(key, names[i]))
			return true;
	return false;
}

static bool number_of(const struct json *v, uint64_t *ret)
{
	return json_kind_of(v) == JSON_OBJECT && json_has(v, "index") &&
	       json_get_u64(v, "index", false, 0, UINT32_MAX, ret, NULL) == 0;
}

static void add_text(struct texts *all, const char *key, const char *numbers,
		     const struct json *v)
{
	char id[512];
	const char *text = "";
	size_t i = 0;

	(void)snprintf(id, sizeof(id), "%s%s", numbers, key);
	while (i < all->n && !str_eq(all->one[i].id, id))
		i++;
	if (i == TEXTS_MAX) {
		all->is_vague = true;
		return;
	}
	if (i == all->n) {
		memcpy(all->one[i].id, id, sizeof(id));
		buf_init(&all->one[i].text, OUT_MAX);
		all->n++;
	}
	if (json_as_str(v, SIZE_MAX, &text, NULL) == 0)
		buf_adds(&all->one[i].text, text);
}

/* Where a value stands: the event itself; below its candidates, which are Gemini's. */
enum place { TOP, BELOW, GEMINI };

static void read_value(struct texts *all, const struct json *v, const char *key,
		       const char *numbers, enum place place);

static bool is_thought(const struct json *v)
{
	bool ret = false;

	return json_has(v, "thought") &&
	       json_get_bool(v, "thought", false, &ret, NULL) == 0 && ret;
}

static void read_list(struct texts *all, const struct json *v, const char *key,
		      const char *numbers, enum place place)
{
	bool is_numbered = key && (str_eq(key, "choices") || str_eq(key, "tool_calls") ||
				   str_eq(key, "candidates"));

	for (size_t i = 0; i < json_arr_len(v); i++) {
		const struct json *one = json_arr_at(v, i);
		char below[512];
		uint64_t n;
		bool by_place = is_numbered && !number_of(one, &n);

		all->is_vague |= by_place && json_arr_len(v) > 1;
		if (by_place)
			(void)snprintf(below, sizeof(below), "%s%zu,", numbers, i);
		read_value(all, one, key, by_place ? below : numbers, place);
	}
}

struct at {
	struct texts *all;
	const char *numbers;
	enum place place;
};

static void read_member(const char *key, const struct json *v, void *arg)
{
	const struct at *a = arg;

	/* values for a function, and no text that goes on */
	if (a->place == GEMINI && str_eq(key, "functionCall"))
		return;
	read_value(a->all, v, key, a->numbers,
		   a->place == GEMINI || (a->place == TOP && str_eq(key, "candidates"))
			   ? GEMINI
			   : BELOW);
}

static void read_value(struct texts *all, const struct json *v, const char *key,
		       const char *numbers, enum place place)
{
	char below[512], thought[512];
	struct at a = {.all = all, .numbers = numbers, .place = place};
	uint64_t n;

	switch (json_kind_of(v)) {
	case JSON_STRING:
		if (is_text_name(key))
			add_text(all, key, numbers, v);
		break;
	case JSON_ARRAY:
		read_list(all, v, key, numbers, place == TOP ? BELOW : place);
		break;
	case JSON_OBJECT:
		if (number_of(v, &n)) {
			(void)snprintf(below, sizeof(below), "%s%llu,", numbers,
				       (unsigned long long)n);
			a.numbers = below;
		}
		if (place == GEMINI && is_thought(v)) {
			(void)snprintf(thought, sizeof(thought), "%st,", a.numbers);
			a.numbers = thought;
		}
		json_obj_each(v, read_member, &a);
		break;
	case JSON_NULL:
	case JSON_BOOL:
	case JSON_NUMBER:
		break;
	}
}

static void read_event(struct texts *all, const struct buf *data)
{
	cleanup_json struct json *j = NULL;

	if (json_parse(data->data, data->len, DEPTH_MAX, &j, NULL) == 0)
		read_value(all, j, NULL, "", TOP);
}

static struct texts *texts_of(const void *stream, size_t size)
{
	struct texts *all = xnew(struct texts);
	const char *at = stream;
	struct event_stream s;
	struct event_line line;
	enum event_got got;

	event_stream_init(&s, OUT_MAX);
	while ((got = event_stream_take(&s, &at, &size, &line)) != EVENT_NONE) {
		assert(got != EVENT_TOO_LONG);
		if (got == EVENT_END)
			read_event(all, &s.data);
	}
	(void)event_stream_end(&s, &line);
	read_event(all, &s.data);
	event_stream_done(&s);
	return all;
}

static void texts_free(struct texts *all)
{
	for (size_t i = 0; i < all->n; i++)
		buf_done(&all->one[i].text);
	free(all);
}

static bool is_same(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

/* Nothing lost, nothing twice, in the same order. An event may show a text as empty in which the
 * other has none. */
static void check_texts(const struct texts *a, const struct texts *b)
{
	for (size_t i = 0; i < a->n; i++) {
		size_t k = 0;

		while (k < b->n && !str_eq(a->one[i].id, b->one[k].id))
			k++;
		assert(k < b->n ? is_same(&a->one[i].text, &b->one[k].text)
				: a->one[i].text.len == 0);
	}
}

static void check_reader(const void *data, size_t size, const struct buf *out)
{
	struct texts *before = texts_of(data, size),
		     *behind = texts_of(out->data, out->len);

	if (!before->is_vague && !behind->is_vague) {
		check_texts(before, behind);
		check_texts(behind, before);
	}
	texts_free(before);
	texts_free(behind);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_buf struct buf held = {0}, cut = {0}, plain = {0}, again = {0};
	bool is_strict;
	size_t keep;
	int done;

	if (size < 3 || size > 65536)
		return 0;
	buf_init(&held, OUT_MAX);
	buf_init(&cut, OUT_MAX);
	buf_init(&plain, OUT_MAX);
	buf_init(&again, OUT_MAX);
	is_strict = data[0] % 2 == 0;
	keep = data[0] / 2 % 32;
	done = run(is_strict, keep, data + 2, size - 2, size, &held);
	assert(run(is_strict, keep, data + 2, size - 2, (size_t)data[1] + 1, &cut) ==
	       done);
	assert(is_same(&held, &cut));
	if (run(is_strict, 0, data + 2, size - 2, size, &plain) < 0) {
		assert(done < 0);
		return 0;
	}
	check_reader(data + 2, size - 2, &plain);
	if (done == 0)
		check_reader(data + 2, size - 2, &held);
	done = run(is_strict, 0, plain.data, plain.len, size, &again);
	assert(done == 0 && is_same(&plain, &again));
	return 0;
}
