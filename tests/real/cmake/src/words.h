/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORDS_H
#define WORDS_H

#include <stdio.h>

/* How many words there are in a file, counted by so many threads; -1: errno. */
long words_count(const char *path, int threads);

#endif
