/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * Which key of the schema was meant by one that is not in it.
 */
#include "common/conf/priv.h"

#include "common/near.h"
#include "common/str.h"

/* The keys that stand below this one; NULL: none do. Of a list: those of its entries. */
static const cyaml_schema_field_t *below(const cyaml_schema_field_t *fields,
					 const char *key)
{
	const cyaml_schema_value_t *v;

	while (fields->key && !str_eq(fields->key, key))
		fields++;
	if (!fields->key)
		return NULL;
	v = &fields->value;
	if (v->type == CYAML_SEQUENCE)
		v = v->sequence.entry;
	return v->type == CYAML_MAPPING ? v->mapping.fields : NULL;
}

const char *conf_near_key(const cyaml_schema_field_t *fields, char path[][CONF_KEY_SIZE],
			  size_t n, const char *key)
{
	struct near near = {.word = key, .len = strlen(key)};

	for (; fields && n > 0; n--)
		fields = below(fields, path[n - 1]);
	for (; fields && fields->key; fields++)
		near_offer(&near, fields->key);
	return near.best;
}
