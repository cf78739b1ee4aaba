/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-secret-driver and lych.
 * See manifest.h.
 */
#include "secrets/manifest.h"

#include "common/str.h"
#include <string.h>

const struct secret_info secret_manifest[] = {
	{"lychgate_db_migrate", CONSUMER_PHYLACTERY | CONSUMER_MIGRATE, ROTATE_OWNER,
	 true,
	 "PostgreSQL's superuser lych_migrate: makes the cluster, migrates the schema"},
	{"lychgate_db_vessel", CONSUMER_MIGRATE | CONSUMER_VESSEL, ROTATE_LOGIN, true,
	 "the vessel's login lych_vessel"},
	{"lychgate_db_watchdog", CONSUMER_MIGRATE | CONSUMER_VESSEL, ROTATE_LOGIN, true,
	 "the vessel's second login lych_watchdog, which ends sessions of tombs"},
	{"lychgate_db_tomb", CONSUMER_MIGRATE, ROTATE_LOGIN, true,
	 "the master of the tombs' logins; no tomb has it (in sovereign the vessel "
	 "does)"},
	{"lychgate_work", CONSUMER_VESSEL, ROTATE_RESTART, true,
	 "the master of the tombs' bearers on the work socket; no tomb has it"},
	{"lychgate_generation_of_*", CONSUMER_MIGRATE, ROTATE_TOMB, false,
	 "the generation of that tomb's secrets: a number that only grows"},
	{"lychgate_db_of_*", CONSUMER_TOMB, ROTATE_TOMB, false,
	 "that tomb's own login: five functions and no table"},
	{"lychgate_work_of_*", CONSUMER_TOMB, ROTATE_TOMB, false,
	 "that tomb's own bearer on the work socket"},
	{"portal_*", CONSUMER_EGRESS, ROTATE_GIVEN, false,
	 "a provider's API key, for the egress workers of the portals that name it"},
	{"host_*", CONSUMER_EGRESS, ROTATE_GIVEN, false,
	 "a key for a host, for the egress worker of the entry of credentials that names "
	 "it"},
};
const size_t secret_manifest_len = ARRAY_SIZE(secret_manifest);

static bool name_ok(const char *name)
{
	size_t len = strlen(name);

	return len >= 1 && len <= 64 &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == len;
}

const struct secret_info *secret_find(const char *name)
{
	if (!name_ok(name))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(secret_manifest); i++) {
		const char *n = secret_manifest[i].name;
		size_t len = strlen(n);

		if (n[len - 1] == '*' ? !strncmp(name, n, len - 1) && name[len - 1]
				      : str_eq(name, n))
			return &secret_manifest[i];
	}
	return NULL;
}

const char *secret_rotation_name(enum secret_rotation r)
{
	switch (r) {
	case ROTATE_LOGIN:
		return "login";
	case ROTATE_OWNER:
		return "owner";
	case ROTATE_RESTART:
		return "restart";
	case ROTATE_GIVEN:
		return "given";
	case ROTATE_TOMB:
		return "tomb";
	default:
		return "?";
	}
}
