/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Which tombs there are, and what each must show. The database says their names and the
 * generation of their secrets (lych-vessel migrate writes it); from that and the master,
 * which no tomb has, the vessel makes what it compares a bearer with. A tomb is thus
 * who it says it is, and with the next generation the secret of the last one is nobody's.
 * For tombs that claim through the vessel it also makes the password of their database
 * role, and gives it to the door.
 */
#ifndef LYCH_VESSEL_DB_REGISTERED_H
#define LYCH_VESSEL_DB_REGISTERED_H

#include "common/attr.h"
#include "common/err.h"
#include "common/net/loop.h"
#include <stdbool.h>

struct door;
struct httpd_share;
struct queue;
struct registered;

struct registered_config {
	struct loop *loop;
	const char *work_master; /* copied into memory that is never swapped */
	const char *db_master;	 /* the same; NULL: nobody claims through the vessel */
	/* The first list is here: from now on tombs can be told from others. */
	void (*on_ready)(void *arg);
	void *arg;
};

MUST_CHECK int registered_new(const struct registered_config *cfg,
			      struct registered **ret, struct err *err);
void registered_free(struct registered *r);
/* Both outlive it. */
void registered_attach(struct registered *r, struct queue *q, struct door *d);
bool registered_is_known(const struct registered *r);
/* Something changed, or may have: the list is asked for again, at most five times a second. */
void registered_refresh(struct registered *r);
/* Is this the bearer of that tomb, now? ERRID_HTTP_PEER; ERRID_RUN_DB while the list is
 * not known. */
MUST_CHECK int registered_check(const struct registered *r, const char *tomb,
				const char *bearer, struct err *err);
/* What that tomb, which is one, holds of the work socket; good for as long as the vessel
 * runs. NULL: as many names as there may be tombs hold something under other names. */
struct httpd_share *registered_share(struct registered *r, const char *tomb);
/* From 1 to as many as there may be; 0: it holds nothing. */
unsigned registered_number(const struct registered *r, const char *tomb);

#endif
