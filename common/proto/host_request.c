/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See host_request.h.
 */
#include "common/proto/host_request.h"

#include <assert.h>
#include <string.h>

static const char *const names[HOST_REQUEST_MAX_] = {
	[HOST_REQUEST_RESTART_TOMB] = "restart-tomb",
	[HOST_REQUEST_STOP_TOMB] = "stop-tomb",
	[HOST_REQUEST_STOP_POD] = "stop-pod",
	[HOST_REQUEST_ROTATE_SECRET] = "rotate-secret",
};

const char *host_request_name(enum host_request i)
{
	assert(i < HOST_REQUEST_MAX_);
	return names[i];
}

bool host_request_from_name(const char *s, size_t len, enum host_request *ret)
{
	for (size_t i = 0; i < HOST_REQUEST_MAX_; i++)
		if (strlen(names[i]) == len && memcmp(s, names[i], len) == 0) {
			*ret = (enum host_request)i;
			return true;
		}
	return false;
}
