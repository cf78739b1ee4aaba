/* SPDX-License-Identifier: Apache-2.0 */
/* A Cargo.lock (first byte even) or go.sum of a project: what is made of it and taken for a
 * dependency has no character that means something in a Cargo.toml, go.mod or go.sum. */
#include "cli/deps/lock_lines.h"
#include "common/proto/deps.h"

#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_part(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		assert(isalnum((unsigned char)s[i]) || strchr("-_.~/+=<>^,:", s[i]));
}

static int put_crate(void *arg, const char *text, struct err *err)
{
	size_t *n = arg;
	struct deps_crate c;

	(void)err;
	++*n;
	if (!deps_read_crate(text, &c))
		return 0;
	check_part(c.name, c.name_len);
	check_part(c.features, c.features_len);
	check_part(c.version, c.version_len);
	assert(c.sha256 && strlen(c.sha256) == 64);
	check_part(c.sha256, 64);
	return 0;
}

static int put_module(void *arg, const char *text, struct err *err)
{
	size_t *n = arg;
	struct deps_module m;

	(void)err;
	++*n;
	if (!deps_read_module(text, &m))
		return 0;
	check_part(m.path, m.path_len);
	check_part(m.version, m.version_len);
	assert(m.h1);
	check_part(m.h1, strlen(m.h1));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;
	struct err err = ERR_INIT;
	size_t n = 0;
	int r;

	if (size == 0)
		return 0;
	r = data[0] % 2 ? lock_lines_go(text, size - 1, put_module, &n, &err)
			: lock_lines_cargo(text, size - 1, put_crate, &n, &err);
	assert(r == 0 || (err.id == ERRID_SPEC_DEPS && err.msg[0]));
	assert(n <= size);
	return 0;
}
