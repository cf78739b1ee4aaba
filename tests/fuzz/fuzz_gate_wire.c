/* SPDX-License-Identifier: Apache-2.0 */
/* Frames between vessel and worker, both ways, and the private store's file. */
#include "common/buf.h"
#include "vessel/gate/private.h"
#include "vessel/gate/wire.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_report(const uint8_t *data, size_t size)
{
	static struct gate_report r;
	const struct gate_part parts[] = {{.data = "0123456789", .len = 10},
					  {.data = "01234", .len = 5}};

	if (!gate_wire_get_report(data, size, parts, 2, &r))
		return;
	if (!(r.score >= 0 && r.score <= 1))
		abort();
	for (size_t i = 0; i < r.n; i++) {
		const struct gate_finding *f = &r.finding[i];

		if (!f->is_split &&
		    (f->part > 1 || (size_t)f->offset + f->len > parts[f->part].len))
			abort();
		if (!f->rule || f->family >= GATE_FAMILY_MAX_)
			abort();
	}
}

/* What is read is written the same. */
static void check_scan(const uint8_t *data, size_t size)
{
	struct gate_input in;
	void *memory = NULL;
	struct buf out;

	if (!gate_wire_get_scan(data, size, &in, &memory))
		return;
	buf_init(&out, size + GATE_FRAME_HEADER);
	gate_wire_put_scan(&out, 1, &in);
	if (!buf_ok(&out) || out.len != size + GATE_FRAME_HEADER ||
	    memcmp(out.data + GATE_FRAME_HEADER, data, size) != 0)
		abort();
	buf_done(&out);
	free(memory);
}

static void check_private(const uint8_t *data, size_t size)
{
	struct gate_private *p = NULL;
	struct buf out;

	if (gate_private_read(data, size, &p, NULL) < 0)
		return;
	buf_init(&out, size);
	gate_private_write(p, &out);
	if (!buf_ok(&out) || out.len != size || memcmp(out.data, data, size) != 0)
		abort();
	buf_done(&out);
	gate_private_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gate_frame f;
	struct gate_config c;
	job_id_t job;
	int64_t epoch;

	if (gate_wire_header(data, size, &f) > 0 && f.len > GATE_FRAME_MAX)
		abort();
	(void)gate_wire_get_config(data, size, &c);
	if (gate_wire_get_whose(data, size, &job, &epoch) && size != 16)
		abort();
	check_report(data, size);
	check_scan(data, size);
	check_private(data, size);
	return 0;
}
