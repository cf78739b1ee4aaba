/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the TLS process.
 * See tls_ca.h.
 */
#include "tomb/tls/tls_ca.h"

#include "common/clock.h"
#include "common/mem.h"
#include "common/proto/job_spec.h"
#include "common/str.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <strings.h>

#define HOUR_SEC 3600L
/* Longer than any job: the longest, and what goes before it. */
#define VALID_SEC ((long)(LIMIT_TIMEOUT_USEC_MAX / USEC_PER_SEC) + 24 * HOUR_SEC)
#define SAN_MAX_BYTES 300

struct tls_ca {
	SSL_CTX *ctx;
	EVP_PKEY *key, *leaf_key;
	X509 *cert;
};

struct extension {
	int nid;
	const char *value;
};

static int failed(const char *what, struct err *err)
{
	unsigned long code = ERR_get_error();
	char text[128];

	ERR_error_string_n(code, text, sizeof(text));
	ERR_clear_error();
	return err_set(err, ERR_INTERNAL, "%s: %s", what, text);
}

/* ---- certificates ---- */

static bool add_extensions(X509 *cert, X509 *issuer, const struct extension *ext,
			   size_t n)
{
	X509V3_CTX ctx;

	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	for (size_t i = 0; i < n; i++) {
		X509_EXTENSION *e =
			X509V3_EXT_conf_nid(NULL, &ctx, ext[i].nid, ext[i].value);
		bool ok = e && X509_add_ext(cert, e, -1) == 1;

		X509_EXTENSION_free(e);
		if (!ok)
			return false;
	}
	return true;
}

static bool set_name(X509_NAME *name, const char *text)
{
	return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
					  (const unsigned char *)text, -1, -1, 0) == 1;
}

static bool set_serial(X509 *cert)
{
	uint64_t n = 0;

	if (RAND_bytes((unsigned char *)&n, sizeof(n)) != 1)
		return false;
	return ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), n >> 1 | 1) == 1;
}

/* issuer NULL: itself. */
static X509 *make_cert(EVP_PKEY *key, const char *name, X509 *issuer, EVP_PKEY *signer,
		       const struct extension *ext, size_t n)
{
	X509 *cert = X509_new();

	if (cert && X509_set_version(cert, X509_VERSION_3) == 1 && set_serial(cert) &&
	    X509_gmtime_adj(X509_getm_notBefore(cert), -HOUR_SEC) &&
	    X509_gmtime_adj(X509_getm_notAfter(cert), VALID_SEC) &&
	    set_name(X509_get_subject_name(cert), name) &&
	    X509_set_issuer_name(cert, X509_get_subject_name(issuer ? issuer : cert)) ==
		    1 &&
	    X509_set_pubkey(cert, key) == 1 &&
	    add_extensions(cert, issuer ? issuer : cert, ext, n) &&
	    X509_sign(cert, signer, EVP_sha256()) > 0)
		return cert;
	X509_free(cert);
	return NULL;
}

static X509 *make_authority(EVP_PKEY *key)
{
	static const struct extension ext[] = {
		{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
		{NID_key_usage, "critical,keyCertSign"},
		{NID_subject_key_identifier, "hash"},
	};

	return make_cert(key, "Lychgate: the authority of one job", NULL, key, ext,
			 ARRAY_SIZE(ext));
}

/* host is by the grammar of common/host.h: nothing in it means anything to OpenSSL. */
static X509 *make_leaf(const struct tls_ca *ca, const char *host)
{
	char san[SAN_MAX_BYTES];
	const struct extension ext[] = {
		{NID_subject_alt_name, san},
		{NID_basic_constraints, "critical,CA:FALSE"},
		{NID_key_usage, "critical,digitalSignature"},
		{NID_ext_key_usage, "serverAuth"},
		{NID_subject_key_identifier, "hash"},
		{NID_authority_key_identifier, "keyid:always"},
	};

	if (str_fmt(san, sizeof(san), "DNS:%s", host) < 0)
		return NULL;
	return make_cert(ca->leaf_key, "Lychgate: one host of one job", ca->cert, ca->key,
			 ext, ARRAY_SIZE(ext));
}

/* ---- connections ---- */

/* Also called for a client that names none. */
static int on_name(SSL *ssl, int *alert, void *arg UNUSED)
{
	const char *named = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

	*alert = SSL_AD_UNRECOGNIZED_NAME;
	return named && strcasecmp(named, SSL_get_app_data(ssl)) == 0
		       ? SSL_TLSEXT_ERR_OK
		       : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Only of a client that offers protocols. */
static int on_protocols(SSL *ssl UNUSED, const unsigned char **out, unsigned char *outlen,
			const unsigned char *in, unsigned inlen, void *arg UNUSED)
{
	static const unsigned char ours[] = "\x08http/1.1";
	unsigned char *found = NULL;

	if (SSL_select_next_proto(&found, outlen, ours, sizeof(ours) - 1, in, inlen) !=
	    OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = found;
	return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *make_ctx(void)
{
	static const uint64_t options = SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
					SSL_OP_NO_COMPRESSION | SSL_OP_NO_SSLv3 |
					SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1 |
					SSL_OP_CIPHER_SERVER_PREFERENCE;
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
	    SSL_CTX_set_cipher_list(ctx, "ECDHE-ECDSA-AES128-GCM-SHA256:"
					 "ECDHE-ECDSA-AES256-GCM-SHA384:"
					 "ECDHE-ECDSA-CHACHA20-POLY1305") != 1 ||
	    SSL_CTX_set_num_tickets(ctx, 0) != 1 ||
	    SSL_CTX_set_max_early_data(ctx, 0) != 1 ||
	    SSL_CTX_set_recv_max_early_data(ctx, 0) != 1) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	(void)SSL_CTX_set_options(ctx, options);
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS |
					    SSL_MODE_ENABLE_PARTIAL_WRITE |
					    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
	(void)SSL_CTX_set_tlsext_servername_callback(ctx, on_name);
	SSL_CTX_set_alpn_select_cb(ctx, on_protocols, NULL);
	return ctx;
}

SSL *tls_ca_accept(struct tls_ca *ca, const char *host)
{
	X509 *leaf = make_leaf(ca, host);
	SSL *ssl = leaf ? SSL_new(ca->ctx) : NULL;

	if (ssl && (SSL_use_certificate(ssl, leaf) != 1 ||
		    SSL_use_PrivateKey(ssl, ca->leaf_key) != 1 ||
		    SSL_set_app_data(ssl, host) != 1)) {
		SSL_free(ssl);
		ssl = NULL;
	}
	X509_free(leaf);
	if (ssl)
		SSL_set_accept_state(ssl);
	ERR_clear_error();
	return ssl;
}

/* ---- life ---- */

int tls_ca_new(struct tls_ca **ret, struct err *err)
{
	struct tls_ca *ca = xnew(struct tls_ca);

	ca->key = EVP_EC_gen("P-256");
	ca->leaf_key = ca->key ? EVP_EC_gen("P-256") : NULL;
	ca->cert = ca->leaf_key ? make_authority(ca->key) : NULL;
	ca->ctx = ca->cert ? make_ctx() : NULL;
	if (!ca->ctx) {
		tls_ca_free(ca);
		return failed("make the job's authority", err);
	}
	*ret = ca;
	return 0;
}

void tls_ca_free(struct tls_ca *ca)
{
	if (!ca)
		return;
	SSL_CTX_free(ca->ctx);
	X509_free(ca->cert);
	EVP_PKEY_free(ca->key);
	EVP_PKEY_free(ca->leaf_key);
	free(ca);
}

int tls_ca_pem(const struct tls_ca *ca, char *out, size_t size, struct err *err)
{
	BIO *bio = BIO_new(BIO_s_mem());
	int n = 0;

	if (bio && size <= INT_MAX && PEM_write_bio_X509(bio, ca->cert) == 1)
		n = BIO_read(bio, out, (int)size - 1);
	BIO_free(bio);
	if (n <= 0 || n == (int)size - 1)
		return failed("write the authority's certificate", err);
	out[n] = '\0';
	return 0;
}

int tls_ca_warm(struct err *err)
{
	struct tls_ca *ca = NULL;

	if (tls_ca_new(&ca, err) < 0)
		return -1;
	tls_ca_free(ca);
	return 0;
}
