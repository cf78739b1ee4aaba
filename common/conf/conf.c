/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * Three stages. lint.c admits a small, unsurprising subset of YAML (see
 * there). libcyaml then checks the shape: every value is a string to it, so that
 * none of its number and bool readings is used. Last, each value is parsed and
 * range-checked here, with the line that it stands on in the message.
 */
#include "common/conf/conf.h"
#include "common/conf/priv.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/proto/job_spec.h"
#include "common/str.h"

#include <cyaml/cyaml.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

struct raw_pair {
	char *dflt, *max;
};

struct raw_limits {
	struct raw_pair *memory, *disk, *output, *timeout, *processes, *cpus;
};

struct raw_tomb {
	char *grade, *slots, *queue, *jobs_dir, *jobs_tmpfs;
};

struct raw_queue {
	char *max_waiting;
};

struct raw_store {
	char *max;
};

struct raw_postgres {
	char *bin;
};

struct raw_conf {
	char *version, *daemons;
	struct raw_tomb *tomb;
	struct raw_limits *limits;
	struct raw_queue *queue;
	struct raw_store *store;
	char *retention;
	struct raw_postgres *postgres;
	struct raw_audit *audit;
	struct raw_pod *pod;
	struct raw_portal *portals;
	unsigned portals_count;
	struct raw_credential *credentials;
	unsigned credentials_count;
	struct raw_registries *registries;
	struct raw_rule *ward;
	unsigned ward_count;
	struct raw_budgets *budgets;
	struct raw_gate *gate;
	struct raw_egress *egress;
	struct raw_containment *containment;
};

static const cyaml_schema_field_t pair_fields[] = {
	CONF_STR("default", raw_pair, dflt),
	CONF_STR("max", raw_pair, max),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t limits_fields[] = {
	CONF_MAP("memory", raw_limits, memory, pair_fields),
	CONF_MAP("disk", raw_limits, disk, pair_fields),
	CONF_MAP("output", raw_limits, output, pair_fields),
	CONF_MAP("timeout", raw_limits, timeout, pair_fields),
	CONF_MAP("processes", raw_limits, processes, pair_fields),
	CONF_MAP("cpus", raw_limits, cpus, pair_fields),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t tomb_fields[] = {
	CONF_STR("grade", raw_tomb, grade),
	CONF_STR("slots", raw_tomb, slots),
	CONF_STR("queue", raw_tomb, queue),
	CONF_STR("jobs_dir", raw_tomb, jobs_dir),
	CONF_STR("jobs_tmpfs", raw_tomb, jobs_tmpfs),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t queue_fields[] = {
	CONF_STR("max_waiting", raw_queue, max_waiting),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t store_fields[] = {
	CONF_STR("max", raw_store, max),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t postgres_fields[] = {
	CONF_STR("bin", raw_postgres, bin),
	CYAML_FIELD_END,
};
static const cyaml_schema_field_t conf_fields[] = {
	CYAML_FIELD_STRING_PTR("version", CYAML_FLAG_POINTER, struct raw_conf, version, 1,
			       CONF_VALUE_MAX),
	CONF_STR("daemons", raw_conf, daemons),
	CONF_MAP("tomb", raw_conf, tomb, tomb_fields),
	CONF_MAP("limits", raw_conf, limits, limits_fields),
	CONF_MAP("queue", raw_conf, queue, queue_fields),
	CONF_MAP("store", raw_conf, store, store_fields),
	CONF_STR("retention", raw_conf, retention),
	CONF_MAP("postgres", raw_conf, postgres, postgres_fields),
	CONF_MAP("audit", raw_conf, audit, conf_audit_fields),
	CYAML_FIELD_MAPPING_PTR("pod", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
				struct raw_conf, pod, conf_pod_fields),
	CONF_LIST("portals", raw_conf, portals, conf_portal_schema, CONF_PORTALS_MAX),
	CONF_LIST("credentials", raw_conf, credentials, conf_credential_schema,
		  CONF_CREDENTIALS_MAX),
	CONF_MAP("registries", raw_conf, registries, conf_registries_fields),
	CONF_LIST("ward", raw_conf, ward, conf_rule_schema, CONF_RULES_MAX),
	CONF_MAP("budgets", raw_conf, budgets, conf_budgets_fields),
	CONF_MAP("gate", raw_conf, gate, conf_gate_fields),
	CONF_MAP("egress", raw_conf, egress, conf_egress_fields),
	CONF_MAP("containment", raw_conf, containment, conf_containment_fields),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t conf_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw_conf, conf_fields),
};

static void *cyaml_alloc(void *ctx UNUSED, void *p, size_t size)
{
	if (size == 0) {
		free(p);
		return NULL;
	}
	return xreallocarray(p, size, 1);
}

/* What it would say of a refusal is for who knows its source: shape.c says it. */
static const cyaml_config_t cyaml_setup = {
	.mem_fn = cyaml_alloc,
	.flags = CYAML_CFG_NO_ALIAS,
};

int conf_fail_at(const struct conf_reader *r, const char *key, const char *why)
{
	return err_set_id(r->err, ERRID_START_CONFIG, "line %u: %s: %s",
			  conf_line_of(r->text, key), key, why);
}

unsigned conf_item_line(const struct conf_item *item)
{
	return item->list ? conf_line_of_item(item->r->text, item->list, item->at)
			  : conf_line_of(item->r->text, item->map);
}

int conf_fail_item(const struct conf_item *item, const char *key, const char *why)
{
	unsigned line = conf_item_line(item);
	const char *colon = key ? ": " : "";

	if (key)
		line = conf_line_of_name(item->r->text, key, line, 1);
	else
		key = "";
	if (item->list)
		return err_set_id(item->r->err, ERRID_START_CONFIG,
				  "line %u: %s, entry %u%s%s: %s", line, item->list,
				  item->at + 1, colon, key, why);
	return err_set_id(item->r->err, ERRID_START_CONFIG, "line %u: %s%s%s: %s", line,
			  item->map, colon, key, why);
}

int conf_read_number(const struct conf_reader *r, const char *key, const char *value,
		     conf_parse_fn *parse, uint64_t min, uint64_t max, uint64_t *ret)
{
	struct err why = ERR_INIT;

	if (!value)
		return 0;
	if (parse(value, min, max, ret, &why) < 0)
		return conf_fail_at(r, key, why.msg);
	return 0;
}

/* A default and a ceiling; a lower ceiling takes an unwritten default with it. */
static int read_pair(const struct conf_reader *r, const char *name,
		     const struct raw_pair *p, conf_parse_fn *parse, uint64_t min,
		     uint64_t *dflt, uint64_t *max)
{
	char key[64];

	if (!p)
		return 0;
	(void)snprintf(key, sizeof(key), "limits.%s.max", name);
	if (conf_read_number(r, key, p->max, parse, min, *max, max) < 0)
		return -1;
	if (*dflt > *max)
		*dflt = *max;
	(void)snprintf(key, sizeof(key), "limits.%s.default", name);
	if (conf_read_number(r, key, p->dflt, parse, min, UINT64_MAX, dflt) < 0)
		return -1;
	if (*dflt > *max)
		return conf_fail_at(r, key, "above the ceiling (max)");
	return 0;
}

static int read_count_pair(const struct conf_reader *r, const char *name,
			   const struct raw_pair *p, unsigned *dflt, unsigned *max)
{
	uint64_t d = *dflt, m = *max;

	if (read_pair(r, name, p, parse_u64, 1, &d, &m) < 0)
		return -1;
	*dflt = (unsigned)d;
	*max = (unsigned)m;
	return 0;
}

static int read_limits(const struct conf_reader *r, const struct raw_limits *l,
		       struct conf *c)
{
	if (!l)
		return 0;
	if (read_pair(r, "memory", l->memory, parse_size, LIMIT_MEMORY_MIN,
		      &c->memory_default, &c->memory_max) < 0 ||
	    read_pair(r, "disk", l->disk, parse_size, 1 << 20, &c->disk_default,
		      &c->disk_max) < 0 ||
	    read_pair(r, "output", l->output, parse_size, 1, &c->output_default,
		      &c->output_max) < 0 ||
	    read_pair(r, "timeout", l->timeout, parse_duration_usec,
		      LIMIT_TIMEOUT_USEC_MIN, &c->timeout_default_usec,
		      &c->timeout_max_usec) < 0 ||
	    read_count_pair(r, "processes", l->processes, &c->processes_default,
			    &c->processes_max) < 0 ||
	    read_count_pair(r, "cpus", l->cpus, &c->cpus_default, &c->cpus_max) < 0)
		return -1;
	return 0;
}

/* The ward last: its rules name what the others say. */
static int read_broker(const struct conf_reader *r, const struct raw_conf *raw,
		       struct conf_broker *b)
{
	if (conf_portals_read(r, raw->portals, raw->portals_count, b) < 0 ||
	    conf_registries_read(r, raw->registries, b) < 0 ||
	    conf_credentials_read(r, raw->credentials, raw->credentials_count, b) < 0 ||
	    conf_ward_read(r, raw->ward, raw->ward_count, b) < 0 ||
	    conf_budgets_read(r, raw->budgets, b) < 0 ||
	    conf_gate_read(r, raw->gate, &b->gate) < 0 ||
	    conf_opinion_read(r, raw->gate, b) < 0 ||
	    conf_egress_read(r, raw->egress, &b->egress) < 0 ||
	    conf_containment_read(r, raw->containment, &b->containment) < 0)
		return -1;
	return 0;
}

/* A file system of the jobs' own: at most one of the two. */
static int read_jobs(const struct conf_reader *r, const struct raw_tomb *raw,
		     struct conf *c)
{
	if (raw->jobs_dir && raw->jobs_tmpfs)
		return conf_fail_at(r, "tomb.jobs_tmpfs", "or tomb.jobs_dir: not both");
	if (conf_read_number(r, "tomb.jobs_tmpfs", raw->jobs_tmpfs, parse_size,
			     (uint64_t)64 << 20, (uint64_t)1 << 50,
			     &c->jobs_tmpfs_bytes) < 0)
		return -1;
	if (!raw->jobs_dir)
		return 0;
	if (raw->jobs_dir[0] != '/')
		return conf_fail_at(r, "tomb.jobs_dir", "an absolute path is required");
	c->jobs_dir = xstrdup(raw->jobs_dir);
	return 0;
}

static int read_tomb(const struct conf_reader *r, const struct raw_tomb *raw,
		     struct conf *c)
{
	uint64_t slots = c->slots;

	if (raw->grade && !sbx_grade_from_name(raw->grade, &c->grade))
		return conf_fail_at(r, "tomb.grade", "full or floor");
	if (raw->queue && !queue_door_from_name(raw->queue, &c->queue))
		return conf_fail_at(r, "tomb.queue", "postgres or vessel");
	if (conf_read_number(r, "tomb.slots", raw->slots, parse_u64, 1, 64, &slots) < 0)
		return -1;
	c->slots = (unsigned)slots;
	return read_jobs(r, raw, c);
}

/* A number alone would be seconds: days are meant, so that little is refused. */
static int read_retention(const struct conf_reader *r, const char *value, struct conf *c)
{
	if (value && str_eq(value, "keep")) {
		c->retention_usec = 0;
		return 0;
	}
	return conf_read_number(r, "retention", value, parse_duration_usec,
				CONF_RETENTION_MIN_USEC, CONF_RETENTION_MAX_USEC,
				&c->retention_usec);
}

/* The one way to say it; never said for anybody, and of no use beside what it gives up for. */
static int read_daemons(const struct conf_reader *r, const char *word, struct conf *c)
{
	if (!word)
		return 0;
	if (!str_eq(word, "no_private_root"))
		return conf_fail_at(r, "daemons", "no_private_root, or no such key");
	if (c->grade != GRADE_FLOOR)
		return conf_fail_at(
			r, "daemons",
			"no_private_root is for tomb.grade: floor; full needs "
			"user namespaces anyway");
	if (c->jobs_dir || c->jobs_tmpfs_bytes)
		return conf_fail_at(r, "daemons",
				    "no_private_root leaves nobody who could mount "
				    "tomb.jobs_tmpfs or tomb.jobs_dir");
	c->unrooted = true;
	return 0;
}

static int read_values(const struct conf_reader *r, const struct raw_conf *raw,
		       struct conf *c)
{
	uint64_t waiting = c->queue_max;

	if (!str_eq(raw->version, "1"))
		return conf_fail_at(r, "version", "only \"1\" is known");
	if (raw->tomb && read_tomb(r, raw->tomb, c) < 0)
		return -1;
	if (read_daemons(r, raw->daemons, c) < 0)
		return -1;
	if (raw->queue &&
	    conf_read_number(r, "queue.max_waiting", raw->queue->max_waiting, parse_u64,
			     1, 1000000, &waiting) < 0)
		return -1;
	if (raw->store &&
	    conf_read_number(r, "store.max", raw->store->max, parse_size, 1 << 20,
			     (uint64_t)1 << 50, &c->store_max_bytes) < 0)
		return -1;
	if (read_retention(r, raw->retention, c) < 0 ||
	    read_limits(r, raw->limits, c) < 0)
		return -1;
	if (raw->postgres && raw->postgres->bin) {
		if (raw->postgres->bin[0] != '/')
			return conf_fail_at(r, "postgres.bin",
					    "an absolute path is required");
		c->postgres_bin = xstrdup(raw->postgres->bin);
	}
	if (conf_audit_read(r, raw->audit, c) < 0 ||
	    conf_pod_read(r, raw->pod, &c->pod) < 0)
		return -1;
	if (read_broker(r, raw, &c->broker) < 0)
		return -1;
	c->queue_max = (unsigned)waiting;
	return 0;
}

void conf_defaults(struct conf *c)
{
	*c = (struct conf){
		.grade = GRADE_FULL,
		.queue = DOOR_POSTGRES,
		.slots = 8,
		.memory_default = LIMIT_MEMORY_DEFAULT,
		.memory_max = LIMIT_MEMORY_MAX,
		.disk_default = LIMIT_DISK_DEFAULT,
		.disk_max = LIMIT_DISK_MAX,
		.output_default = LIMIT_OUTPUT_DEFAULT,
		.output_max = LIMIT_OUTPUT_MAX,
		.timeout_default_usec = LIMIT_TIMEOUT_USEC_DEFAULT,
		.timeout_max_usec = LIMIT_TIMEOUT_USEC_MAX,
		.processes_default = LIMIT_PROCESSES_DEFAULT,
		.processes_max = LIMIT_PROCESSES_MAX,
		.cpus_default = LIMIT_CPUS_DEFAULT,
		.cpus_max = LIMIT_CPUS_MAX,
		.queue_max = 10000,
		.store_max_bytes = (uint64_t)20 << 30,
		.retention_usec = CONF_RETENTION_USEC,
	};
	conf_pod_defaults(&c->pod);
	conf_broker_defaults(&c->broker);
}

void conf_done(struct conf *c)
{
	free(c->postgres_bin);
	free(c->jobs_dir);
	c->postgres_bin = c->jobs_dir = NULL;
	conf_audit_done(c);
	conf_pod_done(&c->pod);
	conf_broker_done(&c->broker);
}

int conf_shape_load(const cyaml_schema_value_t *schema, const char *page,
		    const char *text, size_t len, void **ret, struct err *err)
{
	cleanup_free char *copy = NULL;
	cyaml_err_t e;

	if (conf_lint(text, len, err) < 0)
		return -1;
	*ret = NULL;
	e = cyaml_load_data((const uint8_t *)text, len, &cyaml_setup, schema, ret, NULL);
	if (e == CYAML_OK && *ret)
		return 0;
	copy = xstrndup(text, len);
	return conf_shape_explain(schema->mapping.fields, page, copy, err);
}

void conf_shape_free(const cyaml_schema_value_t *schema, void *raw)
{
	(void)cyaml_free(&cyaml_setup, schema, raw, 0);
}

static int raw_load(const char *text, size_t len, struct raw_conf **ret, struct err *err)
{
	void *raw = NULL;

	if (conf_shape_load(&conf_schema, "codex.yaml(5)", text, len, &raw, err) < 0)
		return -1;
	*ret = raw;
	return 0;
}

static void raw_free(struct raw_conf *raw)
{
	conf_shape_free(&conf_schema, raw);
}

int conf_flatten(const char *text, size_t len, struct buf *out, struct err *err)
{
	struct raw_conf *raw = NULL;

	if (raw_load(text, len, &raw, err) < 0)
		return -1;
	conf_flat_write(conf_fields, raw, out);
	raw_free(raw);
	return buf_ok(out) ? 0 : err_set(err, ERR_TOO_LARGE, "too many values");
}

int conf_key_check(const char *key, struct err *err)
{
	return conf_key_find(conf_fields, key, err);
}

int conf_parse(const char *text, size_t len, struct conf *ret, struct err *err)
{
	struct raw_conf *raw = NULL;
	cleanup_free char *copy = NULL;
	struct conf_reader r = {.err = err};
	struct conf c;
	int result;

	if (raw_load(text, len, &raw, err) < 0)
		return -1;
	copy = xstrndup(text, len);
	r.text = copy;
	conf_defaults(&c);
	result = read_values(&r, raw, &c);
	raw_free(raw);
	if (result < 0) {
		conf_done(&c);
		return -1;
	}
	*ret = c;
	return 0;
}

int conf_read_text(const char *path, struct buf *out, struct err *err)
{
	cleanup_close int fd =
		open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	char chunk[4096];
	struct stat st;
	ssize_t n;

	if (fd < 0 && errno == ENOENT)
		return err_set_id(err, ERRID_START_NO_CONFIG, "%s does not exist", path);
	if (fd < 0 && errno == ELOOP)
		return err_set_id(err, ERRID_START_CONFIG_MODE, "%s is a symbolic link",
				  path);
	/* whose it is and who may read it, or what this process ran out of: no line of it */
	if (fd < 0 && (errno == EACCES || errno == EPERM))
		return err_sys_id(err, ERRID_START_CONFIG_MODE, "open %s", path);
	if (fd < 0)
		return err_sys(err, "open %s", path);
	if (fstat(fd, &st) < 0)
		return err_sys(err, "stat %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set_id(err, ERRID_START_CONFIG_MODE, "%s is no regular file",
				  path);
	if (st.st_uid != geteuid())
		return err_set_id(err, ERRID_START_CONFIG_MODE, "%s belongs to uid %u",
				  path, st.st_uid);
	if ((st.st_mode & 07777) != 0600 && (st.st_mode & 07777) != 0400)
		return err_set_id(err, ERRID_START_CONFIG_MODE,
				  "%s has mode %04o, not 0600", path, st.st_mode & 07777);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0 && buf_ok(out))
		buf_add(out, chunk, (size_t)n);
	if (n < 0)
		return err_sys(err, "read %s", path);
	if (!buf_ok(out))
		return err_set_id(err, ERRID_START_CONFIG, "%s is longer than %d bytes",
				  path, CONF_FILE_MAX_BYTES);
	return 0;
}

int conf_load(const char *path, struct conf *ret, struct err *err)
{
	cleanup_buf struct buf b = {0};

	buf_init(&b, CONF_FILE_MAX_BYTES);
	if (conf_read_text(path, &b, err) < 0)
		return -1;
	if (conf_parse(buf_str(&b), b.len, ret, err) < 0)
		return err_wrap(err, "%s", path);
	return 0;
}
