/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The key of a host in the real worker that alone holds it, beside a server that notes what it was
 * sent: what is refused first.
 */
#include "tests/integration/broker/egress_bench.h"
#include "vessel/egress/egress.h"

/* base64 of "git:" KEY */
#define BASIC "Z2l0OnNrLXRlc3QtWnE3L1IreFYybTlMYlQwY0hzNTE="

Test(egress, a_missing_key_of_a_host_is_named_and_nothing_starts)
{
	struct world w;
	struct err err = ERR_INIT;

	host_secret = "host_absent";
	cr_assert(begin(&w, "portal_test", &err) < 0);
	cr_expect_eq(err.id, ERRID_EGRESS_SECRET, "%s", err.msg);
	cr_expect(strstr(err.msg, "credential forge") &&
			  strstr(err.msg, "lych secret set host_absent"),
		  "%s", err.msg);
	down(&w);
}

/* The vessel has judged it; the process that holds the key judges its place again. */
Test(egress, the_key_of_a_host_goes_to_its_place_and_nowhere_else)
{
	static const char *const beside[] = {"/",
					     "/team",
					     "/team/repository",
					     "/team/repo2/x",
					     "/x/team/repo",
					     "/team/rep",
					     "/team/repo/../other",
					     "/team/repo%2f"};
	static const char *const there[] = {"/team/repo", "/team/repo?x=1",
					    "/team/repo/raw"};
	struct world w;
	struct answer a = {0};
	struct egress_request rq = {.portal = "forge", .method = "PUT"};

	up(&w);
	for (size_t i = 0; i < ARRAY_SIZE(beside); i++) {
		rq.target = beside[i];
		ask_with(&w, &a, &rq);
		cr_expect(err_is_set(&a.err) && a.status == 0, "%s", beside[i]);
		answer_done(&a);
	}
	cr_expect_null(strstr(server_saw(), "uthorization"));
	for (size_t i = 0; i < ARRAY_SIZE(there); i++) {
		rq.target = there[i];
		ask_with(&w, &a, &rq);
		cr_expect_neq(a.status, 0u, "%s: %s", there[i], a.err.msg);
		answer_done(&a);
	}
	cr_expect(strstr(server_saw(), "\"authorization\": \"Basic " BASIC "\""));
	cr_expect_null(strstr(server_saw(), "Bearer"));
	rq = (struct egress_request){
		.portal = "field", .method = "DELETE", .target = "/hello"};
	ask_with(&w, &a, &rq);
	answer_done(&a);
	cr_expect(strstr(server_saw(), "\"x-api-key\": \"" KEY "\""));
	down(&w);
}
