/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See intent.h.
 */
#include "common/proto/intent.h"

#include <assert.h>
#include <string.h>

static const char *const names[INTENT_MAX_] = {
	[INTENT_RESTART_TOMB] = "restart-tomb",
	[INTENT_STOP_TOMB] = "stop-tomb",
	[INTENT_STOP_POD] = "stop-pod",
	[INTENT_ROTATE_SECRET] = "rotate-secret",
};

const char *intent_name(enum intent i)
{
	assert(i < INTENT_MAX_);
	return names[i];
}

bool intent_from_name(const char *s, size_t len, enum intent *ret)
{
	for (size_t i = 0; i < INTENT_MAX_; i++)
		if (strlen(names[i]) == len && memcmp(s, names[i], len) == 0) {
			*ret = (enum intent)i;
			return true;
		}
	return false;
}
