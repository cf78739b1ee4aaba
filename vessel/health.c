/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See health.h.
 */
#include "vessel/health.h"

#include "common/args/args.h"
#include "common/log.h"
#include "common/net/health.h"
#include "common/str.h"

#include <limits.h>
#include <string.h>

int vessel_health_main(int argc, char **argv)
{
	static const struct argp_option option[] = {
		{"api-dir", ARGS_ONLY, "DIR", 0, "Where its socket is (required)", 0},
		{0},
	};
	static const char request[] = "GET /v1/status HTTP/1.1\r\nHost: lychgate\r\n"
				      "Connection: close\r\n\r\n";
	static char reply[HEALTH_REPLY_BYTES];
	struct err err = ERR_INIT;
	char path[PATH_MAX];

	const char *dir = args_only(
		option, "Does the vessel answer? Exit 0: it does; 1: no.", argc, argv);
	if (str_fmt(path, sizeof(path), "%s/vessel.sock", dir) < 0)
		args_refuse(argv[0], "--api-dir is too long");
	if (health_ask(path, request, "\r\n\r\n", reply, &err) < 0) {
		log_err(LOG_ERROR_, "not healthy", &err);
		return 1;
	}
	if (str_starts(reply, "HTTP/1.1 200 "))
		return 0;
	log_warn("not healthy: %.*s", (int)strcspn(reply, "\r\n"), reply);
	return 1;
}
