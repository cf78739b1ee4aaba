/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych agent: a job at a terminal that stays, as the profile of an agent describes it, with copies
 * of the directories that are named.
 */
#include "cli/agent/agent_list.h"
#include "cli/agent/agents.h"
#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/base/config_file.h"
#include "cli/base/paths.h"
#include "cli/follow/feed.h"
#include "cli/jobs/attach.h"
#include "cli/jobs/run_options.h"
#include "cli/jobs/run_spec.h"
#include "common/cleanup.h"
#include "common/id.h"
#include "common/mem.h"
#include "common/str.h"
#include <argp.h>
#include <inttypes.h>

enum { KEY_LIST = RUN_KEY_MAX_ };

/* Its words go behind: where its HOME is (a job's environment can't say it), and what it is. */
static const char start[] =
	"HOME=$PWD/$1 && export HOME && mkdir -p \"$HOME\" && shift && exec \"$@\"";
#define WORDS_BEFORE 5

_Static_assert(CONF_AGENT_FILES_MAX <= TEXTS_MAX, "each file of a profile goes in");

struct agent_args {
	const char *name;
	char **more; /* behind "--", for the agent */
	int n_more;
	bool list, json;
	bool has_input; /* something that --list has no use for */
	struct run_args run;
};

static void check_together(const struct argp_state *state, const struct agent_args *a)
{
	if (a->list && (a->name || a->has_input || a->n_more))
		cmd_usage(state, "--list shows all agents, and takes --json alone");
	if (a->json && !a->list)
		cmd_usage(state, "--json goes with --list: an agent is at your terminal");
	if (!a->list && !a->name)
		cmd_usage(state, "which agent? 'lych agent --list' shows them");
	run_options_check(state, &a->run);
}

static error_t agent_parse(int key, char *arg, struct argp_state *state)
{
	struct agent_args *a = state->input;

	if (run_options_parse(state, &a->run, key, arg)) {
		a->has_input = true;
		return 0;
	}
	switch (key) {
	case KEY_LIST:
		a->list = true;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->name)
			cmd_usage(state, "%s: what is the agent's goes behind '--'", arg);
		a->name = arg;
		return 0;
	case ARGP_KEY_END:
		check_together(state, a);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- from a profile to a job ------------------------------------------------ */

/* Of profile and command line, into both; what the command line says wins. */
static void join_limit(uint64_t *said, uint64_t *profile)
{
	if (*said)
		*profile = *said;
	*said = *profile;
}

static void join_limits(struct run_args *run, struct conf_agent *agent)
{
	join_limit(&run->memory, &agent->memory);
	join_limit(&run->disk, &agent->disk);
	join_limit(&run->processes, &agent->processes);
	join_limit(&run->timeout_usec, &agent->timeout_usec);
}

/* The words are argv's, and the profile's; the list is the caller's to free. */
static char **words_of(const struct agent_args *a, const struct conf_agent *agent,
		       int *ret_n)
{
	char *before[WORDS_BEFORE] = {(char *)(uintptr_t)"/bin/sh",
				      (char *)(uintptr_t)"-c", (char *)(uintptr_t)start,
				      (char *)(uintptr_t)"agent", agent->home};
	size_t n = WORDS_BEFORE + agent->n_command, more = (size_t)a->n_more;
	char **out = xcalloc(n + more + 1, sizeof(*out));

	memcpy(out, before, sizeof(before));
	memcpy(out + WORDS_BEFORE, agent->command,
	       agent->n_command * sizeof(*agent->command));
	if (more)
		memcpy(out + n, a->more, more * sizeof(*out));
	*ret_n = (int)(n + more);
	return out;
}

/* Files below its home. The paths are the caller's to free. */
static void take_files(struct run_args *run, const struct conf_agent *agent,
		       char *paths[TEXTS_MAX])
{
	for (size_t i = 0; i < agent->n_files; i++) {
		paths[i] = xasprintf("%s/%s", agent->home, agent->file[i].path);
		run->texts[run->n_texts++] =
			(struct run_text){.path = paths[i], .text = agent->file[i].text};
	}
}

static int submit(struct agent_args *a, const struct conf_agent *agent, struct tty *tty,
		  struct client *c, struct attach *ret, struct err *err)
{
	struct run_args *run = &a->run;
	cleanup_json struct json *job = NULL;
	cleanup_buf struct buf spec = {0};
	cleanup_feed struct feed feed;
	cleanup_free char **words = NULL;
	char *paths[TEXTS_MAX] = {NULL};
	struct uuid made;
	int r;

	words = words_of(a, agent, &run->argc);
	run->argv = words;
	take_files(run, agent, paths);
	for (size_t i = 0; i < agent->n_env; i++)
		run->env[run->n_env++] = agent->env[i];
	uuid_new(&random_real, &made);
	run->request_id = made.s;
	run->egress = egress_mode_name(conf_agent_egress(agent));
	run->tty = run->detach = run->is_agent = true;
	feed_init(&feed);
	feed_at(&feed, tty);
	buf_init(&spec, SPEC_MAX_BYTES);
	r = run_spec_build(c, run, &feed, &spec, err);
	if (r == 0)
		r = run_submit(c, &spec, run, &job, &ret->id, err);
	ret->cols = feed.cols;
	ret->rows = feed.rows;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		free(paths[i]);
	return r;
}

static int start_it(struct agent_args *a, const struct paths *p,
		    const struct conf_agent *agent, struct err *err)
{
	cleanup_client struct client *c = NULL;
	struct attach at = {.is_new = true};
	struct tty tty = TTY_NONE;

	if (tty_open(&tty, err) < 0 || client_new(p->api_sock, &c, err) < 0 ||
	    submit(a, agent, &tty, c, &at, err) < 0)
		return -1;
	return attach_to(c, p->api_sock, &tty, &at, err);
}

static int agent(struct agent_args *a, struct err *err)
{
	cleanup_paths struct paths p = {0};
	cleanup_agents struct agents all = {.n = 0};
	cleanup_agent struct conf_agent profile = {0};
	struct conf conf;
	int r;

	if (paths_resolve(&p, err) < 0 || agents_find(&p, &all, err) < 0 ||
	    config_load_or_defaults(p.config, &conf, err) < 0)
		return -1;
	r = a->list ? agent_list(&p, &all, &conf, a->json, err)
		    : agents_read(&all, a->name, &profile, err);
	join_limits(&a->run, &profile);
	for (enum agent_need need = 0; !a->list && r == 0 && need < NEED_MAX_; need++)
		if (agent_has(need, &profile, &conf, err) < 0)
			r = err_wrap(err, "%s", a->name);
	conf_done(&conf);
	return r < 0 || a->list ? r : start_it(a, &p, &profile, err);
}

int cmd_agent(int argc, char **argv)
{
	static const struct argp_option options[] = {
		RUN_INPUT_OPTIONS,
		RUN_LIMIT_OPTIONS,
		{"list", KEY_LIST, NULL, 0, "the agents there are, and which work here",
		 0},
		{"json", 'j', NULL, 0, "with --list: one JSON object", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = agent_parse,
		.args_doc = "NAME [-- ARGS...]\n--list",
		.doc = "An agent in your terminal, in a job that has copies of the "
		       "directories that you name, and nothing else of yours. Ctrl-] and "
		       "then d leaves it, and so does a closed terminal: it goes on, and "
		       "'lych attach' comes back. What it may use is said by its "
		       "profile, "
		       "or by the options.\v"
		       "Examples:\n"
		       "  lych agent --list\n"
		       "  lych agent shell\n"
		       "  lych agent shell --dir . --git"};
	struct agent_args a = {0};
	struct err err = ERR_INIT;
	int r, n = 1;

	while (n < argc && !str_eq(argv[n], "--"))
		n++;
	if (n < argc) {
		a.more = argv + n + 1;
		a.n_more = argc - n - 1;
	}
	cmd_parse(&argp, n < argc ? n : argc, argv, 0, &a);
	r = agent(&a, &err);
	return r < 0 ? cmd_fail(&err, a.json) : r;
}
