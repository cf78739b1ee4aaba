/* SPDX-License-Identifier: Apache-2.0 */
/* A producer's packet: whatever is taken becomes one line that reads back, and the same
 * again when it is sent once more. Also the line's own parser, on any bytes. */
#include "common/clock.h"
#include "vessel/scribe/line.h"
#include "vessel/scribe/scribe.h"
#include <stdlib.h>
#include <string.h>

#define UUID "aaaaaaaa-1111-4222-8333-444444444444"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_event(const struct scribe_packet *k)
{
	struct audit_head h = {.log = {UUID},
			       .boot = {UUID},
			       .stream = {UUID},
			       .seq = 1,
			       .pseq = k->pseq,
			       .prod = "queue"};
	struct audit_head got;
	const char *members;
	struct buf line;

	memset(h.prev, '0', SHA256_HEX_SIZE - 1);
	clock_rfc3339(0, h.ts);
	buf_init(&line, AUDIT_LINE_MAX);
	audit_line_write(&line, &h, k->members.data, k->members.len);
	if (!buf_ok(&line) ||
	    memchr(line.data, '\n', line.len) != line.data + line.len - 1)
		abort();
	for (size_t i = 0; i + 1 < line.len; i++)
		if ((unsigned char)line.data[i] < 0x20 || line.data[i] == 0x7f)
			abort();
	if (audit_line_parse(line.data, line.len - 1, &got, &members, NULL) < 0 ||
	    got.pseq != k->pseq || memcmp(members, k->members.data, k->members.len) != 0)
		abort();
	buf_done(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scribe_packet k;
	struct audit_chain c;
	struct audit_head h;
	const char *members;

	if (scribe_packet_parse(data, size, &k, NULL) == 0) {
		if (k.is_hello ? !audit_prod_is_valid(k.prod) : k.pseq == 0)
			abort();
		if (!k.is_hello)
			check_event(&k);
	}
	buf_done(&k.members);
	audit_chain_init(&c);
	if (size &&
	    audit_chain_next(&c, (const char *)data, size, &h, &members, NULL) == 0 &&
	    (c.seq != 2 || members <= (const char *)data))
		abort();
	return 0;
}
