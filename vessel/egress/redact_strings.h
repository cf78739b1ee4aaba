/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * The strings of a JSON text without a credential, as the bytes pass and whatever their
 * number: those of one key are read on from one to the next. Bytes that are no JSON pass too,
 * and what stands between quotes in them is read as a string. Nothing is kept but what a
 * match may begin with. Fuzzed (fuzz_redact_reply).
 */
#ifndef LYCH_VESSEL_EGRESS_REDACT_STRINGS_H
#define LYCH_VESSEL_EGRESS_REDACT_STRINGS_H

#include "vessel/egress/redact.h"
#include <stdint.h>

#define REDACT_KEYS_MAX 256
#define REDACT_LEVELS_MAX 64

struct redact_strings {
	const struct redact *what;
	struct {
		uint64_t key; /* its hash */
		struct redact_stream stream;
	} of[REDACT_KEYS_MAX];
	size_t n;
	struct {
		bool is_object;
		uint64_t key;
	} level[REDACT_LEVELS_MAX];
	size_t depth;
	/* outside of strings: the last one, and the key that the next one belongs to */
	uint64_t last, key;
	bool wants_key;			   /* the next string is a member's name */
	bool in_string, in_escape, is_key; /* where the bytes so far have come to */
};

void redact_strings_begin(struct redact_strings *s, const struct redact *what);
void redact_strings_feed(struct redact_strings *s, const void *data, size_t len,
			 struct buf *out);
void redact_strings_end(struct redact_strings *s, struct buf *out);
unsigned redact_strings_hits(const struct redact_strings *s);
void redact_strings_done(struct redact_strings *s);

#endif
