/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What a classifier is asked, and what its answer means. Pure.
 *
 * The text is a job's, and the model that reads it can be talked to: so the text stands between
 * two lines with a number that nobody could know when it was written, and an answer is one JSON
 * object of one form, in one choice that came to its end. All else is no answer. Whatever a text makes
 * the model say, that is a number from 0 to 1, and it only ever raises the gate's own (opinion.h).
 */
#ifndef LYCH_VESSEL_BROKER_OPINION_TEXT_H
#define LYCH_VESSEL_BROKER_OPINION_TEXT_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/id.h"
#include <stddef.h>

/* A text is shown in slices, each with the end of the one before. A byte is a token at most: with the
 * question and the answer it fits into a context of 10,240. */
#define OPINION_SLICE_BYTES ((size_t)8192)
#define OPINION_OVERLAP_BYTES ((size_t)256)
#define OPINION_ANSWER_TOKENS 200u
#define OPINION_REQUEST_MAX_BYTES ((size_t)64 << 10)
#define OPINION_REPLY_MAX_BYTES ((size_t)64 << 10)

/* Bytes of the slice that begins at `at`; whole characters of UTF-8. */
size_t opinion_slice_len(const char *text, size_t len, size_t at);
/* Where the slice behind that one, of n bytes, begins; len: there is none. */
size_t opinion_slice_next(const char *text, size_t len, size_t at, size_t n);

/* A request of chat completions about a slice. */
void opinion_request_write(const char *model, const char *slice, size_t len,
			   const struct random_ops *rng, struct buf *out);
/* The body of a reply. -1: it is no answer; the message has no word of it. */
MUST_CHECK int opinion_reply_read(const void *data, size_t len, double *ret,
				  struct err *err);

#endif
