/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See config_walls.h.
 */
#include "cli/local/config_walls.h"

#include "common/attr.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"

/* ---- one thing or another ---------------------------------------------------- */

static bool is_floor(const struct conf *c)
{
	return c->grade == GRADE_FLOOR;
}

static bool is_unrooted(const struct conf *c)
{
	return c->unrooted;
}

static bool has_login(const struct conf *c)
{
	return c->queue == DOOR_POSTGRES;
}

static bool is_one_network(const struct conf *c)
{
	return str_eq(c->pod.profile, "golden-mean");
}

static bool has_no_cgroups(const struct conf *c)
{
	return !c->pod.cgroups;
}

static bool is_unmasked(const struct conf *c)
{
	return c->pod.unmask_proc;
}

static bool has_npm(const struct conf *c)
{
	return c->broker.registry[REGISTRY_NPM].url.text != NULL;
}

static bool has_pypi(const struct conf *c)
{
	return c->broker.registry[REGISTRY_PYPI].url.text != NULL;
}

static bool has_cargo(const struct conf *c)
{
	return c->broker.registry[REGISTRY_CARGO].url.text != NULL;
}

static bool has_go(const struct conf *c)
{
	return c->broker.registry[REGISTRY_GO].url.text != NULL;
}

static const struct {
	bool (*is_low)(const struct conf *c);
	const char *line;
} words[] = {
	{is_floor,
	 "tomb.grade: jobs have no namespaces and no root of their own; Landlock, "
	 "seccomp and limits are what stands"},
	{is_unrooted, "daemons: the daemons have no root of their own; Landlock and a "
		      "stricter filter are what stands"},
	{has_login, "tomb.queue: the tomb has a login to the database"},
	{is_one_network,
	 "pod.profile: the tomb is in one network namespace with the others, "
	 "and has a login to the database"},
	{has_no_cgroups,
	 "pod.cgroups: limits stand by rlimits and supervision alone, which "
	 "may overshoot"},
	{is_unmasked, "pod.unmask_proc: Podman hides nothing of /proc from the tomb"},
	{has_npm,
	 "registries.npm: jobs get packages from there, where a rule of the ward "
	 "allows it"},
	{has_pypi,
	 "registries.pypi: jobs get packages from there, where a rule of the ward "
	 "allows it"},
	{has_cargo,
	 "registries.cargo: jobs get crates from there, where a rule of the ward "
	 "allows it"},
	{has_go,
	 "registries.go: jobs get Go modules from there, where a rule of the ward "
	 "allows it"},
};

/* ---- more or less ------------------------------------------------------------- */

struct amount {
	const char *key, *what;
	double from, to;
};

static void compare(const struct amount *a, size_t n,
		    void (*put)(const char *line, void *arg), void *arg)
{
	for (size_t i = 0; i < n; i++) {
		cleanup_free char *line = xasprintf("%s: %s", a[i].key, a[i].what);

		if (a[i].to > a[i].from)
			put(line, arg);
	}
}

static void compare_limits(const struct conf *from, const struct conf *to,
			   void (*put)(const char *line, void *arg), void *arg)
{
	static const char more[] = "a job may ask for more of this machine",
			  unread[] = "what they show goes out unread";
	const struct amount a[] = {
		{"limits.memory.max", more, (double)from->memory_max,
		 (double)to->memory_max},
		{"limits.disk.max", more, (double)from->disk_max, (double)to->disk_max},
		{"limits.output.max", more, (double)from->output_max,
		 (double)to->output_max},
		{"limits.timeout.max", more, (double)from->timeout_max_usec,
		 (double)to->timeout_max_usec},
		{"limits.processes.max", more, from->processes_max, to->processes_max},
		{"limits.cpus.max", more, from->cpus_max, to->cpus_max},
		{"gate.portal_threshold", "more private texts go out as they are",
		 from->broker.gate.portal_threshold, to->broker.gate.portal_threshold},
		{"gate.forbidden_threshold",
		 "more private texts go out, and are not refused",
		 from->broker.gate.forbidden_threshold,
		 to->broker.gate.forbidden_threshold},
		{"gate.pictures", unread, from->broker.gate.allows_pictures,
		 to->broker.gate.allows_pictures},
		{"gate.sound", unread, from->broker.gate.allows_sound,
		 to->broker.gate.allows_sound},
		{"gate.pdf", unread, from->broker.gate.allows_pdf,
		 to->broker.gate.allows_pdf},
		{"gate.classifier", "nobody is asked for a second opinion",
		 !from->broker.gate.asks_classifier, !to->broker.gate.asks_classifier},
	};

	compare(a, ARRAY_SIZE(a), put, arg);
}

static void compare_budget(enum budget_scope scope, const struct conf_budget *from,
			   const struct conf_budget *to,
			   void (*put)(const char *line, void *arg), void *arg)
{
	const struct {
		const char *key;
		uint64_t from, to;
	} rows[] = {
		{"requests", from->requests, to->requests},
		{"tokens", from->tokens, to->tokens},
		{"money", from->money_micro, to->money_micro},
		{"bytes", from->bytes, to->bytes},
		{"denials", from->denials, to->denials},
		{"packages", from->packages, to->packages},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cleanup_free char *key =
			xasprintf("budgets.%s.%s", budget_scope_name(scope), rows[i].key);
		struct amount a = {key, "jobs may use up more", (double)rows[i].from,
				   (double)rows[i].to};

		compare(&a, 1, put, arg);
	}
}

/* Another place is a new one to be trusted. */
static void compare_registry(enum registry_kind kind, const struct conf *from,
			     const struct conf *to,
			     void (*put)(const char *line, void *arg), void *arg)
{
	const char *was = from->broker.registry[kind].url.text,
		   *is = to->broker.registry[kind].url.text;
	cleanup_free char *line = xasprintf(
		"registries.%s.url: jobs get packages from there, and from there alone",
		registry_kind_name(kind));

	if (was && is && !str_eq(was, is))
		put(line, arg);
}

void config_walls_lowered(const struct conf *from, const struct conf *to,
			  void (*put)(const char *line, void *arg), void *arg)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i].is_low(to) && !words[i].is_low(from))
			put(words[i].line, arg);
	for (unsigned k = 0; k < REGISTRY_KIND_MAX_; k++)
		compare_registry((enum registry_kind)k, from, to, put, arg);
	compare_limits(from, to, put, arg);
	for (unsigned k = 0; k < BUDGET_SCOPE_MAX_; k++)
		compare_budget((enum budget_scope)k, &from->broker.budget[k],
			       &to->broker.budget[k], put, arg);
}
