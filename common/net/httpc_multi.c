/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See httpc_multi.h.
 */
#include "common/net/httpc_multi.h"

#include "common/mem.h"

#include <assert.h>
#include <stdlib.h>

struct httpc_multi {
	struct loop *loop;
	httpc_multi_turn_fn *turn;
	void *turn_arg;
	CURLM *curl;
	struct loop_timer *timer; /* curl's own deadline */
	struct loop_timer *look;  /* for finished transfers, in the next turn */
};

struct sock {
	struct httpc_multi *m;
	struct loop_io *io;
	CURL *easy;
};

static void kick(struct httpc_multi *m, curl_socket_t s, int mask)
{
	int running;

	(void)curl_multi_socket_action(m->curl, s, mask, &running);
	httpc_multi_look(m);
}

static void on_io(int fd, unsigned what, void *arg)
{
	/* a copy: it may be gone afterwards */
	struct sock s = *(struct sock *)arg;

	if (s.m->turn)
		s.m->turn(s.easy, true, s.m->turn_arg);
	kick(s.m, fd,
	     ((what & LOOP_READ) ? CURL_CSELECT_IN : 0) |
		     ((what & LOOP_WRITE) ? CURL_CSELECT_OUT : 0));
	if (s.m->turn)
		s.m->turn(s.easy, false, s.m->turn_arg);
}

static void on_timer(void *arg)
{
	kick(arg, CURL_SOCKET_TIMEOUT, 0);
}

static int wants_socket(CURL *easy, curl_socket_t s, int what, void *arg, void *sock_ptr)
{
	struct httpc_multi *m = arg;
	struct sock *k = sock_ptr;
	unsigned mask = ((what & CURL_POLL_IN) ? LOOP_READ : 0) |
			((what & CURL_POLL_OUT) ? LOOP_WRITE : 0);

	if (what == CURL_POLL_REMOVE) {
		if (k)
			loop_io_free(k->io);
		free(k);
		(void)curl_multi_assign(m->curl, s, NULL);
		return 0;
	}
	if (k) {
		loop_io_set(k->io, mask);
	} else {
		k = xnew(struct sock);
		k->m = m;
		k->io = loop_io_new(m->loop, s, mask, on_io, k);
		(void)curl_multi_assign(m->curl, s, k);
	}
	k->easy = easy;
	return 0;
}

static int wants_timer(CURLM *curl UNUSED, long ms, void *arg)
{
	struct httpc_multi *m = arg;

	if (ms < 0)
		loop_timer_disarm(m->timer);
	else
		loop_timer_arm(m->timer, (usec_t)ms * USEC_PER_MSEC);
	return 0;
}

#define SET(m, opt, value)                                                               \
	(curl_multi_setopt((m)->curl, CURLMOPT_##opt, value) == CURLM_OK)

int httpc_multi_new(struct loop *l, unsigned connections_max, httpc_multi_look_fn *look,
		    void *arg, struct httpc_multi **ret, struct err *err)
{
	struct httpc_multi *m = xnew(struct httpc_multi);

	m->loop = l;
	m->turn_arg = arg;
	m->curl = curl_multi_init();
	assert(m->curl);
	m->timer = loop_timer_new(l, on_timer, m);
	m->look = loop_timer_new(l, look, arg);
	if (!SET(m, SOCKETFUNCTION, wants_socket) || !SET(m, SOCKETDATA, m) ||
	    !SET(m, TIMERFUNCTION, wants_timer) || !SET(m, TIMERDATA, m) ||
	    !SET(m, PIPELINING, CURLPIPE_NOTHING) ||
	    !SET(m, MAX_TOTAL_CONNECTIONS, (long)connections_max)) {
		httpc_multi_free(m);
		return err_set(err, ERR_INTERNAL, "curl refuses an option");
	}
	*ret = m;
	return 0;
}

void httpc_multi_free(struct httpc_multi *m)
{
	if (!m)
		return;
	(void)curl_multi_cleanup(m->curl);
	loop_timer_free(m->timer);
	loop_timer_free(m->look);
	free(m);
}

void httpc_multi_on_turn(struct httpc_multi *m, httpc_multi_turn_fn *turn)
{
	m->turn = turn;
}

int httpc_multi_add(struct httpc_multi *m, CURL *easy)
{
	return curl_multi_add_handle(m->curl, easy) == CURLM_OK ? 0 : -1;
}

void httpc_multi_remove(struct httpc_multi *m, CURL *easy)
{
	(void)curl_multi_remove_handle(m->curl, easy);
}

bool httpc_multi_next(struct httpc_multi *m, CURL **ret_easy, CURLcode *ret_code)
{
	CURLMsg *msg;
	int left;

	while ((msg = curl_multi_info_read(m->curl, &left))) {
		if (msg->msg != CURLMSG_DONE)
			continue;
		*ret_easy = msg->easy_handle;
		*ret_code = msg->data.result;
		return true;
	}
	return false;
}

void httpc_multi_look(struct httpc_multi *m)
{
	loop_timer_arm(m->look, 0);
}
