/* SPDX-License-Identifier: Apache-2.0 */
/* The receipt of lych bind: whatever it says, the names in it are names of ours. */
#include "cli/pod/receipt.h"
#include "common/str.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_names(const struct receipt_file *f, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert(str_starts(f[i].name, "lychgate") && !strpbrk(f[i].name, "/\n"));
		assert(strlen(f[i].sha256) == SHA256_HEX_SIZE - 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct receipt r = {0};
	struct err err = ERR_INIT;

	if (receipt_parse((const char *)data, size, &r, &err) < 0) {
		assert(err.id == ERRID_BIND_RECEIPT && err.msg[0]);
		return 0;
	}
	assert(r.n_files <= UNITS_MAX && r.n_known <= RECEIPT_KNOWN_MAX);
	check_names(r.file, r.n_files);
	check_names(r.known, r.n_known);
	assert(!r.directory || r.directory[0] == '/');
	receipt_done(&r);
	return 0;
}
