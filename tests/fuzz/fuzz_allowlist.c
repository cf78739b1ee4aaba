/* SPDX-License-Identifier: Apache-2.0 */
/* mount-allowlist.json. */
#include "cli/pod/mounts.h"
#include "common/str.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mount_allowlist l = {0};
	struct err err = ERR_INIT;

	if (mount_allowlist_parse((const char *)data, size, "/home/me", &l, &err) < 0) {
		assert(err.id == ERRID_BIND_ALLOWLIST && err.msg[0]);
		return 0;
	}
	for (size_t i = 0; i < l.n_roots; i++)
		assert(l.root[i].path[0] == '/');
	for (size_t i = 0; i < l.n_blocked; i++)
		assert(l.blocked[i][0] && !strchr(l.blocked[i], '/'));
	mount_allowlist_done(&l);
	return 0;
}
