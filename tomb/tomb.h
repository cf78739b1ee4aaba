/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * What the tomb's process is made of: main.c makes and ends it, events.c moves it.
 */
#ifndef LYCH_TOMB_TOMB_H
#define LYCH_TOMB_TOMB_H

#include "common/confine/confine.h"
#include "common/confine/probe.h"
#include "common/net/loop.h"
#include "common/net/notify.h"
#include "tomb/control.h"
#include "tomb/files/files.h"
#include "tomb/handback.h"
#include "tomb/job/runner.h"
#include "tomb/job/spawn.h"
#include "tomb/options.h"
#include "tomb/place.h"
#include "tomb/queue/claim.h"
#include "tomb/queue/hello.h"
#include "tomb/queue/lease.h"
#include "tomb/queue/queue_pg.h"
#include "tomb/queue/queue_vessel.h"
#include "tomb/queue/work.h"
#include "tomb/tls/tls.h"
#include <limits.h>
#include <stdbool.h>

struct tomb {
	struct tomb_options opt;
	struct place place;
	struct files_place files_place;
	struct tls_place tls_place;
	char work_socket[PATH_MAX], tools[PATH_MAX];
	int null_fd;
	struct loop *loop;
	struct notify *notify;
	struct loop_timer *tick, *patience;
	struct files *files;
	struct tls *tls; /* grade full */
	struct spawn *spawn;
	struct queue_pg *pg;	 /* the one door, */
	struct queue_vessel *qv; /* or the other */
	struct queue queue;
	struct vessel_peer peer;
	struct hello *greeting;
	struct work *work;
	struct httpc *intents;
	struct control *control;
	struct leases *leases;
	struct notes *notes;
	struct handback *handback;
	struct claims *claims;
	struct runner *runner;
	struct confine_report walls;
	struct uuid boot;
	bool hello, files_up, tls_up, known, db_up, ready, stopping, last, disk_full;
	int exit_code;
	usec_t last_error;
#ifdef LYCH_TEST_BUILD
	struct confine_probe probe;
#endif
};

#endif
