/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the TLS process.
 * See tls_conn.h.
 */
#include "tomb/tls/tls_conn.h"

#include "common/cleanup.h"
#include "common/host.h"
#include "common/mem.h"
#include "common/str.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER_BYTES 16384
/* Of one connection, before the others have theirs. */
#define STEPS_MAX 8
/* As common/net/httpd.c has them: what still comes in when the answer is out is dropped. */
#define LINGER_USEC (2 * USEC_PER_SEC)
#define LINGER_MAX_BYTES ((size_t)16 << 20)

static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";

struct side {
	size_t at, len; /* what is not written yet */
	char data[BUFFER_BYTES];
};

struct tls_conn {
	SSL *ssl;
	int client, plain;
	char host[HOST_NAME_BYTES_MAX + 1];
	bool is_open, plain_ended, lingers;
	size_t lingered_bytes;
	short client_wants, plain_wants;
	usec_t deadline;
	struct side up, down; /* to the tomb, to the client */
};

/* ---- life ---- */

static bool answer_connect(int client)
{
	ssize_t n = send(client, established, sizeof(established) - 1,
			 MSG_NOSIGNAL | MSG_DONTWAIT);

	/* The first bytes on a socket: there is room for them. */
	return n == (ssize_t)sizeof(established) - 1;
}

static bool make_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

struct tls_conn *tls_conn_new(struct tls_ca *ca, int client, int plain, const char *host,
			      usec_t now)
{
	struct tls_conn *c = xnew(struct tls_conn);

	c->client = client;
	c->plain = plain;
	c->deadline = now + TLS_HANDSHAKE_USEC;
	if (str_copy(c->host, sizeof(c->host), host) == 0 && make_nonblocking(client) &&
	    make_nonblocking(plain) && (c->ssl = tls_ca_accept(ca, c->host)) != NULL &&
	    SSL_set_fd(c->ssl, client) == 1 && answer_connect(client))
		return c;
	tls_conn_free(c);
	return NULL;
}

void tls_conn_free(struct tls_conn *c)
{
	if (!c)
		return;
	SSL_free(c->ssl);
	ERR_clear_error();
	fd_close(&c->client);
	fd_close(&c->plain);
	explicit_bzero(&c->up, sizeof(c->up));
	explicit_bzero(&c->down, sizeof(c->down));
	free(c);
}

/* ---- steps: what one of them did ---- */

enum step { STEP_MOVED, STEP_BLOCKED, STEP_END };

static enum step of_ssl(struct tls_conn *c, int r)
{
	int why = SSL_get_error(c->ssl, r);

	ERR_clear_error();
	if (why == SSL_ERROR_WANT_READ)
		c->client_wants |= POLLIN;
	else if (why == SSL_ERROR_WANT_WRITE)
		c->client_wants |= POLLOUT;
	else
		return STEP_END;
	return STEP_BLOCKED;
}

static enum step of_plain(struct tls_conn *c, short wants)
{
	if (errno == EINTR)
		return STEP_MOVED;
	if (errno != EAGAIN)
		return STEP_END;
	c->plain_wants |= wants;
	return STEP_BLOCKED;
}

static enum step read_client(struct tls_conn *c)
{
	int r = SSL_read(c->ssl, c->up.data, BUFFER_BYTES);

	if (r <= 0)
		return of_ssl(c, r);
	c->up.at = 0;
	c->up.len = (size_t)r;
	return STEP_MOVED;
}

static enum step write_plain(struct tls_conn *c)
{
	ssize_t n = send(c->plain, c->up.data + c->up.at, c->up.len, MSG_NOSIGNAL);

	if (n < 0)
		return of_plain(c, POLLOUT);
	c->up.at += (size_t)n;
	c->up.len -= (size_t)n;
	return STEP_MOVED;
}

static enum step read_plain(struct tls_conn *c)
{
	ssize_t n = read(c->plain, c->down.data, BUFFER_BYTES);

	if (n < 0)
		return of_plain(c, POLLIN);
	if (n == 0)
		return STEP_END;
	c->down.at = 0;
	c->down.len = (size_t)n;
	return STEP_MOVED;
}

static enum step write_client(struct tls_conn *c)
{
	int r = SSL_write(c->ssl, c->down.data + c->down.at, (int)c->down.len);

	if (r <= 0)
		return of_ssl(c, r);
	c->down.at += (size_t)r;
	c->down.len -= (size_t)r;
	return STEP_MOVED;
}

/* ---- a turn ---- */

/* The client hears that this was all: without it an answer could be cut unseen. Closed with unread
 * bytes the socket would be reset, and that can overtake the answer. */
static enum step say_farewell(struct tls_conn *c, usec_t now)
{
	(void)SSL_shutdown(c->ssl);
	ERR_clear_error();
	if (shutdown(c->client, SHUT_WR) < 0)
		return STEP_END;
	c->lingers = true;
	c->deadline = now + LINGER_USEC;
	return STEP_MOVED;
}

static enum step step_linger(struct tls_conn *c)
{
	ssize_t n = recv(c->client, c->up.data, BUFFER_BYTES, 0);

	if (n < 0 && errno == EINTR)
		return STEP_MOVED;
	if (n < 0 && errno == EAGAIN) {
		c->client_wants |= POLLIN;
		return STEP_BLOCKED;
	}
	if (n <= 0)
		return STEP_END;
	c->lingered_bytes += (size_t)n;
	return c->lingered_bytes > LINGER_MAX_BYTES ? STEP_END : STEP_MOVED;
}

static enum step step_answer(struct tls_conn *c, usec_t now)
{
	enum step s = write_client(c);

	if (s == STEP_MOVED)
		c->deadline = USEC_INFINITY;
	else if (c->deadline == USEC_INFINITY)
		c->deadline = now + TLS_DEAF_USEC;
	return s;
}

static enum step step_down(struct tls_conn *c, usec_t now)
{
	enum step s;

	if (c->down.len > 0)
		return step_answer(c, now);
	if (c->plain_ended)
		return say_farewell(c, now);
	s = read_plain(c);
	if (s != STEP_END)
		return s;
	c->plain_ended = true;
	return STEP_MOVED;
}

static enum step step_both(struct tls_conn *c, usec_t now)
{
	enum step down = step_down(c, now), up;

	if (down == STEP_END || c->lingers)
		return down;
	/* Nobody reads any more what it would say. */
	if (c->plain_ended)
		return down;
	up = c->up.len > 0 ? write_plain(c) : read_client(c);
	return up == STEP_BLOCKED ? down : up;
}

static enum step step_handshake(struct tls_conn *c)
{
	int r = SSL_accept(c->ssl);

	if (r != 1)
		return of_ssl(c, r);
	c->is_open = true;
	c->deadline = USEC_INFINITY;
	return STEP_MOVED;
}

enum tls_turn tls_conn_turn(struct tls_conn *c, usec_t now)
{
	if (now >= c->deadline)
		return TLS_OVER;
	for (int i = 0; i < STEPS_MAX; i++) {
		enum step s;

		c->client_wants = c->plain_wants = 0;
		s = c->lingers	 ? step_linger(c)
		    : c->is_open ? step_both(c, now)
				 : step_handshake(c);
		if (s == STEP_END)
			return TLS_OVER;
		if (s == STEP_BLOCKED)
			return TLS_WAIT;
	}
	return TLS_AGAIN;
}

/* A side that nothing is wanted of is not asked about: its end would be told for ever. */
void tls_conn_wants(const struct tls_conn *c, struct pollfd *client, struct pollfd *plain)
{
	*client = (struct pollfd){.fd = c->client_wants ? c->client : -1,
				  .events = c->client_wants};
	*plain = (struct pollfd){.fd = c->plain_wants ? c->plain : -1,
				 .events = c->plain_wants};
}

usec_t tls_conn_deadline(const struct tls_conn *c)
{
	return c->deadline;
}
