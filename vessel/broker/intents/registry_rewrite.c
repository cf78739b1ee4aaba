/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See registry_rewrite.h.
 */
#include "vessel/broker/intents/registry_rewrite.h"
#include "vessel/broker/intents/registry_text.h"

#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#define KEY_MAX 64 /* as it stands in the page: a letter of it may take six bytes */
#define MAPPED_MAX ((size_t)REGISTRY_LINK_MAX * 2)
#define NAME_MAX_BYTES 16

enum json_at { J_BETWEEN, J_STRING, J_ESCAPE, J_HEX };

enum html_at {
	H_TEXT,
	H_OPEN,	   /* after '<' */
	H_MARKUP,  /* "<!", "</", "<?": until '>' */
	H_COMMENT, /* until "-->" */
	H_NAME,	   /* of the tag */
	H_GAP,	   /* before an attribute */
	H_ATTR,	   /* its name */
	H_AFTER,   /* after the name, before '=' */
	H_VALUE,   /* after '=' */
	H_QUOTED,
	H_BARE,
};

struct registry_rewrite {
	enum registry_form form;
	const char *key;
	registry_map *map;
	void *arg;
	struct buf held; /* the link, as it stands in the page */
	uint64_t at;	 /* bytes of the page so far */

	enum json_at json;
	uint8_t is_array[REGISTRY_DEPTH_MAX];
	bool has_link[REGISTRY_DEPTH_MAX]; /* the object of that depth */
	unsigned depth;
	unsigned hex_left; /* digits of an escape */
	bool begun;	   /* the one value of the page */
	bool expect_key;   /* the next string is a key */
	bool have_key;	   /* and a colon follows */
	bool in_key, armed, holding;
	char name[KEY_MAX + 1];
	size_t name_len;

	enum html_at html;
	char quote;
	unsigned dashes;
	bool is_href;

	struct registry_text text;
};

struct registry_rewrite *registry_rewrite_new(enum registry_form form, const char *key,
					      registry_map *map, void *arg)
{
	struct registry_rewrite *rw = xcalloc(1, sizeof(*rw));

	assert(!key || strlen(key) * 6 <= KEY_MAX);
	rw->form = form;
	rw->key = key;
	rw->map = map;
	rw->arg = arg;
	buf_init(&rw->held, REGISTRY_LINK_MAX);
	registry_text_init(&rw->text, form, map, arg);
	return rw;
}

void registry_rewrite_free(struct registry_rewrite *rw)
{
	if (!rw)
		return;
	buf_done(&rw->held);
	registry_text_done(&rw->text);
	free(rw);
}

static int bad(struct err *err, const char *what)
{
	return err_set_id(err, ERRID_REGISTRY_INDEX, "an index that is no index: %s",
			  what);
}

static bool printable(const char *s, size_t len)
{
	return memchr(s, '\0', len) == NULL && !str_has_control(s, len);
}

/* The name of a key or of a tag, as far as it may matter. */
static void name_add(struct registry_rewrite *rw, char c, size_t max)
{
	if (rw->name_len < max)
		rw->name[rw->name_len] = c;
	if (rw->name_len <= max)
		rw->name_len++;
	rw->name[rw->name_len < max ? rw->name_len : max] = '\0';
}

static bool name_is(const struct registry_rewrite *rw, const char *s)
{
	return rw->name_len == strlen(s) && strcasecmp(rw->name, s) == 0;
}

static unsigned hex4(const char *s)
{
	unsigned v = 0;

	for (int i = 0; i < 4; i++) {
		char c = s[i];

		if (!isxdigit((unsigned char)c))
			return 0;
		v = v * 16 + (unsigned)(isdigit((unsigned char)c)
						? c - '0'
						: tolower((unsigned char)c) - 'a' + 10);
	}
	return v;
}

/* Links, and the keys that they are found by, are ASCII: what only escapes can say beyond that
 * is none of ours. */
static bool json_unescape(const char *s, size_t len, char *out, size_t *ret_len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned u;

		if (s[i] != '\\') {
			out[n++] = s[i];
			continue;
		}
		i++;
		if (i < len && (s[i] == '/' || s[i] == '\\' || s[i] == '"')) {
			out[n++] = s[i];
			continue;
		}
		if (i + 4 >= len || s[i] != 'u')
			return false;
		u = hex4(s + i + 1);
		if (u < 0x20 || u > 0x7e)
			return false;
		out[n++] = (char)u;
		i += 4;
	}
	*ret_len = n;
	return true;
}

/* What takes the place of the link that was held; empty when it is dropped. */
static void map_held(struct registry_rewrite *rw,
		     bool (*unescape)(const char *s, size_t len, char *out, size_t *ret),
		     struct buf *mapped)
{
	char link[REGISTRY_LINK_MAX + 1];
	size_t len;

	if (unescape(buf_str(&rw->held), rw->held.len, link, &len) &&
	    printable(link, len)) {
		link[len] = '\0';
		if (!rw->map(rw->arg, link, mapped) || !buf_ok(mapped))
			buf_reset(mapped);
	}
	buf_reset(&rw->held);
}

static void put_json(struct registry_rewrite *rw, struct buf *out)
{
	cleanup_buf struct buf mapped = {.max = MAPPED_MAX};
	struct jsonw w;

	map_held(rw, json_unescape, &mapped);
	jsonw_init(&w, out);
	jsonw_strn(&w, buf_str(&mapped), mapped.len);
}

static int json_punctuation(struct registry_rewrite *rw, char c, struct err *err)
{
	switch (c) {
	case '{':
	case '[':
		if (rw->depth == REGISTRY_DEPTH_MAX)
			return bad(err, "too deep");
		if (rw->depth == 0 && rw->begun)
			return bad(err, "a second value");
		rw->begun = true;
		rw->has_link[rw->depth] = false;
		rw->is_array[rw->depth++] = c == '[';
		rw->expect_key = c == '{';
		return 0;
	case '}':
	case ']':
		if (!rw->depth || rw->is_array[rw->depth - 1] != (c == ']'))
			return bad(err, "brackets that do not match");
		rw->depth--;
		rw->expect_key = false;
		return 0;
	case ',':
		if (!rw->depth)
			return bad(err, "a stray comma");
		rw->expect_key = !rw->is_array[rw->depth - 1];
		return 0;
	default:
		return 0;
	}
}

/* Between strings. A key is armed until its value has begun. */
static int json_between(struct registry_rewrite *rw, char c, struct buf *out,
			struct err *err)
{
	if (c == '"') {
		if (!rw->depth)
			return bad(err, "no object");
		rw->in_key = rw->expect_key;
		rw->holding = !rw->in_key && rw->armed;
		rw->armed = false;
		rw->name_len = 0;
		rw->json = J_STRING;
		if (!rw->holding)
			buf_addc(out, c);
		return 0;
	}
	if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
		buf_addc(out, c);
		return 0;
	}
	if (c == ':') {
		if (!rw->have_key)
			return bad(err, "a stray colon");
		rw->have_key = rw->expect_key = false;
	} else {
		if (!strchr("{}[],+-.0123456789abcdefghijklmnopqrstuvwxyzE", c))
			return bad(err, "a stray byte");
		rw->armed = false;
		if (json_punctuation(rw, c, err) < 0)
			return -1;
	}
	buf_addc(out, c);
	return 0;
}

/* A backslash and what it stands before, as every reader of JSON has it: what one of them might
 * read otherwise could hide where a string ends. */
static int json_escape(struct registry_rewrite *rw, char c, struct err *err)
{
	if (rw->json == J_HEX) {
		if (!isxdigit((unsigned char)c))
			return bad(err, "an escape that JSON has not");
		rw->json = --rw->hex_left ? J_HEX : J_STRING;
		return 0;
	}
	if (rw->json == J_STRING) {
		rw->json = c == '\\' ? J_ESCAPE : J_STRING;
		return 0;
	}
	if (!strchr("\"\\/bfnrtu", c))
		return bad(err, "an escape that JSON has not");
	rw->json = c == 'u' ? J_HEX : J_STRING;
	rw->hex_left = 4;
	return 0;
}

/* A key is what its escapes say. */
static int json_key_ends(struct registry_rewrite *rw, struct err *err)
{
	char key[KEY_MAX];
	size_t len;

	rw->have_key = true;
	rw->armed = rw->name_len <= KEY_MAX &&
		    json_unescape(rw->name, rw->name_len, key, &len) &&
		    len == strlen(rw->key) && memcmp(key, rw->key, len) == 0;
	if (!rw->armed)
		return 0;
	/* which of the two counts is each reader's own choice */
	if (rw->has_link[rw->depth - 1])
		return bad(err, "a link's key that stands twice");
	rw->has_link[rw->depth - 1] = true;
	return 0;
}

static int json_string(struct registry_rewrite *rw, char c, struct buf *out,
		       struct err *err)
{
	bool ends = c == '"' && rw->json == J_STRING;

	if ((unsigned char)c < 0x20)
		return bad(err, "a control byte");
	if (!ends) {
		if (json_escape(rw, c, err) < 0)
			return -1;
		if (rw->in_key)
			name_add(rw, c, KEY_MAX);
		if (rw->holding)
			buf_addc(&rw->held, c);
		else
			buf_addc(out, c);
		return buf_ok(&rw->held) ? 0 : bad(err, "a link that is too long");
	}
	rw->json = J_BETWEEN;
	if (rw->holding) {
		put_json(rw, out);
		rw->holding = false;
		return 0;
	}
	buf_addc(out, c);
	rw->have_key = false;
	return rw->in_key ? json_key_ends(rw, err) : 0;
}

static int json_byte(struct registry_rewrite *rw, char c, struct buf *out,
		     struct err *err)
{
	return rw->json == J_BETWEEN ? json_between(rw, c, out, err)
				     : json_string(rw, c, out, err);
}

/* The references that an attribute needs; any other drops the link. */
static bool html_unescape(const char *s, size_t len, char *out, size_t *ret_len)
{
	static const struct {
		const char *name;
		char c;
	} ref[] = {{"&amp;", '&'}, {"&#38;", '&'},  {"&#x26;", '&'},
		   {"&lt;", '<'},  {"&gt;", '>'},   {"&quot;", '"'},
		   {"&#43;", '+'}, {"&#x2B;", '+'}, {"&#39;", '\''}};
	size_t n = 0;

	for (size_t i = 0; i < len;) {
		bool found = s[i] != '&';

		if (found)
			out[n++] = s[i++];
		for (size_t k = 0; !found && k < ARRAY_SIZE(ref); k++) {
			size_t l = strlen(ref[k].name);

			if (len - i < l || strncasecmp(s + i, ref[k].name, l) != 0)
				continue;
			out[n++] = ref[k].c;
			i += l;
			found = true;
		}
		if (!found)
			return false;
	}
	*ret_len = n;
	return true;
}

static void html_put(struct registry_rewrite *rw, struct buf *out)
{
	cleanup_buf struct buf mapped = {.max = MAPPED_MAX};

	map_held(rw, html_unescape, &mapped);
	buf_addc(out, '"');
	for (size_t i = 0; i < mapped.len; i++) {
		char c = mapped.data[i];

		if (c == '&')
			buf_adds(out, "&amp;");
		else if (c == '"')
			buf_adds(out, "&quot;");
		else if (c == '<')
			buf_adds(out, "&lt;");
		else
			buf_addc(out, c);
	}
	buf_addc(out, '"');
}

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static int html_tag_named(struct registry_rewrite *rw, struct err *err)
{
	/* pip resolves links against it, and so would have to we; within these two a
	 * browser reads no tags, but a simple index has neither. */
	if (name_is(rw, "base") || name_is(rw, "script") || name_is(rw, "style"))
		return bad(err, "a page with base, script or style");
	return 0;
}

/* The value begins with c, or there is none. */
static void html_value(struct registry_rewrite *rw, char c, struct buf *out)
{
	if (blank(c)) {
		buf_addc(out, c);
		return;
	}
	if (c == '>') {
		buf_addc(out, c);
		rw->html = H_TEXT;
		return;
	}
	rw->html = c == '"' || c == '\'' ? H_QUOTED : H_BARE;
	rw->quote = c;
	if (rw->is_href && rw->html == H_BARE)
		buf_addc(&rw->held, c);
	if (!rw->is_href)
		buf_addc(out, c);
}

static int html_in_value(struct registry_rewrite *rw, char c, struct buf *out,
			 struct err *err)
{
	bool ends = rw->html == H_QUOTED ? c == rw->quote : blank(c) || c == '>';

	if (!ends) {
		buf_addc(rw->is_href ? &rw->held : out, c);
		return buf_ok(&rw->held) ? 0 : bad(err, "a link that is too long");
	}
	if (rw->is_href)
		html_put(rw, out);
	if (!rw->is_href || rw->html == H_BARE)
		buf_addc(out, c);
	rw->html = c == '>' && rw->html == H_BARE ? H_TEXT : H_GAP;
	return 0;
}

/* Names of attributes and what is between them. */
static void html_attribute(struct registry_rewrite *rw, char c, struct buf *out)
{
	buf_addc(out, c);
	if (c == '>') {
		rw->html = H_TEXT;
	} else if (c == '=' && rw->html != H_GAP) {
		rw->is_href = name_is(rw, "href");
		rw->html = H_VALUE;
	} else if (blank(c) || c == '/') {
		rw->html = rw->html == H_GAP || c == '/' ? H_GAP : H_AFTER;
	} else {
		if (rw->html != H_ATTR)
			rw->name_len = 0;
		rw->html = H_ATTR;
		name_add(rw, c, NAME_MAX_BYTES);
	}
}

static int html_open(struct registry_rewrite *rw, char c, struct buf *out)
{
	buf_addc(out, c);
	rw->name_len = 0;
	rw->dashes = 0;
	if (isalpha((unsigned char)c)) {
		rw->html = H_NAME;
		name_add(rw, c, NAME_MAX_BYTES);
	} else if (c == '!' || c == '/' || c == '?') {
		rw->html = H_MARKUP;
	} else if (c != '<') {
		rw->html = H_TEXT;
	}
	return 0;
}

/* "<!" and two dashes make it a comment; "-->" ends one. */
static void html_markup(struct registry_rewrite *rw, char c, struct buf *out)
{
	buf_addc(out, c);
	if (rw->html == H_COMMENT) {
		if (c == '>' && rw->dashes >= 2)
			rw->html = H_TEXT;
		rw->dashes = c == '-' ? rw->dashes + 1 : 0;
		return;
	}
	if (c == '-' && rw->name_len == rw->dashes) {
		if (++rw->dashes == 2) {
			rw->html = H_COMMENT;
			rw->dashes = 0;
		}
	}
	rw->name_len++;
	if (c == '>')
		rw->html = H_TEXT;
}

static int html_byte(struct registry_rewrite *rw, char c, struct buf *out,
		     struct err *err)
{
	switch (rw->html) {
	case H_TEXT:
		buf_addc(out, c);
		if (c == '<')
			rw->html = H_OPEN;
		return 0;
	case H_OPEN:
		return html_open(rw, c, out);
	case H_MARKUP:
	case H_COMMENT:
		html_markup(rw, c, out);
		return 0;
	case H_NAME:
		if (!blank(c) && c != '>' && c != '/') {
			name_add(rw, c, NAME_MAX_BYTES);
			buf_addc(out, c);
			return 0;
		}
		if (html_tag_named(rw, err) < 0)
			return -1;
		buf_addc(out, c);
		rw->html = c == '>' ? H_TEXT : H_GAP;
		return 0;
	case H_GAP:
	case H_ATTR:
	case H_AFTER:
		html_attribute(rw, c, out);
		return 0;
	case H_VALUE:
		html_value(rw, c, out);
		return 0;
	case H_QUOTED:
	case H_BARE:
		return html_in_value(rw, c, out, err);
	}
	return bad(err, "lost");
}

static bool has_links(const struct registry_rewrite *rw)
{
	return rw->form == REGISTRY_JSON || rw->form == REGISTRY_HTML;
}

int registry_rewrite_feed(struct registry_rewrite *rw, const void *data, size_t len,
			  struct buf *out, struct err *err)
{
	const char *s = data;

	if (!has_links(rw))
		return registry_text_feed(&rw->text, data, len, out, err);
	for (size_t i = 0; i < len; i++, rw->at++) {
		int r = rw->form == REGISTRY_JSON ? json_byte(rw, s[i], out, err)
						  : html_byte(rw, s[i], out, err);

		if (r < 0)
			return err_wrap(err, "byte %" PRIu64, rw->at);
	}
	return buf_ok(out) ? 0 : bad(err, "a page that is too large");
}

int registry_rewrite_end(struct registry_rewrite *rw, struct buf *out, struct err *err)
{
	if (!has_links(rw))
		return registry_text_end(&rw->text, out, err);
	if (rw->form == REGISTRY_JSON)
		return rw->begun && !rw->depth && rw->json == J_BETWEEN
			       ? 0
			       : bad(err, "it ends too early");
	return rw->html == H_TEXT ? 0 : bad(err, "it ends within a tag");
}
