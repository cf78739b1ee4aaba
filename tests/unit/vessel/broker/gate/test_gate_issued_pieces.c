/* SPDX-License-Identifier: Apache-2.0 */
/* A signature that Anthropic's stream says in several events of one block: known by piece and whole. */
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/gate/issued.h"
#include "vessel/broker/gate/reply.h"
#include <criterion/criterion.h>
#include <string.h>

TestSuite(gate_issued_pieces, .timeout = 60);

#define ROOM ((size_t)4 << 20)

static void hear(struct gate_job *job, const struct buf *stream, size_t step)
{
	struct gate_reply *r = gate_reply_new(job, "portal:a", true);
	cleanup_buf struct buf out = {.max = 2 * ROOM};

	for (size_t i = 0, n; i < stream->len; i += n) {
		n = stream->len - i < step ? stream->len - i : step;
		gate_reply_feed(r, stream->data + i, n, &out);
	}
	gate_reply_end(r, &out);
	gate_reply_free(r);
}

/* Is it taken for one that was issued, when a request has it? */
static bool is_signature(struct gate_job *job, const char *value)
{
	cleanup_buf struct buf text = {.max = ROOM};
	cleanup_json struct json *j = NULL;
	cleanup_gate_parts struct gate_parts *p = gate_parts_new();

	buf_addf(&text, "{\"messages\":[{\"signature\":\"%s\"}]}", value);
	cr_assert_eq(json_parse(buf_str(&text), text.len, 28, &j, NULL), 0);
	gate_parts_add_json(p, j);
	gate_job_mark_issued(job, "portal:a", j, p, 0);
	for (size_t i = 0; i < p->n; i++)
		if (str_eq(p->part[i].data, value))
			return p->part[i].kind == GATE_PART_ECHO;
	cr_assert_fail("it is not in the request");
	return false;
}

#define BLOCK(index, pieces)                                                             \
	"data: {\"type\":\"content_block_start\",\"index\":" index                       \
	",\"content_block\":{"                                                           \
	"\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n" pieces        \
	"data: {\"type\":\"content_block_stop\",\"index\":" index "}\n\n"
#define PIECE(index, text)                                                               \
	"data: {\"type\":\"content_block_delta\",\"index\":" index                       \
	",\"delta\":{\"type\":"                                                          \
	"\"signature_delta\",\"signature\":\"" text "\"}}\n\n"
#define MORE(index)                                                                      \
	"data: {\"type\":\"content_block_delta\",\"index\":" index                       \
	",\"delta\":{\"type\":"                                                          \
	"\"thinking_delta\",\"thinking\":\"so\"}}\n\nevent: ping\ndata: "                \
	"{\"type\":\"ping\"}"                                                            \
	"\n\n"

Test(gate_issued_pieces, they_are_known_whole_and_one_by_one)
{
	static const char stream[] =
		BLOCK("0", MORE("0") PIECE("0", "EqQBCgIY") PIECE("0", "Ag+/abc0")
				   PIECE("0", "Zm9v=="))
			BLOCK("1", PIECE("1", "SecondOf") PIECE("1", "ItsPieces"))
				PIECE("2", "NoStart-") PIECE("2", "NoStop--");

	cleanup_buf struct buf said = {.max = ROOM};

	buf_adds(&said, stream);
	for (size_t step = 1; step < 400; step += 57) {
		cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);

		hear(a, &said, step);
		/* what no block has */
		cr_expect_not(is_signature(a, "Ag+/abc0EqQBCgIYZm9v=="));
		cr_expect_not(is_signature(a, "EqQBCgIYZm9v=="));
		cr_expect_not(is_signature(a, "EqQBCgIYAg+/abc0"));
		cr_expect_not(is_signature(a, "EqQBCgIYAg+/abc0Zm9v==SecondOfItsPieces"));
		cr_expect_not(is_signature(a, "ItsPiecesNoStart-"));
		cr_expect(is_signature(a, "EqQBCgIYAg+/abc0Zm9v=="));
		cr_expect(is_signature(a, "Ag+/abc0"));
		cr_expect(is_signature(a, "SecondOfItsPieces"));
		cr_expect(is_signature(a, "NoStart-NoStop--"));
	}
}

Test(gate_issued_pieces, they_are_joined_within_the_bound)
{
	static const char piece[] = PIECE("0", "EqQBCgIYAg+/abc0");
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);
	cleanup_buf struct buf stream = {.max = 2 * ISSUED_OPAQUE_MAX_BYTES};
	cleanup_buf struct buf whole = {.max = 2 * ISSUED_OPAQUE_MAX_BYTES};
	cleanup_free char *big = xmalloc(ISSUED_OPAQUE_MAX_BYTES / 8 + 1);

	memset(big, 'A', ISSUED_OPAQUE_MAX_BYTES / 8);
	big[ISSUED_OPAQUE_MAX_BYTES / 8] = '\0';
	for (int i = 0; i < 8; i++) {
		buf_addf(&stream, PIECE("0", "%s"), big);
		buf_adds(&whole, big);
	}
	hear(a, &stream, 65536);
	cr_expect(is_signature(a, buf_str(&whole)), "of just its bound");
	buf_adds(&stream, piece);
	buf_adds(&whole, "EqQBCgIYAg+/abc0");
	hear(a, &stream, 65536);
	cr_expect_not(is_signature(a, buf_str(&whole)), "of more");
	cr_expect(is_signature(a, "EqQBCgIYAg+/abc0"), "the piece itself");
}
