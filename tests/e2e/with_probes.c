/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry point of a container whose daemon is a test build, /daemon: executes it with the
 * unit's own arguments and the list of what it shall try once it has confined itself. Linked
 * without libraries: the images hold no shell that could do it. A migration by the same
 * program runs as it is.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ARGS_MAX 64

int main(int argc, char **argv)
{
	static char daemon[] = "/daemon", option[] = "--probe-walls", list[] = "/probes";
	char *args[ARGS_MAX + 3];
	int n = argc;

	if (n < 1 || n > ARGS_MAX)
		return 2;
	memcpy(args, argv, (size_t)n * sizeof(*args));
	args[0] = daemon;
	if (n < 2 || strcmp(args[1], "migrate") != 0) {
		args[n++] = option;
		args[n++] = list;
	}
	args[n] = NULL;
	execv(daemon, args);
	perror(daemon);
	return 127;
}
