/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See job_spec.h.
 */
#include "common/proto/job_spec.h"

#include <stdlib.h>
#include <string.h>

int spec_interpreter_check(const char *s, struct err *err)
{
	size_t len = strlen(s);

	if (s[0] == '/') {
		/* the rest of an absolute path obeys the rules of a relative one */
		if (path_check_relative(s + 1, len - 1, NULL) < 0)
			return err_set_id(err, ERRID_SPEC_PATH, "interpreter");
		return 0;
	}
	if (strchr(s, '/') || s[0] == '-' || path_check_relative(s, len, NULL) < 0)
		return err_set_id(err, ERRID_SPEC_PATH,
				  "interpreter: an absolute path or a bare name");
	return 0;
}

bool spec_stream_is_valid(const char *name)
{
	return strlen(name) == STREAM_NAME_SIZE - 1 &&
	       strspn(name, "0123456789abcdef") == STREAM_NAME_SIZE - 1;
}

bool spec_term_is_valid(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-";
	size_t len = strlen(name);

	return len > 0 && len < TTY_TERM_SIZE && !strchr("._+-", name[0]) &&
	       strspn(name, letters) == len;
}

int spec_file_check(const char *path, struct err *err)
{
	struct err why = ERR_INIT;

	if (path_check_relative(path, strlen(path), &why) < 0)
		return err_set_id(err, ERRID_SPEC_PATH, "%s", why.msg);
	if (str_eq(path, SCRIPT_NAME) || str_starts(path, SCRIPT_NAME "/"))
		return err_set_id(err, ERRID_SPEC_PATH, "%s is reserved", SCRIPT_NAME);
	return 0;
}

/* '/' sorts before every other byte, so that what lies below "a" follows "a" at once. */
static int cmp_path(const void *a, const void *b)
{
	const unsigned char *p = *(const unsigned char *const *)a;
	const unsigned char *q = *(const unsigned char *const *)b;

	while (*p && *p == *q)
		p++, q++;
	int x = *p == '/' ? 1 : *p ? *p + 1 : 0;
	int y = *q == '/' ? 1 : *q ? *q + 1 : 0;
	return x - y;
}

int spec_paths_check(const char **paths, size_t n, struct err *err)
{
	if (n > 1)
		qsort(paths, n, sizeof(*paths), cmp_path);
	for (size_t i = 1; i < n; i++) {
		size_t len = strlen(paths[i - 1]);

		if (str_starts(paths[i], paths[i - 1]) &&
		    (paths[i][len] == '\0' || paths[i][len] == '/'))
			return err_set_id(err, ERRID_SPEC_PATH,
					  "two files claim the same path");
	}
	return 0;
}
