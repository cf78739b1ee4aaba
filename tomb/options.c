/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See options.h.
 */
#include "tomb/options.h"

#include "common/args/args.h"
#include "common/str.h"
#include "tomb/job/runner.h"

#include <limits.h>
#include <string.h>

#define SLOTS_MAX 64

enum {
	OPT_NAME = 256,
	OPT_DATA,
	OPT_WORK_DIR,
	OPT_QUEUE,
	OPT_PG_DIR,
	OPT_SECRETS,
	OPT_SANDBOX,
	OPT_SLOTS,
	OPT_GRADE,
	OPT_CGROUP,
	OPT_JOBS_APART,
	OPT_PROBE_WALLS,
	OPT_PROBE_PROCESS,
	OPT_PREPARE,
	OPT_PROTOCOL,
	OPT_VERSION,
};

static const struct argp_option option_table[] = {
	{"name", OPT_NAME, "NAME", 0, "This tomb's name and database role (required)", 0},
	{"data", OPT_DATA, "DIR", 0, "The tomb's data directory (required)", 0},
	{"work-dir", OPT_WORK_DIR, "DIR", 0,
	 "Where the vessel's work socket is (required)", 0},
	{"queue", OPT_QUEUE, "postgres|vessel", 0,
	 "Claim with a login of its own, or through the vessel (required)", 0},
	{"pg-dir", OPT_PG_DIR, "DIR", 0,
	 "PostgreSQL's socket directory (required with --queue postgres, refused with "
	 "vessel)",
	 0},
	{"secrets", OPT_SECRETS, "DIR", 0, "Directory of the secret files (required)", 0},
	{"sandbox", OPT_SANDBOX, "PATH", 0, "The program lych-sandbox (required)", 0},
	{"slots", OPT_SLOTS, "N", 0, "Jobs at once, 1 to 64 (required)", 0},
	{"grade", OPT_GRADE, "full|floor", 0, "The walls that every job gets (required)",
	 0},
	{"cgroup", OPT_CGROUP, "DIR", 0, "A delegated cgroup v2 directory", 0},
	{"jobs-apart", OPT_JOBS_APART, "yes|no", 0,
	 "yes: do not start unless DATA/jobs is a file system of its own", 0},
	STARTER_ROW_READY_FD,
	STARTER_ROW_UNROOTED, /* with --grade floor only */
	STARTER_ROW_DIAL_FD,
	{"version", OPT_VERSION, NULL, 0, "Print the version", 0},
#ifdef LYCH_TEST_BUILD
	{"probe-walls", OPT_PROBE_WALLS, "FILE", 0, "Confine, try what FILE lists, exit",
	 0},
	{"probe-process", OPT_PROBE_PROCESS,
	 "files-parent|file-worker|tls-parent|tls-process", 0,
	 "Who tries it, instead of the tomb itself", 0},
	{"prepare-seconds", OPT_PREPARE, "N", 0,
	 "Patience with each step before a job's run", 0},
	{"speak-protocol", OPT_PROTOCOL, "N", 0, "Lie about the protocol's version", 0},
#endif
	{0},
};

static void check_required(const struct tomb_options *o, struct argp_state *state)
{
	if (!o->name || !o->data || !o->work_dir || !o->secrets || !o->sandbox ||
	    !o->slots || o->grade == GRADE_MAX_ || o->queue == DOOR_MAX_)
		args_error(state,
			   "--name, --data, --work-dir, --secrets, --sandbox, --slots, "
			   "--grade and --queue are required");
	if ((o->queue == DOOR_POSTGRES) != (o->pg_dir != NULL))
		args_error(state, "--pg-dir belongs to --queue postgres, and to it only");
	starter_word_check(&o->starter, state);
	if (o->starter.unrooted && (o->grade != GRADE_FLOOR || o->jobs_apart))
		args_error(state,
			   "--no-private-root is for --grade floor --jobs-apart no");
	/* The working directory changes with the private root. */
	if (!str_starts(o->data, "/") || !str_starts(o->work_dir, "/") ||
	    (o->pg_dir && o->pg_dir[0] != '/') || !str_starts(o->secrets, "/") ||
	    !str_starts(o->sandbox, "/") || (o->cgroup && o->cgroup[0] != '/'))
		args_error(state, "files and directories are named by absolute paths");
}

/* A number with its bounds; false: it is another option. */
static bool parse_number(struct tomb_options *o, int key, const char *arg,
			 struct argp_state *state)
{
	uint64_t n = 0;

	switch (key) {
	case OPT_SLOTS:
		if (parse_u64(arg, 1, SLOTS_MAX, &n, NULL) < 0)
			args_error(state, "--slots: 1 to %d", SLOTS_MAX);
		o->slots = (unsigned)n;
		return true;
	case OPT_PREPARE:
		if (parse_u64(arg, 1, 3600, &n, NULL) < 0)
			args_error(state, "--prepare-seconds: 1 to 3600");
		o->prepare_usec = n * USEC_PER_SEC;
		return true;
	case OPT_PROTOCOL:
		if (parse_u64(arg, 1, UINT32_MAX, &n, NULL) < 0)
			args_error(state, "--speak-protocol: a number");
		o->protocol = (unsigned)n;
		return true;
	default:
		return false;
	}
}

/* What is taken as it stands. */
static bool parse_text(struct tomb_options *o, int key, const char *arg)
{
	switch (key) {
	case OPT_DATA:
		o->data = arg;
		return true;
	case OPT_WORK_DIR:
		o->work_dir = arg;
		return true;
	case OPT_PG_DIR:
		o->pg_dir = arg;
		return true;
	case OPT_SECRETS:
		o->secrets = arg;
		return true;
	case OPT_SANDBOX:
		o->sandbox = arg;
		return true;
	case OPT_CGROUP:
		o->cgroup = arg;
		return true;
	case OPT_PROBE_WALLS:
		o->probe_walls = arg;
		return true;
	case OPT_PROBE_PROCESS:
		o->probe_process = arg;
		return true;
	default:
		return false;
	}
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct tomb_options *o = state->input;

	if (parse_number(o, key, arg, state) || parse_text(o, key, arg) ||
	    starter_word_parse(&o->starter, key, arg, state))
		return 0;
	switch (key) {
	case OPT_NAME:
		if (!tomb_name_is_usable(arg))
			args_error(state, "--name: [a-z][a-z0-9_]{0,31}");
		o->name = arg;
		return 0;
	case OPT_QUEUE:
		if (!queue_door_from_name(arg, &o->queue))
			args_error(state, "--queue: postgres or vessel");
		return 0;
	case OPT_GRADE:
		if (!sbx_grade_from_name(arg, &o->grade))
			args_error(state, "--grade: full or floor");
		return 0;
	case OPT_JOBS_APART:
		o->jobs_apart = str_eq(arg, "yes");
		if (!o->jobs_apart && !str_eq(arg, "no"))
			args_error(state, "--jobs-apart: yes or no");
		return 0;
	case OPT_VERSION:
		exit(args_version("lych-tomb"));
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

int tomb_options_parse(int argc, char **argv, struct tomb_options *ret, struct err *err)
{
	static const struct argp argp = {
		option_table, parse_option,
		NULL,	      "Claim jobs from the queue and run them in sandboxes.",
		NULL,	      NULL,
		NULL,
	};

	*ret = (struct tomb_options){.grade = GRADE_MAX_,
				     .queue = DOOR_MAX_,
				     .protocol = LYCH_API_VERSION,
				     .prepare_usec = PREPARE_USEC,
				     .starter = STARTER_WORD_NONE};
	args_name(argc, argv, "lych-tomb");
	args_read(&argp, argc, argv, 0, ret);
	if (str_fmt(ret->api_socket, sizeof(ret->api_socket), "%s/../api/vessel.sock",
		    ret->work_dir) < 0)
		return err_set_id(err, ERRID_CORE_USAGE, "--work-dir is too long");
	return 0;
}
