/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * See roots.h.
 */
#include "vessel/egress/roots.h"

#include "common/crypto/wiped.h"
#include "common/mem.h"

#include <curl/curl.h>
#include <openssl/ssl.h>
#include <unistd.h>

struct egress_roots {
	X509_STORE *store;
};

static const char *find_bundle(void)
{
	static const char *const usual[] = {
		"/etc/ssl/certs/ca-certificates.crt",
		"/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/ca-bundle.pem",
		"/etc/ssl/cert.pem",
	};
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		if (access(usual[i], R_OK) == 0)
			return usual[i];
	return NULL;
}

int egress_roots_new(const char *file, struct egress_roots **ret, struct err *err)
{
	const char *path = file ? file : find_bundle();
	struct egress_roots *r;

	/* It copies the headers, and the credential with them, about. */
	if (curl_global_init_mem(CURL_GLOBAL_SSL, wiped_malloc, wiped_free, wiped_realloc,
				 wiped_strdup, wiped_calloc) != CURLE_OK)
		return err_set(err, ERR_INTERNAL, "curl_global_init failed");
	r = xnew(struct egress_roots);
	r->store = X509_STORE_new();
	if (!r->store) {
		egress_roots_free(r);
		return err_set(err, ERR_INTERNAL, "no certificate store");
	}
	if (path && X509_STORE_load_file(r->store, path) != 1) {
		(void)err_set_id(err, ERRID_START_CONFIG,
				 "the certificate authorities in %s cannot be read",
				 path);
		egress_roots_free(r);
		return -1;
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
	return SSL_CTX_set1_cert_store(ctx, r->store), 0;
}
