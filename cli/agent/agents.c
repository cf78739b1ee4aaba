/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See agents.h.
 */
#include "cli/agent/agents.h"

#include "cli/jobs/profile.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/near.h"
#include "common/str.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX ".yaml"

static bool is_known(const struct agents *a, const char *name)
{
	for (size_t i = 0; i < a->n; i++)
		if (str_eq(a->name[i], name))
			return true;
	return false;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int take_dir(struct agents *a, const char *path, struct err *err)
{
	cleanup_dir DIR *dir = opendir(path);
	const struct dirent *entry;

	if (!dir)
		return errno == ENOENT ? 0
				       : err_sys_id(err, ERRID_SPEC_PROFILE, "%s", path);
	while ((entry = readdir(dir))) {
		size_t len = strlen(entry->d_name);
		cleanup_free char *name = NULL;

		if (entry->d_name[0] == '.' || !str_ends(entry->d_name, SUFFIX))
			continue;
		name = xstrndup(entry->d_name, len - strlen(SUFFIX));
		if (is_known(a, name))
			continue;
		a->name = xreallocarray(a->name, a->n + 1, sizeof(*a->name));
		a->name[a->n++] = TAKE_PTR(name);
	}
	return 0;
}

int agents_find(const struct paths *p, struct agents *ret, struct err *err)
{
	cleanup_free char *config = paths_config_dir(p);
	cleanup_agents struct agents a = {.user_dir = xasprintf("%s/agents", config)};

	if (paths_installed("agents", &a.system_dir, err) < 0 ||
	    take_dir(&a, a.user_dir, err) < 0 || take_dir(&a, a.system_dir, err) < 0)
		return -1;
	if (a.n)
		qsort(a.name, a.n, sizeof(*a.name), by_name);
	*ret = a;
	a = (struct agents){.n = 0};
	return 0;
}

void agents_done(struct agents *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->name[i]);
	free(a->name);
	free(a->user_dir);
	free(a->system_dir);
	*a = (struct agents){.n = 0};
}

static int no_agent(const struct agents *a, const char *name, struct err *err)
{
	struct near near = {.word = name, .len = strlen(name)};

	for (size_t i = 0; i < a->n; i++)
		near_offer(&near, a->name[i]);
	if (near.best)
		return err_set_id(err, ERRID_CORE_NO_FILE,
				  "there is no agent '%.80s'; did you mean '%.80s'?",
				  name, near.best);
	return err_set_id(err, ERRID_CORE_NO_FILE,
			  "there is no agent '%.80s' in %s or %s; 'lych agent --list'",
			  name, a->user_dir, a->system_dir);
}

int agents_read(const struct agents *a, const char *name, struct conf_agent *ret,
		struct err *err)
{
	struct profile_world w = {.user_dir = a->user_dir, .system_dir = a->system_dir};
	cleanup_free char *file = xasprintf("%s" SUFFIX, name);
	cleanup_free char *real = NULL, *text = NULL;
	size_t len = 0;
	int r;

	if (!is_known(a, name))
		return no_agent(a, name, err);
	r = profile_text(&w, file, &real, &text, &len, err);
	profile_world_done(&w);
	if (r < 0)
		return -1;
	return conf_agent_parse(text, len, ret, err) < 0 ? err_wrap(err, "%s", real) : 0;
}

/* ---- what it needs ---------------------------------------------------------- */

/* By the rules alone that name it: the ward itself judges each request. */
static bool is_allowed(const struct conf_broker *b, const char *portal)
{
	bool allowed = false;

	for (size_t i = 0; i < b->n_rules; i++) {
		const struct conf_rule *r = &b->rule[i];

		if (r->target != WARD_PORTAL || !str_eq(r->name, portal))
			continue;
		if (r->action == WARD_DENY)
			return false;
		allowed = true;
	}
	return allowed;
}

static int has_model(const struct conf_agent *a, const struct conf_broker *b,
		     struct err *err)
{
	const enum portal_kind kind = portal_api_kind(a->api);
	const struct conf_portal *p;

	if (!a->model)
		return 0;
	p = conf_portal_of_model(b, kind, a->model, NULL);
	if (!p)
		return err_set_id(err, ERRID_WARD_EMPTY,
				  "no portal of kind %s has the model %s",
				  portal_kind_name(kind), a->model);
	if (!conf_portal_has(p, a->api))
		return err_set_id(err, ERRID_WARD_EMPTY, "the portal %s lacks %s",
				  p->name, portal_api_name(a->api));
	if (!is_allowed(b, p->name))
		return err_set_id(err, ERRID_WARD_EMPTY,
				  "no rule of the ward allows the portal %s", p->name);
	return 0;
}

static int has_limits(const struct conf_agent *a, const struct conf *c, struct err *err)
{
	const struct {
		const char *key;
		uint64_t wish, ceiling;
	} limits[] = {
		{"memory", a->memory, c->memory_max},
		{"disk", a->disk, c->disk_max},
		{"processes", a->processes, c->processes_max},
		{"timeout", a->timeout_usec, c->timeout_max_usec},
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (limits[i].wish > limits[i].ceiling)
			return err_set_id(err, ERRID_SPEC_LIMIT,
					  "its %s is above limits.%s.max of codex.yaml",
					  limits[i].key, limits[i].key);
	return 0;
}

int agent_has(enum agent_need need, const struct conf_agent *a, const struct conf *c,
	      struct err *err)
{
	if (need == NEED_GRADE && c->grade == GRADE_FLOOR)
		return err_set_id(err, ERRID_TTY_GRADE, "tomb.grade is floor");
	if (need == NEED_PACKAGE && a->package)
		return err_set_id(err, ERRID_SPEC_UNSUPPORTED,
				  "it is the package %s@%s of npm, which nothing brings "
				  "into its job yet: docs/NOT_THERE_YET.md",
				  a->package, a->version);
	if (need == NEED_LIMITS)
		return has_limits(a, c, err);
	return need == NEED_MODEL ? has_model(a, &c->broker, err) : 0;
}
