/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * A curl multi handle on the loop: its descriptors, its timer, its finished transfers.
 * curl forbids calls into the multi handle from within its callbacks, so who waits for
 * transfers is called from the loop, outside of curl, and may add, remove and free what it
 * likes. curl_global_init() is the caller's.
 */
#ifndef LYCH_COMMON_NET_HTTPC_MULTI_H
#define LYCH_COMMON_NET_HTTPC_MULTI_H

#include "common/attr.h"
#include "common/err.h"
#include "common/net/loop.h"
#include <curl/curl.h>
#include <stdbool.h>

struct httpc_multi;

/* Transfers may be over: httpc_multi_next() until it says no. */
typedef void httpc_multi_look_fn(void *arg);

/* Around each turn in which curl acts upon what came for a transfer, or upon room for it:
 * begins, and then not. easy: to be compared, not to be used; it may be gone in the second. */
typedef void httpc_multi_turn_fn(CURL *easy, bool begins, void *arg);

/* connections_max: at once, the rest waits; 0: any number. */
MUST_CHECK int httpc_multi_new(struct loop *l, unsigned connections_max,
			       httpc_multi_look_fn *look, void *arg,
			       struct httpc_multi **ret, struct err *err);
/* Where each transfer has connections of its own. The arg of look is turn's too. */
void httpc_multi_on_turn(struct httpc_multi *m, httpc_multi_turn_fn *turn);
/* Transfers must have been removed. From within look only when that returns at once and
 * asks for nothing more. NULL is fine. */
void httpc_multi_free(struct httpc_multi *m);
MUST_CHECK int httpc_multi_add(struct httpc_multi *m, CURL *easy);
/* Before the easy handle is cleaned up; httpc_multi_next() does not name it any more. */
void httpc_multi_remove(struct httpc_multi *m, CURL *easy);
/* A transfer that is over; it is still to be removed. False: there is no other. */
bool httpc_multi_next(struct httpc_multi *m, CURL **ret_easy, CURLcode *ret_code);
/* Calls look in the next turn: after curl_easy_pause(), which may have ended a transfer. */
void httpc_multi_look(struct httpc_multi *m);

#endif
