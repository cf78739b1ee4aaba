/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See proto.h.
 */
#include "common/proto.h"
#include "common/str.h"

#include <string.h>

static const char *const states[JOB_STATE_MAX_] = {
	[JOB_HELD] = "held",
	[JOB_QUEUED] = "queued",
	[JOB_PREPARING] = "preparing",
	[JOB_RUNNING] = "running",
	[JOB_CANCELLING] = "cancelling",
	[JOB_SUCCEEDED] = "succeeded",
	[JOB_FAILED] = "failed",
	[JOB_CANCELLED] = "cancelled",
	[JOB_TIMED_OUT] = "timed_out",
	[JOB_LOST] = "lost",
	[JOB_QUARANTINED] = "quarantined",
};

static const char *const classes[FAIL_CLASS_MAX_] = {
	[FAIL_NONE] = "",
	[FAIL_SETUP_REFUSED] = "setup_refused",
	[FAIL_POLICY_DENY] = "policy_deny",
	[FAIL_TIMEOUT_KILL] = "timeout_kill",
	[FAIL_OOM_KILL] = "oom_kill",
	[FAIL_OUTPUT_LIMIT] = "output_limit",
	[FAIL_DISK_LIMIT] = "disk_limit",
	[FAIL_RESOURCE_KILL] = "resource_kill",
	[FAIL_EXIT] = "exit",
	[FAIL_CRASH] = "crash",
	[FAIL_INPUT] = "input",
	[FAIL_LEASE_EXPIRED] = "lease_expired",
	[FAIL_GATE_FAILED] = "gate_failed",
	[FAIL_TRANSPORT_LOSS] = "transport_loss",
	[FAIL_BUDGET_EXHAUSTED] = "budget_exhausted",
};

static const char *const grades[GRADE_MAX_] = {
	[GRADE_FULL] = "full",
	[GRADE_FLOOR] = "floor",
};

static const char *const doors[DOOR_MAX_] = {
	[DOOR_POSTGRES] = "postgres",
	[DOOR_VESSEL] = "vessel",
};

static const char *const egress_modes[] = {
	[EGRESS_NONE] = "none",
	[EGRESS_BROKERED] = "brokered",
	[EGRESS_REGISTRY] = "registry",
};

static int find(const char *const *names, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++)
		if (str_eq(names[i], name))
			return (int)i;
	return -1;
}

const char *job_state_name(enum job_state s)
{
	return (unsigned)s < JOB_STATE_MAX_ ? states[s] : NULL;
}

bool job_state_from_name(const char *name, enum job_state *ret)
{
	int i = find(states, JOB_STATE_MAX_, name);

	if (i < 0)
		return false;
	*ret = (enum job_state)i;
	return true;
}

bool job_state_is_final(enum job_state s)
{
	switch (s) {
	case JOB_SUCCEEDED:
	case JOB_FAILED:
	case JOB_CANCELLED:
	case JOB_TIMED_OUT:
	case JOB_LOST:
	case JOB_QUARANTINED:
		return true;
	case JOB_HELD:
	case JOB_QUEUED:
	case JOB_PREPARING:
	case JOB_RUNNING:
	case JOB_CANCELLING:
	case JOB_STATE_MAX_:
		break;
	}
	return false;
}

const char *fail_class_name(enum fail_class c)
{
	return (unsigned)c < FAIL_CLASS_MAX_ ? classes[c] : NULL;
}

bool fail_class_from_name(const char *name, enum fail_class *ret)
{
	int i = find(classes, FAIL_CLASS_MAX_, name);

	if (i < 0)
		return false;
	*ret = (enum fail_class)i;
	return true;
}

const char *sbx_grade_name(enum sbx_grade g)
{
	return (unsigned)g < GRADE_MAX_ ? grades[g] : NULL;
}

bool sbx_grade_from_name(const char *name, enum sbx_grade *ret)
{
	int i = find(grades, GRADE_MAX_, name);

	if (i < 0)
		return false;
	*ret = (enum sbx_grade)i;
	return true;
}

const char *queue_door_name(enum queue_door d)
{
	return (unsigned)d < DOOR_MAX_ ? doors[d] : NULL;
}

bool queue_door_from_name(const char *name, enum queue_door *ret)
{
	int i = find(doors, DOOR_MAX_, name);

	if (i < 0)
		return false;
	*ret = (enum queue_door)i;
	return true;
}

const char *egress_mode_name(enum egress_mode m)
{
	return (unsigned)m < EGRESS_MAX_ ? egress_modes[m] : NULL;
}

bool egress_mode_from_name(const char *name, enum egress_mode *ret)
{
	int i = find(egress_modes, EGRESS_MAX_, name);

	if (i < 0)
		return false;
	*ret = (enum egress_mode)i;
	return true;
}

const char *anchor_name_in(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t n = strlen(name);

	return n > 0 && n < ANCHOR_NAME_MAX && *name != '.' && str_run(name, "-_.") == n
		       ? name
		       : NULL;
}

bool tomb_name_is_usable(const char *name)
{
	size_t n = strlen(name);

	return n >= 1 && n < TOMB_NAME_SIZE && name[0] >= 'a' && name[0] <= 'z' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == n;
}

/* Names that a loader, a shell or an interpreter obeys before the job's own code runs. */
static const char *const env_refused[] = {
	"BASH_ENV",
	"BASHOPTS",
	"CDPATH",
	"CLASSPATH",
	"ENV",
	"FPATH",
	"GCONV_PATH",
	"GETCONF_DIR",
	"GLOBIGNORE",
	"HISTFILE",
	"HOME",
	"HOSTALIASES",
	"IFS",
	"INPUTRC",
	"JAVA_TOOL_OPTIONS",
	"LOCALDOMAIN",
	"LOCPATH",
	"LOGNAME",
	"MALLOC_TRACE",
	"NIS_PATH",
	"NLSPATH",
	"NODE_OPTIONS",
	"NODE_PATH",
	"PATH",
	"PROMPT_COMMAND",
	"PS4",
	"PWD",
	"PYTHONHOME",
	"PYTHONINSPECT",
	"PYTHONPATH",
	"PYTHONSTARTUP",
	"PYTHONUSERBASE",
	"RESOLV_HOST_CONF",
	"RES_OPTIONS",
	"RUBYLIB",
	"RUBYOPT",
	"SHELL",
	"SHELLOPTS",
	"TERMINFO",
	"TMPDIR",
	"TZDIR",
	"USER",
	"_JAVA_OPTIONS",
};

static const char *const env_refused_prefix[] = {
	"LD_",	"GIT_",	 "PERL5", "BASH_FUNC_", "DYLD_", "GLIBC_TUNABLES",
	"SSH_", "DBUS_", "XDG_",
};

bool env_name_is_allowed(const char *name, size_t len)
{
	char copy[65];

	if (len == 0 || len >= sizeof(copy) || (name[0] >= '0' && name[0] <= '9'))
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = name[i];

		if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
		      (c >= '0' && c <= '9') || c == '_'))
			return false;
		copy[i] = c;
	}
	copy[len] = '\0';
	if (find(env_refused, ARRAY_SIZE(env_refused), copy) >= 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(env_refused_prefix); i++)
		if (str_starts(copy, env_refused_prefix[i]))
			return false;
	/* no program obeys it in lower case, but it would look like ours */
	return strncasecmp(copy, "LYCHGATE_", strlen("LYCHGATE_")) != 0;
}
