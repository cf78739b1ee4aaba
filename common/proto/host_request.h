/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * What the vessel may ask of the host: these words, and nothing beside them. A file of
 * reactor/ holds one word and a newline; its name is ID.intent, ID a version 4 UUID.
 */
#ifndef LYCH_COMMON_PROTO_HOST_REQUEST_H
#define LYCH_COMMON_PROTO_HOST_REQUEST_H

#include "common/attr.h"
#include <stdbool.h>
#include <stddef.h>

enum host_request {
	HOST_REQUEST_RESTART_TOMB,
	HOST_REQUEST_STOP_TOMB, /* until somebody starts it */
	HOST_REQUEST_STOP_POD,
	HOST_REQUEST_ROTATE_SECRET, /* the tombs': the next generation of each */
	HOST_REQUEST_MAX_
};

#define HOST_REQUEST_DIR "reactor" /* below the vessel's data directory */
#define HOST_REQUEST_SUFFIX ".intent"
#define HOST_REQUEST_FILE_MAX 64
#define HOST_REQUEST_WAITING_MAX 32

const char *host_request_name(enum host_request i);
/* A word, without its newline. */
bool host_request_from_name(const char *s, size_t len, enum host_request *ret);

#endif
