/* SPDX-License-Identifier: Apache-2.0 */
/* A body of git's, whatever it is: taken with words and ids of its own bytes, or refused with a reason. */
#include "vessel/gate/git/git.h"
#include "vessel/gate/git/inflate.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refused(const struct err *err)
{
	if (err->id != ERRID_GIT_REQUEST || !err->msg[0])
		abort();
}

static void read_as_fetch(const void *data, size_t size)
{
	struct git_words w;
	struct err err = ERR_INIT;

	if (git_read_fetch(data, size, &w, &err) < 0) {
		check_refused(&err);
		if (w.text.data || w.ids.data)
			abort();
		return;
	}
	if (strspn(buf_str(&w.ids), "0123456789abcdef") != w.ids.len)
		abort();
	if (!git_is_gzip(data, size) && w.ids.len + w.text.len > 2 * size)
		abort();
	git_words_done(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_as_fetch(data, size);
	return 0;
}
