/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * containment: what is contained without a person's word.
 */
#include "common/conf/priv.h"

#include "common/str.h"

#define WITHIN_MAX_USEC (3600 * USEC_PER_SEC)

const cyaml_schema_field_t conf_containment_fields[] = {
	CONF_STR("canary", raw_containment, trigger[TRIGGER_CANARY]),
	CONF_STR("denials", raw_containment, trigger[TRIGGER_DENIALS]),
	CONF_STR("foreign_token", raw_containment, trigger[TRIGGER_FOREIGN_TOKEN]),
	CONF_STR("denials_count", raw_containment, denials_count),
	CONF_STR("denials_within", raw_containment, denials_within),
	CYAML_FIELD_END,
};

static const char *const triggers[CONF_TRIGGER_MAX_] = {
	[TRIGGER_CANARY] = "canary",
	[TRIGGER_DENIALS] = "denials",
	[TRIGGER_FOREIGN_TOKEN] = "foreign_token",
};

static const char *const acts[TRIGGER_ACT_MAX_] = {
	[TRIGGER_SIGNAL] = "signal",
	[TRIGGER_CONTAIN] = "contain",
	[TRIGGER_OFF] = "off",
};

const char *conf_trigger_name(enum conf_trigger t)
{
	return t < CONF_TRIGGER_MAX_ ? triggers[t] : NULL;
}

const char *trigger_act_name(enum trigger_act a)
{
	return a < TRIGGER_ACT_MAX_ ? acts[a] : NULL;
}

static bool act_from_name(const char *name, enum trigger_act *ret)
{
	for (unsigned a = 0; a < TRIGGER_ACT_MAX_; a++)
		if (str_eq(acts[a], name)) {
			*ret = (enum trigger_act)a;
			return true;
		}
	return false;
}

static int read_act(const struct conf_reader *r, enum conf_trigger t, const char *value,
		    enum trigger_act *ret)
{
	char key[64];

	if (!value)
		return 0;
	if (t == TRIGGER_FOREIGN_TOKEN && str_eq(value, "contain"))
		return conf_fail_at(r, "containment.foreign_token",
				    "signal or off: a tomb that lies would have any job "
				    "contained that it names");
	if (act_from_name(value, ret))
		return 0;
	(void)snprintf(key, sizeof(key), "containment.%s", triggers[t]);
	return conf_fail_at(r, key, "contain, signal or off");
}

int conf_containment_read(const struct conf_reader *r, const struct raw_containment *raw,
			  struct conf_containment *c)
{
	uint64_t denials = c->denials;

	if (!raw)
		return 0;
	for (unsigned t = 0; t < CONF_TRIGGER_MAX_; t++)
		if (read_act(r, (enum conf_trigger)t, raw->trigger[t], &c->act[t]) < 0)
			return -1;
	if (conf_read_number(r, "containment.denials_count", raw->denials_count,
			     parse_u64, CONF_DENIALS_MIN, CONF_DENIALS_MAX,
			     &denials) < 0 ||
	    conf_read_number(r, "containment.denials_within", raw->denials_within,
			     parse_duration_usec, USEC_PER_SEC, WITHIN_MAX_USEC,
			     &c->denials_within_usec) < 0)
		return -1;
	c->denials = (unsigned)denials;
	return 0;
}
