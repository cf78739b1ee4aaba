/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile reply, in pieces of any size: the same text comes out as in one piece. */
#include "common/buf.h"
#include "common/clock.h"
#include "vessel/broker/gate/job.h"
#include <stdlib.h>
#include <string.h>

#define OUT_MAX ((size_t)64 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct gate_job *new_job(void)
{
	struct gate_job *j = gate_job_new(&clock_real);
	struct gate_parts *p = gate_parts_new();
	const struct gate_finding f[] = {
		{.family = GATE_EMAIL, .offset = 0, .len = 6},
		{.family = GATE_KEYWORD, .offset = 7, .len = 6},
	};

	gate_parts_add(p, GATE_PART_TEXT, "c", "a@b.de <\"\\\n>x", 13);
	if (gate_job_anonymise(j, f, 2, p, NULL) < 0)
		abort();
	gate_parts_free(p);
	return j;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gate_job *j;
	enum gate_form form;
	struct gate_restore *whole, *pieces;
	struct buf a, b;

	if (size < 2 || size > 65536)
		return 0;
	if (!j)
		j = new_job();
	form = (enum gate_form)(data[0] % 3);
	whole = gate_restore_new(j, form);
	pieces = gate_restore_new(j, form);
	buf_init(&a, OUT_MAX);
	buf_init(&b, OUT_MAX);
	gate_restore_feed(whole, data + 2, size - 2, &a);
	gate_restore_end(whole, &a);
	for (size_t i = 2, n; i < size; i += n) {
		n = 1 + (data[1] + i * 7) % 13;
		n = n < size - i ? n : size - i;
		gate_restore_feed(pieces, data + i, n, &b);
	}
	gate_restore_end(pieces, &b);
	if (a.len != b.len || (a.len && memcmp(a.data, b.data, a.len) != 0))
		abort();
	gate_restore_free(whole);
	gate_restore_free(pieces);
	buf_done(&a);
	buf_done(&b);
	return 0;
}
