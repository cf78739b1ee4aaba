/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe and the vessel.
 * The scribe's socket: SOCK_SEQPACKET, one JSON object a packet (docs/PROTOCOL.md, "The
 * audit socket"). Producers of our own uid only (SO_PEERCRED).
 */
#ifndef LYCH_VESSEL_SCRIBE_SCRIBE_H
#define LYCH_VESSEL_SCRIBE_SCRIBE_H

#include "common/confine/confine.h"
#include "common/net/loop.h"
#include "vessel/scribe/anchors.h"
#include "vessel/scribe/log.h"

#define SCRIBE_SOCKET "scribe.sock"
#define SCRIBE_PACKET_MAX ((size_t)16384)

/* One packet of a producer, checked. */
struct scribe_packet {
	bool is_hello;
	char prod[AUDIT_PROD_MAX]; /* hello */
	struct uuid stream;	   /* hello */
	uint64_t pseq;		   /* event */
	struct buf
		members; /* event: encoded again, without braces; freed by the caller */
};
/* ERRID_AUDIT_EVENT. ret->members is initialised in every case. */
MUST_CHECK int scribe_packet_parse(const void *data, size_t len,
				   struct scribe_packet *ret, struct err *err);

struct scribe;

struct scribe_config {
	struct loop *loop;
	struct scribe_log *log;
	struct anchors *anchors; /* borrowed, as the log is */
	const struct confine_report *walls;
	int listen_fd; /* the caller's */
	/* The log can't be written any more: the process must end. */
	void (*failed)(const struct err *why, void *arg);
	void *arg;
};
struct scribe *scribe_new(const struct scribe_config *cfg);
void scribe_free(struct scribe *s);
/* Everything that was received is on disk when it returns 0. */
MUST_CHECK int scribe_flush(struct scribe *s, struct err *err);
/* Seal what is on disk, and tell the anchors. */
MUST_CHECK int scribe_seal(struct scribe *s, bool ends_epoch, struct err *err);
/* Bind the socket in dir, in the place of a dead scribe's. */
MUST_CHECK int scribe_listen(const char *dir, int *ret_fd, struct err *err);

#endif
