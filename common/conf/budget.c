/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * The keys budgets, gate and egress of codex.yaml: how much, how long, how private.
 */
#include "common/conf/priv.h"

#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"

#define MONEY_MAX_MICRO ((uint64_t)1000000000 * 1000000)
#define TOKENS_MAX 1000000000000u
#define COUNT_MAX 1000000000u
#define BYTES_MAX ((uint64_t)1 << 50)

static const cyaml_schema_field_t budget_fields[] = {
	CONF_STR("requests", raw_budget, requests),
	CONF_STR("tokens", raw_budget, tokens),
	CONF_STR("money", raw_budget, money),
	CONF_STR("bytes", raw_budget, bytes),
	CONF_STR("denials", raw_budget, denials),
	CONF_STR("packages", raw_budget, packages),
	CYAML_FIELD_END,
};
const cyaml_schema_field_t conf_budgets_fields[] = {
	CONF_MAP("job", raw_budgets, job, budget_fields),
	CONF_MAP("identity_day", raw_budgets, identity_day, budget_fields),
	CONF_MAP("day", raw_budgets, day, budget_fields),
	CYAML_FIELD_END,
};
const cyaml_schema_field_t conf_gate_fields[] = {
	CONF_STR("portal_threshold", raw_gate, portal_threshold),
	CONF_STR("forbidden_threshold", raw_gate, forbidden_threshold),
	CONF_STR("pictures", raw_gate, pictures),
	CONF_STR("sound", raw_gate, sound),
	CONF_STR("pdf", raw_gate, pdf),
	CONF_STR("classifier", raw_gate, classifier),
	CONF_STR("classifier_timeout", raw_gate, classifier_timeout),
	CONF_STR("classifier_max", raw_gate, classifier_max),
	CYAML_FIELD_END,
};
const cyaml_schema_field_t conf_egress_fields[] = {
	CONF_STR("connect", raw_egress, connect),
	CONF_STR("first_byte", raw_egress, first_byte),
	CONF_STR("idle", raw_egress, idle),
	CONF_STR("total", raw_egress, total),
	CONF_STR("request_max", raw_egress, request_max),
	CONF_STR("response_max", raw_egress, response_max),
	CONF_STR("package_max", raw_egress, package_max),
	CONF_STR("in_flight", raw_egress, in_flight),
	CONF_STR("retries", raw_egress, retries),
	CONF_STR("authorities", raw_egress, authorities),
	CYAML_FIELD_END,
};

static const char *const scopes[] = {
	[BUDGET_JOB] = "job",
	[BUDGET_IDENTITY_DAY] = "identity_day",
	[BUDGET_DAY] = "day",
};

const char *budget_scope_name(enum budget_scope s)
{
	return s < BUDGET_SCOPE_MAX_ ? scopes[s] : NULL;
}

static int read_budget(const struct conf_reader *r, enum budget_scope scope,
		       const struct raw_budget *raw, struct conf_budget *b)
{
	struct {
		const char *key, *value;
		conf_parse_fn *parse;
		uint64_t max;
		uint64_t *ret;
	} rows[] = {
		{"requests", raw ? raw->requests : NULL, parse_u64, COUNT_MAX,
		 &b->requests},
		{"tokens", raw ? raw->tokens : NULL, parse_u64, TOKENS_MAX, &b->tokens},
		{"money", raw ? raw->money : NULL, parse_micro, MONEY_MAX_MICRO,
		 &b->money_micro},
		{"bytes", raw ? raw->bytes : NULL, parse_size, BYTES_MAX, &b->bytes},
		{"denials", raw ? raw->denials : NULL, parse_u64, COUNT_MAX, &b->denials},
		{"packages", raw ? raw->packages : NULL, parse_u64, COUNT_MAX,
		 &b->packages},
	};
	char key[64];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		(void)snprintf(key, sizeof(key), "budgets.%s.%s", scopes[scope],
			       rows[i].key);
		if (conf_read_number(r, key, rows[i].value, rows[i].parse, 0, rows[i].max,
				     rows[i].ret) < 0)
			return -1;
	}
	return 0;
}

int conf_budgets_read(const struct conf_reader *r, const struct raw_budgets *raw,
		      struct conf_broker *b)
{
	if (!raw)
		return 0;
	if (read_budget(r, BUDGET_JOB, raw->job, &b->budget[BUDGET_JOB]) < 0 ||
	    read_budget(r, BUDGET_IDENTITY_DAY, raw->identity_day,
			&b->budget[BUDGET_IDENTITY_DAY]) < 0 ||
	    read_budget(r, BUDGET_DAY, raw->day, &b->budget[BUDGET_DAY]) < 0)
		return -1;
	return 0;
}

static int read_threshold(const struct conf_reader *r, const char *key, const char *value,
			  double *ret)
{
	uint64_t millionths = (uint64_t)(*ret * 1e6 + 0.5);

	if (conf_read_number(r, key, value, parse_micro, 0, 1000000, &millionths) < 0)
		return -1;
	*ret = (double)millionths / 1e6;
	return 0;
}

/* What cannot be read as text may go out as what it is, or not. */
static int read_medium(const struct conf_reader *r, const char *key, const char *value,
		       bool *ret)
{
	if (!value)
		return 0;
	*ret = str_eq(value, "allow");
	if (!*ret && !str_eq(value, "refuse"))
		return conf_fail_at(r, key, "allow or refuse");
	return 0;
}

int conf_gate_read(const struct conf_reader *r, const struct raw_gate *raw,
		   struct conf_gate *g)
{
	if (!raw)
		return 0;
	if (read_threshold(r, "gate.portal_threshold", raw->portal_threshold,
			   &g->portal_threshold) < 0 ||
	    read_threshold(r, "gate.forbidden_threshold", raw->forbidden_threshold,
			   &g->forbidden_threshold) < 0 ||
	    read_medium(r, "gate.pictures", raw->pictures, &g->allows_pictures) < 0 ||
	    read_medium(r, "gate.sound", raw->sound, &g->allows_sound) < 0 ||
	    read_medium(r, "gate.pdf", raw->pdf, &g->allows_pdf) < 0)
		return -1;
	if (g->portal_threshold >= g->forbidden_threshold)
		return conf_fail_at(r,
				    raw->portal_threshold ? "gate.portal_threshold"
							  : "gate.forbidden_threshold",
				    "portal_threshold must be below "
				    "forbidden_threshold");
	return 0;
}

int conf_egress_read(const struct conf_reader *r, const struct raw_egress *raw,
		     struct conf_egress *e)
{
	const usec_t hour = 3600 * USEC_PER_SEC;
	uint64_t in_flight = e->in_flight, retries = e->retries;

	if (!raw)
		return 0;
	if (raw->authorities && raw->authorities[0] != '/')
		return conf_fail_at(r, "egress.authorities",
				    "an absolute path is required");
	if (conf_read_number(r, "egress.connect", raw->connect, parse_duration_usec,
			     USEC_PER_MSEC, hour, &e->connect_usec) < 0 ||
	    conf_read_number(r, "egress.first_byte", raw->first_byte, parse_duration_usec,
			     USEC_PER_MSEC, hour, &e->first_byte_usec) < 0 ||
	    conf_read_number(r, "egress.idle", raw->idle, parse_duration_usec,
			     USEC_PER_MSEC, hour, &e->idle_usec) < 0 ||
	    conf_read_number(r, "egress.total", raw->total, parse_duration_usec,
			     USEC_PER_MSEC, 24 * hour, &e->total_usec) < 0 ||
	    conf_read_number(r, "egress.request_max", raw->request_max, parse_size, 1024,
			     CONF_REQUEST_MAX_BYTES, &e->request_max_bytes) < 0 ||
	    conf_read_number(r, "egress.response_max", raw->response_max, parse_size,
			     1024, BYTES_MAX, &e->response_max_bytes) < 0 ||
	    conf_read_number(r, "egress.package_max", raw->package_max, parse_size, 1024,
			     BYTES_MAX, &e->package_max_bytes) < 0 ||
	    conf_read_number(r, "egress.in_flight", raw->in_flight, parse_u64, 1, 64,
			     &in_flight) < 0 ||
	    conf_read_number(r, "egress.retries", raw->retries, parse_u64, 0, 5,
			     &retries) < 0)
		return -1;
	e->in_flight = (unsigned)in_flight;
	e->retries = (unsigned)retries;
	e->authorities = raw->authorities ? xstrdup(raw->authorities) : NULL;
	return 0;
}

void conf_broker_defaults(struct conf_broker *b)
{
	*b = (struct conf_broker){
		.budget =
			{
				[BUDGET_JOB] = {200, 1000000, 2000000,
						(uint64_t)256 << 20, 20, 2000},
				[BUDGET_IDENTITY_DAY] = {5000, 10000000, 20000000,
							 (uint64_t)8 << 30, 500, 20000},
				[BUDGET_DAY] = {10000, 20000000, 40000000,
						(uint64_t)16 << 30, 1000, 40000},
			},
		.gate = {.portal_threshold = 0.40,
			 .forbidden_threshold = 0.70,
			 .allows_pictures = true,
			 .allows_sound = true,
			 .classifier_usec = 60 * USEC_PER_SEC,
			 .classifier_max_bytes = (uint64_t)256 << 10},
		.egress =
			{
				.connect_usec = 10 * USEC_PER_SEC,
				.first_byte_usec = 300 * USEC_PER_SEC,
				.idle_usec = 120 * USEC_PER_SEC,
				.total_usec = 1800 * USEC_PER_SEC,
				.request_max_bytes = CONF_REQUEST_MAX_BYTES,
				.response_max_bytes = (uint64_t)64 << 20,
				.package_max_bytes = (uint64_t)512 << 20,
				.in_flight = BROKER_INFLIGHT_JOB,
				.retries = 2,
			},
		.containment = {.act = {[TRIGGER_CANARY] = TRIGGER_CONTAIN},
				.denials = 20,
				.denials_within_usec = 60 * USEC_PER_SEC},
	};
}

void conf_broker_done(struct conf_broker *b)
{
	conf_portals_done(b);
	conf_credentials_done(b);
	conf_ward_done(b);
	free(b->egress.authorities);
	*b = (struct conf_broker){0};
}
