/* SPDX-License-Identifier: Apache-2.0 */
/* codex.yaml: lint, libcyaml and our value parsers together. */
#include "common/attr.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/conf/conf.h"
#include "common/mem.h"
#include "common/proto/job_spec.h"
#include "common/str.h"
#include "vessel/broker/ward.h"
#include "vessel/egress/url.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever a rule takes, a URL can say: here is one, and the rule takes it. */
static void check_witness(const struct conf_rule *r)
{
	enum reason why = REASON_NONE;
	cleanup_buf struct buf text;
	cleanup_free char *path = NULL;
	struct ward_ask ask;
	struct url u;

	buf_init(&text, (size_t)2 * URL_BYTES_MAX);
	buf_addf(&text, "%s://%s%s%s%s:%u%s", r->scheme == WARD_HTTP ? "http" : "https",
		 r->is_suffix ? "a." : "", strchr(r->name, ':') ? "[" : "", r->name,
		 strchr(r->name, ':') ? "]" : "", r->port ? r->port : 443,
		 r->path ? r->path : "/");
	assert(buf_ok(&text));
	assert(url_parse(text.data, text.len, &u, &why, NULL) == 0);
	path = xstrndup(u.target, u.path_len);
	ask = (struct ward_ask){.identity = "owner",
				.target = WARD_HOST,
				.https = u.https,
				.host = u.host,
				.port = u.port,
				.method = r->method ? r->method : "GET",
				.path = path};
	assert(ward_match(r, &ask) == WARD_MATCHES);
}

static void check_rule(const struct conf_broker *b, const struct conf_rule *r)
{
	const struct conf_url *place = NULL;
	const char *key = conf_key_place(b, r->credential, &place);

	assert(r->name && r->name[0] && r->action < WARD_ACTION_MAX_ && r->line > 1);
	assert((r->action == WARD_LIMIT) == (r->limit_count > 0));
	assert(r->target != WARD_PORTAL || conf_portal_find(b, r->name));
	/* A key stays with the host it was made for. */
	assert(!r->credential || (key && place->https && !r->is_suffix));
	assert(!key || (str_eq(place->host, r->name) && place->port == r->port));
	if (r->target == WARD_HOST &&
	    (r->action == WARD_ALLOW || r->action == WARD_LIMIT))
		assert(r->port && r->method && r->scheme != WARD_ANY_SCHEME);
	assert(!r->path || (r->path[0] == '/' && !strstr(r->path, "/../")));
	if (r->target == WARD_HOST)
		check_witness(r);
}

static void check_base(const struct conf_url *base)
{
	enum reason why = REASON_NONE;
	struct url u;

	assert(url_parse(base->text, strlen(base->text), &u, &why, NULL) == 0);
	assert(str_eq(u.host, base->host) && u.port == base->port);
}

/* No way that leads to a portal leads to the one that no job may ask. */
static void check_classifier(const struct conf_broker *b)
{
	const struct conf_portal *p = &b->classifier;
	const struct conf_url *place;

	assert(conf_classifier(b) == (b->gate.asks_classifier ? p : NULL));
	assert(!b->gate.asks_classifier || (p->name && b->gate.classifier_usec > 0));
	if (!p->name)
		return;
	assert(!conf_portal_find(b, p->name) && !conf_key_place(b, p->name, &place));
	assert(p->url.is_address && p->addresses.n > 0 && p->n_models == 1);
	check_base(&p->url);
	for (size_t i = 0; i < b->n_rules; i++)
		assert(b->rule[i].target != WARD_PORTAL ||
		       !str_eq(b->rule[i].name, p->name));
}

static void check_broker(const struct conf_broker *b)
{
	for (size_t i = 0; i < b->n_portals; i++) {
		const struct conf_portal *p = &b->portal[i];

		assert(conf_portal_find(b, p->name) == p && p->n_models > 0);
		assert(!p->secret || strncmp(p->secret, "portal_", 7) == 0);
		for (size_t k = 0; k < i; k++)
			assert(!p->secret || !str_eq(b->portal[k].secret, p->secret));
		check_base(&p->url);
		assert(p->url.https || (p->url.is_address && p->addresses.n > 0));
		for (size_t m = 0; m < p->n_models; m++) {
			const struct conf_model *model = &p->model[m];

			assert(conf_portal_of_model(b, p->kind, model->name, NULL) == p);
			assert(model->picture >= 1 && model->picture <= CONF_TOKENS_MAX);
			for (size_t x = 0; x < model->n_extras; x++)
				assert(strchr(model->extra[x].name, ':') ||
				       str_eq(model->extra[x].name, "audio"));
		}
	}
	check_classifier(b);
	for (size_t i = 0; i < REGISTRY_KIND_MAX_; i++)
		if (b->registry[i].url.text)
			check_base(&b->registry[i].url);
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
