/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a job's receipt, any bytes, judged by the key that it names itself: what holds is its own line's. */
#include "common/str.h"
#include "vessel/scribe/receipt_file.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void pin_of(const char *data, size_t size, uint8_t pin[ED25519_PUBLIC_SIZE])
{
	static const char mark[] = "\"genesis\":\"";
	const char *at = size ? memmem(data, size, mark, sizeof(mark) - 1) : NULL;
	char text[SEAL_TEXT32];

	memset(pin, 0, ED25519_PUBLIC_SIZE);
	if (!at || (size_t)(data + size - at) < sizeof(mark) - 1 + sizeof(text))
		return;
	memcpy(text, at + sizeof(mark) - 1, sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	if (seal_parse32(text, pin, NULL) < 0)
		memset(pin, 0, ED25519_PUBLIC_SIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct err err = ERR_INIT;
	struct receipt_file r;
	uint8_t pin[ED25519_PUBLIC_SIZE];
	int rc;

	pin_of(text, size, pin);
	rc = receipt_file_judge(text, size, pin, &r, &err);
	if (rc < 0 ? (r.verdict == AUDIT_OK || !err.msg[0])
		   : (r.verdict != AUDIT_OK || r.receipt < r.line.data ||
		      r.receipt_len > r.line.len || r.seq > r.seal.size ||
		      memmem(data, size, "job.receipt", 11) == NULL))
		abort();
	receipt_file_done(&r);
	return 0;
}
