/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Force-included into every translation unit (-include common/banned.h).
 * Each name below is refused by the compiler. The headers that declare them
 * are included first, since a declaration after the poison would be an error.
 */
#ifndef LYCH_COMMON_BANNED_H
#define LYCH_COMMON_BANNED_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef __GNUC__
#pragma GCC poison strcpy strcat strncpy strncat stpcpy stpncpy sprintf vsprintf
#pragma GCC poison strtok atoi atol atoll atof gets
#pragma GCC poison gmtime localtime ctime asctime
#pragma GCC poison mktemp tmpnam tempnam tmpfile
#pragma GCC poison system popen putenv setenv unsetenv
#pragma GCC poison execlp execvp execvpe
#endif

#endif
