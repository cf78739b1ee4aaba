/* SPDX-License-Identifier: Apache-2.0 */
/* A certificate of nobody, for a server of a test. */
#ifndef LYCH_TESTS_SUPPORT_CERTIFICATE_H
#define LYCH_TESTS_SUPPORT_CERTIFICATE_H

/* A key and a certificate by itself for the IP address, good for an hour, in one PEM file. */
void certificate_write(const char *path, const char *address);

#endif
