/* SPDX-License-Identifier: Apache-2.0 */
#include "words.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
	int threads = argc > 2 ? -atoi(argv[1]) : 1;
	long n = argc > 1 ? words_count(argv[argc - 1], threads) : -1;

	if (n < 0) {
		perror(argc > 1 ? argv[argc - 1] : "count");
		return 1;
	}
	printf("%ld words\n", n);
	return n == words_count(argv[argc - 1], 1) ? 0 : 1;
}
