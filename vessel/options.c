/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See options.h.
 */
#include "vessel/options.h"

#include "common/args/args.h"
#include "common/mem.h"
#include "common/str.h"

#include <limits.h>

enum {
	OPT_DATA = 256,
	OPT_API_DIR,
	OPT_WORK_DIR,
	OPT_PG_DIR,
	OPT_AUDIT_DIR,
	OPT_SECRETS,
	OPT_CONFIG,
	OPT_TOMB,
	OPT_PROBE_WALLS,
	OPT_PROBE_WORKER,
	OPT_PROTOCOL,
	OPT_SWEEP_AFTER,
};

static const struct argp_option option_table[] = {
	{"data", OPT_DATA, "DIR", 0, "The vessel's data directory (required)", 0},
	{"api-dir", OPT_API_DIR, "DIR", 0, "Where the owner's socket is made (required)",
	 0},
	{"work-dir", OPT_WORK_DIR, "DIR", 0, "Where the tombs' socket is made (required)",
	 0},
	{"pg-dir", OPT_PG_DIR, "DIR", 0, "PostgreSQL's socket directory (required)", 0},
	{"audit-dir", OPT_AUDIT_DIR, "DIR", 0, "The scribe's socket directory (required)",
	 0},
	{"secrets", OPT_SECRETS, "DIR", 0, "Directory of the secret files (required)", 0},
	{"config", OPT_CONFIG, "FILE", 0, "codex.yaml (default: built-in values)", 0},
	STARTER_ROW_READY_FD,
	STARTER_ROW_UNROOTED, /* codex.yaml says so too */
	STARTER_ROW_DIAL_FD,
	{"tomb", OPT_TOMB, "NAME", 0,
	 "A tomb that claims through the work socket (profile sovereign); may be given "
	 "64 times",
	 0},
#ifdef LYCH_TEST_BUILD
	{"probe-walls", OPT_PROBE_WALLS, "FILE", 0, "Confine, try what FILE lists, exit",
	 0},
	{"probe-worker", OPT_PROBE_WORKER, "NAME", 0,
	 "Let that egress worker (or their parent) try it, not the vessel", 0},
	{"speak-protocol", OPT_PROTOCOL, "N", 0, "Lie about the protocol's version", 0},
	{"sweep-after", OPT_SWEEP_AFTER, "SECONDS", 0, "When to retire old jobs", 0},
#endif
	{0},
};

/* The working directory changes with the private root. */
static bool is_absolute(const struct options *o)
{
	return str_starts(o->data, "/") && str_starts(o->api_dir, "/") &&
	       str_starts(o->work_dir, "/") && str_starts(o->pg_dir, "/") &&
	       str_starts(o->audit_dir, "/") && str_starts(o->secrets, "/");
}

static void check_required(const struct options *o, struct argp_state *state)
{
	if (!o->data || !o->api_dir || !o->work_dir || !o->pg_dir || !o->audit_dir ||
	    !o->secrets)
		args_error(state, "--data, --api-dir, --work-dir, --pg-dir, "
				  "--audit-dir and --secrets are required");
	if (!is_absolute(o))
		args_error(state, "directories are named by absolute paths");
	starter_word_check(&o->starter, state);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	if (starter_word_parse(&o->starter, key, arg, state))
		return 0;
	switch (key) {
	case OPT_DATA:
		o->data = arg;
		return 0;
	case OPT_API_DIR:
		o->api_dir = arg;
		return 0;
	case OPT_WORK_DIR:
		o->work_dir = arg;
		return 0;
	case OPT_PG_DIR:
		o->pg_dir = arg;
		return 0;
	case OPT_AUDIT_DIR:
		o->audit_dir = arg;
		return 0;
	case OPT_SECRETS:
		o->secrets = arg;
		return 0;
	case OPT_CONFIG:
		o->config = arg;
		return 0;
	case OPT_PROBE_WALLS:
		o->probe_walls = arg;
		return 0;
	case OPT_PROBE_WORKER:
		o->probe_worker = arg;
		return 0;
	case OPT_TOMB:
		if (o->n_tombs >= ARRAY_SIZE(o->tombs))
			args_error(state, "--tomb: at most %d", DOOR_TOMBS_MAX);
		else
			o->tombs[o->n_tombs++] = arg;
		return 0;
	case OPT_PROTOCOL:
		if (parse_u64(arg, 1, UINT32_MAX, &o->protocol, NULL) < 0)
			args_error(state, "--speak-protocol: a number");
		return 0;
	case OPT_SWEEP_AFTER:
		if (parse_u64(arg, 1, 86400, &o->sweep_after_sec, NULL) < 0)
			args_error(state, "--sweep-after: seconds");
		return 0;
	case ARGP_KEY_ARG:
		args_error(state, "'%s': no arguments are expected", arg);
		return 0;
	case ARGP_KEY_END:
		check_required(o, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int options_parse(int argc, char **argv, struct options *ret, struct err *err)
{
	static const struct argp argp = {
		option_table, parse_option, NULL, "Serve the api and work sockets.",
		NULL,	      NULL,	    NULL};

	ret->starter = (struct starter_word)STARTER_WORD_NONE;
	args_read(&argp, argc, argv, 0, ret);
	if (str_fmt(ret->api_socket, sizeof(ret->api_socket), "%s/vessel.sock",
		    ret->api_dir) < 0)
		return err_set_id(err, ERRID_CORE_USAGE, "--api-dir is too long");
	return 0;
}
