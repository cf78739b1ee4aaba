/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Characters that show nothing: whoever compares names or looks for words leaves them out.
 */
#ifndef LYCH_COMMON_TEXT_IGNORABLE_H
#define LYCH_COMMON_TEXT_IGNORABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Unicode's Default_Ignorable_Code_Point, whole, and the marks of interlinear annotations. */
bool is_ignorable(uint32_t code_point);

#endif
