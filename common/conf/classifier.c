/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * The portal of kind classifier, and the keys of gate that are about it: a model on this machine or its
 * network that is asked for a second opinion (docs/adr/0053). It is kept apart from the portals
 * that jobs may ask, so that nothing that looks for one of those can find it.
 */
#include "common/conf/priv.h"

#include "common/mem.h"
#include "common/str.h"

#define TIMEOUT_MIN_USEC (100 * USEC_PER_MSEC)
#define TIMEOUT_MAX_USEC (600 * USEC_PER_SEC)

const struct conf_portal *conf_classifier(const struct conf_broker *b)
{
	return b->gate.asks_classifier ? &b->classifier : NULL;
}

/* What means something only for who pays, or speaks other parts of an API. */
static int refuse_keys(const struct conf_item *item, const struct raw_portal *raw)
{
	static const char why[] = "not with kind classifier, which is asked for one "
				  "thing only";

	if (raw->max_output)
		return conf_fail_item(item, "max_output", why);
	if (raw->output_cap)
		return conf_fail_item(item, "output_cap", why);
	if (raw->betas_count)
		return conf_fail_item(item, "betas", why);
	if (raw->lacks_count)
		return conf_fail_item(item, "lacks", why);
	return 0;
}

static int read_model(const struct conf_item *item, const struct raw_portal *raw,
		      struct conf_portal *p)
{
	const struct raw_model *m = raw->models;

	if (raw->models_count != 1 || !m->name || !conf_model_name_ok(m->name) ||
	    m->input || m->output || m->cache_read || m->cache_write || m->max_output ||
	    m->context || m->picture || m->extras_count)
		return conf_fail_item(item, "models",
				      "of kind classifier exactly one, with a name and "
				      "nothing else: it is local, and has no price");
	p->model = xcalloc(1, sizeof(*p->model));
	p->n_models = 1;
	p->model[0].name = xstrdup(m->name);
	return 0;
}

int conf_classifier_read(const struct conf_item *item, const struct raw_portal *raw,
			 const struct conf_broker *before, struct conf_portal *p)
{
	if (p->name)
		return conf_fail_item(item, "kind", "there is one classifier already");
	p->kind = PORTAL_OPENAI;
	if (refuse_keys(item, raw) < 0 ||
	    conf_portal_place_read(item, raw, before, p) < 0)
		return -1;
	if (!p->url.is_address || !conf_address_is_local(p->url.host))
		return conf_fail_item(item, "url",
				      "of kind classifier an address of this machine or "
				      "its network, such as 127.0.0.1: it sees what jobs "
				      "ask, and nobody else may");
	return read_model(item, raw, p);
}

int conf_opinion_read(const struct conf_reader *r, const struct raw_gate *raw,
		      struct conf_broker *b)
{
	struct conf_gate *g = &b->gate;

	if (!raw)
		return 0;
	if (!raw->classifier && (raw->classifier_timeout || raw->classifier_max))
		return conf_fail_at(r,
				    raw->classifier_timeout ? "gate.classifier_timeout"
							    : "gate.classifier_max",
				    "only with gate.classifier, which is not there");
	if (!raw->classifier)
		return 0;
	if (!str_eq(b->classifier.name, raw->classifier))
		return conf_fail_at(r, "gate.classifier",
				    "no portal of kind classifier has that name");
	g->asks_classifier = true;
	if (conf_read_number(r, "gate.classifier_timeout", raw->classifier_timeout,
			     parse_duration_usec, TIMEOUT_MIN_USEC, TIMEOUT_MAX_USEC,
			     &g->classifier_usec) < 0)
		return -1;
	return conf_read_number(r, "gate.classifier_max", raw->classifier_max, parse_size,
				1024, CONF_REQUEST_MAX_BYTES, &g->classifier_max_bytes);
}
