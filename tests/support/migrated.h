/* SPDX-License-Identifier: Apache-2.0 */
/* pgtest_start(), and the schema with these tombs in it; aborts when that fails. In a
 * header, since only tests of the vessel link its migrations. */
#ifndef LYCH_TESTS_SUPPORT_MIGRATED_H
#define LYCH_TESTS_SUPPORT_MIGRATED_H

#include "common/mem.h"
#include "tests/support/pgtest.h"
#include "vessel/db/migrate.h"
#include <stdio.h>
#include <stdlib.h>

static inline void migrated_start(const char *const *tombs, size_t n)
{
	struct err err = ERR_INIT;
	int applied = 0;

	(void)pgtest_start();
	char *sock = xstrdup(pgtest_path("sock"));
	const struct migrate_config cfg = {.socket_dir = sock,
					   .secrets_dir = pgtest_path("secrets"),
					   .tombs = tombs,
					   .n_tombs = n};
	if (migrate_run(&cfg, &applied, &err) < 0) {
		fprintf(stderr, "migrate: %s\n", err.msg);
		abort();
	}
	free(sock);
}

#endif
