/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the job.
 * A request to the job's broker (common/proto/broker_proto.h), whichever way it is reached:
 * HTTP on the loopback (http.c) or frames on descriptor 3 (frames.c). LYCHGATE_BROKER says
 * which. One request at a time, blocking: these are programs for a shell.
 */
#ifndef LYCH_JOB_CLIENT_H
#define LYCH_JOB_CLIENT_H

#include "common/attr.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>

#define CLIENT_HEADERS_MAX 32
/* Exit codes beyond 0 and that of wrong usage: refused or failed, no broker to be reached. */
#define EXIT_REFUSED 1
#define EXIT_AWAY 4

struct client_header {
	const char *name; /* lower case */
	const char *value;
};

struct client_request {
	const char *method, *path; /* path with its query */
	struct client_header headers[CLIENT_HEADERS_MAX];
	size_t n_headers;
	const char *body;
	size_t len;
};

struct client_reply {
	int status;
	/* The answer of whoever was asked; false: the broker's own, a refusal. */
	bool from_upstream;
	char content_type[128];
	char retry_after[32];
};

struct client_ops {
	/* Once, before any data. -1 with err: nothing more is wanted. */
	int (*head)(const struct client_reply *reply, void *arg, struct err *err);
	int (*data)(const void *data, size_t len, void *arg, struct err *err);
	void *arg;
};

/* ERR_UNAVAILABLE: the job has no broker, or it does not answer (ERRID_BROKER_NONE, _SILENT);
 * ERR_UPSTREAM: an answer that was cut off, or is none; else what an op said. */
MUST_CHECK int client_call(const struct client_request *rq, const struct client_ops *ops,
			   struct err *err);
/* NULL: the job has none. */
const char *client_key(void);

/* The header fields that the reply keeps; name in any case. */
void client_reply_header(struct client_reply *reply, const char *name, const char *value);
/* A line of stderr, control characters made harmless. */
void client_complain(const char *program, const char *fmt, ...) PRINTF_FMT(2, 3);
/* The exit code for an error of client_call, said on stderr. */
int client_failed(const char *program, const struct err *err);

/* http.c, frames.c */
MUST_CHECK int http_call(const struct client_request *rq, const struct client_ops *ops,
			 struct err *err);
MUST_CHECK int frames_call(int fd, const struct client_request *rq,
			   const struct client_ops *ops, struct err *err);

#endif
