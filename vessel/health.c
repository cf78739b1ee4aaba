/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See health.h.
 */
#include "vessel/health.h"

#include "common/log.h"
#include "common/net/health.h"
#include "common/str.h"

#include <limits.h>
#include <string.h>

int vessel_health_main(int argc, char **argv)
{
	static const char request[] = "GET /v1/status HTTP/1.1\r\nHost: lychgate\r\n"
				      "Connection: close\r\n\r\n";
	static char reply[HEALTH_REPLY_BYTES];
	struct err err = ERR_INIT;
	char path[PATH_MAX];

	if (argc != 3 || !str_eq(argv[1], "--api-dir") ||
	    str_fmt(path, sizeof(path), "%s/vessel.sock", argv[2]) < 0)
		return 2;
	if (health_ask(path, request, "\r\n\r\n", reply, &err) < 0) {
		log_err(LOG_ERROR_, "not healthy", &err);
		return 1;
	}
	if (str_starts(reply, "HTTP/1.1 200 "))
		return 0;
	log_warn("not healthy: %.*s", (int)strcspn(reply, "\r\n"), reply);
	return 1;
}
