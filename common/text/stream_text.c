/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Theory of operation. An event is read whole, parsed, and walked twice: first to learn in
 * which channels it speaks and whether it ends something, then to give each string to its
 * channel's filter. A string is told apart by its place: the keys on the way to it and
 * the "index" numbers of the objects that it lies in; elements of a list without such
 * a number share their place, so parts of one text are one text. The text of a model has a
 * short list of names, and for those only the name and the numbers count, so that a
 * block's beginning and its deltas are one channel. The Responses API has further numbers,
 * which count for text alone: its ids and names would be more channels than there may be.
 * Gemini's API has no deltas: the text of each event goes on in the next.
 * For what a filter holds a frame of the last event is kept (stream_text_frame.h).
 */
#include "common/text/stream_text.h"

#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/text/fnv.h"
#include "common/text/stream_text_frame.h"
#include "common/text/stream_text_walk.h"

#include <ctype.h>
#include <string.h>

#define NAME_MAX_BYTES 64

/* Keys whose text goes on in the next event. */
static const struct {
	const char *key;
	enum stream_text_form form;
} text_keys[] = {
	{"content", STREAM_TEXT_PLAIN},	  {"text", STREAM_TEXT_PLAIN},
	{"thinking", STREAM_TEXT_PLAIN},  {"reasoning_content", STREAM_TEXT_PLAIN},
	{"reasoning", STREAM_TEXT_PLAIN}, {"refusal", STREAM_TEXT_PLAIN},
	{"arguments", STREAM_TEXT_JSON},  {"partial_json", STREAM_TEXT_JSON},
	{"input", STREAM_TEXT_PLAIN},	  {"delta", STREAM_TEXT_PLAIN},
};

struct channel {
	uint64_t place, group;
	uint64_t spoke; /* number of the last event with text of it */
	void *filter;
	bool holds;   /* something of this event */
	size_t piece; /* that its last text became */
	size_t trail[STREAM_TEXT_DEPTH_MAX + 1];
	char *before, *after; /* the frame of what is held; NULL: nothing is */
};

#define SLOTS ((size_t)2 * STREAM_TEXT_CHANNELS_MAX) /* a power of two */

struct stream_text {
	const struct stream_text_ops *ops;
	void *arg;
	bool is_raw; /* not strict: an event was too long, all passes */
	bool is_over;
	struct event_stream lines;
	struct buf head; /* the lines before an event's data, as they go on */
	uint64_t n_events;
	struct channel *channel[STREAM_TEXT_CHANNELS_MAX];
	size_t n;
	uint16_t slot[SLOTS]; /* by place: the number of its channel from 1; 0: free */
	uint64_t spoken[STREAM_TEXT_CHANNELS_MAX]; /* groups of this event's texts */
	size_t n_spoken;
};

struct stream_text *stream_text_new(const struct stream_text_ops *ops, void *arg)
{
	struct stream_text *s = xnew(struct stream_text);

	s->ops = ops;
	s->arg = arg;
	event_stream_init(&s->lines, STREAM_TEXT_EVENT_MAX_BYTES);
	buf_init(&s->head, 2 * STREAM_TEXT_EVENT_MAX_BYTES);
	return s;
}

static void drop_frame(struct channel *c)
{
	free(c->before);
	free(c->after);
	c->before = c->after = NULL;
}

void stream_text_free(struct stream_text *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++) {
		s->ops->close(s->channel[i]->filter);
		drop_frame(s->channel[i]);
		free(s->channel[i]);
	}
	event_stream_done(&s->lines);
	buf_done(&s->head);
	free(s);
}

static int refuse(struct err *err, const char *why)
{
	return err_set_id(err, ERRID_EGRESS_REPLY, "%s", why);
}

struct event {
	struct stream_text *s;
	const char *head;
	struct stream_text_walk walk;
	bool speaks, ends, is_ping, is_full;
	struct stream_text_piece *piece;
	size_t n, cap;
};

static size_t kind_of(const char *key)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(text_keys) && !(key && str_eq(key, text_keys[i].key)))
		i++;
	return i;
}

bool stream_text_is_text(const char *key)
{
	return kind_of(key) < ARRAY_SIZE(text_keys);
}

static bool is_text(const struct stream_text_place *p)
{
	return !p->is_data && stream_text_is_text(p->key);
}

/* Where the channel is, or would be. */
static uint16_t *slot_of(struct stream_text *s, uint64_t place)
{
	size_t i = (size_t)place & (SLOTS - 1);

	while (s->slot[i] && s->channel[s->slot[i] - 1]->place != place)
		i = (i + 1) & (SLOTS - 1);
	return &s->slot[i];
}

/* NULL: there are too many. */
static struct channel *channel_at(struct stream_text *s,
				  const struct stream_text_place *p)
{
	size_t kind = kind_of(p->key);
	bool speaks = is_text(p);
	uint64_t where =
		speaks && p->wide ? fnv(p->wide, &p->where, sizeof(p->where)) : p->where;
	uint64_t place = fnv(speaks ? kind : p->path, &where, sizeof(where));
	uint16_t *slot = slot_of(s, place);
	struct channel *c;

	if (*slot)
		return s->channel[*slot - 1];
	if (s->n == STREAM_TEXT_CHANNELS_MAX)
		return NULL;
	c = s->channel[s->n++] = xnew(struct channel);
	*slot = (uint16_t)s->n;
	c->place = place;
	c->group = p->group;
	c->filter = s->ops->open(!speaks	   ? STREAM_TEXT_PLAIN
				 : p->is_arguments ? STREAM_TEXT_JSON
						   : text_keys[kind].form,
				 s->arg);
	return c;
}

/* ---- what is held ---------------------------------------------------------------------- */

static void keep_frame(struct event *e, struct channel *c)
{
	const struct stream_text_frame f = {.head = e->head,
					    .json = e->walk.json,
					    .trail = c->trail,
					    .piece = e->piece,
					    .n = e->n};

	drop_frame(c);
	if (stream_text_frame_make(&f, &c->before, &c->after) < 0)
		e->is_full = true;
}

/* Who has no frame holds nothing: it would never go out. */
static void let_go(struct event *e, struct channel *c)
{
	struct stream_text_piece *p = e->piece ? &e->piece[c->piece] : NULL;
	struct buf out;

	if (!p)
		return;
	buf_init(&out, 2 * STREAM_TEXT_EVENT_MAX_BYTES);
	buf_add(&out, p->text, p->len);
	e->s->ops->release(c->filter, &out);
	free(p->text);
	p->text = buf_take(&out, &p->len);
	buf_done(&out);
}

static void flush(struct stream_text *s, struct channel *c, struct buf *out)
{
	cleanup_buf struct buf text;
	struct jsonw w;

	buf_init(&text, STREAM_TEXT_EVENT_MAX_BYTES);
	if (!c->before)
		return;
	s->ops->release(c->filter, &text);
	buf_adds(out, c->before);
	jsonw_init(&w, out);
	jsonw_strn(&w, buf_str(&text), text.len);
	buf_adds(out, c->after);
	buf_adds(out, "\n\n");
	drop_frame(c);
}

static void flush_all(struct stream_text *s, struct buf *out)
{
	for (size_t i = 0; i < s->n; i++)
		flush(s, s->channel[i], out);
}

static bool group_speaks(const struct stream_text *s, uint64_t group)
{
	for (size_t i = 0; i < s->n_spoken; i++)
		if (s->spoken[i] == group)
			return true;
	return false;
}

/* Before an event: the channels that it leaves. */
static void flush_left(struct event *e, struct buf *out)
{
	struct stream_text *s = e->s;

	for (size_t i = 0; i < s->n; i++) {
		struct channel *c = s->channel[i];

		if (c->before && c->spoke != s->n_events && !e->is_ping &&
		    (!e->speaks || e->ends || group_speaks(s, c->group)))
			flush(s, c, out);
	}
}

/* ---- an event's strings ----------------------------------------------------------------- */

/* The last event of a response, which says all of it again. */
static bool is_last(const char *type)
{
	return str_eq(type, "response.completed") ||
	       str_eq(type, "response.incomplete") || str_eq(type, "response.failed");
}

static void speak(struct stream_text *s, struct channel *c)
{
	if (c->spoke == s->n_events)
		return;
	c->spoke = s->n_events;
	s->spoken[s->n_spoken++] = c->group;
}

/* First walk. */
static void survey(const struct stream_text_place *p, const char *text, size_t len,
		   void *arg)
{
	struct event *e = arg;
	struct channel *c = channel_at(e->s, p);

	if (!c)
		e->is_full = true;
	if (is_text(p)) {
		e->speaks = true;
		if (c)
			speak(e->s, c);
	}
	if (len && !p->is_data &&
	    (str_eq(p->key, "finish_reason") || str_eq(p->key, "stop_reason") ||
	     str_eq(p->key, "finishReason")))
		e->ends = true;
	if (p->depth == 1 && str_eq(p->key, "type")) {
		e->is_ping = e->is_ping || str_eq(text, "ping");
		e->ends = e->ends || is_last(text);
	}
}

static void filter(struct event *e, const struct stream_text_place *p, const char *text,
		   size_t len, struct buf *out)
{
	const struct stream_text_ops *ops = e->s->ops;
	struct channel *c = channel_at(e->s, p);
	void *once;

	if (!c) {
		once = ops->open(STREAM_TEXT_PLAIN, e->s->arg);
		ops->feed(once, text, len, out);
		ops->release(once, out);
		ops->close(once);
		return;
	}
	ops->feed(c->filter, text, len, out);
	c->holds = is_text(p) && p->is_delta && !e->ends && ops->held(c->filter) > 0;
	c->piece = e->n - 1;
	if (c->holds)
		memcpy(c->trail, e->walk.trail, sizeof(c->trail));
	else
		ops->release(c->filter, out);
	drop_frame(c);
}

/* Second walk: what each string becomes. */
static void collect(const struct stream_text_place *p, const char *text, size_t len,
		    void *arg)
{
	struct event *e = arg;
	struct stream_text_piece *piece;
	struct buf out;

	if (e->n == e->cap) {
		e->cap = 2 * e->cap + 16;
		e->piece = xreallocarray(e->piece, e->cap, sizeof(*e->piece));
	}
	piece = &e->piece[e->n++];
	buf_init(&out, 2 * STREAM_TEXT_EVENT_MAX_BYTES);
	filter(e, p, text, len, &out);
	if (!buf_ok(&out))
		e->is_full = true;
	*piece = (struct stream_text_piece){.at = e->walk.at};
	piece->text = buf_take(&out, &piece->len);
	buf_done(&out);
}

struct writer {
	size_t at, next, n;
	const struct stream_text_piece *piece;
};

static void put_pieces(enum json_piece what, const char **text, size_t *len, void *arg)
{
	struct writer *w = arg;

	if (what == JSON_PIECE_STRING && w->next < w->n &&
	    w->piece[w->next].at == w->at) {
		*text = w->piece[w->next].text ? w->piece[w->next].text : "";
		*len = w->piece[w->next].text ? w->piece[w->next].len : 0;
		w->next++;
	}
	w->at++;
}

static void write_event(const struct event *e, struct buf *out)
{
	struct writer x = {.piece = e->piece, .n = e->n};
	struct jsonw w;

	buf_adds(out, e->head);
	buf_adds(out, "data: ");
	jsonw_init(&w, out);
	json_write_replaced(e->walk.json, &w, put_pieces, &x);
	buf_adds(out, "\n\n");
}

/* ---- the lines of an event ---------------------------------------------------------------- */

static bool is_name(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && (!s[i] || !strchr("._-", s[i])))
			return false;
	return len > 0 && len <= NAME_MAX_BYTES;
}

/* A line that is no data. One with a NUL would end there what is a string here, and hide the data
 * behind it; a reader makes nothing of it. */
static void add_head(struct stream_text *s, const struct event_line *l)
{
	struct buf *head = &s->head;

	if (event_line_is(l, "data"))
		return;
	if (!s->ops->is_strict) {
		if (memchr(l->text, '\0', l->len))
			return;
		buf_add(head, l->text, l->len);
		buf_addc(head, '\n');
	} else if (event_line_is(l, "event") && is_name(l->value, l->value_len)) {
		buf_adds(head, "event: ");
		buf_add(head, l->value, l->value_len);
		buf_addc(head, '\n');
	} else if (l->field_len == 0) {
		buf_adds(head, ":\n");
	}
}

/* An event that is no JSON: "[DONE]", or a comment. */
static int take_other(struct stream_text *s, struct buf *out, struct err *err)
{
	const struct buf *data = &s->lines.data;
	bool has_data = s->lines.n_data > 0;

	/* the last one may not end its line, and nothing can be put behind it */
	if (has_data || s->is_over)
		flush_all(s, out);
	if (!s->ops->is_strict) {
		buf_add(out, s->lines.event.data, s->lines.event.len);
		return 0;
	}
	if (has_data && data->len > 0 && !str_eq(buf_str(data), "[DONE]"))
		return refuse(err, "an event of it is no JSON object");
	buf_adds(out, buf_str(&s->head));
	if (has_data)
		buf_addf(out, "data: %s\n", buf_str(data));
	buf_adds(out, has_data || s->head.len ? "\n" : "");
	return 0;
}

static int take_json(struct stream_text *s, const char *head, const struct json *j,
		     struct buf *out, struct err *err)
{
	struct event e = {.s = s, .head = head, .walk = {.json = j}};
	int r = 0;

	s->n_events++;
	s->n_spoken = 0;
	stream_text_walk(&e.walk, survey, &e);
	flush_left(&e, out);
	stream_text_walk(&e.walk, collect, &e);
	for (size_t i = 0; i < s->n; i++) {
		struct channel *c = s->channel[i];

		if (c->holds)
			keep_frame(&e, c);
		if (c->holds && !c->before)
			let_go(&e, c);
		c->holds = false;
	}
	if (e.is_full && s->ops->is_strict)
		r = refuse(err, "an event of it has too many texts");
	else
		write_event(&e, out);
	for (size_t i = 0; i < e.n; i++)
		free(e.piece[i].text);
	free(e.piece);
	return r;
}

static int take_event(struct stream_text *s, struct buf *out, struct err *err)
{
	const struct buf *data = &s->lines.data;
	cleanup_json struct json *j = NULL;
	int r;

	if (s->lines.n_data == 0 ||
	    json_parse(data->data, data->len, STREAM_TEXT_DEPTH_MAX, &j, NULL) < 0)
		r = take_other(s, out, err);
	else
		r = take_json(s, buf_str(&s->head), j, out, err);
	buf_reset(&s->head);
	return r;
}

/* An event that is too long. */
static int too_long(struct stream_text *s, const void *data, size_t len, struct buf *out,
		    struct err *err)
{
	if (s->ops->is_strict)
		return refuse(err, "an event of it is too long");
	flush_all(s, out);
	buf_add(out, s->lines.event.data, s->lines.event.len);
	buf_add(out, data, len);
	event_stream_done(&s->lines);
	s->is_raw = true;
	return 0;
}

int stream_text_feed(struct stream_text *s, const void *data, size_t len, struct buf *out,
		     struct err *err)
{
	const char *at = data;
	struct event_line line;

	if (s->is_raw) {
		buf_add(out, data, len);
		return 0;
	}
	for (;;) {
		switch (event_stream_take(&s->lines, &at, &len, &line)) {
		case EVENT_NONE:
			return 0;
		case EVENT_LINE:
			add_head(s, &line);
			break;
		case EVENT_END:
			if (take_event(s, out, err) < 0)
				return -1;
			break;
		case EVENT_TOO_LONG:
			return too_long(s, at, len, out, err);
		}
	}
}

int stream_text_end(struct stream_text *s, struct buf *out, struct err *err)
{
	struct event_line line;
	int r = 0;

	s->is_over = true;
	if (event_stream_end(&s->lines, &line) == EVENT_LINE)
		add_head(s, &line);
	if (s->lines.event.len)
		r = take_event(s, out, err);
	event_stream_done(&s->lines);
	if (r == 0)
		flush_all(s, out);
	return r;
}
