/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter of grade full as a file, for a peer that takes one (bwrap --seccomp FD): the
 * same walls, instruction by instruction.
 */
#include "sandbox/walls/seccomp_table.h"
#include "tests/bench/die.h"

#include <linux/filter.h>

int main(void)
{
	static struct sock_filter program[SC_PROGRAM_MAX];
	int n = sc_compile(SC_FULL_LO, false, program, SC_PROGRAM_MAX);

	if (n <= 0)
		die_errno("compile the filter");
	if (fwrite(program, sizeof(program[0]), (size_t)n, stdout) != (size_t)n)
		die_errno("write");
	return 0;
}
