/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb, the TLS parent and the TLS process.
 * Messages between them (tomb/tls/tls.h): SOCK_SEQPACKET pairs, fixed structs in host byte order
 * (all of them are forks of the tomb).
 *
 *	tomb -> parent	one byte: one more process; answered in order
 *	parent -> tomb	TLS_READY once, then TLS_DONE with its socket or TLS_BUSY for each byte;
 *			TLS_FAILED: its walls did not stand
 *	process -> tomb	struct tls_hello, its only word: TLS_READY with the certificate
 *	tomb -> process	struct tls_open with a client and the plain side of its tunnel
 *
 * The process reads what jobs send, so that the tomb reads its one word like a stranger's.
 */
#ifndef LYCH_TOMB_TLS_TLS_WIRE_H
#define LYCH_TOMB_TLS_TLS_WIRE_H

#include "common/attr.h"
#include "common/err.h"
#include "common/host.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TLS_PEM_SIZE 2048
/* Tunnels of one job at once. */
#define TLS_TUNNELS_MAX 64

enum tls_word { TLS_READY, TLS_DONE, TLS_BUSY, TLS_FAILED, TLS_WORD_MAX_ };

struct tls_reply {
	uint32_t word;
	struct err err; /* TLS_FAILED */
};

struct tls_hello {
	struct tls_reply is;
	char pem[TLS_PEM_SIZE];
};

struct tls_open {
	char host[HOST_NAME_BYTES_MAX + 1];
};

/* false: none that ours would send. Both cut their texts where they end. */
MUST_CHECK bool tls_reply_is_sound(struct tls_reply *r);
MUST_CHECK bool tls_hello_is_sound(struct tls_hello *h, size_t bytes);
MUST_CHECK bool tls_open_is_sound(const struct tls_open *o, size_t bytes, unsigned n_fds);

#endif
