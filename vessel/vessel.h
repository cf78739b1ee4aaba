/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the control plane share: one struct, made by main.c. */
#ifndef LYCH_VESSEL_VESSEL_H
#define LYCH_VESSEL_VESSEL_H

#include "common/clock.h"
#include "common/err.h"
#include "common/id.h"
#include "common/net/conf.h"
#include "common/net/confine.h"
#include "common/net/httpd.h"
#include "common/net/loop.h"
#include "vessel/attended.h"
#include "vessel/blobs.h"
#include "vessel/door.h"
#include "vessel/events.h"
#include "vessel/gate_client.h"
#include "vessel/hints.h"
#include "vessel/incoming.h"
#include "vessel/lease_owner.h"
#include "vessel/metrics.h"
#include "vessel/output.h"
#include "vessel/queue.h"
#include "vessel/reading.h"
#include "vessel/registered.h"
#include "vessel/store.h"
#include "vessel/tombs.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define QUEUE_NAME "main"

struct vessel {
	struct loop *loop;
	const struct clock_ops *clock;
	const struct random_ops *rng;
	struct conf conf;
	struct store_budget budget;
	struct blobs *blobs;
	struct incoming *incoming; /* uploads that will be blobs */
	struct output *output;
	struct queue *queue;
	struct events *events;
	struct attended *attended;
	struct door *door; /* tombs that claim through us */
	struct hints *hints;
	struct tombs *tombs;	       /* who was seen */
	struct registered *registered; /* who there is */
	struct lease_owners *owners;
	struct audit *audit;
	struct deaths *deaths;	/* of daemons that read what was a job's */
	struct reading reading; /* what this one reads just now */
	struct gate_client *gate;
	struct private_store *terms;
	struct dispatch *dispatch;
	struct dispatch_ops *dispatch_ops;
	struct packages *packages;
	struct egress *egress;	       /* whoever speaks to the network for us */
	struct egress_portal *portals; /* conf.broker's, as egress has them */
	struct httpd *api, *work;
	struct metrics metrics;
	struct confine_report walls;
	struct uuid boot;    /* of this process, in the fencing row */
	uid_t uid;	     /* the owner's */
	usec_t started_usec; /* boot clock */
	unsigned protocol;   /* LYCH_API_VERSION; test builds may lie */
	bool owned;	     /* the fencing row is ours: nothing is served before */
	int data_fd;
};

#endif
