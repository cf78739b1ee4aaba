/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * What a job says to its broker -> the structured intents of the work socket, and what
 * the vessel refuses -> the form that the job's own program expects. Pure: bytes in,
 * bytes out. Nothing of a request goes on as it came: a body is parsed strictly and
 * written anew, header by header and value by value.
 */
#ifndef LYCH_TOMB_BROKER_PROXY_INTENT_H
#define LYCH_TOMB_BROKER_PROXY_INTENT_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INTENT_REQUEST_MAX_BYTES ((size_t)4 << 20) /* a provider's body, rebuilt */
/* ... and as it comes from the job. Two more levels are the intent's own. */
#define INTENT_DEPTH_MAX 24
#define INTENT_FETCH_BODY_MAX_BYTES ((size_t)1 << 20)
#define INTENT_URL_MAX_BYTES 4096
#define INTENT_PATH_MAX_BYTES 1024
#define INTENT_HEADERS_MAX 32
#define INTENT_MAX_BYTES (INTENT_REQUEST_MAX_BYTES + 65536)

/* In whose words the job is answered. */
enum proxy_dialect { DIALECT_OPENAI, DIALECT_ANTHROPIC, DIALECT_GEMINI, DIALECT_PLAIN };

struct intent_header {
	const char *name, *value;
};
struct intent_ask {
	enum proxy_dialect dialect;
	const char *api; /* NULL: the dialect's conversation */
	/* Of Gemini's dialect; NULL: the body names it, and says whether it wants a stream. */
	const char *model;
	bool stream; /* with model */
	/* Of Anthropic's dialect anthropic-version and anthropic-beta are passed on. */
	const struct intent_header *headers;
	size_t n_headers;
	const void *body;
	size_t len;
};
/* out: empty, of INTENT_MAX_BYTES. ERRID_SPEC_*, ERRID_HTTP_BODY; ERRID_BROKER_REQUEST: one
 * of the fields has not its form, or is there twice. */
MUST_CHECK int intent_ask(uint64_t seq, const struct intent_ask *a, struct buf *out,
			  struct err *err);

struct intent_fetch {
	const char *method, *url;
	const struct intent_header *headers; /* those of one hop are left out here */
	size_t n_headers;
	const void *body;
	size_t len;
};
MUST_CHECK int intent_fetch(uint64_t seq, const struct intent_fetch *f, struct buf *out,
			    struct err *err);
struct intent_package {
	const char *registry; /* "npm" */
	const char *path;
	/* Of pypi Accept is read (broker_simple_of), and nothing of it goes on as it came. */
	const struct intent_header *headers;
	size_t n_headers;
};
MUST_CHECK int intent_package(uint64_t seq, const struct intent_package *p,
			      struct buf *out, struct err *err);

/* The target of a request for the models of a dialect, or for one of them (model NULL: all). */
#define INTENT_MODEL_MAX_BYTES 200
#define INTENT_TARGET_MAX_BYTES 1024
MUST_CHECK int intent_models(enum proxy_dialect d, const char *model, struct buf *target,
			     struct err *err);

/* A refusal of ours as the job reads it. */
struct proxy_refusal {
	int status;
	char code[32], title[160], detail[512], hint[256], request_id[40];
	char retry_after[16]; /* "" when the vessel named none */
};
/* err: the tomb's own. */
void refusal_of_err(struct proxy_refusal *r, const struct err *err, int status,
		    const char *request_id);
/* The vessel's answer; one without a reason is ERRID_BROKER_AWAY. */
void refusal_of_reply(struct proxy_refusal *r, int status, const char *body, size_t len);
/* An SDK would try again by the status alone, and it is of no use. */
bool refusal_is_final(const struct proxy_refusal *r);
void refusal_write(const struct proxy_refusal *r, enum proxy_dialect d, struct buf *out);

/* May a header of the vessel's answer reach the job? *ret_name: under what name. */
bool proxy_header_passes(const char *name, const char **ret_name);

#endif
