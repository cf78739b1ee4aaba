/* SPDX-License-Identifier: Apache-2.0 */
/* io_uring, and the second ways into the kernel: rows of section_unix (probe_unix.c). */
#ifndef LYCH_TESTS_ESCAPE_PROBE_PROBE_WAYS_H
#define LYCH_TESTS_ESCAPE_PROBE_PROBE_WAYS_H

int uring_setup(void);
int uring_enter(void);
int uring_inherited(void);
int uring_register(void);
int aio(void);

#ifdef __x86_64__
int x32_getpid(void);
int x32_socket(void);
int ia32_getpid(void);
int ia32_socket(void);
int ia32_socketcall(void);
int sysenter(void);
int elf32(void);
#define KILLED {KILLED_BY + SIGSYS}
#define KILLED_OR(...) {KILLED_BY + SIGSYS, __VA_ARGS__}
#else
int not_here(void);
#define x32_getpid not_here
#define x32_socket not_here
#define ia32_getpid not_here
#define ia32_socket not_here
#define ia32_socketcall not_here
#define sysenter not_here
#define elf32 not_here
#define KILLED {NOT_HERE}
#define KILLED_OR(...) {NOT_HERE}
#endif

#endif
