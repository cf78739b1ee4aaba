/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of the wire between vessel and egress workers: one stream of frames, and each
 * frame's payload through the parser of its type; and the vessel's words to the parent. */
#include "common/mem.h"
#include "common/str.h"
#include "vessel/egress/hosts/word.h"
#include "vessel/egress/wire.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was taken can be written again and gives the same bytes. */
static void check_request(const struct egress_frame *f)
{
	struct egress_wire_request rq;
	struct err err = ERR_INIT;
	cleanup_buf struct buf out;

	buf_init(&out, EGRESS_FRAME_MAX + EGRESS_FRAME_HEADER);
	if (egress_request_parse(f->data, f->len, &rq, &err) < 0)
		return;
	assert(rq.rq.n_headers <= EGRESS_HEADERS_MAX &&
	       rq.rq.n_addresses <= EGRESS_ADDRESSES_MAX);
	assert(!str_has_control(rq.rq.target, strlen(rq.rq.target)));
	assert(egress_request_add(&out, f->call, &rq.rq, &err) == 0 && buf_ok(&out));
	assert(out.len == EGRESS_FRAME_HEADER + f->len &&
	       memcmp(out.data + EGRESS_FRAME_HEADER, f->data, f->len) == 0);
	free(rq.memory);
}

static void check_head(const struct egress_frame *f)
{
	struct egress_wire_head head;
	struct err err = ERR_INIT;
	cleanup_buf struct buf out;

	buf_init(&out, EGRESS_FRAME_MAX + EGRESS_FRAME_HEADER);
	if (egress_head_parse(f->data, f->len, &head, &err) < 0)
		return;
	assert(egress_head_add(&out, f->call, &head.head, &err) == 0 && buf_ok(&out));
	assert(out.len == EGRESS_FRAME_HEADER + f->len &&
	       memcmp(out.data + EGRESS_FRAME_HEADER, f->data, f->len) == 0);
	free(head.memory);
}

static void check(const struct egress_frame *f)
{
	struct confine_report walls;
	struct egress_end end;
	struct err err = ERR_INIT, why = ERR_INIT;
	unsigned count;
	uint64_t room;
	uint32_t credit;
	bool in_header, is_last;
	job_id_t job;
	int64_t epoch;

	switch (f->type) {
	case EGRESS_F_REQUEST:
		check_request(f);
		break;
	case EGRESS_F_HEAD:
		check_head(f);
		break;
	case EGRESS_F_END:
		if (egress_end_parse(f->data, f->len, &end, &why, &err) == 0 && end.err)
			assert(str_starts(err_text(end.err), "LYCH-EGRESS-") ||
			       str_starts(err_text(end.err), "LYCH-FETCH-"));
		break;
	case EGRESS_F_READY:
		if (egress_ready_parse(f->data, f->len, &walls, &err) == 0)
			assert(walls.n <= ARRAY_SIZE(walls.line));
		break;
	case EGRESS_F_FAILED:
		if (egress_failed_parse(f->data, f->len, &why, &err) == 0)
			assert(err_is_set(&why));
		break;
	case EGRESS_F_REDACTED:
		if (egress_redacted_parse(f->data, f->len, &in_header, &count, &err) == 0)
			assert(count > 0);
		break;
	case EGRESS_F_CREDIT:
		if (egress_credit_parse(f->data, f->len, &credit, &err) == 0)
			assert(credit > 0 && credit <= EGRESS_WINDOW_BYTES);
		break;
	case EGRESS_F_ROOM:
		if (egress_room_parse(f->data, f->len, &room, &is_last, &err) == 0)
			assert(room <= (uint64_t)1 << 40);
		break;
	case EGRESS_F_WHOSE:
		if (egress_whose_parse(f->data, f->len, &job, &epoch, &err) == 0)
			assert(job >= 0 && epoch >= 0);
		break;
	case EGRESS_F_DATA:
	case EGRESS_F_CANCEL:
	case EGRESS_F_MORE:
	case EGRESS_F_MAX_:
		break;
	}
}

static void check_word(const uint8_t *data, size_t size)
{
	struct host_word *word = host_word_parse(data, size);
	struct err err = ERR_INIT;
	cleanup_buf struct buf out;

	buf_init(&out, HOST_WORD_MAX_BYTES);
	if (!word)
		return;
	assert(word->is_end || (str_starts(word->host.secret, "host_") &&
				!strpbrk(word->host.secret, "/.") &&
				word->host.n_addresses <= EGRESS_ADDRESSES_MAX));
	assert(host_word_add(&out, word, &err) == 0);
	assert(out.len == size && memcmp(out.data, data, size) == 0);
	host_word_free(word);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct egress_frame f;
	struct err err = ERR_INIT;
	size_t used;

	check_word(data, size);
	while (egress_frame_next(data, size, &f, &used, &err) == 1) {
		assert(used <= size && f.len <= EGRESS_FRAME_MAX &&
		       f.type < EGRESS_F_MAX_);
		check(&f);
		data += used;
		size -= used;
	}
	return 0;
}
