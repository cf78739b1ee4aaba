/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/certificate.h"

#include "common/str.h"
#include <criterion/criterion.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>

void certificate_write(const char *path, const char *address)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	char names[64];
	X509_EXTENSION *ext;
	FILE *f = fopen(path, "we");

	cr_assert(key && x && f);
	cr_assert_eq(str_fmt(names, sizeof(names), "IP:%s", address), 0);
	ext = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names);
	cr_assert(ext && X509_set_version(x, X509_VERSION_3) &&
		  ASN1_INTEGER_set(X509_get_serialNumber(x), 1) &&
		  X509_gmtime_adj(X509_getm_notBefore(x), -3600) &&
		  X509_gmtime_adj(X509_getm_notAfter(x), 3600) &&
		  X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
					     (const unsigned char *)"egress test", -1, -1,
					     0) &&
		  X509_set_issuer_name(x, X509_get_subject_name(x)) &&
		  X509_set_pubkey(x, key) && X509_add_ext(x, ext, -1) &&
		  X509_sign(x, key, EVP_sha256()));
	cr_assert(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL) &&
		  PEM_write_X509(f, x));
	cr_assert_eq(fclose(f), 0);
	X509_EXTENSION_free(ext);
	X509_free(x);
	EVP_PKEY_free(key);
}
