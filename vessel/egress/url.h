/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the egress worker.
 * The URLs that may leave: a small grammar of our own. Parsers disagree about hostile URLs,
 * so whatever two of them could read differently is refused here, and what goes on is
 * never the text that came in but one written anew from the parts.
 *
 *	https://host[:port][/path][?query]
 *
 * scheme: "https" or "http", lower case (whether http may be used is the ward's to say).
 * host: a name by common/host.h's grammar, or an IP address in its one canonical form
 * (again the ward's to say).
 * port: 1..65535 without a leading zero; left out when writing if it is the scheme's own.
 * path, query: the characters of RFC 3986 and whole percent triplets; never decoded nor
 * rewritten. A path in which any reader could see a "." or ".." segment, a NUL or a
 * control byte is refused; so a prefix rule compares the bytes that are sent.
 * No user name, no fragment, no backslash, no byte outside ASCII. At most URL_BYTES_MAX.
 */
#ifndef LYCH_VESSEL_EGRESS_URL_H
#define LYCH_VESSEL_EGRESS_URL_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/host.h"
#include "vessel/egress/reason.h"
#include <stdbool.h>
#include <stdint.h>

#define URL_BYTES_MAX 4096
#define URL_HOST_MAX HOST_NAME_BYTES_MAX

enum url_host { URL_HOST_NAME, URL_HOST_IPV4, URL_HOST_IPV6 };

struct url {
	bool https;
	enum url_host kind;
	char host[URL_HOST_MAX + 1]; /* IPv6 without its brackets */
	uint16_t port;
	char target[URL_BYTES_MAX + 1]; /* path[?query] as it is sent, begins with "/" */
	size_t path_len;		/* bytes of target before the "?" */
};

/* `text` need not be NUL-terminated. *ret is whole or untouched. */
MUST_CHECK int url_parse(const char *text, size_t len, struct url *ret,
			 enum reason *ret_reason, struct err *err);

/*
 * What of a URL only a rule that names it can allow: http, an IP address instead of a name,
 * a name of one label. REASON_NONE: nothing.
 */
enum reason url_needs_rule(const struct url *u);

/* Behind the "?", within u; NULL: there is none. */
const char *url_query(const struct url *u);

/* The URL written from its parts; and its origin only ("https://host:port", the port always
 * there), for the log and for comparing. */
void url_write(const struct url *u, struct buf *out);
void url_write_origin(const struct url *u, struct buf *out);

bool url_same_origin(const struct url *a, const struct url *b);

/*
 * Where a Location header leads from `base`: a whole URL, or a path from the root
 * ("/x?y"), or a query ("?y"); a fragment is dropped first. Anything else (a network path
 * "//host", a path relative to the directory with dots in it, a backslash, a control byte)
 * is refused with REASON_REDIRECT_LOCATION, a URL that is not acceptable with its own.
 */
MUST_CHECK int url_resolve(const struct url *base, const char *location, size_t len,
			   struct url *ret, enum reason *ret_reason, struct err *err);

#endif
