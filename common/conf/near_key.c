/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * Which key of the schema was meant by one that is not in it.
 */
#include "common/conf/priv.h"

#include "common/near.h"

#include <string.h>

const char *conf_near_key(const cyaml_schema_field_t *fields, const char *key)
{
	struct near near = {.word = key, .len = strlen(key)};

	for (; fields->key; fields++)
		near_offer(&near, fields->key);
	return near.best;
}
