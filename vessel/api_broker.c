/* SPDX-License-Identifier: Apache-2.0 */
/* The broker's routes of the work socket: the dispatcher does everything. */
#include "vessel/api.h"
#include "vessel/auth.h"
#include "vessel/dispatch.h"

static bool has_query(struct httpd_req *req)
{
	struct err err = ERR_INIT;

	if (api_no_query(req, &err) == 0)
		return false;
	httpd_reply_err(req, &err);
	return true;
}

void work_ask(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;

	if (!has_query(req))
		dispatch_ask(v->dispatch, req, &auth_principal(req)->lease);
}

void work_fetch(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;

	if (!has_query(req))
		dispatch_fetch(v->dispatch, req, &auth_principal(req)->lease);
}

void work_package(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;

	if (!has_query(req))
		dispatch_package(v->dispatch, req, &auth_principal(req)->lease);
}

void work_models(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;

	dispatch_models(v->dispatch, req, &auth_principal(req)->lease);
}
