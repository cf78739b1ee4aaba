/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The owner's API over its unix socket: one connection, one request at a time. No
 * proxy, no environment, no redirect. An answer that isn't 2xx becomes the error that
 * the vessel named.
 */
#ifndef LYCH_CLI_BASE_CLIENT_H
#define LYCH_CLI_BASE_CLIENT_H

#include "common/attr.h"
#include "common/err.h"
#include "common/json/json.h"
#include "common/proto.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client;

#define CLIENT_REPLY_MAX ((size_t)8 << 20)

MUST_CHECK int client_new(const char *socket_path, struct client **ret, struct err *err);
void client_free(struct client *c);
static inline void client_free_p(struct client **c)
{
	client_free(*c);
}
#define cleanup_client __attribute__((cleanup(client_free_p)))

struct client_request {
	const char *method; /* "GET" */
	const char *target; /* "/v1/jobs" */
	const void *body;   /* NULL: none */
	size_t body_len;
	bool raw;	     /* octet-stream, not JSON */
	const char *proof;   /* of the passphrase (common/crypto/factor.h); NULL: none */
	unsigned timeout_ms; /* 0: none, but for a minute of silence */
	/* Where a refusal says that one may go on; unchanged when it does not. May be NULL. */
	uint64_t *ret_expected;
};

/* A JSON answer; *ret_status may be NULL. */
MUST_CHECK int client_json(struct client *c, const struct client_request *rq,
			   struct json **ret, int *ret_status, struct err *err);

/* Is it about the form of what the vessel said last, and not of what the user gave? */
bool client_is_misread(const struct err *err);

/* What the vessel says of itself. *ret_ready: its database answers too. */
MUST_CHECK int client_status(struct client *c, struct json **ret, bool *ret_ready,
			     struct err *err);

/* Raw bytes as they come. The sink returns -1 with err to stop. */
typedef int client_sink(const void *data, size_t len, void *arg, struct err *err);
MUST_CHECK int client_raw(struct client *c, const struct client_request *rq,
			  client_sink *sink, void *arg, struct err *err);

/* Server-sent events until the stream ends (0), the callback wants an end (returns 1; 0)
 * or fails. wake_fd (-1: none) becoming readable calls on_wake. last_id is the id of the
 * last event that on_event took, "" before: the stream goes on behind it. A vessel that
 * says nothing for CLIENT_SILENCE_USEC, not even that it is there, is ERRID_HTTP_AWAY. */
#define CLIENT_SILENCE_USEC (3 * SSE_ALIVE_USEC)
struct client_events {
	/* data is one strict JSON object; 1: enough, -1: stop with err */
	int (*on_event)(const char *event, const struct json *data, void *arg,
			struct err *err);
	int (*on_wake)(void *arg, struct err *err);
	/* What else is done between two looks, some four times a second and whenever the
	 * descriptor that side_fd() names (-1: none) can be read. NULL: nothing is. */
	int (*on_side)(bool ready, void *arg, struct err *err);
	int (*side_fd)(void *arg);
	void *arg;
	int wake_fd;
	char *last_id; /* SSE_ID_SIZE bytes */
};
MUST_CHECK int client_stream(struct client *c, const char *target,
			     const struct client_events *ev, struct err *err);

/* Send size bytes of a source as a blob, in parts; its sha256 as hex. */
typedef int client_source(void *buf, size_t size, size_t *ret_len, void *arg,
			  struct err *err);
MUST_CHECK int client_upload(struct client *c, client_source *source, void *arg,
			     char ret_sha256[65], uint64_t *ret_size, struct err *err);

#endif
