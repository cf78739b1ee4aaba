/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * The kernel's own file systems (proc(5), sysfs(5), cgroups, ...): what looks like files there are
 * switches of the machine and of other processes, and tell about both. No job is shown any of them
 * but those that its sandbox makes for it, whatever name they have on the host.
 */
#ifndef LYCH_COMMON_KERNEL_FILES_H
#define LYCH_COMMON_KERNEL_FILES_H

#include "common/attr.h"
#include "common/err.h"

/* Is what fd (O_PATH is enough) names one of them? Then, and when the kernel does not say, `id`. */
MUST_CHECK int kernel_files_refuse(int fd, const char *path, enum err_id id,
				   struct err *err);
/* Is one of them mounted anywhere below the real, absolute `path`? Then, and when that cannot be
 * known, `id`. Reads our own mount table. */
MUST_CHECK int kernel_files_refuse_below(const char *path, enum err_id id,
					 struct err *err);
/* Both, of the real, absolute path of something that is there. */
MUST_CHECK int kernel_files_refuse_tree(const char *path, enum err_id id,
					struct err *err);

#endif
