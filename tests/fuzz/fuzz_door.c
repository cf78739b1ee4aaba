/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both ends of the queue's second door: what a tomb may send the vessel, and what the
 * vessel may answer. The first byte chooses the parser.
 */
#include "common/mem.h"
#include "common/proto/job_spec.h"
#include "tomb/queue/hello.h"
#include "tomb/queue/queue_vessel.h"
#include "vessel/db/door_wire.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_claimed(const struct vessel_claimed *got)
{
	assert(got->n <= DOOR_CLAIM_MAX);
	for (size_t i = 0; i < got->n; i++)
		assert(got->job[i].key.job > 0 && got->job[i].key.epoch > 0 &&
		       got->job[i].spec && got->job[i].spec_len <= SPEC_MAX_BYTES + 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct lease_key keys[2] = {{.job = 1, .epoch = 1},
						 {.job = 2, .epoch = 1}};
	enum lease_status status[2];
	struct door_extend *extend;
	struct vessel_claimed got;
	struct door_claim claim;
	struct door_hello hello;
	enum queue_answer answer;
	struct err err = ERR_INIT;

	if (size < 1)
		return 0;
	const void *body = data + 1;
	size--;
	switch (data[0]) {
	case 'h':
		if (door_hello_parse(body, size, &hello, &err) == 0)
			assert(hello.slots >= 1 && hello.slots <= 64 &&
			       strlen(hello.release) < sizeof(hello.release));
		break;
	case 'c':
		if (door_claim_parse(body, size, &claim, &err) == 0)
			assert(claim.n <= DOOR_CLAIM_MAX && strlen(claim.boot.s) == 36);
		break;
	case 'e':
		extend = xnew(struct door_extend);
		if (door_extend_parse(body, size, extend, &err) == 0)
			assert(extend->n >= 1 && extend->n <= DOOR_EXTEND_MAX);
		free(extend);
		break;
	case 'C':
		if (queue_vessel_parse_claim(body, size, &got, &err) == 0)
			check_claimed(&got);
		vessel_claimed_done(&got);
		break;
	case 'E':
		if (queue_vessel_parse_extend(body, size, keys, 2, status, &err) == 0)
			assert(status[0] <= LEASE_LOST && status[1] <= LEASE_LOST);
		break;
	case 'A':
		if (queue_vessel_parse_end(body, size, &answer, &err) == 0)
			assert(answer < ANSWER_MAX_);
		break;
	default:
		(void)!hello_parse(body, size, LYCH_API_VERSION, &err);
		break;
	}
	return 0;
}
