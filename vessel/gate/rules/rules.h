/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker and the build.
 * The rules as a table (vessel/gate/rules/rules.def), and the families' names.
 */
#ifndef LYCH_VESSEL_GATE_RULES_RULES_H
#define LYCH_VESSEL_GATE_RULES_RULES_H

#include "vessel/gate/rules/families.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A match, its surroundings included, is at most this long. What may be longer (a JWT, a
 * key's block) is extended by its check. */
#define GATE_REACH 512
#define GATE_BACK 160

enum gate_check_kind {
	CHECK_NONE,
	CHECK_DIVERSE, /* as many different characters as chance gives */
	CHECK_MIXED,   /* the same, and upper and lower case */
	CHECK_DRAWN,   /* diverse, and neither a name nor mostly one sign */
	CHECK_CRC62,   /* the last six characters are the CRC-32 of the others */
	CHECK_AWS,     /* the account number that the key holds */
	CHECK_PEM,     /* extended to its END */
	CHECK_BECH32,
	CHECK_BASE58, /* with its checksum */
	CHECK_JWT,    /* the header decodes to an object; extended to the signature */
	CHECK_URLPASS,
	CHECK_PASSWORD,
	CHECK_AUTHLINE,
	CHECK_KEYWORD,
	CHECK_KEYWORD_BLOCK,  /* it looks drawn by lot, as for a refusal */
	CHECK_KEYWORD_QUOTED, /* nothing assigns it: letters and digits */
	CHECK_KEYWORD_BARE,   /* nor is it quoted: it looks drawn by lot */
	CHECK_HEX,
	CHECK_TEXT64,
	CHECK_CARD,
	CHECK_IBAN,
	CHECK_SSN,
	CHECK_NHS,
	CHECK_EMAIL,
	CHECK_PHONE,
	CHECK_PHONE_NATIONAL,
	CHECK_PHONE_SAID,
	CHECK_STREET,
	CHECK_IPV4,
	CHECK_IPV6,
	CHECK_MAC,
	CHECK_GPS,
	CHECK_HASDIGITS,
	CHECK_NAME,
};

#define GATE_RULE_CASELESS 1u
#define GATE_RULE_SPLIT 2u
#define GATE_RULE_WEAK 4u
#define GATE_RULE_FAR 8u
#define GATE_RULE_BEGINS 16u
#define GATE_RULE_RUN 32u

struct gate_rule {
	const char *name;
	enum gate_family family;
	unsigned severity; /* hundredths */
	unsigned flags;
	enum gate_check_kind check;
	const char *anchor, *expression;
};

extern const struct gate_rule gate_rules[];
extern const size_t gate_rules_n;

/* The name of a rule, or of another detector, as a constant; "other" when unknown. */
const char *gate_rule_name(const char *name, size_t len);

#endif
