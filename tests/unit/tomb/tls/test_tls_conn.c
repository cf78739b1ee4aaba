/* SPDX-License-Identifier: Apache-2.0 */
/* One tunnel's TLS against a client that is given to it: what it refuses of the handshake, and that
 * not a byte reaches the plain side of what was refused. */
#include "tomb/tls/tls_conn.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "tomb/tls/tls_wire.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

TestSuite(tls_conn, .timeout = 60);

#define HOST "pages.example"
#define TURNS_MAX 500

static struct tls_ca *ca;
static struct tls_conn *conn;
static SSL_CTX *ctx;
static SSL *ssl;
static int client = -1, plain = -1;
static bool over;
static usec_t now;

static X509 *authority(struct tls_ca *of)
{
	char pem[TLS_PEM_SIZE];
	struct err err = ERR_INIT;
	X509 *cert;
	BIO *bio;

	cr_assert_eq(tls_ca_pem(of, pem, sizeof(pem), &err), 0, "%s", err.msg);
	bio = BIO_new_mem_buf(pem, -1);
	cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	BIO_free(bio);
	cr_assert_not_null(cert);
	return cert;
}

static void believe(struct tls_ca *whom)
{
	X509 *cert = authority(whom);

	cr_assert_eq(X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), cert), 1);
	X509_free(cert);
}

/* A client with the usual settings, and the tunnel for HOST. */
static void begin(void)
{
	static const char said[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	char got[sizeof(said)] = "";
	struct err err = ERR_INIT;
	int one[2], two[2];

	cr_assert_eq(tls_ca_new(&ca, &err), 0, "%s", err.msg);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, one), 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, two), 0);
	client = one[0];
	plain = two[0];
	conn = tls_conn_new(ca, one[1], two[1], HOST, now);
	cr_assert_not_null(conn);
	cr_assert_eq(read(client, got, sizeof(said) - 1), (ssize_t)sizeof(said) - 1);
	cr_assert_str_eq(got, said);
	cr_assert_eq(fcntl(client, F_SETFL, O_NONBLOCK), 0);
	cr_assert_eq(fcntl(plain, F_SETFL, O_NONBLOCK), 0);
	ctx = SSL_CTX_new(TLS_client_method());
	believe(ca);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
					    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

static void connect_as(const char *name)
{
	ssl = SSL_new(ctx);
	cr_assert_eq(SSL_set1_host(ssl, HOST), 1);
	if (name)
		cr_assert_eq(SSL_set_tlsext_host_name(ssl, name), 1);
	cr_assert_eq(SSL_set_fd(ssl, client), 1);
	SSL_set_connect_state(ssl);
}

static void end(void)
{
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	tls_conn_free(conn);
	tls_ca_free(ca);
	fd_close(&client);
	fd_close(&plain);
}

static void turn(void)
{
	if (!over && tls_conn_turn(conn, now) == TLS_OVER) {
		over = true;
		tls_conn_free(conn);
		conn = NULL;
	}
}

/* 0, or the reason of OpenSSL's that the client met. */
static int handshake(void)
{
	for (int i = 0; i < TURNS_MAX; i++) {
		int r, why;

		ERR_clear_error();
		r = SSL_do_handshake(ssl);
		if (r == 1)
			return 0;
		why = SSL_get_error(ssl, r);
		if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
			return ERR_peek_error() ? ERR_GET_REASON(ERR_peek_error()) : -1;
		turn();
	}
	return -2;
}

/* Of the plain side: what comes next; "" at its end. */
static const char *heard(void)
{
	static char text[256];
	ssize_t n = -1;

	for (int i = 0; i < TURNS_MAX && n < 0; i++) {
		turn();
		n = read(plain, text, sizeof(text) - 1);
	}
	cr_assert_geq(n, 0, "nothing came");
	text[n] = '\0';
	return text;
}

static const char *answered(void)
{
	static char text[256];
	int n = 0;

	for (int i = 0; i < TURNS_MAX && n <= 0; i++) {
		turn();
		n = SSL_read(ssl, text, sizeof(text) - 1);
		if (n <= 0 && SSL_get_error(ssl, n) == SSL_ERROR_ZERO_RETURN)
			return "the end";
	}
	cr_assert_gt(n, 0, "no answer");
	text[n] = '\0';
	return text;
}

static void refused(int expected)
{
	int why = handshake();

	cr_assert_neq(why, 0, "the handshake went through");
	cr_expect_eq(why, expected, "reason %d", why);
	for (int i = 0; i < TURNS_MAX && !over; i++)
		turn();
	cr_expect(over);
	cr_expect_str_eq(heard(), "");
}

/* ---- refusals ---- */

Test(tls_conn, another_name_in_the_handshake)
{
	begin();
	connect_as("other.example");
	refused(SSL_R_TLSV1_UNRECOGNIZED_NAME);
	end();
}

Test(tls_conn, no_name_in_the_handshake)
{
	begin();
	connect_as(NULL);
	refused(SSL_R_TLSV1_UNRECOGNIZED_NAME);
	end();
}

Test(tls_conn, http_2_and_nothing_else)
{
	static const unsigned char h2[] = "\x02h2";

	begin();
	cr_assert_eq(SSL_CTX_set_alpn_protos(ctx, h2, sizeof(h2) - 1), 0);
	connect_as(HOST);
	refused(SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL);
	end();
}

Test(tls_conn, old_versions)
{
	static const int old[] = {TLS1_VERSION, TLS1_1_VERSION};

	for (size_t i = 0; i < ARRAY_SIZE(old); i++) {
		over = false;
		begin();
		SSL_CTX_set_security_level(ctx, 0);
		cr_assert_eq(SSL_CTX_set_min_proto_version(ctx, old[i]), 1);
		cr_assert_eq(SSL_CTX_set_max_proto_version(ctx, old[i]), 1);
		connect_as(HOST);
		refused(SSL_R_TLSV1_ALERT_PROTOCOL_VERSION);
		end();
		ssl = NULL;
	}
}

Test(tls_conn, plain_text_in_the_place_of_a_handshake)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: " HOST "\r\n\r\n";

	begin();
	cr_assert_eq(write(client, http, sizeof(http) - 1), (ssize_t)sizeof(http) - 1);
	for (int i = 0; i < TURNS_MAX && !over; i++)
		turn();
	cr_expect(over);
	cr_expect_str_eq(heard(), "");
	end();
}

Test(tls_conn, a_handshake_that_is_never_finished)
{
	struct pollfd c, p;

	begin();
	cr_assert_eq(write(client, "\x16\x03", 2), 2);
	turn();
	cr_assert_not(over);
	tls_conn_wants(conn, &c, &p);
	cr_expect_eq(c.events, POLLIN);
	cr_expect_eq(p.fd, -1);
	cr_expect_eq(tls_conn_deadline(conn), now + TLS_HANDSHAKE_USEC);
	now += TLS_HANDSHAKE_USEC - 1;
	turn();
	cr_assert_not(over);
	now++;
	turn();
	cr_expect(over);
	cr_expect_str_eq(heard(), "");
	end();
}

Test(tls_conn, a_second_handshake_inside)
{
	begin();
	cr_assert_eq(SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION), 1);
	connect_as(HOST);
	cr_assert_eq(handshake(), 0);
	cr_assert_eq(SSL_renegotiate(ssl), 1);
	cr_expect_neq(handshake(), 0, "it was negotiated again");
	end();
}

Test(tls_conn, nothing_to_resume_and_no_early_data)
{
	SSL_SESSION *session;

	begin();
	connect_as(HOST);
	cr_assert_eq(handshake(), 0);
	turn();
	cr_assert_eq(write(plain, "x", 1), 1);
	cr_expect_str_eq(answered(), "x");
	session = SSL_get1_session(ssl);
	cr_expect_eq(SSL_SESSION_is_resumable(session), 0);
	cr_expect_eq(SSL_SESSION_get_max_early_data(session), 0u);
	SSL_SESSION_free(session);
	end();
}

static unsigned n_asked_for_a_certificate;
static int on_client_cert(SSL *of UNUSED, X509 **cert UNUSED, EVP_PKEY **key UNUSED)
{
	n_asked_for_a_certificate++;
	return 0;
}

Test(tls_conn, a_client_is_asked_for_no_certificate)
{
	begin();
	SSL_CTX_set_client_cert_cb(ctx, on_client_cert);
	connect_as(HOST);
	cr_assert_eq(handshake(), 0);
	cr_expect_eq(n_asked_for_a_certificate, 0);
	end();
}

Test(tls_conn, another_jobs_authority_is_worth_nothing)
{
	struct tls_ca *other = NULL;
	struct err err = ERR_INIT;

	begin();
	cr_assert_eq(tls_ca_new(&other, &err), 0);
	SSL_CTX_set_cert_store(ctx, X509_STORE_new());
	believe(other);
	connect_as(HOST);
	cr_expect_eq(handshake(), SSL_R_CERTIFICATE_VERIFY_FAILED);
	tls_ca_free(other);
	end();
}

/* ---- and what it is for ---- */

Test(tls_conn, bytes_go_both_ways_and_the_end_is_told)
{
	static const unsigned char both[] = "\x02h2\x08http/1.1";
	const unsigned char *chosen = NULL;
	unsigned n = 0;

	begin();
	cr_assert_eq(SSL_CTX_set_alpn_protos(ctx, both, sizeof(both) - 1), 0);
	connect_as(HOST);
	cr_assert_eq(handshake(), 0);
	SSL_get0_alpn_selected(ssl, &chosen, &n);
	cr_expect(n == 8 && memcmp(chosen, "http/1.1", 8) == 0);
	cr_assert_eq(SSL_write(ssl, "ask", 3), 3);
	cr_expect_str_eq(heard(), "ask");
	cr_assert_eq(write(plain, "answer", 6), 6);
	cr_expect_str_eq(answered(), "answer");
	cr_assert_eq(write(plain, "rest", 4), 4);
	fd_close(&plain);
	cr_expect_str_eq(answered(), "rest");
	cr_expect_str_eq(answered(), "the end");
	/* What still comes is dropped: a reset would overtake the answer. */
	cr_assert_eq(write(client, "more", 4), 4);
	turn();
	cr_expect_not(over);
	cr_assert_eq(shutdown(client, SHUT_WR), 0);
	turn();
	cr_expect(over);
	end();
}

Test(tls_conn, a_client_that_does_not_end_is_left_after_two_seconds)
{
	begin();
	connect_as(HOST);
	cr_assert_eq(handshake(), 0);
	fd_close(&plain);
	cr_expect_str_eq(answered(), "the end");
	now += 2 * USEC_PER_SEC - 1;
	turn();
	cr_expect_not(over);
	now++;
	turn();
	cr_expect(over);
	end();
}

Test(tls_conn, a_reader_that_stops_holds_two_buffers_and_no_more)
{
	static char much[65536];
	size_t sent = 0;
	ssize_t n;

	begin();
	connect_as(HOST);
	cr_assert_eq(handshake(), 0);
	for (int i = 0; i < TURNS_MAX; i++) {
		n = write(plain, much, sizeof(much));
		sent += n > 0 ? (size_t)n : 0;
		turn();
	}
	cr_assert_not(over);
	/* two sockets' buffers and ours: it does not grow with what is offered */
	cr_expect_lt(sent, (size_t)2 << 20);
	fd_close(&plain);
	for (int i = 0; i < TURNS_MAX; i++)
		turn();
	cr_assert_not(over);
	now += TLS_DEAF_USEC;
	turn();
	cr_expect(over, "it waits for ever");
	end();
}

/* ---- the words of its process ---- */

Test(tls_conn, a_word_that_is_none)
{
	static const char *const hosts[] = {"",		 "10.0.0.1",   "*.example",
					    "A.example", "a..example", "[::1]"};
	struct tls_hello h = {.is = {.word = TLS_READY}};
	struct tls_open o = {.host = HOST};

	cr_expect(tls_open_is_sound(&o, sizeof(o), 2));
	cr_expect_not(tls_open_is_sound(&o, sizeof(o), 1));
	cr_expect_not(tls_open_is_sound(&o, sizeof(o) - 1, 2));
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		cr_assert_eq(str_copy(o.host, sizeof(o.host), hosts[i]), 0);
		cr_expect_not(tls_open_is_sound(&o, sizeof(o), 2), "%s", hosts[i]);
	}
	memset(o.host, 'a', sizeof(o.host));
	cr_expect_not(tls_open_is_sound(&o, sizeof(o), 2));

	cr_expect_not(tls_hello_is_sound(&h, sizeof(h)), "no certificate");
	cr_assert_eq(
		str_copy(
			h.pem, sizeof(h.pem),
			"-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"),
		0);
	cr_expect(tls_hello_is_sound(&h, sizeof(h)));
	cr_expect_not(tls_hello_is_sound(&h, sizeof(h) - 1));
	h.pem[30] = '\x1b';
	cr_expect_not(tls_hello_is_sound(&h, sizeof(h)));
	h.pem[30] = 'A';
	h.is.word = TLS_DONE;
	cr_expect_not(tls_hello_is_sound(&h, sizeof(h)));
}
