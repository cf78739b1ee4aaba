/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See migrate_main.h.
 */
#include "vessel/migrate_main.h"

#include "common/args/args.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/db/migrate.h"

struct migrate_args {
	struct migrate_config cfg;
	const char *tombs[MIGRATE_TOMBS_MAX];
	bool rotate;
};

enum { OPT_PG_DIR = 256, OPT_SECRETS, OPT_TOMB, OPT_ROTATE, OPT_AUDIT, OPT_TO };

static const struct argp_option option_table[] = {
	{"pg-dir", OPT_PG_DIR, "DIR", 0, "PostgreSQL's socket directory (required)", 0},
	{"secrets", OPT_SECRETS, "DIR", 0, "Directory of the secret files (required)", 0},
	{"tomb", OPT_TOMB, "NAME", 0,
	 "A tomb's database role; may be given 64 times (default: tomb_1)", 0},
	{"rotate-owner", OPT_ROTATE, NULL, 0,
	 "Give the cluster's owner its next password, and nothing else", 0},
	{"restart-audit", OPT_AUDIT, NULL, 0, "Begin a new numbering of the outbox", 0},
	{"to", OPT_TO, "VERSION", 0, "No further than this version, and no logins", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct migrate_args *a = state->input;
	uint64_t to = 0;

	switch (key) {
	case OPT_PG_DIR:
		a->cfg.socket_dir = arg;
		return 0;
	case OPT_SECRETS:
		a->cfg.secrets_dir = arg;
		return 0;
	case OPT_TOMB:
		if (a->cfg.n_tombs == ARRAY_SIZE(a->tombs))
			args_error(state, "--tomb: at most %d", MIGRATE_TOMBS_MAX);
		a->tombs[a->cfg.n_tombs++] = arg;
		return 0;
	case OPT_ROTATE:
		a->rotate = true;
		return 0;
	case OPT_AUDIT:
		a->cfg.restart_audit = true;
		return 0;
	case OPT_TO:
		if (parse_u64(arg, 1, INT32_MAX, &to, NULL) < 0)
			args_error(state, "--to: a version from 1");
		a->cfg.to = (unsigned)to;
		return 0;
	case ARGP_KEY_ARG:
		args_error(state, "'%s': no arguments are expected", arg);
		return 0;
	case ARGP_KEY_END:
		if (!a->cfg.socket_dir || !a->cfg.secrets_dir)
			args_error(state, "--pg-dir and --secrets are required");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int refused(const char *what, const struct err *err)
{
	log_err(LOG_ERROR_, what, err);
	return err_exit_code(err);
}

int migrate_main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = option_table,
		.parser = parse_option,
		.doc = "Bring the private cluster to this program's schema."};
	struct migrate_args a = {.tombs = {"tomb_1"}};
	struct err err = ERR_INIT;
	int applied = 0;

	log_init("migrate", LOG_INFO_);
	args_read(&argp, argc, argv, 0, &a);
	a.cfg.tombs = a.tombs;
	if (a.cfg.n_tombs == 0)
		a.cfg.n_tombs = 1;
	if (a.rotate)
		return migrate_rotate_owner(&a.cfg, &err) < 0
			       ? refused("rotation refused", &err)
			       : 0;
	if (migrate_run(&a.cfg, &applied, &err) < 0)
		return refused("migration refused", &err);
	log_info("%d migrations applied now, this program knows version %u", applied,
		 migrate_schema_version());
	return 0;
}
