/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-secret-driver and lych.
 * Every secret of Lychgate: its name, who reads it, and what changes when it is rotated.
 * The one list: `lych secret`, `lych bind` and docs/SECRETS.md follow it.
 */
#ifndef LYCH_SECRETS_MANIFEST_H
#define LYCH_SECRETS_MANIFEST_H

#include "common/attr.h"
#include <stdbool.h>
#include <stddef.h>

enum secret_consumer {
	CONSUMER_PHYLACTERY = 1 << 0, /* initdb, on first use */
	CONSUMER_MIGRATE = 1 << 1,    /* the oneshot before start */
	CONSUMER_VESSEL = 1 << 2,
	CONSUMER_TOMB = 1 << 3,
	CONSUMER_EGRESS = 1 << 4, /* the one portal's, or credential's, egress worker */
};

enum secret_rotation {
	ROTATE_LOGIN,	/* new value; migrate gives it to the login; readers restart */
	ROTATE_OWNER,	/* the superuser: the server is told before the value changes */
	ROTATE_RESTART, /* new value; readers restart */
	ROTATE_GIVEN,	/* a provider issues it: `set`, not generated */
	ROTATE_TOMB,	/* one tomb's: made from a master, its name and generation */
};

struct secret_info {
	const char *name; /* ending in '*': a family */
	unsigned consumers;
	enum secret_rotation rotation;
	bool required;	     /* nothing starts without it */
	const char *purpose; /* for people */
};

extern const struct secret_info secret_manifest[];
extern const size_t secret_manifest_len;

/* NULL: no such name. Names are [a-z0-9_], at most 64 bytes. */
const struct secret_info *secret_find(const char *name);
const char *secret_rotation_name(enum secret_rotation r);

#define SECRET_VALUE_MIN_BYTES 16  /* below: too short to be one of ours */
#define SECRET_VALUE_MAX_BYTES 255 /* what the daemons' readers take */
#define SECRET_GENERATED_BYTES 32  /* random ones, written as twice as many hex digits */

#endif
