/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the egress worker.
 * Which header fields go out and come back. Both lists begin empty and take what is named
 * here; nothing is copied because it looked harmless. Names compare without regard to case and
 * are written in lower case.
 *
 * Out: a field that is not named is dropped (a job's Authorization, Cookie, Host, Expect,
 * X-HTTP-Method-Override, metadata headers ... all fall here). Refused, because somebody
 * would be deceived by it: a name that is no token, a value with a control byte, a field
 * twice, Content-Length together with Transfer-Encoding or either twice.
 * Back: what is not named, is malformed or too long is dropped.
 */
#ifndef LYCH_VESSEL_EGRESS_HEADERS_H
#define LYCH_VESSEL_EGRESS_HEADERS_H

#include "common/attr.h"
#include "common/err.h"
#include "vessel/egress/hosts/portal.h"
#include "vessel/egress/reason.h"
#include <stdbool.h>
#include <stddef.h>

#define HEADERS_MAX 32		/* fields that are kept */
#define HEADERS_OFFERED_MAX 128 /* fields that a job may name */
#define HEADER_NAME_MAX 64
#define HEADER_VALUE_MAX 1024

struct header {
	char name[HEADER_NAME_MAX + 1];
	char value[HEADER_VALUE_MAX + 1];
};

struct headers {
	struct header *h; /* owned */
	size_t n;
};
void headers_done(struct headers *h); /* NULL and empty are fine */
#define cleanup_headers __attribute__((cleanup(headers_done)))

/* One field that a job named. */
struct header_offer {
	const char *name;
	const char *value;
};

/* What of the fields that a job named in a fetch goes out; a portal's are written by the
 * dispatcher (vessel/broker/dispatch/ask.c). *ret is empty or whole; the caller frees it. */
MUST_CHECK int headers_out(const struct header_offer *offered, size_t n,
			   struct headers *ret, enum reason *ret_reason, struct err *err);

/*
 * May this field of a reply go back? `name` and `value` as they came, blanks around the value
 * are not part of it. On true *ret holds the field; a value of which a part must not go (a
 * charset other than the text's) is the caller's to judge.
 */
bool headers_back(enum headers_for what, const char *name, size_t name_len,
		  const char *value, size_t value_len, struct header *ret);

/* Is the value of a Content-Type this one, whatever its parameters? */
bool headers_is_type(const char *value, const char *type);

const char *headers_get(const struct headers *h, const char *name); /* NULL: not there */
/* Add one, or replace it; false when it is full or too long. */
bool headers_set(struct headers *h, const char *name, const char *value);

#endif
