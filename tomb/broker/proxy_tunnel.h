/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The tunnels of one job's broker: CONNECT to a host by its name is answered by the job's TLS
 * process (tomb/tls/tls.h), and what is said inside comes back as requests to a server of its own
 * for this job, each of which is a fetch of https://HOST. Nothing is allowed here: the vessel judges
 * each of these requests as it judges one of /fetch.
 */
#ifndef LYCH_TOMB_BROKER_PROXY_TUNNEL_H
#define LYCH_TOMB_BROKER_PROXY_TUNNEL_H

#include "common/net/httpd.h"
#include "tomb/broker/proxy_priv.h"

struct proxy_tunnels;
struct proxy_tunnels *proxy_tunnels_new(struct proxy *p);
void proxy_tunnels_free(struct proxy_tunnels *t); /* NULL is fine */
/* CONNECT authority: the request is answered, or its connection leaves. */
void proxy_tunnels_connect(struct proxy_tunnels *t, struct httpd_req *req,
			   const char *authority);

#endif
