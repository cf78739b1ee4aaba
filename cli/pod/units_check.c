/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * What every unit of ours must say, and must not. The templates say it too; this is the
 * second look, at the text that is about to be installed, by rules that do not come from
 * the same file: a key that is not known here is refused in [Container] and [Pod], so
 * that a new one is thought about before it is used.
 */
#include "cli/pod/units.h"

#include "cli/local/up.h"
#include "common/attr.h"
#include "common/cleanup.h"
#include "common/crypto/tomb_secret.h"
#include "common/mem.h"
#include "common/str.h"

struct check {
	const struct unit *u;
	const struct unit_world *w;
	unsigned line;
	struct err *err;
};

static int refuse(const struct check *c, const char *key, const char *value,
		  const char *why)
{
	return err_set_id(c->err, ERRID_BIND_UNIT, "%s:%u: %s=%.200s: %s", c->u->name,
			  c->line, key, value, why);
}

static bool is_below(const char *path, const char *top)
{
	size_t n = strlen(top);

	return strncmp(path, top, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static bool is_tomb(const struct check *c)
{
	return str_eq(c->u->name, "lychgate-tomb.container");
}

/* ---- one key each ----------------------------------------------------------- */

typedef int check_fn(const struct check *c, const char *value);

static int check_secret(const struct check *c, const char *value)
{
	/* All of it: a file of the user's own that nobody else can read, never a variable. */
	static const char options[] = ",type=mount,uid=%U,gid=%G,mode=0400";
	size_t name = strcspn(value, ",");

	if (name == 0 || !str_eq(value + name, options))
		return refuse(c, "Secret", value,
			      "must be NAME,type=mount,uid=%U,gid=%G,mode=0400");
	if ((str_starts(value, "portal_") || str_starts(value, "host_")) &&
	    !str_eq(c->u->name, "lychgate-vessel.container"))
		return refuse(c, "Secret", value, "a provider's key is the vessel's");
	/* what is made for it, and never what it is made from */
	if (is_tomb(c) && !str_starts(value, TOMB_SECRET_WORK_OF TOMB_NAME ",") &&
	    (c->w->sovereign || !str_starts(value, TOMB_SECRET_DB_OF TOMB_NAME ",")))
		return refuse(c, "Secret", value, "no secret of the tomb's");
	return 0;
}

/* What the tomb may not see, and what lies above that. */
static int check_tomb_volume(const struct check *c, const char *value, const char *from)
{
	const char *const forbidden[] = {"vessel", "phylactery", "audit", "secrets",
					 "bind"};
	cleanup_free char *api = xasprintf("%s/api", c->w->runtime);

	if (is_below(from, api) || is_below(api, from))
		return refuse(c, "Volume", value, "the owner's socket, in the tomb");
	if (is_below(from, c->w->config) || is_below(c->w->config, from))
		return refuse(c, "Volume", value, "the configuration, in the tomb");
	for (size_t i = 0; i < ARRAY_SIZE(forbidden); i++) {
		cleanup_free char *dir = xasprintf("%s/%s", c->w->data, forbidden[i]);

		if (is_below(from, dir) || is_below(dir, from))
			return refuse(c, "Volume", value,
				      "another room's data, in the tomb");
	}
	return 0;
}

static int check_volume(const struct check *c, const char *value)
{
	static const char cgroup[] =
		"/sys/fs/cgroup/user.slice/user-%U.slice/user@%U.service/app.slice/%n";
	cleanup_free char *from = xstrndup(value, strcspn(value, ":"));

	if (str_starts(from, "lychgate-") && str_ends(from, ".volume"))
		return 0;
	if (is_tomb(c)) {
		if (str_eq(from, cgroup) ||
		    (c->w->jobs_dir && str_eq(from, c->w->jobs_dir)))
			return 0;
		for (size_t i = 0; i < c->w->n_mounts; i++)
			if (str_eq(from, c->w->mount[i]))
				return 0;
		if (check_tomb_volume(c, value, from) < 0)
			return -1;
	}
	if (c->w->authorities && str_eq(from, c->w->authorities) &&
	    str_eq(c->u->name, "lychgate-vessel.container") && str_ends(value, ":ro,z"))
		return 0;
	if (str_eq(from, c->w->config) || is_below(from, c->w->data) ||
	    is_below(from, c->w->runtime))
		return 0;
	return refuse(c, "Volume", value, "neither Lychgate's own nor an allowed mount");
}

/* One use: a tmpfs for the folders of jobs. */
static int check_mount(const struct check *c, const char *value)
{
	static const char begin[] =
		"type=tmpfs,destination=/var/lib/lychgate/tomb/jobs,tmpfs-size=";
	static const char end[] = ",tmpfs-mode=0700,chown=true";
	const char *size = value + sizeof(begin) - 1;

	if (is_tomb(c) && str_starts(value, begin) &&
	    str_eq(size + strspn(size, "0123456789"), end))
		return 0;
	return refuse(c, "Mount", value, "not the tmpfs of the jobs' folders");
}

static int check_network(const struct check *c, const char *value)
{
	if (c->w->sovereign && is_tomb(c) && !str_eq(value, "none"))
		return refuse(c, "Network", value, "the tomb has none in sovereign");
	/* golden-mean's one namespace, where codex.yaml names somebody to ask */
	if (str_starts(value, "pasta") && !c->w->sovereign && c->w->egress &&
	    str_ends(c->u->name, ".pod"))
		return str_eq(value, "pasta:--map-guest-addr,none") ||
				       (c->w->egress_host &&
					str_eq(value,
					       "pasta:--map-guest-addr,169.254.1.2"))
			       ? 0
			       : refuse(c, "Network", value,
					"options of pasta that are not known");
	if (str_eq(value, "none") ||
	    (str_starts(value, "lychgate-") && strstr(value, ".network")))
		return 0;
	return refuse(c, "Network", value, "none, or a network of Lychgate's own");
}

static int check_port(const struct check *c, const char *value)
{
	if (str_starts(value, "127.0.0.1:"))
		return 0;
	return refuse(c, "PublishPort", value, "on 127.0.0.1 only");
}

/* By default a pod shares IPC too: PostgreSQL's shared memory would be the tomb's. */
static bool is_share(const struct check *c, const char *key, const char *value)
{
	return str_ends(c->u->name, ".pod") && str_eq(key, "PodmanArgs") &&
	       (str_eq(value, "--share=net") || str_eq(value, "--share=uts"));
}

static int check_podman_args(const struct check *c, const char *value)
{
	static const char *const starts[] = {"--cpus=", "--memory-swap="};

	if (is_share(c, "PodmanArgs", value))
		return 0;
	if (!strchr(value, ' ')) {
		if (str_eq(value, "--cgroupns=host") && is_tomb(c))
			return 0;
		for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
			if (str_starts(value, starts[i]))
				return 0;
	}
	return refuse(c, "PodmanArgs", value, "not one of the arguments that are known");
}

static int check_unmask(const struct check *c, const char *value)
{
	if (str_eq(value, "/proc/*") && is_tomb(c))
		return 0;
	return refuse(c, "Unmask", value, "only /proc/*, and only in the tomb");
}

static int check_environment(const struct check *c, const char *value)
{
	if (strcasestr(value, "pass") || strcasestr(value, "secret") ||
	    strcasestr(value, "token") || strcasestr(value, "key"))
		return refuse(c, "Environment", value, "no secret belongs there");
	return 0;
}

static int check_userns(const struct check *c, const char *value)
{
	return str_eq(value, "keep-id") ? 0 : refuse(c, "UserNS", value, "keep-id only");
}

/* Keys that may stand in [Container] and [Pod]; a NULL check: any value. */
static const struct {
	const char *key;
	check_fn *check;
} known[] = {
	{"Secret", check_secret},
	{"Volume", check_volume},
	{"Mount", check_mount},
	{"Network", check_network},
	{"PublishPort", check_port},
	{"PodmanArgs", check_podman_args},
	{"Unmask", check_unmask},
	{"Environment", check_environment},
	{"UserNS", check_userns},
	{"ContainerName", NULL},
	{"DropCapability", NULL},
	{"Entrypoint", NULL},
	{"Exec", NULL},
	{"Group", NULL},
	{"HealthCmd", NULL},
	{"HealthInterval", NULL},
	{"HealthMaxLogCount", NULL},
	{"HealthMaxLogSize", NULL},
	{"HealthLogDestination", NULL},
	{"HealthOnFailure", NULL},
	{"HealthRetries", NULL},
	{"HealthStartPeriod", NULL},
	{"HealthStartupCmd", NULL},
	{"HealthStartupInterval", NULL},
	{"HealthStartupRetries", NULL},
	{"HealthStartupSuccess", NULL},
	{"HealthStartupTimeout", NULL},
	{"HealthTimeout", NULL},
	{"HostName", NULL},
	{"Image", NULL},
	{"IP", NULL},
	{"Label", NULL},
	{"LogDriver", NULL},
	{"LogOpt", NULL},
	{"Mask", NULL},
	{"Memory", NULL},
	{"NetworkAlias", NULL},
	{"NoNewPrivileges", NULL},
	{"Notify", NULL},
	{"PidsLimit", NULL},
	{"Pod", NULL},
	{"PodName", NULL},
	{"Pull", NULL},
	{"ReadOnly", NULL},
	{"ReadOnlyTmpfs", NULL},
	{"RunInit", NULL},
	{"ShmSize", NULL},
	{"StartWithPod", NULL},
	{"StopSignal", NULL},
	{"StopTimeout", NULL},
	{"Timezone", NULL},
	{"Tmpfs", NULL},
	{"Ulimit", NULL},
	{"User", NULL},
	{"WorkingDir", NULL},
};

static int check_key(const struct check *c, const char *key, const char *value)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (str_eq(known[i].key, key))
			return known[i].check ? known[i].check(c, value) : 0;
	return refuse(c, key, value, "a key that is not known here");
}

/* ---- one unit --------------------------------------------------------------- */

struct wanted {
	const char *key, *value;
	bool seen;
};

static int check_wanted(const struct check *c, const struct wanted *w, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!w[i].seen)
			return err_set_id(c->err, ERRID_BIND_UNIT, "%s: without %s=%s",
					  c->u->name, w[i].key, w[i].value);
	return 0;
}

/* A wall is said once and not taken back: systemd lets a later line win. */
static int mark_wanted(const struct check *c, struct wanted *w, size_t n, const char *key,
		       const char *value)
{
	for (size_t i = 0; i < n; i++) {
		if (!str_eq(w[i].key, key))
			continue;
		if (!str_eq(w[i].value, value))
			return refuse(c, key, value, "not what every unit must say");
		w[i].seen = true;
	}
	return 0;
}

static int check_unit(struct check *c)
{
	struct wanted container[] = {
		{"ReadOnly", "true", false},	  {"NoNewPrivileges", "true", false},
		{"DropCapability", "all", false}, {"User", "%U", false},
		{"Group", "%G", false},
	};
	bool is_pod = str_ends(c->u->name, ".pod"), in_pod = false, keeps_id = false;
	bool is_container = str_ends(c->u->name, ".container"), has_network = false;
	bool shares_little = false;
	struct unit_line l = {.at = c->u->text};

	while (unit_next_line(&l)) {
		c->line = l.number;
		if (str_ends(l.value, "\\") || strlen(l.value) >= sizeof(l.value) - 1)
			return refuse(c, l.key, "", "continued or too long");
		if (!str_eq(l.section, "[Container]") && !str_eq(l.section, "[Pod]"))
			continue;
		if (check_key(c, l.key, l.value) < 0)
			return -1;
		if (is_container &&
		    mark_wanted(c, container, ARRAY_SIZE(container), l.key, l.value) < 0)
			return -1;
		in_pod |= str_eq(l.key, "Pod");
		keeps_id |= str_eq(l.key, "UserNS");
		has_network |= str_eq(l.key, "Network");
		shares_little |= is_share(c, l.key, l.value);
	}
	if (is_container && check_wanted(c, container, ARRAY_SIZE(container)) < 0)
		return -1;
	/* On a member of a pod it is an error of Podman's: the pod says it. */
	if ((is_pod || (is_container && !in_pod)) && !keeps_id)
		return err_set_id(c->err, ERRID_BIND_UNIT, "%s: without UserNS=keep-id",
				  c->u->name);
	if (is_pod && !shares_little)
		return err_set_id(c->err, ERRID_BIND_UNIT,
				  "%s: without PodmanArgs=--share=", c->u->name);
	/* What says nothing gets Podman's own network, with a route. */
	if ((is_pod || (is_container && !in_pod)) && !has_network)
		return err_set_id(c->err, ERRID_BIND_UNIT,
				  "%s: without Network=", c->u->name);
	return 0;
}

/* A unit of the host runs one command of ours, with nothing that could come from inside. */
static int check_host_unit(struct check *c)
{
	cleanup_free char *wanted = xasprintf("%s react", c->w->lych);
	struct unit_line l = {.at = c->u->text};

	while (unit_next_line(&l)) {
		c->line = l.number;
		if (str_starts(l.key, "Exec") &&
		    (!str_eq(l.key, "ExecStart") || !str_eq(l.value, wanted)))
			return refuse(c, l.key, l.value,
				      "only 'lych react' runs on the host");
	}
	return 0;
}

int units_check(const struct unit_set *s, const struct unit_world *w, struct err *err)
{
	for (size_t i = 0; i < s->n; i++) {
		struct check c = {.u = &s->unit[i], .w = w, .err = err};

		if ((unit_is_of_host(c.u->name) ? check_host_unit(&c) : check_unit(&c)) <
		    0)
			return -1;
	}
	return 0;
}
