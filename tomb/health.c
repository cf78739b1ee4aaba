/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See health.h.
 */
#include "tomb/health.h"

#include "common/args/args.h"
#include "common/log.h"
#include "common/net/health.h"
#include "common/str.h"

int health_main(int argc, char **argv)
{
	static const struct argp_option option[] = {
		{"socket", ARGS_ONLY, "PATH", 0, "The tomb's own socket (required)", 0},
		{0},
	};
	static const char request[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"healthCheck\"}\n";
	static char reply[HEALTH_REPLY_BYTES];
	struct err err = ERR_INIT;

	const char *socket = args_only(
		option, "Is the tomb ready for jobs? Exit 0: it is; 1: no.", argc, argv);
	if (health_ask(socket, request, "\n", reply, &err) < 0) {
		log_err(LOG_ERROR_, "not healthy", &err);
		return 1;
	}
	if (strstr(reply, "\"spawner\":\"up\"") && strstr(reply, "\"database\":\"up\""))
		return 0;
	log_warn("not healthy: the spawner or the database is away");
	return 1;
}
