/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper and the meter.
 * A set of (device, inode), or of other pairs, bounded: past the bound everything counts as new, so that an
 * overflow over-counts and never hides.
 */
#ifndef LYCH_SANDBOX_KEEPER_INODE_SET_H
#define LYCH_SANDBOX_KEEPER_INODE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct inode_set {
	struct inode_key {
		uint64_t dev, ino;
	} *slot;
	size_t n, cap;
};
#define INODE_SET_MAX ((size_t)1 << 16)
void inode_set_reset(struct inode_set *s);
void inode_set_done(struct inode_set *s);
bool inode_set_has(const struct inode_set *s, uint64_t dev, uint64_t ino);
bool inode_set_add(struct inode_set *s, uint64_t dev, uint64_t ino); /* true: was new */

#endif
