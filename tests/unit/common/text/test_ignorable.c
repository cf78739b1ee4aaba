/* SPDX-License-Identifier: Apache-2.0 */
/* The property whole, as DerivedCoreProperties.txt has it, and some controls of scripts: a gap of four characters was a way
 * around a rule. */
#include "common/text/ignorable.h"

#include <criterion/criterion.h>
#include <stddef.h>

TestSuite(ignorable, .timeout = 10);

static const struct {
	uint32_t from, to;
} property[] = {
	{0x00ad, 0x00ad},   {0x034f, 0x034f},	{0x061c, 0x061c},   {0x115f, 0x1160},
	{0x17b4, 0x17b5},   {0x180b, 0x180d},	{0x180e, 0x180e},   {0x180f, 0x180f},
	{0x200b, 0x200f},   {0x202a, 0x202e},	{0x2060, 0x2064},   {0x2065, 0x2065},
	{0x2066, 0x206f},   {0x3164, 0x3164},	{0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
	{0xffa0, 0xffa0},   {0xfff0, 0xfff8},	{0xfff9, 0xfffb},   {0x13430, 0x13440},
	{0x16fe4, 0x16fe4}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

static bool is_of_property(uint32_t c)
{
	for (size_t i = 0; i < sizeof(property) / sizeof(property[0]); i++)
		if (c >= property[i].from && c <= property[i].to)
			return true;
	return false;
}

Test(ignorable, each_character_of_the_property_and_no_other)
{
	for (uint32_t c = 0; c <= 0x10ffff; c++)
		if (is_ignorable(c) != is_of_property(c))
			cr_expect_fail("U+%04X", c);
}
