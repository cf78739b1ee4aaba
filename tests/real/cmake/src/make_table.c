/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>

int main(void)
{
	puts("static const char is_word[256] = {");
	for (int c = 0; c < 256; c++)
		printf("%d,%s", c < 128 && isalnum(c) ? 1 : 0, c % 32 == 31 ? "\n" : "");
	puts("};");
	return 0;
}
