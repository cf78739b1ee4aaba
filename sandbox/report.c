/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * What stood, in the words of common/proto/spawn_proto.h. Called only after exec worked: each
 * stage of job.c ends the job before that when it fails, so every layer named here
 * stands.
 */
#include "common/landlock.h"
#include "common/str.h"
#include "sandbox/contract/keeper.h"

#define FULL 1u
#define FLOOR 2u

static const struct {
	const char *name;
	unsigned grades;
} layers[] = {
	{"fds", FULL | FLOOR},
	{"env", FULL | FLOOR},
	{"session", FULL | FLOOR},
	{"userns", FULL},
	{"mount", FULL},
	{"pid", FULL},
	{"net", FULL},
	{"ipc", FULL},
	{"uts", FULL},
	{"cgroupns", FULL},
	{"limits", FULL | FLOOR},
	{"root", FULL},
	{"caps", FULL | FLOOR},
	{"no_new_privs", FULL | FLOOR},
	{"landlock", FULL | FLOOR},
	{"seccomp", FULL | FLOOR},
	{"selftest", FULL | FLOOR},
};

_Static_assert(ARRAY_SIZE(layers) <= SPAWN_LAYERS_MAX, "layers");

static void put(char *dst, size_t size, const char *src)
{
	(void)!str_copy(dst, size, src); /* words of ours, which fit */
}

void report_started(const struct sbx_spec *spec, const struct sbx_limits *limits,
		    int landlock_abi, struct spawn_started *ret)
{
	unsigned grade = spec->grade == GRADE_FULL ? FULL : FLOOR;

	*ret = (struct spawn_started){.type = SPAWN_STARTED,
				      .grade = (uint32_t)spec->grade,
				      .landlock_abi = (uint32_t)landlock_abi};
	for (size_t i = 0; i < ARRAY_SIZE(layers); i++)
		if (layers[i].grades & grade)
			put(ret->layers[ret->n_layers++], sizeof(ret->layers[0]),
			    layers[i].name);
	for (unsigned i = 0; i < limits->n; i++) {
		put(ret->limits[i].name, sizeof(ret->limits[i].name), limits->l[i].name);
		put(ret->limits[i].mechanism, sizeof(ret->limits[i].mechanism),
		    limits->l[i].mechanism);
		ret->limits[i].value = limits->l[i].value;
	}
	ret->n_limits = limits->n;
}

void report_refused(const char *stage, const struct err *err, struct spawn_refused *ret)
{
	*ret = (struct spawn_refused){.type = SPAWN_REFUSED, .sys = err->sys};
	put(ret->error_code, sizeof(ret->error_code), err_text(err));
	put(ret->stage, sizeof(ret->stage), stage);
	(void)snprintf(ret->text, sizeof(ret->text), "%.*s", SPAWN_TEXT_MAX - 1,
		       err->msg);
}

void report_refused_status(const struct job_status *s, struct spawn_refused *ret)
{
	enum err_id id =
		s->error_id < ERRID_MAX_ ? (enum err_id)s->error_id : ERRID_EXEC_SETUP;

	*ret = (struct spawn_refused){.type = SPAWN_REFUSED, .sys = s->sys};
	put(ret->error_code, sizeof(ret->error_code), err_info(id)->text);
	(void)snprintf(ret->stage, sizeof(ret->stage), "%.23s", s->stage);
	(void)snprintf(ret->text, sizeof(ret->text), "%.*s", SPAWN_TEXT_MAX - 1, s->text);
}
