/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * See spec_env.h.
 *
 * Node and Java size their heaps by the machine's memory, which is not the job's: with 24 GiB
 * they let garbage grow to gigabytes, and the job is ended at its 512 MiB. Neither asks for a limit
 * that is not a cgroup's. So they are told, by the variables that they read for that; what stands on
 * a command line, or in a variable that the caller gives, goes before. The rest of the
 * limit is for what is no heap: code, stacks, buffers, other processes.
 */
#include "sandbox/spec_env.h"

#include "common/cleanup.h"
#include "common/mem.h"

#define MIB ((uint64_t)1 << 20)
/* Of the memory limit; Java's threads, classes and compiler have more beside the heap. */
#define NODE_HEAP(bytes) ((bytes) / 3 * 2)
#define JAVA_HEAP(bytes) ((bytes) / 5 * 3)

/* Its value; NULL: nobody has given it, and there are so many others. */
static const char *env_value(const struct sbx_spec *s, const char *name, size_t *ret_n)
{
	size_t len = strlen(name), n = 0;

	for (; s->env && s->env[n]; n++)
		if (strncmp(s->env[n], name, len) == 0 && s->env[n][len] == '=')
			return s->env[n] + len + 1;
	*ret_n = n;
	return NULL;
}

static void env_default(struct sbx_spec *s, const char *name, const char *value)
{
	size_t n;

	if (env_value(s, name, &n))
		return;
	s->env = xreallocarray(s->env, n + 2, sizeof(*s->env));
	s->env[n] = xasprintf("%s=%s", name, value);
	s->env[n + 1] = NULL;
}

static unsigned long long in_mib(uint64_t bytes)
{
	return bytes < MIB ? 1 : bytes / MIB;
}

static void env_node(struct sbx_spec *s)
{
	char value[64];

	(void)snprintf(value, sizeof(value), "--max-old-space-size=%llu",
		       in_mib(NODE_HEAP(s->memory_bytes)));
	env_default(s, "NODE_OPTIONS", value);
}

/* Java asks no TMPDIR: without a word its temporary files are in /tmp, which floor has not. Between quotes, as
 * the path may have blanks; one with both kinds of quotes can't be said. */
static void env_java(struct sbx_spec *s)
{
	size_t n;
	const char *tmp = s->grade == GRADE_FLOOR ? env_value(s, "TMPDIR", &n) : NULL;
	const char *quote = !tmp		 ? NULL
			    : !strchr(tmp, '\'') ? "'"
			    : !strchr(tmp, '"')	 ? "\""
						 : NULL;
	cleanup_free char *own =
		quote ? xasprintf(" -Djava.io.tmpdir=%s%s%s", quote, tmp, quote) : NULL;
	cleanup_free char *value = xasprintf(
		"-Xmx%llum%s", in_mib(JAVA_HEAP(s->memory_bytes)), own ? own : "");

	env_default(s, "JAVA_TOOL_OPTIONS", value);
}

/* In full there is a private /tmp; in floor only the workspace is writable. Not the workspace itself:
 * what lies just in the directory for temporary files is none of Go's modules. */
void spec_env_home(struct sbx_spec *s)
{
	const char *home = s->grade == GRADE_FULL ? "/tmp"
			   : s->workspace	  ? s->workspace
						  : "/";

	cleanup_free char *below =
		s->own_tmpdir ? xasprintf("%s/%s", home, SBX_TMPDIR) : NULL;

	env_default(s, "HOME", home);
	env_default(s, "TMPDIR", below ? below : home);
	env_java(s);
	/* They may hold credentials, so they are not shown; to git a file that exists and
	   can't be read is the end, not an absent one. */
	if (s->grade == GRADE_FLOOR) {
		env_default(s, "GIT_CONFIG_NOSYSTEM", "1");
		env_default(s, "GIT_ATTR_NOSYSTEM", "1");
	}
}

void spec_env_defaults(struct sbx_spec *s)
{
	size_t n;

	s->own_tmpdir = s->grade == GRADE_FLOOR && s->workspace && !s->workspace_ro &&
			!env_value(s, "TMPDIR", &n);
	env_default(s, "PATH", JOB_PATH);
	env_default(s, "LANG", "C.UTF-8");
	env_default(s, "USER", "job");
	/* The filter between it and the person's lets through what this name promises. */
	env_default(s, "TERM", s->tty ? TTY_TERM_DEFAULT : "dumb");
	/* What a program prints is read while it runs, and should not be lost when it is ended. */
	env_default(s, "PYTHONUNBUFFERED", "1");
	env_node(s);
}
