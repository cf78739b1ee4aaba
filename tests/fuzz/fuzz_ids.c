/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, sizes, times, ids, paths and base64 from outside: what is accepted reads back as
 * the same text, and no path that is accepted leads out. */
#include "common/base64.h"
#include "common/clock.h"
#include "common/id.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/utf8.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void numbers(const char *s)
{
	struct err err = ERR_INIT;
	uint64_t v;
	char back[32];

	if (parse_u64(s, 0, UINT64_MAX, &v, &err) == 0) {
		(void)snprintf(back, sizeof(back), "%llu", (unsigned long long)v);
		assert(strcmp(back, s) == 0);
	} else {
		assert(err.code != ERR_NONE);
	}
	if (parse_size(s, 1, 1000, &v, &err) == 0)
		assert(v >= 1 && v <= 1000);
	if (parse_duration_usec(s, 1, USEC_PER_SEC, &v, &err) == 0)
		assert(v >= 1 && v <= USEC_PER_SEC);
}

static void ids(const char *s)
{
	struct err err = ERR_INIT;
	uint8_t sha[SHA256_SIZE];
	char hex[SHA256_HEX_SIZE];
	struct uuid u;
	job_id_t id;

	if (uuid_parse(s, &u, &err) == 0)
		assert(strcmp(u.s, s) == 0);
	if (job_id_parse(s, &id, &err) == 0)
		assert(id > 0);
	if (sha256_hex_parse(s, sha, &err) == 0) {
		hex_encode(sha, sizeof(sha), hex);
		assert(strcmp(hex, s) == 0);
	}
}

static void paths(const char *s, size_t len)
{
	struct err err = ERR_INIT;

	if (path_check_relative(s, len, &err) < 0)
		return;
	assert(strlen(s) == len && s[0] != '/' && utf8_is_valid(s, len));
	assert(strcmp(s, "..") != 0 && strncmp(s, "../", 3) != 0 && !strstr(s, "/../") &&
	       !str_ends(s, "/.."));
}

static void encodings(const char *s, size_t len)
{
	struct err err = ERR_INIT;
	struct buf b;
	char *raw = NULL;
	size_t n;

	if (base64_decode(s, len, &raw, &n, &err) < 0)
		return;
	buf_init(&b, len + 4);
	base64_add(&b, raw, n);
	assert(buf_ok(&b) && b.len == len && memcmp(buf_str(&b), s, len) == 0);
	buf_done(&b);
	free(raw);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *s = xmalloc(size + 1);

	memcpy(s, data, size);
	s[size] = '\0';
	numbers(s);
	ids(s);
	paths(s, size);
	encodings(s, size);
	free(s);
	return 0;
}
