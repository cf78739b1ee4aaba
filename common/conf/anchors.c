/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * audit.anchors: where else the checkpoints of the audit log are kept.
 */
#include "common/conf/priv.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"

#include <string.h>

static const cyaml_schema_field_t anchor_fields[] = {
	CONF_STR("kind", raw_anchor, kind),
	CONF_STR("path", raw_anchor, path),
	CONF_STR("required", raw_anchor, required),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t anchor_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_anchor, anchor_fields),
};
const cyaml_schema_field_t conf_audit_fields[] = {
	CONF_LIST("anchors", raw_audit, anchors, anchor_schema, ANCHORS_MAX),
	CYAML_FIELD_END,
};

static int refuse(const struct conf_reader *r, unsigned at, const char *key,
		  const char *why)
{
	cleanup_free char *text = xasprintf("entry %u: %s: %s", at + 1, key, why);

	return conf_fail_at(r, "audit.anchors", text);
}

static bool path_is_ok(const char *path)
{
	size_t len = strlen(path);

	return path[0] == '/' && anchor_name_in(path) && len <= ANCHOR_PATH_MAX_BYTES &&
	       !str_has_control(path, len);
}

static int read_one(const struct conf_reader *r, const struct raw_anchor *raw,
		    unsigned at, struct conf *c)
{
	struct conf_anchor *a = &c->anchor[at];

	if (!raw->kind || !str_eq(raw->kind, "path"))
		return refuse(r, at, "kind", "path");
	if (!raw->path || !path_is_ok(raw->path))
		return refuse(
			r, at, "path",
			"an absolute path of at most 512 bytes, to a file whose name "
			"is letters, digits, '-', '_' and '.'");
	for (unsigned i = 0; i < at; i++)
		if (str_eq(anchor_name_in(c->anchor[i].path), anchor_name_in(raw->path)))
			return refuse(r, at, "path",
				      "two files of one name: the log names them by it");
	if (raw->required && !str_eq(raw->required, "yes") &&
	    !str_eq(raw->required, "no"))
		return refuse(r, at, "required", "yes or no");
	a->path = xstrdup(raw->path);
	a->is_required = str_eq(raw->required, "yes");
	c->n_anchors++;
	return 0;
}

int conf_audit_read(const struct conf_reader *r, const struct raw_audit *raw,
		    struct conf *c)
{
	if (!raw || raw->anchors_count == 0)
		return 0;
	for (unsigned i = 0; i < raw->anchors_count; i++)
		if (read_one(r, &raw->anchors[i], i, c) < 0)
			return -1;
	return 0;
}

void conf_audit_done(struct conf *c)
{
	for (size_t i = 0; i < c->n_anchors; i++)
		free(c->anchor[i].path);
	c->n_anchors = 0;
}
