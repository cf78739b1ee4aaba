/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cmd.h"
int cmd_doctor(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return EXIT_FAILED;
}
