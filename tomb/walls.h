/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * What the tomb leaves itself: the sockets' directories, nothing else. What it keeps on disk
 * it has open (notes.h), or leaves to the file workers (files.h).
 */
#ifndef LYCH_TOMB_WALLS_H
#define LYCH_TOMB_WALLS_H

#include "common/attr.h"
#include "common/confine/confine.h"
#include "common/err.h"
#include "tomb/options.h"

/* Confines this process for good, then tries what it must not reach. walls: what was tried. */
MUST_CHECK int tomb_confine(const struct tomb_options *opt, struct confine_report *walls,
			    struct err *err);

#endif
