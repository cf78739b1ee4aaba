/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * A body in chunks (RFC 9112, 7.1), for servers that take them: sizes of one to eight
 * hexadecimal digits with their CRLF, and no more. No extension, no trailer: what two
 * implementations could read differently is refused, as in a head. Pure: no I/O.
 */
#include "common/net/httpd_priv.h"

#include "common/str.h"

#define DIGITS_MAX 8

static int refuse(struct err *err, const char *why)
{
	return err_set_id(err, ERRID_HTTP_FRAMING, "%s", why);
}

static int size_byte(struct gate_chunks *c, char byte, uint64_t room, struct err *err)
{
	int digit = hex_digit_value(byte);

	if (byte == '\r' && c->digits > 0) {
		if (c->left > room)
			return err_set_id(err, ERRID_HTTP_BODY, "at most %zu bytes",
					  c->max);
		c->at = CHUNK_SIZE_LF;
		return 0;
	}
	if (digit < 0)
		return refuse(err, "a chunk's size is no plain number");
	if (++c->digits > DIGITS_MAX)
		return refuse(err, "a chunk's size is too long");
	c->left = c->left * 16 + (uint64_t)digit;
	return 0;
}

static int expect(struct gate_chunks *c, char byte, char wanted, enum gate_chunk_at next,
		  struct err *err)
{
	if (byte != wanted)
		return refuse(err, next == CHUNK_LAST_LF
					   ? "a trailer behind the last chunk"
					   : "a chunk without its line end");
	c->at = next;
	return 0;
}

/* A byte of the framing. */
static int step(struct gate_chunks *c, char byte, uint64_t room, struct err *err)
{
	switch (c->at) {
	case CHUNK_SIZE:
		return size_byte(c, byte, room, err);
	case CHUNK_SIZE_LF:
		return expect(c, byte, '\n', c->left ? CHUNK_DATA : CHUNK_LAST_CR, err);
	case CHUNK_DATA_CR:
		return expect(c, byte, '\r', CHUNK_DATA_LF, err);
	case CHUNK_DATA_LF:
		c->digits = 0;
		return expect(c, byte, '\n', CHUNK_SIZE, err);
	case CHUNK_LAST_CR:
		return expect(c, byte, '\r', CHUNK_LAST_LF, err);
	case CHUNK_LAST_LF:
		return expect(c, byte, '\n', CHUNK_OVER, err);
	case CHUNK_DATA:
	case CHUNK_OVER:
		break;
	}
	return err_set(err, ERR_INTERNAL, "no byte of a chunk's frame");
}

void gate_chunks_begin(struct gate_chunks *c, size_t max)
{
	*c = (struct gate_chunks){.max = max};
}

int gate_chunks_feed(struct gate_chunks *c, const char *data, size_t len,
		     struct buf *body, size_t *ret_used, struct err *err)
{
	size_t at = 0;

	while (at < len && c->at != CHUNK_OVER) {
		if (c->at == CHUNK_DATA) {
			size_t n = len - at < c->left ? len - at : (size_t)c->left;

			if (body)
				buf_add(body, data + at, n);
			at += n;
			c->left -= n;
			if (c->left == 0)
				c->at = CHUNK_DATA_CR;
		} else if (step(c, data[at], body ? c->max - body->len : UINT64_MAX,
				err) < 0) {
			*ret_used = at;
			return -1;
		} else {
			at++;
		}
	}
	*ret_used = at;
	return c->at == CHUNK_OVER;
}
