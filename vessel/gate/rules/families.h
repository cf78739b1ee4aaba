/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel, the gate worker and the build.
 * The families of what is private.
 */
#ifndef LYCH_VESSEL_GATE_RULES_FAMILIES_H
#define LYCH_VESSEL_GATE_RULES_FAMILIES_H

/* Rows: gate_family_info(). The order is that of the specification's families. */
enum gate_family {
	GATE_TOKEN,	  /* a provider's key or token, by its own format */
	GATE_PRIVATE_KEY, /* PEM, OpenSSH, PGP, PuTTY, PKCS#12, age, WireGuard, wallets */
	GATE_JWT,
	GATE_URL_SECRET, /* user:password@, DSN, Authorization: */
	GATE_KEYWORD,	 /* password = value */
	GATE_ENTROPY,
	GATE_CARD,
	GATE_IBAN,
	GATE_SSN,
	GATE_NHS,
	GATE_CRYPTO, /* an address of a cryptocurrency */
	GATE_EMAIL,
	GATE_PHONE,
	GATE_IP,
	GATE_MAC,
	GATE_GPS,
	GATE_IDENTITY, /* date of birth, passport, licence: by keyword */
	GATE_NAME,
	GATE_ADDRESS,
	GATE_EXACT,   /* what the user registered */
	GATE_CANARY,  /* the key of the job's own broker */
	GATE_PLANTED, /* planted in the job (common/crypto/planted.h) */
	GATE_FILE,    /* a file of a kind that is private, or its path */
	GATE_MEDIA,   /* a picture or sound that may not go out, or is not whole */
	GATE_BINARY,  /* bytes of no kind that is known */
	GATE_UNREADABLE,
	GATE_FAMILY_MAX_
};

struct gate_family_info {
	const char *name;  /* "private_key" */
	const char *label; /* of the placeholder: "PRIVATE_KEY" in <PRIVATE_KEY_1> */
};
const struct gate_family_info *gate_family_info(enum gate_family f);

#endif
