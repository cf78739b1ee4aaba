/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See sockets.h.
 */
#include "vessel/sockets.h"

#include "common/fs.h"
#include "common/log.h"
#include "common/net/httpd.h"
#include "common/str.h"
#include "common/text/sse_caps.h"
#include "vessel/api/auth.h"
#include "vessel/api/routes.h"
#include "vessel/api/vessel.h"
#include "vessel/broker/dispatch/dispatch.h"

#define API_CONNECTIONS 256
/* Of one tomb: what its jobs ask comes beside its own calls. */
#define TOMB_CONNECTIONS (128 + BROKER_INFLIGHT_ALL)
/* So that one of them leaves room. */
#define WORK_CONNECTIONS (2 * TOMB_CONNECTIONS)
/* Of one tomb at once: half of what an egress worker takes, and some claims' worth. */
#define TOMB_BODIES_MAX_BYTES ((size_t)64 << 20)
#define TOMB_ANSWERS_MAX_BYTES ((size_t)64 << 20)
#define IDLE_USEC (60 * USEC_PER_SEC)
#define WATCH_USEC (250 * USEC_PER_MSEC)

static int listen_api(struct sockets *s, struct err *err)
{
	const struct httpd_config cfg = {
		.socket_path = s->api,
		.socket_mode = 0600,
		.routes = routes_api,
		.n_routes = routes_api_n,
		.auth = auth_api,
		.arg = s->v,
		.max_connections = API_CONNECTIONS,
		.idle_usec = IDLE_USEC,
		.stream_backlog_max_bytes = SSE_BACKLOG_MAX_BYTES,
	};

	return httpd_new(s->v->loop, &cfg, &s->v->api, err);
}

static int listen_work(struct sockets *s, struct err *err)
{
	const struct httpd_config cfg = {
		.socket_path = s->work,
		.socket_mode = 0600,
		.routes = routes_work,
		.n_routes = routes_work_n,
		.auth = auth_work,
		.arg = s->v,
		.max_connections = WORK_CONNECTIONS,
		.idle_usec = IDLE_USEC,
		.stream_backlog_max_bytes = DISPATCH_BACKLOG_MAX_BYTES,
		.share_connections = TOMB_CONNECTIONS,
		.share_bodies_max_bytes = TOMB_BODIES_MAX_BYTES,
		.share_answers_max_bytes = TOMB_ANSWERS_MAX_BYTES,
	};

	return httpd_new(s->v->loop, &cfg, &s->v->work, err);
}

/* A tomb may remove files where its own socket lies, and ours. */
static void renew(struct httpd *h, const char *path, bool *failed)
{
	struct err err = ERR_INIT;
	int r = httpd_renew(h, &err);

	if (r < 0 && !*failed)
		log_err(LOG_ERROR_, "a socket is gone and cannot be made anew", &err);
	if (r > 0)
		log_kv(LOG_ERROR_, "security: a socket was removed; it is made anew",
		       "socket", path, NULL);
	*failed = r < 0;
}

static void on_timer(void *arg)
{
	struct sockets *s = arg;

	renew(s->v->api, s->api, &s->api_failed);
	renew(s->v->work, s->work, &s->work_failed);
	loop_timer_arm(s->timer, WATCH_USEC);
}

int sockets_open(struct sockets *s, struct vessel *v, const char *api_dir,
		 const char *work_dir, struct err *err)
{
	s->v = v;
	s->timer = loop_timer_new(v->loop, on_timer, s);
	if (str_fmt(s->api, sizeof(s->api), "%s/vessel.sock", api_dir) < 0 ||
	    str_fmt(s->work, sizeof(s->work), "%s/vessel.sock", work_dir) < 0)
		return err_set_id(err, ERRID_START_SOCKET, "a socket's path is too long");
	if (fs_mkdir_all(api_dir, 0700, err) < 0 || fs_mkdir_all(work_dir, 0700, err) < 0)
		return -1;
	return listen_api(s, err) < 0 ? -1 : listen_work(s, err);
}

void sockets_watch(struct sockets *s)
{
	loop_timer_arm(s->timer, WATCH_USEC);
}

void sockets_close(struct sockets *s)
{
	loop_timer_free(s->timer);
	if (!s->v)
		return;
	httpd_free(s->v->api);
	httpd_free(s->v->work);
}
