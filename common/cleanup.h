/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Scope-bound ownership (GCC/clang "cleanup" attribute). A variable with a
 * cleanup_x attribute must be initialised where it is declared; the destructor
 * accepts the "empty" value (-1 for descriptors, NULL for pointers).
 */
#ifndef LYCH_COMMON_CLEANUP_H
#define LYCH_COMMON_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Close a descriptor held in *fd and set it to -1. errno is preserved. */
void fd_close(int *fd);

static inline void cleanup_free_fn(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_dir_fn(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

static inline void cleanup_file_fn(FILE **f)
{
	if (*f)
		(void)fclose(*f);
}

#define cleanup_free __attribute__((cleanup(cleanup_free_fn)))
#define cleanup_close __attribute__((cleanup(fd_close)))
#define cleanup_dir __attribute__((cleanup(cleanup_dir_fn)))
#define cleanup_file __attribute__((cleanup(cleanup_file_fn)))

/* Hand ownership out of a cleanup variable: the variable becomes empty. */
#define TAKE_FD(fd)                                                                      \
	({                                                                               \
		int taken_fd_ = (fd);                                                    \
		(fd) = -1;                                                               \
		taken_fd_;                                                               \
	})
#define TAKE_PTR(p)                                                                      \
	({                                                                               \
		__typeof__(p) taken_ptr_ = (p);                                          \
		(p) = NULL;                                                              \
		taken_ptr_;                                                              \
	})

#endif
