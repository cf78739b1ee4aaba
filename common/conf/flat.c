/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * The keys of the schema by their dotted names: which there are, and what a text has for each.
 */
#include "common/conf/priv.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"

#include <assert.h>
#include <string.h>

static const void *pointer_at(const void *data, size_t offset)
{
	const void *p;

	memcpy(&p, (const char *)data + offset, sizeof(p));
	return p;
}

static void flat_fields(const char *name, const cyaml_schema_field_t *f, const void *data,
			struct buf *out);

/* Of one value, wherever it lies. */
static void flat_value(const char *name, const cyaml_schema_value_t *v, const void *data,
		       struct buf *out)
{
	if (!data)
		return;
	if (v->type == CYAML_MAPPING)
		flat_fields(name, v->mapping.fields, data, out);
	else
		buf_addf(out, "%s=%s\n", name, (const char *)data);
}

static void flat_list(const char *name, const cyaml_schema_field_t *f, const void *data,
		      struct buf *out)
{
	const cyaml_schema_value_t *v = f->value.sequence.entry;
	const void *list = pointer_at(data, f->data_offset);
	unsigned count;

	assert(f->count_size == sizeof(count));
	memcpy(&count, (const char *)data + f->count_offset, sizeof(count));
	for (unsigned i = 0; list && i < count; i++) {
		cleanup_free char *entry = xasprintf("%s.%u", name, i);
		bool is_far = v->flags & CYAML_FLAG_POINTER;

		flat_value(entry, v,
			   is_far ? pointer_at(list, i * sizeof(void *))
				  : (const char *)list + (size_t)i * v->data_size,
			   out);
	}
}

static void flat_fields(const char *name, const cyaml_schema_field_t *f, const void *data,
			struct buf *out)
{
	for (; f->key; f++) {
		cleanup_free char *full =
			xasprintf("%s%s%s", name, *name ? "." : "", f->key);

		if (f->value.type == CYAML_SEQUENCE)
			flat_list(full, f, data, out);
		else
			flat_value(full, &f->value, pointer_at(data, f->data_offset),
				   out);
	}
}

void conf_flat_write(const cyaml_schema_field_t *fields, const void *data,
		     struct buf *out)
{
	flat_fields("", fields, data, out);
}

static size_t line_length(const char *line)
{
	size_t n = strcspn(line, "\n");

	return n + (line[n] == '\n');
}

static bool is_of(const char *line, const char *const *lists)
{
	for (size_t n; *lists; lists++) {
		n = strlen(*lists);
		if (strncmp(line, *lists, n) == 0 && line[n] == '.')
			return true;
	}
	return false;
}

/* The next line from `at` on that is not of those lists; its length, 0: there is none. */
static size_t next_line(const char **at, const char *const *but)
{
	while (is_of(*at, but))
		*at += line_length(*at);
	return line_length(*at);
}

static bool has_key(const char *text, const char *line)
{
	size_t n = strcspn(line, "=") + 1;

	for (; *text; text += line_length(text))
		if (strncmp(text, line, n) == 0)
			return true;
	return false;
}

char *conf_flat_differs(const char *a, const char *b, const char *const *but)
{
	size_t n = next_line(&a, but), m = next_line(&b, but);

	while (n > 0 && n == m && memcmp(a, b, n) == 0) {
		a += n;
		b += m;
		n = next_line(&a, but);
		m = next_line(&b, but);
	}
	if (n == 0 && m == 0)
		return NULL;
	/* a's key, unless it comes later in b: then b's is the one that a has not */
	if (n == 0 || (m > 0 && has_key(b, a)))
		a = b;
	return xstrndup(a, strcspn(a, "="));
}

static int no_key(const cyaml_schema_field_t *fields, const char *key, size_t above,
		  const char *word, struct err *err)
{
	const char *meant = conf_near_key(fields, word);

	if (meant)
		return err_set_id(err, ERRID_CORE_USAGE,
				  "no key '%.100s'; did you mean '%.*s%s'?", key,
				  (int)above, key, meant);
	return err_set_id(err, ERRID_CORE_USAGE,
			  "no key '%.100s'; codex.yaml(5) lists them", key);
}

int conf_key_find(const cyaml_schema_field_t *fields, const char *key, struct err *err)
{
	for (const char *at = key;;) {
		size_t n = strcspn(at, ".");
		const cyaml_schema_field_t *f = fields;
		char word[CONF_KEY_SIZE];

		(void)snprintf(word, sizeof(word), "%.*s", (int)n, at);
		while (f->key && !(strlen(f->key) == n && memcmp(f->key, at, n) == 0))
			f++;
		if (!f->key)
			return no_key(fields, key, (size_t)(at - key), word, err);
		if (f->value.type == CYAML_SEQUENCE)
			return err_set_id(
				err, ERRID_CORE_USAGE,
				"'%.*s' is a list, not one value: 'lych config edit'",
				(int)(at - key + (ptrdiff_t)n), key);
		if (!at[n] && f->value.type != CYAML_MAPPING)
			return 0;
		if (!at[n])
			return err_set_id(err, ERRID_CORE_USAGE,
					  "'%.100s' has keys of its own: '%.100s.%s'",
					  key, key, f->value.mapping.fields->key);
		if (f->value.type != CYAML_MAPPING)
			return err_set_id(err, ERRID_CORE_USAGE,
					  "no key '%.100s': '%.*s' is one value", key,
					  (int)(at - key + (ptrdiff_t)n), key);
		fields = f->value.mapping.fields;
		at += n + 1;
	}
}
