/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb, the vessel and the egress worker.
 * Git's smart HTTP: which of its requests is it? Those four, and nothing else of a server.
 */
#ifndef LYCH_COMMON_PROTO_GIT_HTTP_H
#define LYCH_COMMON_PROTO_GIT_HTTP_H

#include <stdbool.h>

enum git_request {
	GIT_NONE,
	GIT_REFS,      /* GET REPOSITORY/info/refs?service=git-upload-pack */
	GIT_FETCH,     /* POST REPOSITORY/git-upload-pack */
	GIT_PUSH_REFS, /* GET REPOSITORY/info/refs?service=git-receive-pack */
	GIT_PUSH,      /* POST REPOSITORY/git-receive-pack */
	GIT_REQUEST_MAX_
};

/* path: as it is sent, without the query; query: behind the '?', NULL: none. */
enum git_request git_request_of(const char *method, const char *path, const char *query);
/* Is it one of a push? */
static inline bool git_request_pushes(enum git_request r)
{
	return r == GIT_PUSH_REFS || r == GIT_PUSH;
}
/* The types of the body that goes out (NULL: none does), and of the one that comes back. */
const char *git_request_type(enum git_request r);
const char *git_reply_type(enum git_request r);
/* Is it the latter of any of them? */
bool git_is_reply_type(const char *type);

#endif
