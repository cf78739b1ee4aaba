/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See hello.h.
 */
#include "tomb/queue/hello.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/net/httpc.h"

#include <stdlib.h>

#define TIMEOUT_USEC (10 * USEC_PER_SEC)
#define AGAIN_MIN_USEC (50 * USEC_PER_MSEC)
#define AGAIN_MAX_USEC (2 * USEC_PER_SEC)
#define REPLY_MAX_BYTES 4096
#define REPLY_DEPTH 4

struct hello {
	struct hello_config cfg;
	struct httpc *http;
	struct loop_timer *timer;
	usec_t pause;
	bool known, told_away, over;
};

int hello_parse(const void *body, size_t len, unsigned ours, struct err *err)
{
	static const char *const keys[] = {"protocol", "release"};
	cleanup_json struct json *j = NULL;
	const char *release = NULL;
	uint64_t theirs = 0;

	/* What a later version may add is not ours to judge before the number is. */
	if (json_parse(body, len, REPLY_DEPTH, &j, err) < 0 ||
	    json_get_u64(j, "protocol", true, 0, UINT32_MAX, &theirs, err) < 0 ||
	    json_get_str(j, "release", true, 64, &release, err) < 0)
		return err_wrap(err, "hello: the vessel's answer");
	if (theirs != ours)
		return err_set_id(
			err, ERRID_RUN_VERSION,
			"the vessel (release %.32s) speaks version %u, this tomb "
			"(release " LYCH_VERSION ") version %u: upgrade the %s",
			release, (unsigned)theirs, ours,
			theirs < ours ? "vessel" : "tomb");
	if (json_check_keys(j, keys, ARRAY_SIZE(keys), err) < 0)
		return err_wrap(err, "hello: the vessel's answer");
	return 0;
}

/* Is it a word about us, that asking again will not change? */
static bool is_final(const struct err *err)
{
	return err->id == ERRID_RUN_VERSION || err->id == ERRID_RUN_TOMB ||
	       err->id == ERRID_HTTP_PEER;
}

static int judge(const struct hello *h, const struct httpc_reply *r, struct err *err)
{
	if (r->status == 0) {
		*err = *r->err;
		return -1;
	}
	if (r->status == 404)
		return err_set_id(err, ERRID_RUN_VERSION,
				  "the vessel does not know 'hello', which came with "
				  "version 1 as release " LYCH_VERSION
				  " speaks it: upgrade the vessel");
	if (r->status != 200)
		return vessel_reply_err(r->status, r->body, r->body_len, "hello", err);
	return hello_parse(r->body, r->body_len, h->cfg.peer->protocol, err);
}

static void on_reply(const struct httpc_reply *r, void *arg)
{
	struct hello *h = arg;
	struct err err = ERR_INIT;

	if (judge(h, r, &err) == 0) {
		h->pause = AGAIN_MIN_USEC;
		loop_timer_arm(h->timer, HELLO_USEC);
		if (!h->known) {
			h->known = true;
			h->cfg.on_known(h->cfg.arg);
		}
		return;
	}
	if (is_final(&err)) {
		h->over = true;
		h->cfg.on_refused(&err, h->cfg.arg);
		return;
	}
	loop_timer_arm(h->timer, h->pause);
	h->pause *= 2;
	if (h->pause > AGAIN_MAX_USEC)
		h->pause = AGAIN_MAX_USEC;
	if (!h->known && !h->told_away) {
		h->told_away = true;
		h->cfg.on_away(&err, h->cfg.arg);
	}
}

static void ask(void *arg)
{
	struct hello *h = arg;
	cleanup_buf struct buf body = {.max = REPLY_MAX_BYTES};
	struct vessel_headers headers;
	struct httpc_request rq = {.method = HTTP_M_POST,
				   .target = "/work/v1/hello",
				   .headers = headers.line,
				   .timeout_usec = TIMEOUT_USEC,
				   .reply_max_bytes = REPLY_MAX_BYTES};
	struct err err = ERR_INIT;
	struct jsonw w;

	if (h->over)
		return;
	jsonw_init(&w, &body);
	jsonw_obj(&w);
	jsonw_kstr(&w, "door", queue_door_name(h->cfg.door));
	jsonw_kstr(&w, "release", LYCH_VERSION);
	jsonw_kstr(&w, "boot", h->cfg.boot.s);
	jsonw_ku64(&w, "slots", h->cfg.slots);
	jsonw_obj_end(&w);
	rq.body = body.data;
	rq.body_len = body.len;
	vessel_headers(&headers, h->cfg.peer, NULL);
	if (httpc_send(h->http, &rq, on_reply, h, NULL, &err) < 0)
		loop_timer_arm(h->timer, h->pause);
}

int hello_new(struct loop *l, const struct hello_config *cfg, struct hello **ret,
	      struct err *err)
{
	struct hello *h = xnew(struct hello);

	h->cfg = *cfg;
	h->pause = AGAIN_MIN_USEC;
	h->timer = loop_timer_new(l, ask, h);
	if (httpc_new(l, cfg->peer->socket_path, 1, &h->http, err) < 0) {
		hello_free(h);
		return -1;
	}
	loop_timer_arm(h->timer, 0);
	*ret = h;
	return 0;
}

void hello_free(struct hello *h)
{
	if (!h)
		return;
	if (h->http)
		httpc_free(h->http);
	loop_timer_free(h->timer);
	free(h);
}
