/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb, the vessel and the egress worker.
 * See git_http.h.
 */
#include "common/proto/git_http.h"

#include "common/attr.h"
#include "common/str.h"

#include <stddef.h>

/* A row each, in the order of enum git_request. */
static const struct {
	const char *method, *path, *query, *out, *back;
} requests[GIT_REQUEST_MAX_] = {
	[GIT_REFS] = {"GET", "/info/refs", "service=git-upload-pack", NULL,
		      "application/x-git-upload-pack-advertisement"},
	[GIT_FETCH] = {"POST", "/git-upload-pack", NULL,
		       "application/x-git-upload-pack-request",
		       "application/x-git-upload-pack-result"},
	[GIT_PUSH_REFS] = {"GET", "/info/refs", "service=git-receive-pack", NULL,
			   "application/x-git-receive-pack-advertisement"},
	[GIT_PUSH] = {"POST", "/git-receive-pack", NULL,
		      "application/x-git-receive-pack-request",
		      "application/x-git-receive-pack-result"},
};

enum git_request git_request_of(const char *method, const char *path, const char *query)
{
	for (unsigned i = GIT_NONE + 1; i < GIT_REQUEST_MAX_; i++)
		if (str_eq(method, requests[i].method) &&
		    str_ends(path, requests[i].path) && str_eq(query, requests[i].query))
			return (enum git_request)i;
	return GIT_NONE;
}

const char *git_request_type(enum git_request r)
{
	return requests[r].out;
}

const char *git_reply_type(enum git_request r)
{
	return requests[r].back;
}

bool git_is_reply_type(const char *type)
{
	for (unsigned i = GIT_NONE + 1; i < GIT_REQUEST_MAX_; i++)
		if (str_eq(type, requests[i].back))
			return true;
	return false;
}
