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

static bool on_object(const struct pack_object *o, void *arg)
{
	struct git_words w;
	struct err err = ERR_INIT;
	size_t *total = arg;

	*total += o->len;
	if (o->len > PACK_OBJECT_MAX_BYTES || *total > PACK_TOTAL_MAX_BYTES)
		abort();
	if (git_read_object(o, &w, &err) < 0)
		check_refused(&err);
	git_words_done(&w);
	return true;
}

/* With a digest that is right, or little of the rest would ever be read. */
static void read_as_pack(const uint8_t *data, size_t size)
{
	uint8_t *pack = malloc(size + SHA1_SIZE);
	struct err err = ERR_INIT;
	size_t total = 0;

	if (!pack)
		return;
	memcpy(pack, data, size);
	sha1_of("", 0, data, size, pack + size);
	if (pack_read(pack, size + SHA1_SIZE, on_object, &total, &err) < 0)
		check_refused(&err);
	free(pack);
}

static void read_as_push(const uint8_t *data, size_t size)
{
	struct git_words w;
	struct err err = ERR_INIT;
	const void *pack;
	size_t n;

	if (git_read_push(data, size, &w, &pack, &n, &err) < 0)
		check_refused(&err);
	else if (pack && !git_is_gzip(data, size) &&
		 ((const uint8_t *)pack < data || n > size))
		abort();
	git_words_done(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_as_fetch(data, size);
	read_as_push(data, size);
	read_as_pack(data, size);
	return 0;
}
