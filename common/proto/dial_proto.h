/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * What a daemon without a private root and the starter's dialer agree on (docs/adr/0047): a
 * question is one packet, an answer another, in this machine's byte order, since both ends are
 * of one release. No path crosses.
 */
#ifndef LYCH_COMMON_PROTO_DIAL_PROTO_H
#define LYCH_COMMON_PROTO_DIAL_PROTO_H

#include <stdint.h>

enum dial_name {
	DIAL_DATABASE = 1, /* PostgreSQL: a stream */
	DIAL_WORK,	   /* the vessel's work socket: a stream */
	DIAL_SCRIBE,	   /* the scribe's socket: packets */
	DIAL_MAX_
};
#define DIAL_BIT(name) (1u << (name))

struct dial_ask {
	uint32_t name;	 /* enum dial_name */
	uint32_t serial; /* comes back, so that an answer that is late is known */
};
struct dial_answer {
	uint32_t serial;
	int32_t error; /* errno; 0: a descriptor is with it */
};

#endif
