/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The broker's routes of the work socket: once the lease is the tomb's own, the dispatcher
 * does everything.
 */
#include "vessel/api/api.h"
#include "vessel/api/auth.h"
#include "vessel/api/lease_owner.h"
#include "vessel/api/vessel.h"
#include "vessel/broker/dispatch/dispatch.h"

static bool has_query(struct httpd_req *req)
{
	struct err err = ERR_INIT;

	if (api_no_query(req, &err) == 0)
		return false;
	httpd_reply_err(req, &err);
	return true;
}

static void ask(struct vessel *v, struct httpd_req *req, const struct queue_lease *l)
{
	dispatch_ask(v->dispatch, req, l);
}

void work_ask(struct httpd_req *req, void *arg)
{
	if (!has_query(req))
		lease_owned(arg, req, ask);
}

static void fetch(struct vessel *v, struct httpd_req *req, const struct queue_lease *l)
{
	dispatch_fetch(v->dispatch, req, l);
}

void work_fetch(struct httpd_req *req, void *arg)
{
	if (!has_query(req))
		lease_owned(arg, req, fetch);
}

static void package(struct vessel *v, struct httpd_req *req, const struct queue_lease *l)
{
	dispatch_package(v->dispatch, req, l);
}

void work_package(struct httpd_req *req, void *arg)
{
	if (!has_query(req))
		lease_owned(arg, req, package);
}

static void models(struct vessel *v, struct httpd_req *req, const struct queue_lease *l)
{
	dispatch_models(v->dispatch, req, l);
}

void work_models(struct httpd_req *req, void *arg)
{
	lease_owned(arg, req, models);
}
