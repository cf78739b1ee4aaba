/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See egress_workers.h.
 */
#include "vessel/egress_workers.h"

#include "common/log.h"
#include "common/mem.h"
#include "vessel/broker/deaths.h"
#include "vessel/broker/dispatch/dispatch.h"
#include "vessel/broker/gate/client.h"
#include "vessel/broker/intents/fetch_keys.h"
#include "vessel/gate/worker.h"
#include "vessel/options.h"

#include <assert.h>
#include <stdlib.h>

int egress_workers_fork(struct vessel *v, const struct options *opt,
			const struct confine_probe *probe, struct err *err)
{
	struct egress_portal hosts[EGRESS_HOSTS_MAX]; /* for the fork only */
	struct egress_config cfg = {
		.secrets_dir = opt->secrets,
		.unrooted = opt->starter.unrooted,
		.api_socket = opt->api_socket,
		.authorities = v->conf.broker.egress.authorities,
		.gate = gate_worker_main,
		.probe = probe,
		.probe_worker = opt->probe_worker,
	};

	if (gate_rules_check(err) < 0)
		return -1;
	v->portals = xcalloc(EGRESS_PORTALS_MAX, sizeof(*v->portals));
	cfg.n_portals = fetch_keys_portals(&v->conf.broker, v->portals);
	cfg.portals = v->portals;
	cfg.n_hosts = fetch_keys_hosts(&v->conf.broker, hosts);
	cfg.hosts = hosts;
	return egress_fork(&cfg, &v->egress, err);
}

static void on_redacted(const char *portal, bool in_header, unsigned count, void *arg)
{
	struct vessel *v = arg;
	char n[16];

	v->metrics.credentials_redacted += count;
	if (v->dispatch)
		dispatch_redacted(v->dispatch, portal, in_header, count);
	(void)snprintf(n, sizeof(n), "%u", count);
	log_kv(LOG_WARN_, "a reply held the key that it was asked with; it was taken out",
	       "of", portal, "where", in_header ? "header" : "body", "count", n, NULL);
}

static void on_worker(const char *name, bool up, const struct err *why, void *arg)
{
	struct vessel *v = arg;

	if (!up)
		v->metrics.egress_worker_ends++;
	log_kv(up ? LOG_INFO_ : LOG_WARN_,
	       up ? "an egress worker is up" : "an egress worker is away", "worker", name,
	       "why", why ? why->msg : "", NULL);
}

/* Nothing can leave any more and no new workers can come: whoever supervises the vessel
 * starts it anew. */
static void on_lost(const struct err *why, void *arg)
{
	struct vessel *v = arg;

	log_err(LOG_ERROR_, "stopping", why);
	loop_stop(v->loop, err_exit_code(why));
}

_Static_assert(GATE_LANES_MAX_ == EGRESS_GATES, "a worker for each lane");

static void on_gate(unsigned which, int fd, struct reading *note, void *arg)
{
	struct vessel *v = arg;

	gate_client_attach(v->gate, (enum gate_lanes)which, fd, note);
}

void egress_workers_died(const char *name, const struct reading_note *note, void *arg)
{
	struct vessel *v = arg;

	if (v->deaths)
		deaths_found(v->deaths, name, note);
}

int egress_workers_attach(struct vessel *v, struct err *err)
{
	const struct egress_events events = {
		.on_redacted = on_redacted,
		.on_worker = on_worker,
		.on_gate = on_gate,
		.on_died = egress_workers_died,
		.on_lost = on_lost,
		.arg = v,
	};

	return egress_attach(v->egress, v->loop, &events, err);
}

void egress_workers_free(struct vessel *v)
{
	egress_free(v->egress);
	v->egress = NULL;
	free(v->portals);
	v->portals = NULL;
}
