/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * Theory of operation. A job may name its broker as its HTTPS proxy. Then the broker has to end the
 * TLS of whatever host the job asks for, with a certificate that the job believes: an authority
 * made for it alone. The tomb neither holds such a key nor parses TLS. A process of its own does
 * that for each job that may ask: it makes the keys, gives the authority's certificate to the
 * tomb, and ends with the job, and the keys with it.
 *
 *	job ── CONNECT ──> tomb            (it judges the name, and lets go of the connection)
 *	job ── TLS ──> TLS process ── plain HTTP ──> tomb   (what it parses as any request)
 *
 * The tomb may fork nothing once it has confined itself. So the parent of these processes is
 * forked at the start, before a secret is read; it confines itself to nothing at all, and forks one
 * whenever it is asked to. They hold no descriptor but a socket to the tomb, and what comes by it: a
 * client's connection and the plain side of its tunnel. They open no file and make no socket.
 *
 * A process that ends takes its tunnels with it, and its job has none any more; nothing is
 * served in its place.
 */
#ifndef LYCH_TOMB_TLS_TLS_H
#define LYCH_TOMB_TLS_TLS_H

#include "common/attr.h"
#include "common/err.h"
#include "common/net/loop.h"
#include "tomb/tls/tls_wire.h"
#include <stdbool.h>

struct confine_probe;
struct tls;
struct tls_job;

/* Test builds only: what they try below their walls, and who ("tls-parent", "tls-process");
 * NULL: nobody. */
struct tls_place {
	const struct confine_probe *probe;
	const char *probe_process;
};

/* So long the parent may be silent when it was asked for a process. */
#define TLS_PATIENCE_USEC (12 * USEC_PER_SEC)

struct tls_events {
	void (*up)(void *arg); /* the parent's walls stand */
	/* It ended, or a wall did not stand: no job that may ask could be begun. */
	void (*gone)(const struct err *why, void *arg);
	void *arg;
	usec_t patience_usec; /* TLS_PATIENCE_USEC */
};

/* Forks the parent; place is kept by the caller. */
MUST_CHECK int tls_start(const struct tls_place *place, struct tls **ret,
			 struct err *err);
MUST_CHECK int tls_attach(struct tls *t, struct loop *l, const struct tls_events *ev,
			  struct err *err);
void tls_free(struct tls *t); /* after its jobs; NULL is fine */

/* pem: the authority's certificate, gone after the call; NULL: why. Once, from the loop. */
typedef void tls_ready(const char *pem, const struct err *why, void *arg);
struct tls_job *tls_job_new(struct tls *t, tls_ready *ready, void *arg);
/* Its process ends, and whatever it served. NULL is fine; also before ready. */
void tls_job_free(struct tls_job *j);
/* Does its process still serve? */
bool tls_job_is_up(const struct tls_job *j);
/* A tunnel for host between two sockets, which stay the caller's to close. -1: it is gone, or takes
 * no more just now. */
MUST_CHECK int tls_job_open(struct tls_job *j, const char *host, int client, int plain);

/* tls_parent.c: in the child. Returns the exit code. */
int tls_parent_run(const struct tls_place *place, int control);
/* tls_process.c: in its children, below its walls. */
int tls_process_run(const struct tls_place *place, int fd);
/* The walls of both; parent: it makes them, may fork, and its children are below it. */
MUST_CHECK int tls_confine(bool parent, struct err *err);
/* Below its walls `process` tries what it was given, and ends. */
void tls_probe(const struct tls_place *place, const char *process);

#endif
