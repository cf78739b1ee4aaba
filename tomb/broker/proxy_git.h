/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * A refusal in the form in which git shows it to a person: what it does with a status of HTTP alone is
 * a number without a reason. Pure.
 */
#ifndef LYCH_TOMB_BROKER_PROXY_GIT_H
#define LYCH_TOMB_BROKER_PROXY_GIT_H

#include "common/buf.h"
#include "common/proto/git_http.h"
#include "tomb/broker/proxy_intent.h"

/* Which of git's requests is a target ("/path?query")? */
enum git_request proxy_git_request(const char *method, const char *target);

/* Of r, not GIT_NONE: the body, and with it the status and the type (static). asked: the body of the
 * request, which of a push says what the client waits for; may be NULL. */
void proxy_git_refusal(enum git_request r, const struct proxy_refusal *refusal,
		       const void *asked, size_t asked_len, struct buf *out,
		       int *ret_status, const char **ret_type);

#endif
