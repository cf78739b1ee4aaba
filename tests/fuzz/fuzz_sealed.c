/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the encrypted store: nothing that was not sealed with this key opens. */
#include "common/mem.h"
#include "secrets/seal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t key[SEAL_KEY_BYTES] = {7}, salt[SEAL_SALT_BYTES] = {9};
	struct err err = ERR_INIT;
	struct seal_params p;
	size_t n = 0;

	if (seal_header_parse(data, size, &p, &err) == 0) {
		assert(p.kdf == SEAL_KDF_HKDF ||
		       (p.log2_n >= SEAL_LOG2_N_MIN && p.log2_n <= SEAL_LOG2_N_MAX &&
			p.r == SEAL_R && p.p >= 1 && p.p <= SEAL_P_MAX));
		assert(seal_header_check(data, key, &err) < 0);
	}
	if (seal_record_parse(data, size, &n, &err) == 0) {
		uint8_t *out = xmalloc(n);

		assert(n >= 1 && n + SEAL_RECORD_OVERHEAD == size);
		assert(unseal_record(key, salt, "id", data, size, out, &err) < 0);
		free(out);
	}
	return 0;
}
