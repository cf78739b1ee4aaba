/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See registry_cargo.h.
 */
#include "vessel/broker/intents/registry_cargo.h"

#include "common/str.h"

#include <string.h>

#define NAME_MAX_BYTES 64
#define NAME "abcdefghijklmnopqrstuvwxyz0123456789-_"

bool registry_cargo_is_index(const char *path)
{
	const char *name = strrchr(path, '/');
	char want[NAME_MAX_BYTES * 2];
	size_t len;
	int r;

	name = name ? name + 1 : "";
	len = strlen(name);
	if (!len || len > NAME_MAX_BYTES || strspn(name, NAME) != len)
		return false;
	if (len <= 2)
		r = str_fmt(want, sizeof(want), "%zu/%s", len, name);
	else if (len == 3)
		r = str_fmt(want, sizeof(want), "3/%c/%s", name[0], name);
	else
		r = str_fmt(want, sizeof(want), "%.2s/%.2s/%s", name, name + 2, name);
	return r == 0 && str_eq(path, want);
}

/* By "dl": with "/CRATE/VERSION/download" behind it where it has no marks. */
bool registry_cargo_is_file(const char *path)
{
	const char *slash = strchr(path, '/');

	return slash && strchr(slash + 1, '/') &&
	       (str_ends(path, "/download") || str_ends(path, ".crate"));
}
