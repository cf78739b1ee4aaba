/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb, the TLS parent and the TLS process.
 * See tls_wire.h.
 */
#include "tomb/tls/tls_wire.h"

#include "common/str.h"

#include <string.h>

bool tls_reply_is_sound(struct tls_reply *r)
{
	r->err.msg[sizeof(r->err.msg) - 1] = '\0';
	return r->word < TLS_WORD_MAX_ &&
	       (r->word == TLS_FAILED) == (r->err.code != ERR_NONE) &&
	       (unsigned)r->err.code < ERR_CODE_MAX_ && (unsigned)r->err.id < ERRID_MAX_;
}

/* Printable lines: it becomes a file of the job, and nothing here reads it. */
static bool is_pem(const char *s)
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----\n";
	static const char end[] = "\n-----END CERTIFICATE-----\n";

	for (const char *c = s; *c; c++)
		if ((*c < ' ' && *c != '\n') || *c > '~')
			return false;
	return str_starts(s, begin) && str_ends(s, end);
}

bool tls_hello_is_sound(struct tls_hello *h, size_t bytes)
{
	if (bytes != sizeof(*h) || !tls_reply_is_sound(&h->is))
		return false;
	h->pem[sizeof(h->pem) - 1] = '\0';
	return h->is.word == TLS_FAILED || (h->is.word == TLS_READY && is_pem(h->pem));
}

bool tls_open_is_sound(const struct tls_open *o, size_t bytes, unsigned n_fds)
{
	size_t n = bytes == sizeof(*o) ? strnlen(o->host, sizeof(o->host)) : 0;

	return n > 0 && n < sizeof(o->host) && n_fds == 2 && host_is_name(o->host, n);
}
