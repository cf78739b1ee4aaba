/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See broker.h.
 */
#include "vessel/broker.h"
#include "vessel/broker/dispatch/dispatch.h"
#include "vessel/broker/intents/packages.h"

/* Of all packages together, for all jobs. */
#define PACKAGES_MAX_BYTES ((uint64_t)2 << 30)

int broker_start(struct vessel *v, struct err *err)
{
	if (packages_new(v->data_fd, PACKAGES_MAX_BYTES, v->clock, &v->packages, err) < 0)
		return err_wrap(err, "packages");
	v->proposals = proposals_new();
	v->dispatch_ops = dispatch_ops_real(v);
	v->dispatch = dispatch_new(&(struct dispatch_config){.loop = v->loop,
							     .clock = v->clock,
							     .rng = v->rng,
							     .broker = &v->conf.broker,
							     .ops = v->dispatch_ops,
							     .packages = v->packages,
							     .proposals = v->proposals,
							     .note = &v->reading});
	return 0;
}

void broker_free(struct vessel *v)
{
	dispatch_free(v->dispatch);
	v->dispatch = NULL;
	dispatch_ops_free(v->dispatch_ops);
	v->dispatch_ops = NULL;
	proposals_free(v->proposals);
	v->proposals = NULL;
	packages_free(v->packages);
	v->packages = NULL;
}
