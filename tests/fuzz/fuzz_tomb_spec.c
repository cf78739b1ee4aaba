/* SPDX-License-Identifier: Apache-2.0 */
/* A spec out of the queue, and the block that it becomes: the job's argv is all that
 * follows the first "--", so nothing of it can be read as an option. */
#include "common/str.h"
#include "tomb/spec/spec.h"

#include <assert.h>

static const struct broker_key key = {"lych-key"};
static const struct tomb_spec_place place = {.grade = GRADE_FULL,
					     .workspace = "1.1/work",
					     .tools = "/tools",
					     .key = &key,
					     .planted_as = "DEPLOY_TOKEN",
					     .planted = "0123456789abcdef"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_block(const struct tomb_spec *s, const struct buf *b)
{
	size_t n = 0, after = 0;
	bool past = false;

	assert(b->len && b->data[b->len - 1] == '\0');
	for (size_t i = 0; i < b->len; i += strlen(b->data + i) + 1, n++) {
		if (past)
			after++;
		else
			past = str_eq(b->data + i, "--") && n % 2 == 0;
	}
	assert(past && after == (s->script ? 2 : s->n_argv));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	struct tomb_spec s;
	struct buf b;

	if (tomb_spec_parse(data, size, &s, &err) < 0) {
		assert(err.code != ERR_NONE);
		return 0;
	}
	for (size_t i = 0; i < s.n_files; i++)
		assert(path_check_relative(s.files[i].path, strlen(s.files[i].path),
					   &err) == 0);
	buf_init(&b, (size_t)12 << 20);
	if (tomb_spec_block(&s, SPEC_USE_JOB, &place, &b, &err) == 0)
		check_block(&s, &b);
	buf_done(&b);
	tomb_spec_done(&s);
	return 0;
}
