/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * The key pod of codex.yaml: what `lych bind` renders.
 */
#include "common/conf/priv.h"

#include "common/mem.h"
#include "common/str.h"

static const cyaml_schema_field_t tomb_fields[] = {
	CONF_STR("image", raw_unit, image),
	CONF_STR("memory", raw_unit, memory),
	CONF_STR("processes", raw_unit, processes),
	CONF_STR("cpus", raw_unit, cpus),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t unit_fields[] = {
	CONF_STR("image", raw_unit, image),
	CONF_STR("memory", raw_unit, memory),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t mount_schema = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 1, CONF_VALUE_MAX),
};
const cyaml_schema_field_t conf_pod_fields[] = {
	CONF_STR("profile", raw_pod, profile),
	CONF_STR("cgroups", raw_pod, cgroups),
	CONF_STR("unmask_proc", raw_pod, unmask_proc),
	CONF_STR("label", raw_pod, label),
	CONF_MAP("tomb", raw_pod, tomb, tomb_fields),
	CONF_MAP("vessel", raw_pod, vessel, unit_fields),
	CONF_MAP("scribe", raw_pod, scribe, unit_fields),
	CONF_MAP("phylactery", raw_pod, phylactery, unit_fields),
	CYAML_FIELD_SEQUENCE("mounts", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			     struct raw_pod, mounts, &mount_schema, 1, CONF_MOUNTS_MAX),
	CYAML_FIELD_END,
};

#define LABEL_MAX 128

static const char *const profiles[] = {"golden-mean", "sovereign"};

/* One of two words; NULL: *ret stays. */
static int read_choice(const struct conf_reader *r, const char *key, const char *value,
		       const char *no, const char *yes, bool *ret)
{
	char why[64];

	if (!value)
		return 0;
	if (str_eq(value, yes) || str_eq(value, no)) {
		*ret = str_eq(value, yes);
		return 0;
	}
	(void)snprintf(why, sizeof(why), "%s or %s", yes, no);
	return conf_fail_at(r, key, why);
}

static int read_profile(const struct conf_reader *r, const char *value,
			struct conf_pod *p)
{
	if (!value)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(profiles); i++)
		if (str_eq(value, profiles[i])) {
			p->profile = profiles[i];
			return 0;
		}
	return conf_fail_at(r, "pod.profile", "golden-mean or sovereign");
}

/* What may stand behind the colon of an image's name. */
static bool is_label(const char *s)
{
	static const char later[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_.-";
	size_t n = strlen(s);

	return n > 0 && n <= LABEL_MAX && s[0] != '.' && s[0] != '-' &&
	       strspn(s, later) == n;
}

static int read_label(const struct conf_reader *r, const char *value, struct conf_pod *p)
{
	if (!value)
		return 0;
	if (!is_label(value))
		return conf_fail_at(r, "pod.label",
				    "letters, digits, '_', '.' and '-', not '.' or '-' "
				    "first, at most 128");
	if (p->tomb.image && p->vessel.image && p->scribe.image && p->phylactery.image)
		return conf_fail_at(r, "pod.label",
				    "each image is named already: it would say nothing");
	p->label = xstrdup(value);
	return 0;
}

static int read_unit(const struct conf_reader *r, const char *name,
		     const struct raw_unit *raw, struct conf_unit *u)
{
	char key[64];

	if (!raw)
		return 0;
	if (raw->image)
		u->image = xstrdup(raw->image);
	(void)snprintf(key, sizeof(key), "pod.%s.memory", name);
	return conf_read_number(r, key, raw->memory, parse_size, (uint64_t)16 << 20,
				(uint64_t)1 << 50, &u->memory);
}

static int read_tomb(const struct conf_reader *r, const struct raw_unit *raw,
		     struct conf_pod *p)
{
	uint64_t processes = p->tomb_processes, cpus = p->tomb_cpus;

	if (!raw)
		return 0;
	if (conf_read_number(r, "pod.tomb.processes", raw->processes, parse_u64, 64,
			     1000000, &processes) < 0 ||
	    conf_read_number(r, "pod.tomb.cpus", raw->cpus, parse_u64, 1, 4096, &cpus) <
		    0)
		return -1;
	p->tomb_processes = (unsigned)processes;
	p->tomb_cpus = (unsigned)cpus;
	return 0;
}

/* "PATH", "PATH:ro" or "PATH:rw". */
static int read_mount(const struct conf_reader *r, const char *text, struct conf_pod *p)
{
	const char *colon = strrchr(text, ':');
	struct conf_mount m = {.read_write = colon && str_eq(colon, ":rw")};

	if (colon && !str_eq(colon, ":rw") && !str_eq(colon, ":ro"))
		return conf_fail_at(r, "pod.mounts", "PATH, PATH:ro or PATH:rw");
	if (colon == text)
		return conf_fail_at(r, "pod.mounts", "a path is missing");
	m.path = colon ? xstrndup(text, (size_t)(colon - text)) : xstrdup(text);
	p->mount = xreallocarray(p->mount, p->n_mounts + 1, sizeof(*p->mount));
	p->mount[p->n_mounts++] = m;
	return 0;
}

int conf_pod_read(const struct conf_reader *r, const struct raw_pod *raw,
		  struct conf_pod *p)
{
	if (!raw)
		return 0;
	if (read_profile(r, raw->profile, p) < 0 ||
	    read_choice(r, "pod.cgroups", raw->cgroups, "none", "required", &p->cgroups) <
		    0 ||
	    read_choice(r, "pod.unmask_proc", raw->unmask_proc, "no", "yes",
			&p->unmask_proc) < 0 ||
	    read_unit(r, "tomb", raw->tomb, &p->tomb) < 0 ||
	    read_tomb(r, raw->tomb, p) < 0 ||
	    read_unit(r, "vessel", raw->vessel, &p->vessel) < 0 ||
	    read_unit(r, "scribe", raw->scribe, &p->scribe) < 0 ||
	    read_unit(r, "phylactery", raw->phylactery, &p->phylactery) < 0 ||
	    read_label(r, raw->label, p) < 0)
		return -1;
	for (unsigned i = 0; i < raw->mounts_count; i++)
		if (read_mount(r, raw->mounts[i], p) < 0)
			return -1;
	return 0;
}

void conf_pod_defaults(struct conf_pod *p)
{
	*p = (struct conf_pod){
		.profile = profiles[0],
		.cgroups = true,
		.tomb = {.memory = (uint64_t)8 << 30},
		.vessel = {.memory = (uint64_t)512 << 20},
		.scribe = {.memory = (uint64_t)256 << 20},
		.phylactery = {.memory = (uint64_t)1 << 30},
		.tomb_processes = 4096,
	};
}

void conf_pod_done(struct conf_pod *p)
{
	free(p->label);
	free(p->tomb.image);
	free(p->vessel.image);
	free(p->scribe.image);
	free(p->phylactery.image);
	for (size_t i = 0; i < p->n_mounts; i++)
		free(p->mount[i].path);
	free(p->mount);
	*p = (struct conf_pod){0};
}
