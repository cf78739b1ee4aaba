/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file worker answers, read as a stranger's: a list of artifacts that is taken is within
 * the harvest's caps and comes out the same again. And the list of files that it is sent.
 * First byte: which of the two.
 */
#include "common/proto.h"
#include "common/str.h"
#include "tomb/files/files_wire.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_list(const struct harvest_list *l, bool kept)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct harvest_item *item = &l->item[i];

		assert(strlen(item->path) < HARVEST_NAMED_MAX);
		assert((item->class != NULL) == kept && (item->why == NULL) == kept);
	}
}

static void read_harvest(const char *data, size_t size)
{
	cleanup_buf struct buf once = {.max = PAYLOAD_MAX_BYTES};
	cleanup_buf struct buf twice = {.max = PAYLOAD_MAX_BYTES};
	struct harvest h, again;
	struct err err = ERR_INIT;

	if (files_harvest_read(data, size, &h, &err) < 0) {
		assert(err.code == ERR_UPSTREAM);
		return;
	}
	assert(h.kept.n <= ARTIFACTS_MAX && h.refused.n <= HARVEST_LISTED_MAX &&
	       h.held.n <= HARVEST_LISTED_MAX);
	check_list(&h.kept, true);
	check_list(&h.refused, false);
	check_list(&h.held, false);
	files_harvest_write(&once, &h);
	assert(buf_ok(&once) &&
	       files_harvest_read(once.data, once.len, &again, &err) == 0);
	files_harvest_write(&twice, &again);
	assert(twice.len == once.len && memcmp(twice.data, once.data, once.len) == 0);
	harvest_done(&h);
	harvest_done(&again);
}

static void read_puts(const char *data, size_t size)
{
	cleanup_buf struct buf same = {.max = PAYLOAD_MAX_BYTES};
	struct wire r = {.at = data, .left = size};
	struct files_put p;
	int more;

	while ((more = files_put_next(&r, &p)) > 0) {
		assert(p.where < FILES_WHERE_MAX_ && p.path[p.path_len] == '\0' &&
		       p.data[p.data_len] == '\0');
		files_put_add(&same, &p);
	}
	assert(more < 0 || (same.len == size && memcmp(buf_str(&same), data, size) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] & 1)
		read_harvest((const char *)data + 1, size - 1);
	else
		read_puts((const char *)data + 1, size - 1);
	return 0;
}
