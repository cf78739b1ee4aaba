/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See stream_text_frame.h.
 */
#include "common/text/stream_text_frame.h"

#include "common/attr.h"
#include "common/buf.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include <stdlib.h>

#define FRAME_MAX_BYTES ((size_t)16 << 10)

struct writer {
	const struct stream_text_frame *of;
	struct jsonw *w;
	size_t at;  /* as in walk() */
	size_t i;   /* member of the object at this depth */
	size_t cut; /* where the text goes */
	unsigned depth;
	bool is_delta;
};

static void frame_value(struct writer *f, const struct json *v);

static void count_piece(enum json_piece what UNUSED, const char *key UNUSED,
			const char *text UNUSED, size_t len UNUSED, void *arg)
{
	++*(size_t *)arg;
}

static int compare_pieces(const void *a, const void *b)
{
	const struct stream_text_piece *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* Small values beside the way say what event it is; within the delta only its type does:
 * the rest is text, or is added up by whoever reads it. */
static bool is_kept(const struct writer *f, const char *key, const struct json *val)
{
	enum json_kind kind = json_kind_of(val);

	/* a signature belongs to the part that it came with, and to no second one */
	if (kind == JSON_OBJECT || kind == JSON_ARRAY || str_eq(key, "thoughtSignature"))
		return false;
	if (kind != JSON_STRING)
		return !f->is_delta || str_eq(key, "index");
	return !stream_text_is_text(key) && (!f->is_delta || str_eq(key, "type"));
}

/* A string as its filter left it. */
static void frame_string(struct writer *f)
{
	const struct stream_text_piece wanted = {.at = f->at};
	const struct stream_text_piece *p =
		bsearch(&wanted, f->of->piece, f->of->n, sizeof(wanted), compare_pieces);

	jsonw_strn(f->w, p && p->text ? p->text : "", p && p->text ? p->len : 0);
}

static void frame_member(const char *key, const struct json *val, void *arg)
{
	struct writer *f = arg;

	f->at++;
	if (f->i++ == f->of->trail[f->depth]) {
		struct writer below = *f;

		jsonw_key(f->w, key);
		below.depth++;
		below.i = 0;
		below.is_delta = below.is_delta || str_eq(key, "delta");
		frame_value(&below, val);
		f->cut = below.cut;
	} else if (is_kept(f, key, val)) {
		jsonw_key(f->w, key);
		if (json_kind_of(val) == JSON_STRING)
			frame_string(f);
		else
			json_write(val, f->w);
	}
	json_visit(val, count_piece, &f->at);
}

static void frame_list(struct writer *f, const struct json *v)
{
	size_t wanted = f->of->trail[f->depth];
	struct writer below = *f;

	for (size_t i = 0; i < wanted; i++)
		json_visit(json_arr_at(v, i), count_piece, &below.at);
	jsonw_arr(f->w);
	below.depth++;
	below.i = 0;
	frame_value(&below, json_arr_at(v, wanted));
	f->cut = below.cut;
	jsonw_arr_end(f->w);
}

static void frame_value(struct writer *f, const struct json *v)
{
	switch (json_kind_of(v)) {
	case JSON_OBJECT:
		jsonw_obj(f->w);
		json_obj_each(v, frame_member, f);
		jsonw_obj_end(f->w);
		break;
	case JSON_ARRAY:
		frame_list(f, v);
		break;
	case JSON_STRING:
	case JSON_NULL:
	case JSON_BOOL:
	case JSON_NUMBER:
		jsonw_raw(f->w, "", 0);
		f->cut = f->w->out->len;
		break;
	}
}

int stream_text_frame_make(const struct stream_text_frame *f, char **ret_before,
			   char **ret_after)
{
	struct jsonw w;
	struct writer at = {.of = f, .w = &w};
	cleanup_buf struct buf b;

	buf_init(&b, FRAME_MAX_BYTES);
	buf_adds(&b, f->head);
	buf_adds(&b, "data: ");
	jsonw_init(&w, &b);
	frame_value(&at, f->json);
	if (!buf_ok(&b))
		return -1;
	*ret_before = xstrndup(b.data, at.cut);
	*ret_after = xstrdup(b.data + at.cut);
	return 0;
}
