/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What the parts of the control plane share: one struct, made by main.c.
 */
#ifndef LYCH_VESSEL_API_VESSEL_H
#define LYCH_VESSEL_API_VESSEL_H

#include "common/clock.h"
#include "common/conf/conf.h"
#include "common/confine/confine.h"
#include "common/crypto/sha256.h"
#include "common/err.h"
#include "common/id.h"
#include "common/net/httpd.h"
#include "common/net/loop.h"
#include "common/worker/reading.h"
#include "vessel/api/attended.h"
#include "vessel/api/events.h"
#include "vessel/api/factor.h"
#include "vessel/api/feed.h"
#include "vessel/api/hints.h"
#include "vessel/api/lease_owner.h"
#include "vessel/api/tombs.h"
#include "vessel/broker/gate/client.h"
#include "vessel/db/door.h"
#include "vessel/db/queue.h"
#include "vessel/db/registered.h"
#include "vessel/store/blobs.h"
#include "vessel/store/incoming.h"
#include "vessel/store/metrics.h"
#include "vessel/store/output.h"
#include "vessel/store/store.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define QUEUE_NAME "main"

struct containments;
struct triggers;
struct ward_reload;

/* What codex.yaml was when this process began (codex.h), and which rules are in force. */
struct codex {
	char *flat; /* conf_flatten() of the beginning, with what is in force */
	char sha256
		[SHA256_HEX_SIZE]; /* of the text that the rules and credentials are of */
	uint64_t generation;	   /* of these: 1 at the beginning */
	usec_t reloaded_usec;	   /* wall clock; 0: never */
	struct ward_reload *reload; /* under way; NULL: none is */
	uint64_t refused;	    /* reloads, since the log was told of one */
	usec_t refused_told;	    /* boot clock; 0: never */
};

struct vessel {
	struct loop *loop;
	const struct clock_ops *clock;
	const struct random_ops *rng;
	struct conf
		conf; /* of it only the ward's rules and the credentials ever change */
	struct codex codex;
	struct factor factor;
	struct store_budget budget;
	struct blobs *blobs;
	struct incoming *incoming; /* uploads that will be blobs */
	struct output *output;
	struct queue *queue;
	struct events *events;
	struct attended *attended;
	struct feeds *feeds; /* stdin that is streamed */
	struct door *door;   /* tombs that claim through us */
	struct hints *hints;
	struct tombs *tombs;	       /* who was seen */
	struct registered *registered; /* who there is */
	struct lease_owners *owners;
	struct audit *audit;
	struct deaths *deaths;		   /* of daemons that read what was a job's */
	struct containments *containments; /* that are not done */
	struct triggers *triggers;	   /* what begins one without a person */
	struct reading reading;		   /* what this one reads just now */
	struct gate_client *gate;
	struct private_store *terms;
	struct opinion *opinion; /* NULL: no classifier is asked */
	struct dispatch *dispatch;
	struct dispatch_ops *dispatch_ops;
	struct packages *packages;
	struct proposals *proposals;
	struct egress *egress;	       /* whoever speaks to the network for us */
	struct egress_portal *portals; /* conf.broker's as egress has them */
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
