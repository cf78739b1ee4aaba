/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See queue.h.
 */
#include "tomb/queue/queue.h"

#include "common/str.h"

static const char *const answer_names[ANSWER_MAX_] = {
	"ok", "already", "conflict", "stale", "revoked", "denied", "unknown", "too_big",
};

enum queue_answer queue_answer_from_name(const char *name)
{
	for (int i = 0; i < ANSWER_MAX_; i++)
		if (str_eq(name, answer_names[i]))
			return (enum queue_answer)i;
	return ANSWER_MAX_;
}

const char *queue_answer_name(enum queue_answer a)
{
	return a < ANSWER_MAX_ ? answer_names[a] : "?";
}
