/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the TLS process.
 * The TLS of one job (tomb/tls/tls.h): makes the job's authority, then serves tunnels until the
 * tomb's end of its socket closes. What it parses comes from that job; what it holds is good for
 * that job alone.
 */
#include "tomb/tls/tls.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fdpass.h"
#include "common/log.h"
#include "common/mem.h"
#include "tomb/tls/tls_conn.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

struct process {
	struct tls_ca *ca;
	struct tls_conn *conn[TLS_TUNNELS_MAX];
	unsigned n;
	struct pollfd fds[1 + 2 * TLS_TUNNELS_MAX]; /* the tomb's, then two a tunnel */
};

/* -1: the tomb is gone, or broke its word. */
static int take(struct process *p, int from)
{
	int fds[FDPASS_MAX] = FDPASS_NONE;
	struct tls_open o;
	unsigned n_fds = 0;
	ssize_t n = fdpass_recv(from, &o, sizeof(o), fds, &n_fds, MSG_DONTWAIT);
	int r = -1;

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		r = 0;
	} else if (n > 0 && tls_open_is_sound(&o, (size_t)n, n_fds)) {
		r = 0;
		/* One too many is closed, and its client sees that. */
		if (p->n < TLS_TUNNELS_MAX) {
			struct tls_conn *c =
				tls_conn_new(p->ca, TAKE_FD(fds[0]), TAKE_FD(fds[1]),
					     o.host, clock_boot_usec());

			if (c)
				p->conn[p->n++] = c;
		}
	}
	for (unsigned i = 0; i < FDPASS_MAX; i++)
		fd_close(&fds[i]);
	return r;
}

/* Of poll(), in milliseconds: until the first deadline; -1: there is none. */
static int patience(const struct process *p, usec_t now)
{
	usec_t first = USEC_INFINITY;

	for (unsigned i = 0; i < p->n; i++)
		if (tls_conn_deadline(p->conn[i]) < first)
			first = tls_conn_deadline(p->conn[i]);
	if (first == USEC_INFINITY)
		return -1;
	return first <= now ? 0 : (int)((first - now) / USEC_PER_MSEC) + 1;
}

/* true: one of them could go on at once. */
static bool give_turns(struct process *p, usec_t now)
{
	unsigned kept = 0;
	bool again = false;

	for (unsigned i = 0; i < p->n; i++) {
		enum tls_turn t = tls_conn_turn(p->conn[i], now);

		if (t == TLS_OVER) {
			tls_conn_free(p->conn[i]);
			continue;
		}
		again |= t == TLS_AGAIN;
		p->conn[kept++] = p->conn[i];
	}
	p->n = kept;
	return again;
}

static int serve(struct process *p, int fd)
{
	bool again = false;

	for (;;) {
		usec_t now = clock_boot_usec();

		p->fds[0] = (struct pollfd){.fd = fd, .events = POLLIN};
		for (unsigned i = 0; i < p->n; i++)
			tls_conn_wants(p->conn[i], &p->fds[1 + 2 * i],
				       &p->fds[2 + 2 * i]);
		if (poll(p->fds, 1 + 2 * p->n, again ? 0 : patience(p, now)) < 0 &&
		    errno != EINTR)
			return EXIT_FAILURE;
		if (p->fds[0].revents && take(p, fd) < 0)
			return EXIT_SUCCESS;
		again = give_turns(p, clock_boot_usec());
	}
}

static int begin(const struct tls_place *place, struct process *p, struct tls_hello *h,
		 struct err *err)
{
	if (tls_confine(false, err) < 0)
		return -1;
	tls_probe(place, "tls-process");
	return tls_ca_new(&p->ca, err) < 0
		       ? -1
		       : tls_ca_pem(p->ca, h->pem, sizeof(h->pem), err);
}

int tls_process_run(const struct tls_place *place, int fd)
{
	struct process *p = xnew(struct process);
	struct tls_hello h = {.is = {.word = TLS_READY}};
	struct err err = ERR_INIT;
	int code;

	if (begin(place, p, &h, &err) < 0) {
		log_err(LOG_ERROR_, "cannot start", &err);
		h = (struct tls_hello){.is = {.word = TLS_FAILED, .err = err}};
	}
	if (fdpass_send(fd, &h, sizeof(h), NULL, 0, 0) < 0)
		code = EXIT_FAILURE;
	else
		code = h.is.word == TLS_READY ? serve(p, fd) : err_exit_code(&err);
	while (p->n > 0)
		tls_conn_free(p->conn[--p->n]);
	tls_ca_free(p->ca);
	free(p);
	return code;
}
