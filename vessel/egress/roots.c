/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * See roots.h.
 */
#include "vessel/egress/roots.h"

#include "common/crypto/wiped.h"
#include "common/mem.h"

#include <curl/curl.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

struct egress_roots {
	X509_STORE *store;
};

/* NULL: it cannot be read, or none is in it. */
static X509_STORE *store_of(const char *text, size_t len)
{
	X509_STORE *store = X509_STORE_new();
	BIO *bio = len <= INT_MAX ? BIO_new_mem_buf(text, (int)len) : NULL;
	STACK_OF(X509_INFO) *found =
		bio ? PEM_X509_INFO_read_bio(bio, NULL, NULL, NULL) : NULL;
	int n = 0;

	for (int i = 0; store && found && i < sk_X509_INFO_num(found); i++) {
		const X509_INFO *one = sk_X509_INFO_value(found, i);

		if (one->x509 && X509_STORE_add_cert(store, one->x509) == 1)
			n++;
	}
	sk_X509_INFO_pop_free(found, X509_INFO_free);
	BIO_free(bio);
	ERR_clear_error();
	if (n > 0)
		return store;
	X509_STORE_free(store);
	return NULL;
}

bool egress_roots_are(const char *text, size_t len)
{
	X509_STORE *store = store_of(text, len);

	X509_STORE_free(store);
	return store != NULL;
}

void egress_roots_set(struct egress_roots *r, const char *text, size_t len)
{
	X509_STORE *store = text ? store_of(text, len) : NULL;

	/* connections that have begun hold the old one */
	X509_STORE_free(r->store);
	r->store = store ? store : X509_STORE_new();
}

int egress_roots_new(const char *text, size_t len, struct egress_roots **ret,
		     struct err *err)
{
	struct egress_roots *r;

	/* It copies the headers, and the credential with them, about. */
	if (curl_global_init_mem(CURL_GLOBAL_SSL, wiped_malloc, wiped_free, wiped_realloc,
				 wiped_strdup, wiped_calloc) != CURLE_OK)
		return err_set(err, ERR_INTERNAL, "curl_global_init failed");
	r = xnew(struct egress_roots);
	egress_roots_set(r, text, len);
	if (!r->store) {
		egress_roots_free(r);
		return err_set(err, ERR_INTERNAL, "no certificate store");
	}
	*ret = r;
	return 0;
}

void egress_roots_free(struct egress_roots *r)
{
	if (!r)
		return;
	X509_STORE_free(r->store);
	free(r);
	curl_global_cleanup();
}

int egress_roots_use(const struct egress_roots *r, void *ssl_ctx)
{
	SSL_CTX *ctx = ssl_ctx;

	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION);
	if (!r->store)
		return -1;
	return SSL_CTX_set1_cert_store(ctx, r->store), 0;
}
