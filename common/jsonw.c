/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See jsonw.h.
 */
#include "common/jsonw.h"
#include "common/str.h"
#include "common/utf8.h"

#include <assert.h>
#include <string.h>

void jsonw_init(struct jsonw *w, struct buf *out)
{
	*w = (struct jsonw){.out = out};
}

/* Before every value: the comma, unless a key stands before it. */
static void value(struct jsonw *w)
{
	if (w->after_key)
		w->after_key = false;
	else if (w->need_comma[w->depth])
		buf_addc(w->out, ',');
	w->need_comma[w->depth] = true;
}

static void open_level(struct jsonw *w, char c)
{
	value(w);
	buf_addc(w->out, c);
	if (w->depth + 1 == JSONW_DEPTH_MAX || w->too_deep) {
		/* how deep a value from outside goes is not ours to say */
		w->out->failed = true;
		w->too_deep++;
		return;
	}
	w->need_comma[++w->depth] = false;
}

static void close_level(struct jsonw *w, char c)
{
	assert((w->depth > 0 || w->too_deep) && !w->after_key);
	if (w->too_deep)
		w->too_deep--;
	else
		w->depth--;
	buf_addc(w->out, c);
}

void jsonw_obj(struct jsonw *w)
{
	open_level(w, '{');
}

void jsonw_obj_end(struct jsonw *w)
{
	close_level(w, '}');
}

void jsonw_arr(struct jsonw *w)
{
	open_level(w, '[');
}

void jsonw_arr_end(struct jsonw *w)
{
	close_level(w, ']');
}

/* What could break a line or reorder what a terminal or an editor shows. */
static bool must_escape(uint32_t cp)
{
	return cp < 0x20 || cp == 0x7f || (cp >= 0x80 && cp <= 0x9f) || cp == 0x61c ||
	       cp == 0x200e || cp == 0x200f || cp == 0x2028 || cp == 0x2029 ||
	       (cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069) ||
	       cp == 0xfeff;
}

/* How many bytes from p on stand for themselves: most of most texts. */
static size_t plain(const unsigned char *p, size_t len)
{
	size_t n = 0;

	while (n < len && p[n] >= 0x20 && p[n] < 0x7f && p[n] != '"' && p[n] != '\\')
		n++;
	return n;
}

static void encode(struct jsonw *w, const unsigned char *p, size_t len)
{
	buf_addc(w->out, '"');
	while (len) {
		size_t n = plain(p, len);
		uint32_t cp;

		if (n > 0) {
			buf_add(w->out, p, n);
			p += n;
			len -= n;
			continue;
		}
		n = utf8_get(p, len, &cp);
		if (n == 0) {
			buf_adds(w->out, "\xef\xbf\xbd");
			p++;
			len--;
			continue;
		}
		if (cp == '"' || cp == '\\')
			buf_addf(w->out, "\\%c", (int)cp);
		else if (cp == '\n')
			buf_adds(w->out, "\\n");
		else if (cp == '\t')
			buf_adds(w->out, "\\t");
		else if (must_escape(cp))
			buf_addf(w->out, "\\u%04x", cp);
		else
			buf_add(w->out, p, n);
		p += n;
		len -= n;
	}
	buf_addc(w->out, '"');
}

void jsonw_key(struct jsonw *w, const char *key)
{
	assert(!w->after_key);
	if (w->need_comma[w->depth])
		buf_addc(w->out, ',');
	w->need_comma[w->depth] = true;
	encode(w, (const unsigned char *)key, strlen(key));
	buf_addc(w->out, ':');
	w->after_key = true;
}

void jsonw_strn(struct jsonw *w, const void *s, size_t len)
{
	value(w);
	encode(w, s, len);
}

void jsonw_str(struct jsonw *w, const char *s)
{
	if (s)
		jsonw_strn(w, s, strlen(s));
	else
		jsonw_null(w);
}

static void jsonw_u64(struct jsonw *w, uint64_t v)
{
	value(w);
	buf_addf(w->out, "%llu", (unsigned long long)v);
}

void jsonw_i64(struct jsonw *w, int64_t v)
{
	value(w);
	buf_addf(w->out, "%lld", (long long)v);
}

void jsonw_bool(struct jsonw *w, bool v)
{
	value(w);
	buf_adds(w->out, v ? "true" : "false");
}

void jsonw_null(struct jsonw *w)
{
	value(w);
	buf_adds(w->out, "null");
}

void jsonw_raw(struct jsonw *w, const char *json, size_t len)
{
	value(w);
	buf_add(w->out, json, len);
}

void jsonw_kstr(struct jsonw *w, const char *key, const char *s)
{
	jsonw_key(w, key);
	jsonw_str(w, s);
}

void jsonw_ku64(struct jsonw *w, const char *key, uint64_t v)
{
	jsonw_key(w, key);
	jsonw_u64(w, v);
}

void jsonw_ki64(struct jsonw *w, const char *key, int64_t v)
{
	jsonw_key(w, key);
	jsonw_i64(w, v);
}

void jsonw_kbool(struct jsonw *w, const char *key, bool v)
{
	jsonw_key(w, key);
	jsonw_bool(w, v);
}
