/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the meter.
 * What a line of /proc/PID/maps says of a file.
 */
#include "sandbox/keeper/hidden.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

static uint64_t take_number(const char **p, uint64_t base)
{
	uint64_t v = 0;

	for (;; (*p)++) {
		char c = **p;
		uint64_t digit = c >= '0' && c <= '9'	? (uint64_t)(c - '0')
				 : c >= 'a' && c <= 'f' ? (uint64_t)(c - 'a' + 10)
							: base;

		if (digit >= base)
			return v;
		v = v * base + digit;
	}
}

/* Every line of every map is looked at: sscanf would take longer than the kernel does. */
bool hidden_map_file(const char *line, uint64_t *dev, uint64_t *ino)
{
	uint64_t major_nr, minor_nr;

	for (int field = 0; field < 3; field++) { /* range, rights, offset */
		line += strcspn(line, " ");
		line += *line == ' ';
	}
	major_nr = take_number(&line, 16);
	line += *line == ':';
	minor_nr = take_number(&line, 16);
	line += *line == ' ';
	*dev = makedev((unsigned)major_nr, (unsigned)minor_nr);
	*ino = take_number(&line, 10);
	return *ino != 0;
}

static const char *name_of(const char *line)
{
	for (int field = 0; field < 5; field++) { /* all before the name */
		line += strcspn(line, " ");
		line += strspn(line, " ");
	}
	return line;
}

/* The name is a fixed one. A memfd's may be any, but for its beginning. */
bool hidden_map_is_zero(const char *line)
{
	return strcmp(name_of(line), "/dev/zero (deleted)") == 0;
}

/* By its beginning: its number is no inode's, and may be that of a memfd. */
bool hidden_map_is_sysv(const char *line)
{
	static const char begins[] = "/SYSV";

	return strncmp(name_of(line), begins, sizeof(begins) - 1) == 0;
}

bool hidden_parse_map(const char *line, uint64_t *dev, uint64_t *ino, uint64_t *bytes)
{
	uint64_t from, to;
	unsigned major_nr, minor_nr;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*x %x:%x %" SCNu64, &from, &to,
		   &major_nr, &minor_nr, ino) != 5 ||
	    !*ino || to < from)
		return false;
	*dev = makedev(major_nr, minor_nr);
	*bytes = to - from;
	return true;
}
