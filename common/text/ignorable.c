/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See ignorable.h.
 */
#include "common/text/ignorable.h"

#include "common/attr.h"

#include <stddef.h>

/* DerivedCoreProperties.txt of Unicode 16.0; and U+FFF9 to U+FFFB, the format controls of
 * hieroglyphs and the Khitan filler, which show nothing either. The whole property, with what
 * is not assigned yet: a later version may give it away, and it shows nothing today. */
static const struct {
	uint32_t from, to;
} ranges[] = {
	{0xad, 0xad},	    {0x34f, 0x34f},	{0x61c, 0x61c},	    {0x115f, 0x1160},
	{0x17b4, 0x17b5},   {0x180b, 0x180f},	{0x200b, 0x200f},   {0x202a, 0x202e},
	{0x2060, 0x206f},   {0x3164, 0x3164},	{0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
	{0xffa0, 0xffa0},   {0xfff0, 0xfffb},	{0x13430, 0x13440}, {0x16fe4, 0x16fe4},
	{0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

bool is_ignorable(uint32_t code_point)
{
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (code_point >= ranges[i].from && code_point <= ranges[i].to)
			return true;
	return false;
}
