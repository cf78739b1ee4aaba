/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe and lych-audit.
 * See anchor_line.h. A line is read by making the seal's note of it, which seal_parse() judges.
 */
#include "vessel/scribe/anchor_line.h"
#include "common/base64.h"
#include "common/cleanup.h"
#include "common/str.h"
#include <string.h>

#define VALUE_MAX 128
#define BEGINNING "{\"v\":1,\"log\":\""

/* ---- writing ---- */

static void add_text32(struct buf *out, const char *before, const uint8_t raw[32])
{
	char text[SEAL_TEXT32];

	seal_text32(raw, text);
	buf_addf(out, "%s%s", before, text);
}

void anchor_line_write(struct buf *out, const struct seal *s)
{
	uint8_t both[sizeof(s->key_id) + sizeof(s->signature)];
	char prev[SHA256_HEX_SIZE];

	memcpy(both, s->key_id, sizeof(s->key_id));
	memcpy(both + sizeof(s->key_id), s->signature, sizeof(s->signature));
	hex_encode(s->prev.b, sizeof(s->prev.b), prev);
	buf_addf(out, BEGINNING "%s\",\"size\":%llu", s->log.s,
		 (unsigned long long)s->size);
	add_text32(out, ",\"root\":\"", s->root.b);
	buf_addf(out, "\",\"epoch\":%llu,\"time\":\"%s\",\"prev\":\"%s",
		 (unsigned long long)s->epoch, s->time, prev);
	if (s->has_genesis)
		add_text32(out, "\",\"genesis\":\"", s->genesis);
	if (s->has_next)
		add_text32(out, "\",\"next\":\"", s->next);
	buf_adds(out, "\",\"signature\":\"");
	base64_add(out, both, sizeof(both));
	buf_adds(out, "\"}\n");
}

/* ---- reading ---- */

bool anchor_line_is_begun(const char *s, size_t len)
{
	size_t known = len < strlen(BEGINNING) ? len : strlen(BEGINNING);

	return len < ANCHOR_LINE_MAX && !memchr(s, '\n', len) &&
	       memcmp(s, BEGINNING, known) == 0;
}

struct cursor {
	const char *p, *end;
};

/* The bytes that stand between these two texts; false, and nothing is taken: it is otherwise. */
static bool take(struct cursor *c, const char *before, const char *behind,
		 char ret[VALUE_MAX])
{
	size_t n = strlen(before), left = (size_t)(c->end - c->p);
	const char *value = c->p + n, *end;

	ret[0] = '\0';
	if (left < n || memcmp(c->p, before, n) != 0)
		return false;
	end = memmem(value, left - n, behind, strlen(behind));
	if (!end || end - value >= VALUE_MAX)
		return false;
	memcpy(ret, value, (size_t)(end - value));
	ret[end - value] = '\0';
	c->p = end + strlen(behind);
	return strlen(ret) == (size_t)(end - value);
}

/* The note that such a line was made of. */
static bool write_note(struct cursor *c, struct buf *note)
{
	char log[VALUE_MAX], v[VALUE_MAX];

	if (!take(c, BEGINNING, "\"", log))
		return false;
	buf_addf(note, "lychgate.audit/%s\n", log);
	if (!take(c, ",\"size\":", ",", v))
		return false;
	buf_addf(note, "%s\n", v);
	if (!take(c, "\"root\":\"", "\"", v))
		return false;
	buf_addf(note, "%s\n", v);
	if (!take(c, ",\"epoch\":", ",", v))
		return false;
	buf_addf(note, "epoch %s\n", v);
	if (!take(c, "\"time\":\"", "\"", v))
		return false;
	buf_addf(note, "time %s\n", v);
	if (!take(c, ",\"prev\":\"", "\"", v))
		return false;
	buf_addf(note, "prev %s\n", v);
	if (take(c, ",\"genesis\":\"", "\"", v))
		buf_addf(note, "genesis %s\n", v);
	if (take(c, ",\"next\":\"", "\"", v))
		buf_addf(note, "next %s\n", v);
	if (!take(c, ",\"signature\":\"", "\"}", v))
		return false;
	buf_addf(note, "\n\xe2\x80\x94 lychgate.audit/%s %s\n\n", log, v);
	return c->p == c->end;
}

int anchor_line_parse(const char *line, size_t len, struct seal *ret, struct err *err)
{
	struct cursor c = {line, line + len};
	cleanup_buf struct buf note;

	buf_init(&note, SEAL_MAX);
	if (memchr(line, '\n', len) || !write_note(&c, &note) || !buf_ok(&note) ||
	    seal_parse(note.data, note.len, ret, NULL) < 0)
		return err_set_id(err, ERRID_AUDIT_ANCHOR, "no line of an anchor");
	return 0;
}

int anchor_name(const char *path, char ret[ANCHOR_NAME_MAX], struct err *err)
{
	const char *name = anchor_name_in(path);

	if (!name)
		return err_set_id(err, ERRID_AUDIT_ANCHOR,
				  "%.200s: a file's name of letters, digits, '-', '_' "
				  "and '.', at most %d",
				  path, ANCHOR_NAME_MAX - 1);
	return str_copy(ret, ANCHOR_NAME_MAX, name);
}
