/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See watchdog.h.
 */
#include "vessel/watchdog.h"
#include "common/mem.h"
#include "common/pg/pgconn.h"

#define BEAT_USEC (250 * USEC_PER_MSEC)
#define SWEEP_TIMEOUT_USEC (5 * USEC_PER_SEC)

static const struct pg_stmt stmt_sweep = {"sweep",
					  "SELECT role, why FROM watch_api.sweep()", 0};

struct watchdog {
	struct pg *pg;
	struct loop_timer *timer;
	struct watchdog_config cfg;
};

static void swept(const struct pg_result *res, const struct err *err, void *arg)
{
	struct watchdog *w = arg;

	/* first, so that a callback may free the watchdog */
	loop_timer_arm(w->timer, BEAT_USEC);
	if (err) {
		if (w->cfg.on_error)
			w->cfg.on_error(err, w->cfg.arg);
		return;
	}
	/* on_kill only tells: it must not free */
	for (size_t i = 0; w->cfg.on_kill && i < pg_rows(res); i++)
		w->cfg.on_kill(pg_text(res, i, 0), pg_text(res, i, 1), w->cfg.arg);
}

static void beat(void *arg)
{
	struct watchdog *w = arg;

	pg_call(w->pg, &stmt_sweep, NULL, SWEEP_TIMEOUT_USEC, 0, swept, w);
}

int watchdog_new(struct loop *l, const struct watchdog_config *cfg, struct watchdog **ret,
		 struct err *err)
{
	struct watchdog *w = xnew(struct watchdog);
	const struct pg_config pg = {
		.socket_dir = cfg->socket_dir,
		.dbname = "lychgate",
		.user = "lych_watchdog",
		.password = cfg->password,
		.application_name = "lych-watchdog",
		.connections = 1,
	};

	if (pg_new(l, &pg, &w->pg, err) < 0) {
		free(w);
		return -1;
	}
	w->cfg = *cfg;
	w->cfg.socket_dir = w->cfg.password = NULL;
	w->timer = loop_timer_new(l, beat, w);
	loop_timer_arm(w->timer, 0);
	*ret = w;
	return 0;
}

void watchdog_free(struct watchdog *w)
{
	if (!w)
		return;
	loop_timer_free(w->timer);
	pg_free(w->pg);
	free(w);
}
