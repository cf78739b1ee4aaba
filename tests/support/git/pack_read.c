/* SPDX-License-Identifier: Apache-2.0 */
/* pack_read FILE...: a line for each object of each pack, "TYPE ID LENGTH", and "ok FILE", or "refused FILE: WHY". */
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/str.h"
#include "vessel/gate/git/git.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FILE_MAX_BYTES ((size_t)64 << 20)

/* The words of each are read too: they must be what their type says. */
static bool on_object(const struct pack_object *o, void *arg)
{
	cleanup_git_words struct git_words w;
	char id[2 * SHA1_SIZE + 1];

	if (git_read_object(o, &w, arg) < 0)
		return false;
	hex_encode(o->id, SHA1_SIZE, id);
	(void)printf("%s %s %zu\n", pack_type_name(o->type), id, o->len);
	return true;
}

static void read_one(const char *path)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *data = malloc(FILE_MAX_BYTES);
	struct err err = ERR_INIT, said = ERR_INIT;
	size_t len = 0;
	ssize_t n = 1;

	while (data && fd >= 0 && n > 0 && len < FILE_MAX_BYTES) {
		n = read(fd, data + len, FILE_MAX_BYTES - len);
		len += n > 0 ? (size_t)n : 0;
	}
	if (!data || fd < 0 || n < 0)
		exit(2);
	if (pack_read(data, len, on_object, &said, &err) < 0)
		(void)printf("refused %s: %s\n", path, err.msg);
	else if (err_is_set(&said))
		(void)printf("refused %s: %s\n", path, said.msg);
	else
		(void)printf("ok %s\n", path);
	free(data);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		read_one(argv[i]);
	return 0;
}
