/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See ward_text.h. Of YAML this knows "ward:" in the first column and the entries of a list below it; that
 * it understood is proved afterwards, by the parser.
 */
#include "cli/local/ward_text.h"

#include "common/cleanup.h"
#include "common/conf/conf.h"
#include "common/mem.h"
#include "common/str.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define KEY "ward:"
#define FLAT_MAX_BYTES ((size_t)1 << 20)

/* ---- a rule ------------------------------------------------------------------ */

/* In quotes of a kind that is not in it, and nothing that the quotes would mean. */
static int add_quoted(struct buf *out, const char *key, const char *value,
		      struct err *err)
{
	char quote = strchr(value, '"') ? '\'' : '"';

	for (const char *p = value; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f || *p == '\\' || *p == quote)
			return err_set_id(err, ERRID_PROPOSAL_RULE,
					  "the %s has a character that codex.yaml does "
					  "not take in quotes",
					  key);
	buf_addf(out, ", %s: %c%s%c", key, quote, value, quote);
	return 0;
}

int ward_rule_write(const struct ward_rule_text *r, struct buf *out, struct err *err)
{
	buf_addf(out, "{host: %s, method: %s", r->host, r->method);
	if (add_quoted(out, "path", r->path, err) < 0 ||
	    (r->reason && add_quoted(out, "reason", r->reason, err) < 0))
		return -1;
	buf_adds(out, ", action: allow}");
	return buf_ok(out) ? 0 : err_set_id(err, ERRID_PROPOSAL_RULE, "it is too long");
}

/* ---- its place --------------------------------------------------------------- */

static size_t next_line(const char *t, size_t at)
{
	at += strcspn(t + at, "\n");
	return at + (t[at] == '\n');
}

/* Columns before what stands on the line; nothing or a comment: false. */
static bool has_content(const char *t, size_t at, size_t *ret_columns)
{
	*ret_columns = strspn(t + at, " ");
	return t[at + *ret_columns] && !strchr("\n#", t[at + *ret_columns]);
}

/* Behind the last line of what is below "ward:", and the columns of its entries. */
static bool find_end(const char *t, size_t at, size_t *ret_end, size_t *ret_columns)
{
	bool is_inside = false;
	size_t columns;

	*ret_end = at;
	for (; t[at]; at = next_line(t, at)) {
		if (!has_content(t, at, &columns))
			continue;
		if (columns == 0 && t[at] != '-')
			break;
		if (!is_inside) {
			if (t[at + columns] != '-')
				return false;
			*ret_columns = columns;
			is_inside = true;
		}
		*ret_end = next_line(t, at);
	}
	return is_inside;
}

/* Where "ward:" stands with nothing behind it; its length: it stands nowhere. */
static size_t find_key(const char *t)
{
	size_t at = 0;

	while (t[at] && strncmp(t + at, KEY, strlen(KEY)) != 0)
		at = next_line(t, at);
	return at;
}

static int insert(const char *t, const char *rule, struct buf *out, struct err *err)
{
	size_t at = find_key(t), end = at, columns = 0;

	if (!t[at]) {
		buf_addf(out, "%s%s\n" KEY "\n  - %s\n", t,
			 at && t[at - 1] != '\n' ? "\n" : "", rule);
		return 0;
	}
	if (has_content(t, at + strlen(KEY), &columns) ||
	    !find_end(t, next_line(t, at), &end, &columns))
		return err_set_id(err, ERRID_START_LAYOUT, "ward");
	buf_add(out, t, end);
	buf_addf(out, "%s%*s- %s\n%s", t[end - 1] == '\n' ? "" : "\n", (int)columns, "",
		 rule, t + end);
	return 0;
}

/* ---- proof ------------------------------------------------------------------- */

/* Both parse, and what one means the other does, with rule number n before anything that differs. */
static int prove(const char *before, const char *after, struct err *err)
{
	cleanup_buf struct buf a = {.max = FLAT_MAX_BYTES}, b = {.max = FLAT_MAX_BYTES};
	cleanup_buf struct buf rest = {.max = FLAT_MAX_BYTES};
	struct conf old;
	char entry[32];

	if (conf_parse(before, strlen(before), &old, err) < 0)
		return -1;
	(void)snprintf(entry, sizeof(entry), "ward.%zu.", old.broker.n_rules);
	conf_done(&old);
	if (conf_flatten(before, strlen(before), &a, err) < 0 ||
	    conf_flatten(after, strlen(after), &b, err) < 0)
		return -1;
	for (const char *line = buf_str(&b); *line;) {
		size_t len = strcspn(line, "\n");

		if (!str_starts(line, entry))
			buf_add(&rest, line, len + (line[len] == '\n'));
		line += len + (line[len] == '\n');
	}
	return rest.len != b.len && str_eq(buf_str(&a), buf_str(&rest))
		       ? 0
		       : err_set_id(err, ERRID_START_LAYOUT, "ward");
}

int ward_text_add(const char *text, const char *rule, struct buf *out, struct err *err)
{
	if (insert(text, rule, out, err) < 0)
		return -1;
	if (!buf_ok(out))
		return err_set_id(err, ERRID_START_CONFIG,
				  "the file would be longer than %d bytes",
				  CONF_FILE_MAX_BYTES);
	return prove(text, buf_str(out), err);
}
