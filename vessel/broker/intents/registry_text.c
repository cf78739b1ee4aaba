/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See registry_text.h.
 */
#include "vessel/broker/intents/registry_text.h"

#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/str.h"
#include "common/utf8.h"
#include "vessel/broker/intents/registry_go.h"

#include <string.h>

#define LIST_LINE_MAX ((size_t)512)
#define VERSION_TEXT_MAX 256
#define CRATE_NAME_MAX 64
#define CHECKSUM_DIGITS 64
#define DL_MAX 1024

static int bad(struct err *err, const char *what)
{
	return err_set_id(err, ERRID_REGISTRY_INDEX, "an index that is no index: %s",
			  what);
}

/* Which byte, or which member, says the parser. */
static int bad_json(struct err *err)
{
	struct err why = *err;

	return err_set_id(err, ERRID_REGISTRY_INDEX, "an index that is no index: %s",
			  why.msg);
}

void registry_text_init(struct registry_text *t, enum registry_form form,
			registry_map *map, void *arg)
{
	*t = (struct registry_text){.form = form, .map = map, .arg = arg};
	buf_init(&t->held, form == REGISTRY_GO_LIST ? LIST_LINE_MAX
			   : form == REGISTRY_CRATE ? REGISTRY_CRATE_LINE_MAX
						    : REGISTRY_WHOLE_MAX);
}

void registry_text_done(struct registry_text *t)
{
	buf_done(&t->held);
}

/* ---- by line ---- */

/* A version of a crate: what cargo needs of it is there, and of its form. */
static int crate_line(const char *s, size_t len, struct err *err)
{
	cleanup_json struct json *j = NULL;
	const char *name = NULL, *vers = NULL, *cksum = NULL;

	if (json_parse(s, len, JSON_DEPTH_DEFAULT, &j, err) < 0 ||
	    json_get_str(j, "name", true, CRATE_NAME_MAX, &name, err) < 0 ||
	    json_get_str(j, "vers", true, VERSION_TEXT_MAX, &vers, err) < 0 ||
	    json_get_str(j, "cksum", true, CHECKSUM_DIGITS, &cksum, err) < 0)
		return bad_json(err);
	if (strspn(cksum, "0123456789abcdef") != CHECKSUM_DIGITS)
		return bad(err, "a checksum that is no sha256");
	return 0;
}

/* It passes when it is judged, however it came in pieces. */
static int line_ends(struct registry_text *t, struct buf *out, struct err *err)
{
	const char *s = buf_str(&t->held);
	size_t len = t->held.len;
	int r = 0;

	if (len && t->form == REGISTRY_CRATE)
		r = crate_line(s, len, err);
	else if (len && (s[0] != 'v' || !registry_go_is_version(s, len)))
		r = bad(err, "a line that is no version");
	if (r == 0)
		buf_add(out, s, len);
	buf_reset(&t->held);
	return r;
}

static int by_line(struct registry_text *t, const char *s, size_t len, struct buf *out,
		   struct err *err)
{
	while (len) {
		const char *end = memchr(s, '\n', len);
		size_t n = end ? (size_t)(end - s) : len;

		buf_add(&t->held, s, n);
		if (!buf_ok(&t->held))
			return bad(err, "a line that is too long");
		if (end && line_ends(t, out, err) < 0)
			return -1;
		if (end)
			buf_addc(out, '\n');
		n += end != NULL;
		s += n;
		len -= n;
	}
	return buf_ok(out) ? 0 : bad(err, "a page that is too large");
}

/* ---- as a whole ---- */

static int go_info(const struct registry_text *t, struct err *err)
{
	cleanup_json struct json *j = NULL;
	const char *version = NULL;

	if (json_parse(buf_str(&t->held), t->held.len, JSON_DEPTH_DEFAULT, &j, err) < 0 ||
	    json_get_str(j, "Version", true, VERSION_TEXT_MAX, &version, err) < 0)
		return bad_json(err);
	if (version[0] != 'v' || !registry_go_is_version(version, strlen(version)))
		return bad(err, "its Version is none");
	return 0;
}

static int go_note(const struct registry_text *t, struct err *err)
{
	const char *s = buf_str(&t->held);

	for (size_t i = 0; i < t->held.len; i++)
		if ((unsigned char)s[i] < 0x20 && s[i] != '\n')
			return bad(err, "a control byte");
	return utf8_is_valid(s, t->held.len) ? 0 : bad(err, "no text");
}

/* "dl" is what cargo asks for files, whole or with marks such as {crate}; the other places that
 * it names are of no use to who only reads. */
static int cargo_config(const struct registry_text *t, bool has_key, struct buf *out,
			struct err *err)
{
	cleanup_json struct json *j = NULL;
	cleanup_buf struct buf mapped = {.max = DL_MAX + REGISTRY_LINK_MAX};
	const char *dl = NULL;
	bool needs_token = false;
	struct jsonw w;

	if (json_parse(buf_str(&t->held), t->held.len, JSON_DEPTH_DEFAULT, &j, err) < 0 ||
	    json_get_str(j, "dl", true, DL_MAX, &dl, err) < 0 ||
	    json_get_bool(j, "auth-required", false, &needs_token, err) < 0)
		return bad_json(err);
	if (needs_token && !has_key)
		return bad(err, "it wants a token of everybody (auth-required)");
	if (!t->map(t->arg, dl, &mapped) || !buf_ok(&mapped) || !mapped.len)
		return bad(err, "its dl leads to none of the registry's places: "
				"name that host in file_hosts");
	jsonw_init(&w, out);
	jsonw_obj(&w);
	jsonw_kstr(&w, "dl", buf_str(&mapped));
	jsonw_obj_end(&w);
	return buf_ok(out) ? 0 : bad(err, "a page that is too large");
}

int registry_text_feed(struct registry_text *t, const void *data, size_t len,
		       struct buf *out, struct err *err)
{
	if (t->form == REGISTRY_GO_LIST || t->form == REGISTRY_CRATE)
		return by_line(t, data, len, out, err);
	buf_add(&t->held, data, len);
	if (!buf_ok(&t->held))
		return bad(err, "it is too long");
	return 0;
}

/* Judged, it passes as it came. */
static int pass_whole(const struct registry_text *t, int r, struct buf *out,
		      struct err *err)
{
	if (r < 0)
		return -1;
	buf_add(out, buf_str(&t->held), t->held.len);
	return buf_ok(out) ? 0 : bad(err, "a page that is too large");
}

int registry_text_end(struct registry_text *t, struct buf *out, struct err *err)
{
	switch (t->form) {
	case REGISTRY_GO_LIST:
	case REGISTRY_CRATE:
		return line_ends(t, out, err);
	case REGISTRY_GO_INFO:
		return pass_whole(t, go_info(t, err), out, err);
	case REGISTRY_GO_NOTE:
		return pass_whole(t, go_note(t, err), out, err);
	case REGISTRY_CARGO_CONFIG:
	case REGISTRY_CARGO_CONFIG_KEY:
		return cargo_config(t, t->form == REGISTRY_CARGO_CONFIG_KEY, out, err);
	case REGISTRY_JSON:
	case REGISTRY_HTML:
		break;
	}
	return bad(err, "lost");
}
