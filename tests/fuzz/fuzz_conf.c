/* SPDX-License-Identifier: Apache-2.0 */
/* codex.yaml: lint, libcyaml and our value parsers together. */
#include "common/attr.h"
#include "common/net/conf.h"
#include "common/str.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rule(const struct conf_broker *b, const struct conf_rule *r)
{
	const struct conf_portal *p = conf_portal_find(b, r->credential);

	assert(r->name && r->name[0] && r->action < WARD_ACTION_MAX_ && r->line > 1);
	assert((r->action == WARD_LIMIT) == (r->limit_count > 0));
	assert(r->target != WARD_PORTAL || conf_portal_find(b, r->name));
	/* A key stays with the host it was made for. */
	assert(!r->credential || (p && p->secret && !r->is_suffix));
	assert(!p || (str_eq(p->url.host, r->name) && p->url.port == r->port));
	if (r->target == WARD_HOST &&
	    (r->action == WARD_ALLOW || r->action == WARD_LIMIT))
		assert(r->port && r->method && r->scheme != WARD_ANY_SCHEME);
	assert(!r->path || (r->path[0] == '/' && !strstr(r->path, "/../")));
}

static void check_broker(const struct conf_broker *b)
{
	for (size_t i = 0; i < b->n_portals; i++) {
		const struct conf_portal *p = &b->portal[i];

		assert(conf_portal_find(b, p->name) == p && p->n_models > 0);
		assert(!p->secret || strncmp(p->secret, "portal_", 7) == 0);
		assert(p->url.https || (p->url.is_address && p->addresses.n > 0));
		for (size_t m = 0; m < p->n_models; m++)
			assert(conf_portal_of_model(b, p->kind, p->model[m].name, NULL) ==
			       p);
	}
	for (size_t i = 0; i < b->n_rules; i++)
		check_rule(b, &b->rule[i]);
	assert(b->gate.portal_threshold < b->gate.forbidden_threshold);
	assert(b->gate.portal_threshold >= 0 && b->gate.forbidden_threshold <= 1);
	assert(b->egress.in_flight >= 1 && b->egress.request_max_bytes >= 1024);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	struct conf c;

	if (conf_parse((const char *)data, size, &c, &err) < 0) {
		/* Every refusal is the same public error, and names a line. */
		assert(err.id == ERRID_START_CONFIG && strstr(err.msg, "line "));
		return 0;
	}
	assert(c.slots >= 1 && c.slots <= 64);
	assert(c.grade < GRADE_MAX_);
	assert(c.memory_default <= c.memory_max && c.memory_max <= LIMIT_MEMORY_MAX);
	assert(c.disk_default <= c.disk_max && c.disk_max <= LIMIT_DISK_MAX);
	assert(c.output_default <= c.output_max && c.output_max <= LIMIT_OUTPUT_MAX);
	assert(c.timeout_default_usec <= c.timeout_max_usec);
	assert(c.processes_default >= 1 && c.processes_default <= c.processes_max);
	assert(c.cpus_default >= 1 && c.cpus_default <= c.cpus_max);
	assert(!c.postgres_bin || c.postgres_bin[0] == '/');
	assert(c.pod.profile && c.pod.n_mounts <= CONF_MOUNTS_MAX);
	for (size_t i = 0; i < c.pod.n_mounts; i++)
		assert(c.pod.mount[i].path[0]);
	assert(c.pod.tomb.memory >= (uint64_t)16 << 20);
	check_broker(&c.broker);
	conf_done(&c);
	return 0;
}
