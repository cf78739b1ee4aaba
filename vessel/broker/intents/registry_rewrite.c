/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See registry_rewrite.h.
 */
#include "vessel/broker/intents/registry_rewrite.h"
#include "vessel/broker/intents/registry_json.h"
#include "vessel/broker/intents/registry_text.h"

#include "common/mem.h"
#include "common/str.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_BYTES 16

enum html_at {
	H_TEXT,
	H_OPEN,	   /* after '<' */
	H_BANG,	   /* after "<!" */
	H_DOCTYPE, /* until '>' */
	H_COMMENT, /* until "-->" */
	H_END_TAG, /* until '>' */
	H_NOTE,	   /* "<?": until "?>" */
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
	struct registry_held link;
	uint64_t at; /* bytes of the page so far */

	struct registry_json json;

	char name[NAME_MAX_BYTES + 1]; /* of a tag or an attribute */
	size_t name_len;
	enum html_at html;
	char quote;
	unsigned dashes;   /* of a comment, one behind the other */
	bool is_empty;	   /* a comment that has nothing but them */
	bool has_question; /* a note's last byte */
	bool is_href;
	bool in_title; /* where tags are text */

	struct registry_text text;
};

struct registry_rewrite *registry_rewrite_new(enum registry_form form, const char *key,
					      registry_map *map, void *arg)
{
	struct registry_rewrite *rw = xcalloc(1, sizeof(*rw));

	rw->form = form;
	rw->link.map = map;
	rw->link.arg = arg;
	buf_init(&rw->link.text, REGISTRY_LINK_MAX);
	registry_json_init(&rw->json, key, &rw->link);
	registry_text_init(&rw->text, form, map, arg);
	return rw;
}

void registry_rewrite_free(struct registry_rewrite *rw)
{
	if (!rw)
		return;
	buf_done(&rw->link.text);
	registry_text_done(&rw->text);
	free(rw);
}

int registry_no_index(struct err *err, const char *what)
{
	return err_set_id(err, ERRID_REGISTRY_INDEX, "an index that is no index: %s",
			  what);
}

static int bad(struct err *err, const char *what)
{
	return registry_no_index(err, what);
}

static bool printable(const char *s, size_t len)
{
	return memchr(s, '\0', len) == NULL && !str_has_control(s, len);
}

void registry_held_map(struct registry_held *h, registry_unescape *unescape,
		       struct buf *mapped)
{
	char link[REGISTRY_LINK_MAX + 1];
	size_t len;

	if (unescape(buf_str(&h->text), h->text.len, link, &len) &&
	    printable(link, len)) {
		link[len] = '\0';
		if (!h->map(h->arg, link, mapped) || !buf_ok(mapped))
			buf_reset(mapped);
	}
	buf_reset(&h->text);
}

/* As far as it may matter. */
static void name_add(struct registry_rewrite *rw, char c)
{
	if (rw->name_len < NAME_MAX_BYTES)
		rw->name[rw->name_len] = c;
	if (rw->name_len <= NAME_MAX_BYTES)
		rw->name_len++;
	rw->name[rw->name_len < NAME_MAX_BYTES ? rw->name_len : NAME_MAX_BYTES] = '\0';
}

static bool name_is(const struct registry_rewrite *rw, const char *s)
{
	return rw->name_len == strlen(s) && strcasecmp(rw->name, s) == 0;
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
	cleanup_buf struct buf mapped = {.max = REGISTRY_MAPPED_MAX};

	registry_held_map(&rw->link, html_unescape, &mapped);
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
	/* pip resolves links against the first, and so would have to we; within the others some
	 * readers see no tags, but a simple index has none of them */
	static const char *const odd[] = {"base",     "script",	  "style",   "textarea",
					  "xmp",      "iframe",	  "noembed", "noframes",
					  "noscript", "plaintext"};

	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		if (name_is(rw, odd[i]))
			return bad(err, "a page with base, script, style or the like");
	rw->in_title = name_is(rw, "title");
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
		buf_addc(&rw->link.text, c);
	if (!rw->is_href)
		buf_addc(out, c);
}

static int html_in_value(struct registry_rewrite *rw, char c, struct buf *out,
			 struct err *err)
{
	bool ends = rw->html == H_QUOTED ? c == rw->quote : blank(c) || c == '>';

	if (!ends) {
		buf_addc(rw->is_href ? &rw->link.text : out, c);
		return buf_ok(&rw->link.text) ? 0 : bad(err, "a link that is too long");
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
		name_add(rw, c);
	}
}

static int html_open(struct registry_rewrite *rw, char c, struct buf *out,
		     struct err *err)
{
	buf_addc(out, c);
	rw->name_len = 0;
	if (rw->in_title && (isalpha((unsigned char)c) || c == '!' || c == '?'))
		return bad(err, "a tag within a title");
	if (isalpha((unsigned char)c)) {
		rw->html = H_NAME;
		name_add(rw, c);
	} else if (c == '!' || c == '/' || c == '?') {
		rw->html = c == '!' ? H_BANG : c == '/' ? H_END_TAG : H_NOTE;
		rw->has_question = false;
	} else if (c != '<') {
		rw->html = H_TEXT;
	}
	return 0;
}

/* What else begins so ("<![CDATA[", an entity) ends here for one reader and there for another. */
static int html_bang(struct registry_rewrite *rw, char c, struct err *err)
{
	static const char doctype[] = "doctype";

	name_add(rw, c);
	if (name_is(rw, "--")) {
		rw->html = H_COMMENT;
		rw->dashes = 0;
		rw->is_empty = true;
	} else if (name_is(rw, doctype)) {
		rw->html = H_DOCTYPE;
	} else if (!name_is(rw, "-") &&
		   strncasecmp(rw->name, doctype, rw->name_len) != 0) {
		return bad(err, "a declaration that is no doctype");
	}
	return 0;
}

/* As XML has it, without two dashes within: then it ends in one place for all. "<!-->" and
 * "<!--->" are whole for browsers, and begin a comment for others. */
static int html_comment(struct registry_rewrite *rw, char c, struct err *err)
{
	if (c == '>' && rw->dashes == 2) {
		rw->html = H_TEXT;
		return 0;
	}
	if (rw->dashes == 2 || (c == '>' && rw->is_empty))
		return bad(err, "a comment that may end in two places");
	rw->dashes = c == '-' ? rw->dashes + 1 : 0;
	rw->is_empty = rw->is_empty && c == '-';
	return 0;
}

static int html_end_tag(struct registry_rewrite *rw, char c, struct err *err)
{
	if (c == '>' && rw->name_len) {
		if (rw->in_title && !name_is(rw, "title"))
			return bad(err, "a tag within a title");
		rw->in_title = false;
		rw->html = H_TEXT;
		return 0;
	}
	if (c == '"' || c == '\'' || c == '=' || c == '<' ||
	    (!rw->name_len && !isalpha((unsigned char)c)))
		return bad(err, "an end tag that may end in two places");
	if (!blank(c))
		name_add(rw, c);
	return 0;
}

static int html_doctype(struct registry_rewrite *rw, char c, struct err *err)
{
	if (c == '[' || c == '<')
		return bad(err, "a doctype with declarations");
	if (c == '>')
		rw->html = H_TEXT;
	return 0;
}

static int html_note(struct registry_rewrite *rw, char c, struct err *err)
{
	if (c == '>' && !rw->has_question)
		return bad(err, "a note that may end in two places");
	if (c == '>')
		rw->html = H_TEXT;
	rw->has_question = c == '?';
	return 0;
}

/* Of markup that has no links. */
static int html_markup(struct registry_rewrite *rw, char c, struct buf *out,
		       struct err *err)
{
	buf_addc(out, c);
	switch ((unsigned)rw->html) {
	case H_BANG:
		return html_bang(rw, c, err);
	case H_DOCTYPE:
		return html_doctype(rw, c, err);
	case H_COMMENT:
		return html_comment(rw, c, err);
	case H_END_TAG:
		return html_end_tag(rw, c, err);
	default:
		return html_note(rw, c, err);
	}
}

static int html_byte(struct registry_rewrite *rw, char c, struct buf *out,
		     struct err *err)
{
	if ((unsigned char)c < 0x20 && !blank(c))
		return bad(err, "a control byte");
	switch (rw->html) {
	case H_TEXT:
		buf_addc(out, c);
		if (c == '<')
			rw->html = H_OPEN;
		return 0;
	case H_OPEN:
		return html_open(rw, c, out, err);
	case H_BANG:
	case H_DOCTYPE:
	case H_COMMENT:
	case H_END_TAG:
	case H_NOTE:
		return html_markup(rw, c, out, err);
	case H_NAME:
		if (!blank(c) && c != '>' && c != '/') {
			name_add(rw, c);
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
		int r = rw->form == REGISTRY_JSON
				? registry_json_byte(&rw->json, s[i], out, err)
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
		return registry_json_end(&rw->json, err);
	return rw->html == H_TEXT ? 0 : bad(err, "it ends within a tag");
}
