/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The logins of embedded mode: each tomb's secrets, then `lych-vessel migrate` for all.
 */
#include "cli/local/up.h"

#include "cli/base/proc.h"
#include "cli/secret/secret_tombs.h"
#include "common/cleanup.h"
#include "common/mem.h"

#define FIXED_ARGS 6

int up_migrate(const char *vessel, const struct paths *p, const char *to,
	       const char *const *env, usec_t timeout, struct err *err)
{
	cleanup_free char *secrets = xasprintf("%s/secrets", p->data);
	cleanup_secret_store struct secret_store s = {.dirfd = -1};
	const char *argv[FIXED_ARGS + 2 * SECRET_TOMBS_MAX + 3] = {
		vessel, "migrate", "--pg-dir", p->pg_dir, "--secrets", secrets};
	struct secret_tombs tombs;
	size_t n = FIXED_ARGS;

	if (secret_store_open("files", p, &s, err) < 0 ||
	    secret_tombs_prepare(&s, TOMB_NAME, err) < 0 ||
	    secret_tombs_list(&s, &tombs, err) < 0)
		return -1;
	for (size_t i = 0; i < tombs.n; i++) {
		argv[n++] = "--tomb";
		argv[n++] = tombs.name[i];
	}
	if (to) {
		argv[n++] = "--to";
		argv[n++] = to;
	}
	return proc_run(argv, env, NULL, timeout, ERRID_START_MIGRATION, NULL, err);
}
