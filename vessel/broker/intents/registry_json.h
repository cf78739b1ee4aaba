/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * An index in JSON, byte by byte: the string values of one key are links, and are rewritten. It is JSON
 * as RFC 8259 has it, in UTF-8, or it is an error: where readers differ on what stands there (a comma at
 * the end, 01, half a character), one of them might see another link. Depth is bounded, size is not.
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_REGISTRY_JSON_H
#define LYCH_VESSEL_BROKER_INTENTS_REGISTRY_JSON_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include "vessel/broker/intents/registry_rewrite.h"
#include <stdbool.h>
#include <stdint.h>

#define REGISTRY_KEY_MAX                                                                 \
	64 /* as it stands in the page: a letter of it may take six bytes */

struct registry_json {
	const char *key;
	struct registry_held *link;
	uint8_t within;	      /* enum json_within: a string, a number, a word */
	uint8_t next;	      /* enum json_next: what may come outside of these */
	uint8_t number;	      /* enum json_number */
	const char *word;     /* the rest of it */
	unsigned hex_left;    /* digits of an escape */
	unsigned more;	      /* bytes of a character */
	unsigned char lo, hi; /* of the next of them */
	bool in_key;	      /* the string is one */
	bool armed;	      /* the value that comes is a link */
	bool holding;	      /* it is being read */
	unsigned depth;
	bool is_array[REGISTRY_DEPTH_MAX], has_link[REGISTRY_DEPTH_MAX];
	char name[REGISTRY_KEY_MAX];
	size_t name_len;
};

/* key: of static lifetime. link: of the caller, which outlives this. Nothing is allocated. */
void registry_json_init(struct registry_json *j, const char *key,
			struct registry_held *link);
/* Both fail with ERRID_REGISTRY_INDEX. */
MUST_CHECK int registry_json_byte(struct registry_json *j, char c, struct buf *out,
				  struct err *err);
MUST_CHECK int registry_json_end(const struct registry_json *j, struct err *err);

#endif
