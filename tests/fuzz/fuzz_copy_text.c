/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of an archive's database: what is taken has no line that psql or the server
 * could read as anything but a row or a table's end, however it comes in pieces. */
#include "cli/backup/copy_text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Told apart by other means: lines, and each backslash with what follows it. */
static unsigned check_lines(const char *text, size_t size)
{
	const char *end = text + size;
	unsigned ends = 0;

	assert(size == 0 || end[-1] == '\n');
	for (const char *at = text, *next; at < end; at = next) {
		next = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
		if (next - at == 3 && memcmp(at, "\\.\n", 3) == 0) {
			ends++;
			continue;
		}
		for (const char *c = at; c < next - 1; c++) {
			assert(*c && !strchr("\b\f\r\v", *c));
			if (*c != '\\')
				continue;
			c++;
			assert(c < next - 1 && *c && strchr("bfnrtv\\N", *c));
			assert(*c != 'N' || ((c - 1 == at || c[-2] == '\t') &&
					     (c[1] == '\t' || c[1] == '\n')));
		}
	}
	return ends;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT, again_err = ERR_INIT;
	struct copy_text whole, pieces;
	size_t cut = size ? data[0] % size : 0;
	int r, again;

	copy_text_begin(&whole);
	r = copy_text_add(&whole, data, size, &err);
	copy_text_begin(&pieces);
	again = copy_text_add(&pieces, data, cut, &again_err);
	if (again == 0)
		again = copy_text_add(&pieces, data + cut, size - cut, &again_err);
	assert(r == again && whole.sections == pieces.sections);
	assert(r == 0 || err.id == ERRID_BACKUP_DAMAGED);
	if (r == 0 && copy_text_end(&whole, whole.sections, &err) == 0) {
		assert(check_lines((const char *)data, size) == whole.sections);
		for (unsigned i = 0; i < whole.sections; i++)
			assert(copy_text_rows(&whole, i) < size);
	}
	return 0;
}
