/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * The broker as a job meets it: what the sandbox makes, the tomb serves, the SDKs, pip and
 * npm find through their variables, and lych-ask and lych-fetch speak. Who asks has the
 * tomb on the other end, never the vessel or a provider.
 *
 * Grade full: HTTP/1.1 on BROKER_URL, a listening socket in the job's own network
 * namespace. The tomb holds it, nothing in the job does. Host is BROKER_HOST or
 * localhost:8787.
 *
 * Grade floor: frames over BROKER_FD, one end of a SOCK_SEQPACKET pair. One packet is one
 * frame of at most BROKER_FRAME_MAX bytes; its first byte is the type (enum broker_frame).
 * Descriptors that come with a packet are not taken.
 *
 *	job	H {"id","method","path","headers":{…},"body_bytes"}, D…, E
 *	tomb	H {"id","status","headers":{…}}, D…, E		or instead, at any time,
 *		X {"id","code","reason"}			nothing more of this one
 *	job	X {"id"}			it wants nothing more of it
 *
 * id is the job's choice ([A-Za-z0-9_-]{1,32}) and comes back in the head of the answer:
 * who shares the descriptor with one that was killed half-way passes over what is left of
 * its answer until its own head. One request at a time: a new H ends the one before it,
 * which gets no more frames. path holds the query; header names are lower case. D carries
 * 1 to BROKER_FRAME_MAX - 1 bytes; those of a request make up body_bytes exactly.
 */
#ifndef LYCH_COMMON_PROTO_BROKER_PROTO_H
#define LYCH_COMMON_PROTO_BROKER_PROTO_H

#include "common/attr.h"
#include "common/id.h"
#include "common/proto.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BROKER_ADDRESS "127.0.0.1"
#define BROKER_PORT 8787
#define BROKER_HOST BROKER_ADDRESS ":8787"
#define BROKER_URL "http://" BROKER_HOST
/* Connections that the kernel holds until the tomb accepts them. */
#define BROKER_BACKLOG 64

/* lych-ask and lych-fetch, at the end of PATH of every job of a tomb. In full they are
 * shown here; in floor they are where the tomb has them. */
#define BROKER_TOOLS "/lych/bin"

#define BROKER_FD 3
#define BROKER_FRAME_MAX 65536
#define BROKER_ID_MAX 32
/* What a head may be: it is parsed by the other side. */
#define BROKER_HEAD_MAX 16384
enum broker_frame {
	BROKER_HEAD = 'H',
	BROKER_DATA = 'D',
	BROKER_END = 'E',
	BROKER_ABORT = 'X',
};

#define BROKER_PATH_CHAT "/v1/chat/completions"
#define BROKER_PATH_MODELS "/v1/models"
#define BROKER_PATH_MESSAGES "/v1/messages"
#define BROKER_PATH_GEMINI "/v1beta/models/" /* MODEL:generateContent */
#define BROKER_PATH_FETCH "/fetch"	     /* ?url= */
#define BROKER_PATH_NPM "/registry/npm/"
#define BROKER_PATH_PYPI "/registry/pypi/" /* the simple index is simple/ below it */
#define BROKER_PATH_CARGO "/registry/cargo/"
#define BROKER_PATH_GO "/registry/go/"

/* What the sandbox made for a job: struct spawn_started says it, and hands it over. */
enum broker_kind {
	BROKER_NONE,
	BROKER_LISTENER, /* grade full: listening */
	BROKER_CHANNEL,	 /* grade floor: the tomb's end of the pair */
	BROKER_KIND_MAX_
};

/*
 * The key that a job has in place of a provider's: "lych-" and 43 letters of base64url, of
 * one attempt (common/crypto/broker_key.h), good for this job's own broker only. It keeps out
 * nobody who is in the job; it shows that a request was made for this broker and not by
 * accident, an SDK asks for one, and in what the job sends away it is a canary. Never
 * logged.
 */
#define BROKER_KEY_SIZE 49
struct broker_key {
	char s[BROKER_KEY_SIZE];
};
#define BROKER_KEY_BYTES 32
void broker_key_write(const uint8_t raw[BROKER_KEY_BYTES], struct broker_key *ret);

/*
 * Two fields of a request to Anthropic's API that choose its form and are passed on:
 * anthropic-version, a date as in 2023-06-01, and anthropic-beta, names of features. They
 * come from the job, so the tomb writes them anew and the vessel takes only what it would
 * have written itself.
 */
#define BROKER_BETAS_MAX 16
#define BROKER_BETA_MAX_BYTES 64
#define BROKER_BETAS_SIZE (BROKER_BETAS_MAX * (BROKER_BETA_MAX_BYTES + 1))
bool broker_version_is_valid(const char *s);
/* "a-1, b" -> "a-1,b"; false: it is no list of 1 to 16 names of [A-Za-z0-9._-]{1,64}. */
bool broker_betas(const char *s, char out[BROKER_BETAS_SIZE]);

/*
 * The forms of PyPI's simple index (PEP 503, PEP 691) that a client takes, and which of them it
 * likes better, out of its Accept field: the tomb reads that, and the vessel gets one of these
 * names. Without a word it is HTML, as before there was a choice.
 */
enum broker_simple {
	SIMPLE_NEITHER,
	SIMPLE_HTML,
	SIMPLE_JSON,
	SIMPLE_HTML_JSON, /* HTML rather than JSON */
	SIMPLE_JSON_HTML,
	SIMPLE_MAX_
};
enum broker_simple broker_simple_of(const char *accept); /* NULL: no such field */
const char *broker_simple_name(enum broker_simple s);	 /* "json,html" */
bool broker_simple_from_name(const char *name, enum broker_simple *ret);

/*
 * The variables of a job that may ask. Every one of them is the tomb's: a spec that sets
 * one, or another by which the same programs would be led elsewhere, is refused
 * (broker_env_is_reserved), so that a name always means what this table says. Calls put()
 * for each; value lives for the call only.
 *
 *	always		LYCHGATE_BROKER (BROKER_URL, or "fd:3"), LYCHGATE_BROKER_KEY
 *	full		OPENAI_BASE_URL OPENAI_API_KEY ANTHROPIC_BASE_URL ANTHROPIC_API_KEY
 *			GOOGLE_GEMINI_BASE_URL GEMINI_API_KEY
 *			NO_PROXY no_proxy HTTPS_PROXY https_proxy, and where each kind of
 *			client looks for the authorities that it believes (BROKER_CA_PATH)
 *	full, registry	those of pip, uv, npm, cargo and go
 *
 * In floor no program but a client of BROKER_FD could use the others.
 */
void broker_env(enum sbx_grade grade, enum egress_mode egress,
		const struct broker_key *key,
		void (*put)(const char *name, const char *value, void *arg), void *arg);
/* Those of the package managers alone, which need no key: for a program that asks for packages and
 * nothing else. Grade full. */
void broker_env_mirrors(void (*put)(const char *name, const char *value, void *arg),
			void *arg);
/*
 * The certificate of the job's own authority, which ends the TLS of its tunnels; in the workspace of each
 * job that may ask (grade full). Nothing but the broker can be reached, so that no other is of use.
 */
#define BROKER_CA_FILE ".lychgate-ca.pem"
#define BROKER_CA_PATH "/work/" BROKER_CA_FILE
/*
 * What cargo takes from no variable: that it asks the broker in the place of crates.io. A job
 * that may install has it in its workspace, where CARGO_HOME leads (grade full).
 */
#define BROKER_CARGO_HOME ".lychgate-cargo"
#define BROKER_CARGO_CONFIG BROKER_CARGO_HOME "/config.toml"
extern const char broker_cargo_config[];

/* May a job that has this egress not set the variable itself? */
bool broker_env_is_reserved(enum egress_mode egress, const char *name);

#endif
