/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs inside: makes one kind of the kernel's objects as fast as it goes, in as many processes
 * as it is told, and keeps them. tests/escape/objects.py looks at the machine's memory meanwhile.
 *
 *	try_objects KIND PROCESSES MARK [SECONDS]	(MARK: to be found by)
 *	try_objects --list | --refused		the kinds; those that can't be made at all
 *	try_objects --table			both, as docs/SANDBOX.md has them
 *
 * Each process makes them until it is refused (or until it is ended), then it waits, so long. One of
 * them prints how many it made, where it counts them, and what refused the next.
 */
#include "tests/escape/objects/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOLD_SEC 3

int who;
char block[BLOCK_BYTES];
unsigned long made;

static const struct object_kind *const parts[] = {objects_of_sockets, objects_of_files,
						  objects_of_descriptors,
						  objects_of_memory, objects_of_sysv};

void stuff(int fd)
{
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	while (write(fd, block, sizeof(block)) > 0)
		;
	while (write(fd, block, 4096) > 0)
		;
}

const char *own_name(const char *where, int n)
{
	static char name[128];

	(void)snprintf(name, sizeof(name), "%s.%d.%d", where, who, n);
	return name;
}

static void list(const struct object_kind *k)
{
	for (; k->name; k++)
		(void)puts(k->name);
}

static void table(const struct object_kind *k)
{
	for (; k->name; k++)
		(void)printf("| %s | %s | %s | %s |\n", k->name, k->where, k->bound,
			     k->most);
}

static void tables(void)
{
	(void)puts("\n| object | grades | what bounds it | most |\n| --- | --- | --- | "
		   "--- |");
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		table(parts[i]);
	(void)puts("\nNot to be made at all:\n\n| object | grades | refused by | |\n"
		   "| --- | --- | --- | --- |");
	table(objects_refused);
}

static const struct object_kind *find(const char *name)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		for (const struct object_kind *k = parts[i]; k->name; k++)
			if (strcmp(k->name, name) == 0)
				return k;
	for (const struct object_kind *k = objects_refused; k->name; k++)
		if (strcmp(k->name, name) == 0)
			return k;
	return NULL;
}

/* There is nothing to keep. */
static bool is_refused(void)
{
	return made == 0 && (errno == EPERM || errno == EACCES || errno == ENOSYS ||
			     errno == EOPNOTSUPP || errno == EINVAL);
}

int main(int argc, char **argv)
{
	unsigned long n = argc >= 4 ? strtoul(argv[2], NULL, 10) : 0;
	unsigned hold = argc == 5 ? (unsigned)strtoul(argv[4], NULL, 10) : HOLD_SEC;
	const struct object_kind *k = argc > 1 ? find(argv[1]) : NULL;
	bool refused;

	if (argc == 2 && strcmp(argv[1], "--list") == 0)
		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
			list(parts[i]);
	if (argc == 2 && strcmp(argv[1], "--refused") == 0)
		list(objects_refused);
	if (argc == 2 && strcmp(argv[1], "--table") == 0)
		tables();
	if (!k || !n)
		return argc == 2 ? 0 : 2;
	for (who = 0; who < (int)n - 1 && fork() != 0; who++)
		;
	errno = 0;
	k->make();
	refused = is_refused();
	if (who == 0) {
		(void)printf("%lu %s\n", made, strerrorname_np(errno));
		(void)fflush(stdout);
	}
	if (n > 1 && !refused)
		(void)sleep(hold);
	return 0;
}
