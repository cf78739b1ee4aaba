/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See agent.h.
 */
#include "common/conf/agent.h"

#include "common/conf/priv.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/proto/broker_proto.h"
#include "common/proto/job_spec.h"
#include "common/str.h"

#define SUMMARY_MAX_BYTES 100
#define PACKAGE_MAX_BYTES 214 /* npm's own */

struct raw_package {
	char *npm, *version;
};
struct raw_asks {
	char *dialect, *model;
};
struct raw_file {
	char *path, *text;
};
struct raw_off {
	char *telemetry, *updater, *sandbox;
};
struct raw_agent {
	char *version, *summary, *home, *may, *memory, *disk, *processes, *timeout;
	char **command, **env;
	unsigned command_count, env_count;
	struct raw_package *package;
	struct raw_asks *asks;
	struct raw_file *files;
	unsigned files_count;
	struct raw_off *off;
};

#define REQUIRED(key, type, member)                                                      \
	CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER, struct type, member, 1,          \
			       CONF_VALUE_MAX)
static const cyaml_schema_value_t word_schema = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 1, CONF_VALUE_MAX),
};
static const cyaml_schema_field_t package_fields[] = {
	REQUIRED("npm", raw_package, npm),
	REQUIRED("version", raw_package, version),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t asks_fields[] = {
	REQUIRED("dialect", raw_asks, dialect),
	REQUIRED("model", raw_asks, model),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t file_fields[] = {
	REQUIRED("path", raw_file, path),
	REQUIRED("text", raw_file, text),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t file_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_file, file_fields),
};
static const cyaml_schema_field_t off_fields[] = {
	CONF_STR("telemetry", raw_off, telemetry),
	CONF_STR("updater", raw_off, updater),
	CONF_STR("sandbox", raw_off, sandbox),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t agent_fields[] = {
	REQUIRED("version", raw_agent, version),
	REQUIRED("summary", raw_agent, summary),
	CYAML_FIELD_SEQUENCE("command", CYAML_FLAG_POINTER, struct raw_agent, command,
			     &word_schema, 1, CONF_AGENT_WORDS_MAX),
	CONF_MAP("package", raw_agent, package, package_fields),
	CONF_MAP("asks", raw_agent, asks, asks_fields),
	CONF_LIST("env", raw_agent, env, word_schema, CONF_AGENT_ENV_MAX),
	REQUIRED("home", raw_agent, home),
	CONF_LIST("files", raw_agent, files, file_schema, CONF_AGENT_FILES_MAX),
	CONF_STR("memory", raw_agent, memory),
	CONF_STR("disk", raw_agent, disk),
	CONF_STR("processes", raw_agent, processes),
	CONF_STR("timeout", raw_agent, timeout),
	CONF_MAP("off", raw_agent, off, off_fields),
	CONF_STR("may", raw_agent, may),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t agent_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw_agent, agent_fields),
};

static char **copy_words(char *const *raw, unsigned n)
{
	char **out = xcalloc((size_t)n + 1, sizeof(*out));

	for (unsigned i = 0; i < n; i++)
		out[i] = xstrdup(raw[i]);
	return out;
}

/* As npm has them: NAME or @SCOPE/NAME. */
static bool package_ok(const char *name)
{
	const char *at = name + (name[0] == '@');
	size_t scope = name[0] == '@' ? str_run(at, "-._") : 0;

	if (strlen(name) > PACKAGE_MAX_BYTES || (name[0] == '@' && scope == 0))
		return false;
	if (scope) {
		if (at[scope] != '/')
			return false;
		at += scope + 1;
	}
	return at[0] != '.' && at[0] && !at[str_run(at, "-._")];
}

/* One, and not a range that another one is in tomorrow. */
static bool version_ok(const char *v)
{
	unsigned dots = 0;

	for (const char *at = v; *at && *at != '-'; at++)
		dots += *at == '.';
	return v[0] >= '0' && v[0] <= '9' && dots == 2 && !v[str_run(v, "-.")];
}

static int read_package(const struct conf_reader *r, const struct raw_package *raw,
			struct conf_agent *a)
{
	if (!raw)
		return 0;
	if (!package_ok(raw->npm))
		return conf_fail_at(r, "package.npm",
				    "a name as npm has it: NAME, @SCOPE/NAME");
	if (!version_ok(raw->version))
		return conf_fail_at(r, "package.version",
				    "exactly one: 1.2.3, and no range");
	a->package = xstrdup(raw->npm);
	a->version = xstrdup(raw->version);
	return 0;
}

static int read_asks(const struct conf_reader *r, const struct raw_asks *raw,
		     struct conf_agent *a)
{
	static const enum portal_api dialects[] = {API_CHAT, API_RESPONSES, API_MESSAGES,
						   API_GENERATE};

	if (!raw)
		return 0;
	if (!conf_model_name_ok(raw->model))
		return conf_fail_at(r, "asks.model",
				    "a name of letters, digits and ._:/@+-");
	for (size_t i = 0; i < ARRAY_SIZE(dialects); i++) {
		if (!str_eq(portal_api_name(dialects[i]), raw->dialect))
			continue;
		a->api = dialects[i];
		a->model = xstrdup(raw->model);
		return 0;
	}
	return conf_fail_at(r, "asks.dialect", "chat, responses, messages or generate");
}

static int check_reserved(const struct conf_reader *r, const struct conf_agent *a,
			  const char *name)
{
	enum egress_mode egress = conf_agent_egress(a);
	cleanup_free char *why = NULL;

	if (!broker_env_is_reserved(egress, name))
		return 0;
	why = xasprintf("%s is the broker's with egress %s", name,
			egress_mode_name(egress));
	return conf_fail_at(r, "env", why);
}

/* After asks. */
static int read_env(const struct conf_reader *r, const struct raw_agent *raw,
		    struct conf_agent *a)
{
	for (unsigned i = 0; i < raw->env_count; i++) {
		size_t len = strcspn(raw->env[i], "=");
		cleanup_free char *name = xstrndup(raw->env[i], len);

		if (!raw->env[i][len] || !env_name_is_allowed(raw->env[i], len))
			return conf_fail_at(r, "env",
					    "each is NAME=VALUE, of a name that a job "
					    "may have");
		if (check_reserved(r, a, name) < 0)
			return -1;
		for (unsigned k = 0; k < i; k++)
			if (strncmp(raw->env[i], raw->env[k], len + 1) == 0)
				return conf_fail_at(r, "env", "one is there twice");
	}
	a->env = copy_words(raw->env, raw->env_count);
	a->n_env = raw->env_count;
	return 0;
}

static int read_file(const struct conf_reader *r, const struct raw_file *f,
		     struct conf_agent *a)
{
	cleanup_free char *path = xasprintf("%s/%s", a->home, f->path);
	struct err why = ERR_INIT;

	if (spec_file_check(path, &why) < 0)
		return conf_fail_at(r, "files", why.msg);
	a->file[a->n_files].path = xstrdup(f->path);
	a->file[a->n_files++].text = xstrdup(f->text);
	return 0;
}

static int read_files(const struct conf_reader *r, const struct raw_agent *raw,
		      struct conf_agent *a)
{
	const char *paths[CONF_AGENT_FILES_MAX];
	struct err why = ERR_INIT;

	if (spec_file_check(raw->home, &why) < 0)
		return conf_fail_at(r, "home", why.msg);
	a->home = xstrdup(raw->home);
	a->file = xcalloc((size_t)raw->files_count + 1, sizeof(*a->file));
	for (unsigned i = 0; i < raw->files_count; i++) {
		if (read_file(r, &raw->files[i], a) < 0)
			return -1;
		paths[i] = a->file[i].path;
	}
	if (spec_paths_check(paths, a->n_files, &why) < 0)
		return conf_fail_at(r, "files", why.msg);
	return 0;
}

static int read_limits(const struct conf_reader *r, const struct raw_agent *raw,
		       struct conf_agent *a)
{
	if (conf_read_number(r, "memory", raw->memory, parse_size, LIMIT_MEMORY_MIN,
			     LIMIT_MEMORY_MAX, &a->memory) < 0 ||
	    conf_read_number(r, "disk", raw->disk, parse_size, LIMIT_DISK_MIN,
			     LIMIT_DISK_MAX, &a->disk) < 0 ||
	    conf_read_number(r, "processes", raw->processes, parse_u64, 1,
			     LIMIT_PROCESSES_MAX, &a->processes) < 0 ||
	    conf_read_number(r, "timeout", raw->timeout, parse_duration_usec,
			     LIMIT_TIMEOUT_USEC_MIN, LIMIT_TIMEOUT_USEC_MAX,
			     &a->timeout_usec) < 0)
		return -1;
	return 0;
}

#define CLAIM_LETTERS_MIN 4 /* of one that is looked for within a text */

static size_t letters(const char *claim)
{
	size_t n = 0;

	for (size_t run; *claim; claim += run + (claim[run] != '\0')) {
		run = str_run(claim, "");
		n += run;
	}
	return n;
}

/* Does something of what the agent is given say it? Less than a word is in any text. */
static bool is_said(const struct conf_agent *a, const char *claim)
{
	bool is_word = letters(claim) >= CLAIM_LETTERS_MIN;

	for (size_t i = 0; i < a->n_command; i++)
		if (str_eq(a->command[i], claim))
			return true;
	for (size_t i = 0; i < a->n_env; i++)
		if (str_eq(a->env[i], claim))
			return true;
	for (size_t i = 0; is_word && i < a->n_files; i++)
		if (strstr(a->file[i].text, claim))
			return true;
	return false;
}

/* Last: what they are about has been read. */
static int read_claims(const struct conf_reader *r, const struct raw_agent *raw,
		       struct conf_agent *a)
{
	const struct raw_off none = {0}, *off = raw->off ? raw->off : &none;
	const struct {
		const char *key, *value;
	} claims[AGENT_CLAIM_MAX_] = {
		[AGENT_TELEMETRY_OFF] = {"off.telemetry", off->telemetry},
		[AGENT_UPDATER_OFF] = {"off.updater", off->updater},
		[AGENT_SANDBOX_OFF] = {"off.sandbox", off->sandbox},
		[AGENT_MAY_ALL] = {"may", raw->may},
	};

	for (size_t i = 0; i < AGENT_CLAIM_MAX_; i++) {
		if (!claims[i].value)
			continue;
		if (letters(claims[i].value) == 0)
			return conf_fail_at(r, claims[i].key,
					    "too little: it has no letter or digit");
		if (!is_said(a, claims[i].value))
			return conf_fail_at(r, claims[i].key,
					    "nothing says so: it is no word of command, "
					    "no entry of env and, with 4 letters or "
					    "digits at least, in no text of files");
		a->claim[i] = xstrdup(claims[i].value);
	}
	return 0;
}

static int read_values(const struct conf_reader *r, const struct raw_agent *raw,
		       struct conf_agent *a)
{
	if (!str_eq(raw->version, "1"))
		return conf_fail_at(r, "version", "only \"1\" is known");
	if (strlen(raw->summary) > SUMMARY_MAX_BYTES)
		return conf_fail_at(r, "summary", "one short line");
	a->summary = xstrdup(raw->summary);
	if (raw->command[0][0] == '-')
		return conf_fail_at(r, "command", "it begins with a program");
	a->command = copy_words(raw->command, raw->command_count);
	a->n_command = raw->command_count;
	if (read_package(r, raw->package, a) < 0 || read_asks(r, raw->asks, a) < 0 ||
	    read_env(r, raw, a) < 0 || read_files(r, raw, a) < 0 ||
	    read_limits(r, raw, a) < 0)
		return -1;
	return read_claims(r, raw, a);
}

/* What codex.yaml is refused for is another public error. */
static int as_profile(struct err *err)
{
	cleanup_free char *text = xstrdup(err->msg);

	return err_set_id(err, ERRID_SPEC_PROFILE, "%s", text);
}

int conf_agent_parse(const char *text, size_t len, struct conf_agent *ret,
		     struct err *err)
{
	cleanup_free char *copy = NULL;
	struct conf_reader r = {.err = err};
	struct conf_agent a = {0};
	void *raw = NULL;
	int result;

	if (conf_shape_load(&agent_schema, "lych(1), AGENTS,", text, len, &raw, err) < 0)
		return as_profile(err);
	r.text = copy = xstrndup(text, len);
	result = read_values(&r, raw, &a);
	conf_shape_free(&agent_schema, raw);
	if (result == 0) {
		*ret = a;
		return 0;
	}
	conf_agent_done(&a);
	return as_profile(err);
}

enum egress_mode conf_agent_egress(const struct conf_agent *a)
{
	return a->model ? EGRESS_BROKERED : EGRESS_NONE;
}

static void free_words(char **words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(words[i]);
	free(words);
}

void conf_agent_done(struct conf_agent *a)
{
	free_words(a->command, a->n_command);
	free_words(a->env, a->n_env);
	for (size_t i = 0; i < a->n_files; i++) {
		free(a->file[i].path);
		free(a->file[i].text);
	}
	free(a->file);
	for (size_t i = 0; i < AGENT_CLAIM_MAX_; i++)
		free(a->claim[i]);
	free(a->summary);
	free(a->package);
	free(a->version);
	free(a->model);
	free(a->home);
	*a = (struct conf_agent){0};
}
