/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/stat, whose second field is a name that the job chose: no name moves a field. */
#include "common/mem.h"
#include "sandbox/keeper/guard.h"
#include "sandbox/keeper/hidden.h"
#include "sandbox/keeper/use.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char rest[] =
		") S 77 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 999 "
		"4096 1 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 "
		"0 0 0 0 0 0 0 0 0 0 0 0 0\n";
	struct tree_proc p = {0};
	char name[16] = "";
	uint64_t dev, ino, bytes;
	struct use_pages pages;
	struct meminfo info;
	struct pulse pulse;
	char *line = xmalloc(size + 1);

	memcpy(line, data, size);
	line[size] = '\0';
	(void)!tree_parse_stat(line, &p);
	(void)tree_status_bytes(line, "VmRSS");
	(void)hidden_parse_map(line, &dev, &ino, &bytes);
	(void)hidden_map_file(line, &dev, &ino);
	(void)hidden_map_is_zero(line);
	(void)meminfo_parse_huge(line);
	(void)use_parse_status(line, &pages);
	(void)!meminfo_parse(line, &info);
	(void)!pulse_parse(line, &pulse);
	free(line);

	/* a true line with the bytes as a name: the kernel keeps 15 of them */
	memcpy(name, data, size < 15 ? size : 15);
	line = xasprintf("42 (%s%s", name, rest);
	p = (struct tree_proc){0};
	if (tree_parse_stat(line, &p) == 0)
		assert(p.ppid == 77 && p.state == 'S');
	else
		assert(strchr(name, '\n'));
	free(line);
	return 0;
}
