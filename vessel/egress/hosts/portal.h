/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel, the egress parent and the egress worker.
 * For whom a worker with a key is: a portal, or a host.
 */
#ifndef LYCH_VESSEL_EGRESS_HOSTS_PORTAL_H
#define LYCH_VESSEL_EGRESS_HOSTS_PORTAL_H

#include <stdbool.h>
#include <stddef.h>

#define EGRESS_NAME_SIZE 64 /* of a portal, with the NUL */
#define EGRESS_ADDRESSES_MAX 16

/* Whose request and reply it is (headers.h). */
enum headers_for { HEADERS_FETCH, HEADERS_OPENAI, HEADERS_ANTHROPIC, HEADERS_GEMINI };

struct egress_portal {
	const char *name; /* [a-z0-9_]+ */
	/* "https://api.example/v1", "http://127.0.0.1:11434"; no query */
	const char *url;
	/* How the credential goes out: Authorization: Bearer, x-api-key with
	 * anthropic-version, x-goog-api-key. */
	enum headers_for dialect;
	const char *secret; /* file in the secrets directory; NULL: it wants none */
	/* addresses that may be reached although they are not global: exact, as text */
	const char *const *addresses;
	size_t n_addresses;
	bool is_local; /* on this machine: a word too short to be redacted may be its key */
	/* Not a portal but the key of a host: its requests and replies are those of a fetch, its
	 * worker is "host:NAME", url is the origin alone, and a request goes to path or below
	 * it ("": anywhere there), or nowhere. */
	bool is_host;
	const char *path;
	const char
		*field; /* the header field that takes the key; NULL: Authorization ... */
	const char *user; /* ... as Basic, for this user; NULL: as Bearer */
};

#endif
