/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Who holds how much of a server that many clients share. A connection is a stranger's
 * until a request on it has shown whose it is; from then on what it holds counts against
 * that client's share. So one client can neither take every place nor all memory: of
 * strangers, which cost it nothing to make, the oldest makes place, and what it
 * holds under its name has a limit.
 */
#include "common/net/httpd_priv.h"

#include <assert.h>

static void unlink_stranger(struct conn *c)
{
	struct strangers *s = &c->httpd->strangers;

	if (c->older)
		c->older->newer = c->newer;
	else
		s->oldest = c->newer;
	if (c->newer)
		c->newer->older = c->older;
	else
		s->newest = c->older;
	c->older = c->newer = NULL;
}

void share_join(struct conn *c)
{
	struct strangers *s = &c->httpd->strangers;

	c->older = s->newest;
	if (c->older)
		c->older->newer = c;
	else
		s->oldest = c;
	s->newest = c;
}

void share_answer_is_out(struct conn *c)
{
	if (!c->share)
		return;
	c->share->answers -= c->answer_bytes;
	c->answer_bytes = 0;
}

void share_leave(struct conn *c)
{
	if (!c->share) {
		unlink_stranger(c);
		return;
	}
	share_answer_is_out(c);
	c->share->connections--;
	c->share = NULL;
}

bool share_evict_stranger(struct httpd *h)
{
	struct conn *c = h->strangers.oldest;

	/* a handler's request is not cut under it; without shares all are strangers */
	if (!h->cfg.share_connections || !c || c->state == CONN_BUSY ||
	    c->state == CONN_STREAM)
		return false;
	conn_free(c);
	return true;
}

int httpd_req_charge(struct httpd_req *req, struct httpd_share *share, struct err *err)
{
	struct conn *c = req->conn;

	assert(c && !req->share);
	if (httpd_config_of(c)->share_connections > 0 && c->share != share) {
		if (share->connections >= httpd_config_of(c)->share_connections)
			return err_set_id(err, ERRID_HTTP_BUSY, "%u connections",
					  share->connections);
		share_leave(c);
		c->share = share;
		share->connections++;
	}
	return 0;
}

int share_admit_body(struct httpd_req *req, struct err *err)
{
	struct httpd_share *share = req->conn->share;
	size_t max = httpd_config_of(req->conn)->share_bodies_max_bytes;

	if (!share)
		return 0;
	if (max > 0 &&
	    (share->bodies > max || req->g.content_length > max - share->bodies))
		return err_set_id(err, ERRID_HTTP_BUSY, "too many bodies at once");
	req->share = share;
	share->bodies += (size_t)req->g.content_length;
	return 0;
}

bool share_take_answer(struct conn *c, size_t len)
{
	size_t max = httpd_config_of(c)->share_answers_max_bytes;

	if (!c->share)
		return true;
	if (max > 0 && (c->share->answers > max || len > max - c->share->answers))
		return false;
	c->share->answers += len;
	c->answer_bytes += len;
	return true;
}
