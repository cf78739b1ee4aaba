/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See health.h.
 */
#include "tomb/health.h"

#include "common/log.h"
#include "common/net/health.h"
#include "common/str.h"

int health_main(int argc, char **argv)
{
	static const char request[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"healthCheck\"}\n";
	static char reply[HEALTH_REPLY_BYTES];
	struct err err = ERR_INIT;

	if (argc != 3 || !str_eq(argv[1], "--socket"))
		return 2;
	if (health_ask(argv[2], request, "\n", reply, &err) < 0) {
		log_err(LOG_ERROR_, "not healthy", &err);
		return 1;
	}
	if (strstr(reply, "\"spawner\":\"up\"") && strstr(reply, "\"database\":\"up\""))
		return 0;
	log_warn("not healthy: the spawner or the database is away");
	return 1;
}
