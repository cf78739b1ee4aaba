/* SPDX-License-Identifier: Apache-2.0 */
#include "vessel/gate_mac.h"
#include "common/net/sha256.h"
#include <string.h>

#define BLOCK 64

void gate_mac(const uint8_t key[SHA256_SIZE], const void *data, size_t len,
	      uint8_t out[SHA256_SIZE])
{
	uint8_t pad[BLOCK];

	for (unsigned pass = 0; pass < 2; pass++) {
		cleanup_sha256 struct sha256 *h = sha256_new();

		for (unsigned i = 0; i < BLOCK; i++)
			pad[i] = (uint8_t)((i < SHA256_SIZE ? key[i] : 0) ^
					   (pass ? 0x5c : 0x36));
		sha256_add(h, pad, sizeof(pad));
		sha256_add(h, pass ? out : data, pass ? SHA256_SIZE : len);
		sha256_final(h, out);
	}
	explicit_bzero(pad, sizeof(pad));
}
