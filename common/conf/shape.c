/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * Says what is wrong with the shape of a text that libcyaml has refused: the line, the key, and what is
 * expected there. libcyaml decides and this explains, because the words of a parser ("did not find
 * expected '-' indicator") are of no use to who wrote the file, and name no line of it.
 */
#include "common/conf/priv.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

/* Where the reading is: on a line that has content, at `at`, `column` blanks from its beginning. */
struct walk {
	const char *at; /* NULL: behind the last line */
	size_t column;
	unsigned line;
	const char *page; /* of the manual, which lists the keys */
	struct err *err;
};

/* What is expected somewhere, and the name of that place: "ward, entry 2: action". */
struct place {
	const cyaml_schema_value_t *value;
	const char *name;
	bool is_entry; /* of a list */
	unsigned line; /* of its key */
	size_t column;
};

PRINTF_FMT(4, 5)
static int refuse(const struct walk *w, unsigned line, const char *name, const char *fmt,
		  ...)
{
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set_id(w->err, ERRID_START_CONFIG, "line %u: %.120s%s%s", line, name,
			  *name ? ": " : "", text);
}

/* ---- lines and words --------------------------------------------------------- */

static bool is_over(const char *at)
{
	return !*at || *at == '\n';
}

/* To the next thing on this line, over a comment to its end. */
static const char *skip(const char *at)
{
	const char *start = at;

	at += strspn(at, " ");
	if (*at == '#' && (at > start || at[-1] == ' ' || at[-1] == '\n'))
		at += strcspn(at, "\n");
	return at;
}

/* From the beginning of a line: to the first that has content, this one or one behind it. */
static void settle(struct walk *w, const char *start)
{
	for (;;) {
		const char *at = start + strspn(start, " ");

		if (!is_over(at) && *at != '#') {
			w->at = at;
			w->column = (size_t)(at - start);
			return;
		}
		at += strcspn(at, "\n");
		if (!*at) {
			w->at = NULL;
			return;
		}
		start = at + 1;
		w->line++;
	}
}

static void next_line(struct walk *w, const char *at)
{
	at += strcspn(at, "\n");
	if (!*at) {
		w->at = NULL;
		return;
	}
	w->line++;
	settle(w, at + 1);
}

static bool is_dash(const struct walk *w)
{
	return w->at && w->at[0] == '-' && (w->at[1] == ' ' || is_over(w->at + 1));
}

/* A word in quotes, or up to what ends it; *ret_n without the quotes. Returns what is behind it. */
static const char *word(const char *at, const char *ends, const char **ret, size_t *ret_n)
{
	const char *end = at;

	if (*at == '"' || *at == '\'') {
		end = at + 1 + strcspn(at + 1, *at == '"' ? "\"\n" : "'\n");
		*ret = at + 1;
		*ret_n = (size_t)(end - at - 1);
		return end + !is_over(end);
	}
	for (; !is_over(end); end++)
		if (strchr(ends, *end) || (*end == ':' && strchr(" \n", end[1])) ||
		    (*end == '#' && end > at && end[-1] == ' '))
			break;
	*ret = at;
	*ret_n = (size_t)(end - at);
	while (*ret_n > 0 && at[*ret_n - 1] == ' ')
		--*ret_n;
	return end;
}

/* ---- keys -------------------------------------------------------------------- */

/* The keys of one mapping that were met. */
struct seen {
	const cyaml_schema_field_t *fields;
	uint64_t bits;
};

static int unknown_key(const struct walk *w, const struct place *in,
		       const cyaml_schema_field_t *fields, const char *key)
{
	const char *meant = conf_near_key(fields, key);

	if (meant)
		return refuse(w, w->line, in->name, "no key '%.60s'; did you mean '%s'?",
			      key, meant);
	return refuse(w, w->line, in->name, "no key '%.60s'; %s lists them", key,
		      w->page);
}

/* The key at `at`: its schema, and behind its colon. */
static int read_key(const struct walk *w, const struct place *in, struct seen *seen,
		    const char *at, const cyaml_schema_field_t **ret, const char **behind)
{
	cleanup_free char *key = NULL;
	const char *text, *end;
	size_t n, i;

	end = word(at, "{},", &text, &n);
	end += strspn(end, " ");
	if (n == 0 && *at != '"' && *at != '\'') {
		/* a sign is where a key should be */
		n = strcspn(at, " \n");
		end = at + n;
	}
	/* in quotes as JSON has them it needs no blank */
	if (*end != ':' || n == 0 || (text == at && !strchr(" \n", end[1])))
		return refuse(w, w->line, in->name,
			      "'%.*s' is no key: 'KEY: VALUE' is expected, with a blank "
			      "behind the ':'",
			      (int)(n < 60 ? n : 60), text);
	key = xstrndup(text, n);
	for (i = 0; seen->fields[i].key && !str_eq(seen->fields[i].key, key); i++)
		;
	if (!seen->fields[i].key)
		return unknown_key(w, in, seen->fields, key);
	assert(i < 64);
	if (seen->bits & (uint64_t)1 << i)
		return refuse(w, w->line, in->name,
			      "the key '%s' is there twice: leave one out", key);
	seen->bits |= (uint64_t)1 << i;
	*ret = &seen->fields[i];
	*behind = skip(end + 1);
	return 0;
}

/* The version of the file itself, of which there is one; a "version" further below is something else's. */
static bool is_format(const struct place *in, const char *key)
{
	return !*in->name && str_eq(key, "version");
}

static int check_missing(const struct walk *w, const struct place *in,
			 const struct seen *seen)
{
	for (size_t i = 0; seen->fields[i].key; i++)
		if (!(seen->fields[i].value.flags & CYAML_FLAG_OPTIONAL) &&
		    !(seen->bits & (uint64_t)1 << i))
			return refuse(w, in->line, in->name, "%s: %s is required",
				      seen->fields[i].key,
				      is_format(in, seen->fields[i].key) ? "\"1\""
									 : "it");
	return 0;
}

static char *name_of(const struct place *in, const char *key)
{
	return xasprintf("%s%s%s", in->name,
			 !*in->name	? ""
			 : in->is_entry ? ": "
					: ".",
			 key);
}

/* ---- values ------------------------------------------------------------------ */

static int wrong_kind(const struct walk *w, const struct place *p, const char *found)
{
	static const char *const wanted[] = {
		"one value is expected behind the ':'",
		"keys of its own are expected below it, each two blanks deeper",
		"a list is expected below it, each entry with '- ' before it",
	};
	unsigned kind = p->value->type == CYAML_MAPPING	   ? 1
			: p->value->type == CYAML_SEQUENCE ? 2
							   : 0;

	return refuse(w, p->line, p->name, "%s, not %s", wanted[kind], found);
}

static int check_length(const struct walk *w, const struct place *p, size_t n)
{
	if (n < p->value->string.min)
		return refuse(w, p->line, p->name, "a value is missing");
	if (n > p->value->string.max)
		return refuse(w, p->line, p->name, "a value of more than %u bytes",
			      p->value->string.max);
	return 0;
}

static int walk_flow(struct walk *w, const struct place *p, const char **at);

/* A value inside of braces. */
static int walk_flow_value(struct walk *w, const struct place *p, const char **at)
{
	const char *text;
	size_t n;

	if (**at == '{')
		return p->value->type == CYAML_MAPPING ? walk_flow(w, p, at)
						       : wrong_kind(w, p, "'{'");
	if (p->value->type != CYAML_STRING)
		return wrong_kind(w, p, "one value");
	bool is_plain = **at != '"' && **at != '\'';

	*at = skip(word(*at, "{},", &text, &n));
	if (is_plain && n > 0 && (text[0] == ':' || text[n - 1] == ':'))
		return refuse(w, w->line, p->name,
			      "a ':' at an end of the value: quote it");
	return check_length(w, p, n);
}

/* Braces may be closed on a later line. */
static const char *skip_lines(struct walk *w, const char *at)
{
	for (at = skip(at); *at == '\n'; at = skip(at + 1))
		w->line++;
	return at;
}

/* *at: at its '{', and then behind its '}'. */
static int walk_flow(struct walk *w, const struct place *p, const char **at)
{
	struct seen seen = {.fields = p->value->mapping.fields};
	unsigned line = w->line;
	const char *here = skip_lines(w, *at + 1);

	while (*here && *here != '}') {
		const cyaml_schema_field_t *f = NULL;

		if (read_key(w, p, &seen, here, &f, &here) < 0 || !f)
			return -1;
		cleanup_free char *name = name_of(p, f->key);
		struct place inner = {&f->value, name, false, w->line, 0};

		here = skip_lines(w, here);
		if (walk_flow_value(w, &inner, &here) < 0)
			return -1;
		here = skip_lines(w, here);
		if (*here == ',')
			here = skip_lines(w, here + 1);
		else if (*here && *here != '}')
			return refuse(w, w->line, p->name,
				      "a ',' or '}' is missing: the '{' is on line %u",
				      line);
	}
	if (!*here)
		return refuse(w, line, p->name, "the '{' is not closed by a '}'");
	*at = here + 1;
	return check_missing(w, p, &seen);
}

static int walk_below(struct walk *w, const struct place *p);

/* Behind a value: nothing on its line, and no line that is deeper than its key. */
static int walk_end(struct walk *w, const struct place *p, const char *at)
{
	at = skip(at);
	if (*at == ':')
		return refuse(w, w->line, p->name,
			      "a second ':' behind the value: quote the value");
	if (!is_over(at))
		return refuse(w, w->line, p->name,
			      "'%.*s' behind the value: quote all of it, or leave it out",
			      (int)(strcspn(at, "\n") < 60 ? strcspn(at, "\n") : 60), at);
	next_line(w, at);
	if (w->at && w->column > p->column)
		return refuse(w, w->line, p->name,
			      "it has a value, and this line is deeper than its key");
	return 0;
}

/* What stands behind a key's colon, or an entry's dash; the next line where it is not on this one. */
static int walk_value(struct walk *w, const struct place *p, const char *at)
{
	const char *text;
	size_t n;

	if (is_over(at)) {
		next_line(w, at);
		return walk_below(w, p);
	}
	if (*at == '{') {
		if (p->value->type != CYAML_MAPPING)
			return wrong_kind(w, p, "'{'");
		return walk_flow(w, p, &at) < 0 ? -1 : walk_end(w, p, at);
	}
	if (at[0] == '-' && strchr(" \n", at[1]))
		return refuse(w, w->line, p->name,
			      "'- ' begins an entry: on a line of its own below the key");
	if (p->value->type != CYAML_STRING)
		return wrong_kind(w, p, "one value");
	if (*at == ',' || *at == '}')
		return refuse(w, w->line, p->name,
			      "a value that begins with '%c': quote it", *at);
	at = word(at, "", &text, &n);
	return check_length(w, p, n) < 0 ? -1 : walk_end(w, p, at);
}

/* ---- blocks ------------------------------------------------------------------ */

/* The lines of a mapping, whose keys are as deep as the first of them, which w is at. */
static int walk_map(struct walk *w, const struct place *p)
{
	struct seen seen = {.fields = p->value->mapping.fields};
	size_t column = w->column;

	while (w->at && w->column == column && !is_dash(w)) {
		const cyaml_schema_field_t *f = NULL;
		const char *behind;

		if (read_key(w, p, &seen, w->at, &f, &behind) < 0 || !f)
			return -1;
		cleanup_free char *name = name_of(p, f->key);
		struct place inner = {&f->value, name, false, w->line, column};

		if (walk_value(w, &inner, behind) < 0)
			return -1;
	}
	if (w->at && w->column == column && column > p->column)
		return refuse(w, w->line, p->name, "'- ' among keys: an entry of a list");
	if (w->at && (w->column > column || w->column > p->column))
		return refuse(w, w->line, p->name,
			      "as deep as no key above it: %zu blanks, and its keys have "
			      "%zu",
			      w->column, column);
	return check_missing(w, p, &seen);
}

static int walk_list(struct walk *w, const struct place *p)
{
	size_t column = w->column;

	for (unsigned i = 0; is_dash(w) && w->column == column; i++) {
		cleanup_free char *name = xasprintf("%s, entry %u", p->name, i + 1);
		const struct place entry = {p->value->sequence.entry, name, true, w->line,
					    column};
		const char *at = skip(w->at + 1);

		if (i >= p->value->sequence.max)
			return refuse(w, w->line, p->name, "more than %u entries",
				      p->value->sequence.max);
		if (is_over(at) || *at == '{' || entry.value->type != CYAML_MAPPING) {
			if (walk_value(w, &entry, at) < 0)
				return -1;
			continue;
		}
		if (at[0] == '-' && strchr(" \n", at[1]))
			return wrong_kind(w, &entry, "a list in a list");
		w->column += (size_t)(at - w->at);
		w->at = at;
		if (walk_map(w, &entry) < 0)
			return -1;
	}
	if (w->at && (w->column > column || (w->column == column && column > p->column)))
		return refuse(w, w->line, p->name,
			      "an entry begins with '- ', as deep as the one above it");
	return 0;
}

/* What is deeper than a key whose line has no value. w: the next line. */
static int walk_below(struct walk *w, const struct place *p)
{
	bool is_deeper = w->at && w->column > p->column;
	const char *text;
	size_t n;
	/* the dashes of a list may be as deep as its key */
	bool is_list = is_dash(w) &&
		       (is_deeper || (!p->is_entry && w->at && w->column == p->column));

	if (!is_deeper && !is_list)
		return p->value->type == CYAML_STRING
			       ? refuse(w, p->line, p->name, "a value is missing")
			       : wrong_kind(w, p, "nothing");
	if (p->value->type == CYAML_SEQUENCE)
		return is_list ? walk_list(w, p) : wrong_kind(w, p, "keys");
	if (is_list)
		return wrong_kind(w, p, "a list");
	if (p->value->type == CYAML_MAPPING)
		return *w->at == '{' ? walk_value(w, p, w->at) : walk_map(w, p);
	/* one value may stand on a line of its own */
	(void)word(w->at, "", &text, &n);
	return text[n] == ':' ? wrong_kind(w, p, "lines below it")
			      : walk_value(w, p, w->at);
}

int conf_shape_explain(const cyaml_schema_field_t *fields, const char *page,
		       const char *text, struct err *err)
{
	const cyaml_schema_value_t top = {.type = CYAML_MAPPING,
					  .mapping = {.fields = fields}};
	struct place place = {&top, "", false, 1, 0};
	struct walk w = {.line = 1, .page = page, .err = err};
	const char *first;

	settle(&w, text);
	first = w.at;
	if (!first)
		return refuse(&w, 1, "", "the file is empty: version: \"1\" is required");
	if (is_dash(&w))
		return refuse(&w, w.line, "",
			      "an entry of a list where a key is expected");
	place.column = w.column;
	if ((*first == '{' ? walk_value(&w, &place, first) : walk_map(&w, &place)) < 0)
		return -1;
	if (w.at)
		return refuse(&w, w.line, "",
			      "an entry of a list where a key is expected");
	return refuse(&w, 1, "",
		      "not the YAML of a codex: 'KEY: VALUE', and the keys of a section "
		      "two blanks deeper than its name; %s shows it",
		      page);
}
