/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker and the build.
 * See rules.h.
 */
#include "vessel/gate/rules/rules.h"
#include "common/str.h"
#include <assert.h>

#define FLAG_N 0u
#define FLAG_I GATE_RULE_CASELESS
#define FLAG_S GATE_RULE_SPLIT
#define FLAG_W GATE_RULE_WEAK
#define FLAG_B GATE_RULE_BEGINS
#define FLAG_F GATE_RULE_FAR
#define FLAG_R GATE_RULE_RUN
#define FLAG_SF (FLAG_S | FLAG_F)
#define FLAG_SB (FLAG_S | FLAG_B)
#define FLAG_SR (FLAG_S | FLAG_R)
#define FLAG_IB (FLAG_I | FLAG_B)
#define FLAG_IS (FLAG_I | FLAG_S)
#define FLAG_WB (FLAG_W | FLAG_B)
#define FLAG_WR (FLAG_W | FLAG_R)
#define FLAG_ISB (FLAG_I | FLAG_S | FLAG_B)
#define FLAG_ISF (FLAG_I | FLAG_S | FLAG_F)
#define FLAG_IWB (FLAG_I | FLAG_W | FLAG_B)
#define FLAG_WSB (FLAG_W | FLAG_S | FLAG_B)

const struct gate_rule gate_rules[] = {
#define R(name, family, severity, flags, check, anchor, expression)                      \
	{#name, GATE_##family, severity, FLAG_##flags, CHECK_##check, anchor, expression},
#include "vessel/gate/rules/rules.def"
#undef R
};
const size_t gate_rules_n = ARRAY_SIZE(gate_rules);

static const struct gate_family_info families[GATE_FAMILY_MAX_] = {
	[GATE_TOKEN] = {"token", "TOKEN"},
	[GATE_PRIVATE_KEY] = {"private_key", "PRIVATE_KEY"},
	[GATE_JWT] = {"jwt", "JWT"},
	[GATE_URL_SECRET] = {"url_secret", "CREDENTIAL"},
	[GATE_KEYWORD] = {"keyword", "SECRET"},
	[GATE_ENTROPY] = {"entropy", "RANDOM"},
	[GATE_CARD] = {"card", "CARD"},
	[GATE_IBAN] = {"iban", "IBAN"},
	[GATE_SSN] = {"ssn", "SSN"},
	[GATE_NHS] = {"nhs", "NHS"},
	[GATE_CRYPTO] = {"crypto", "WALLET"},
	[GATE_EMAIL] = {"email", "EMAIL"},
	[GATE_PHONE] = {"phone", "PHONE"},
	[GATE_IP] = {"ip", "IP"},
	[GATE_MAC] = {"mac", "MAC"},
	[GATE_GPS] = {"gps", "PLACE"},
	[GATE_IDENTITY] = {"identity", "IDENTITY"},
	[GATE_NAME] = {"name", "NAME"},
	[GATE_ADDRESS] = {"address", "ADDRESS"},
	[GATE_EXACT] = {"exact", "PRIVATE"},
	[GATE_CANARY] = {"canary", "CANARY"},
	/* what is called so is not told what it is */
	[GATE_PLANTED] = {"planted", "KEY"},
	[GATE_FILE] = {"file", "FILE"},
	[GATE_MEDIA] = {"media", "MEDIA"},
	[GATE_BINARY] = {"binary", "BINARY"},
	[GATE_UNREADABLE] = {"unreadable", "UNREADABLE"},
};

const struct gate_family_info *gate_family_info(enum gate_family f)
{
	assert(f < GATE_FAMILY_MAX_);
	return &families[f];
}

const char *gate_rule_name(const char *name, size_t len)
{
	static const char *const others[] = {
		"canary", "private", "binary",	"opaque", "unreadable", "sqlite", "pdf",
		"zip",	  "office",  "keepass", "7z",	  "rar",	"xz",	  "bzip2",
		"zstd",	  "tar",     "elf",	"png",	  "jpeg",	"gif",	  "webp",
		"wav",	  "ogg",     "mp3",	"mp4",
	};

	for (size_t i = 0; i < gate_rules_n; i++)
		if (strlen(gate_rules[i].name) == len &&
		    memcmp(gate_rules[i].name, name, len) == 0)
			return gate_rules[i].name;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (strlen(others[i]) == len && memcmp(others[i], name, len) == 0)
			return others[i];
	return "other";
}
