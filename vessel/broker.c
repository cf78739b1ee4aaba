/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See broker.h.
 */
#include "vessel/broker.h"
#include "vessel/broker/dispatch/dispatch.h"
#include "vessel/broker/intents/packages.h"
#include "vessel/broker/intents/registry_links.h"
#include "vessel/broker/opinion/opinion.h"

#include <string.h>

/* Of all packages together, for all jobs. */
#define PACKAGES_MAX_BYTES ((uint64_t)2 << 30)

static int ask_classifier(void *env, const struct egress_request *rq,
			  const struct egress_ops *ops, void *arg,
			  struct egress_call **ret, struct err *err)
{
	struct vessel *v = env;

	return egress_start(v->egress, rq, ops, arg, ret, err);
}

static void start_opinion(struct vessel *v)
{
	const struct conf_portal *classifier = conf_classifier(&v->conf.broker);

	if (classifier)
		v->opinion =
			opinion_new(&(struct opinion_config){.loop = v->loop,
							     .rng = v->rng,
							     .classifier = classifier,
							     .gate = &v->conf.broker.gate,
							     .note = &v->reading,
							     .start = ask_classifier,
							     .cancel = egress_cancel,
							     .env = v});
}

int broker_start(struct vessel *v, const char *work_master, struct err *err)
{
	struct dispatch_config cfg = {
		.loop = v->loop,
		.clock = v->clock,
		.rng = v->rng,
		.broker = &v->conf.broker,
		.note = &v->reading,
	};

	if (packages_new(v->data_fd, PACKAGES_MAX_BYTES, v->clock, &v->packages, err) < 0)
		return err_wrap(err, "packages");
	v->proposals = proposals_new();
	v->dispatch_ops = dispatch_ops_real(v);
	start_opinion(v);
	cfg.ops = v->dispatch_ops;
	cfg.packages = v->packages;
	cfg.proposals = v->proposals;
	cfg.opinion = v->opinion;
	registry_links_key(work_master, cfg.links_key);
	v->dispatch = dispatch_new(&cfg);
	explicit_bzero(cfg.links_key, sizeof(cfg.links_key));
	return 0;
}

void broker_free(struct vessel *v)
{
	dispatch_free(v->dispatch);
	v->dispatch = NULL;
	opinion_free(v->opinion);
	v->opinion = NULL;
	dispatch_ops_free(v->dispatch_ops);
	v->dispatch_ops = NULL;
	proposals_free(v->proposals);
	v->proposals = NULL;
	packages_free(v->packages);
	v->packages = NULL;
}
