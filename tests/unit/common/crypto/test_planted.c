/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crypto/broker_key.h"
#include "common/crypto/planted.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(planted, .timeout = 5);

Test(planted, each_attempt_has_its_own_that_both_sides_know)
{
	const struct uuid one = {"11111111-2222-4333-8444-555555555555"},
			  two = {"11111111-2222-4333-8444-555555555556"};
	struct broker_key key;
	struct planted p, other;

	planted_of(7, 1, &one, &p);
	cr_expect_str_eq(p.s, "7d3eb8b6f77cf2553ec00adc52aff8be95a84057");
	planted_of(7, 1, &one, &other);
	cr_expect_str_eq(p.s, other.s);
	planted_of(7, 1, &two, &other);
	cr_expect_str_neq(p.s, other.s);
	planted_of(7, 2, &one, &other);
	cr_expect_str_neq(p.s, other.s);
	planted_of(71, 1, &one, &other);
	cr_expect_str_neq(p.s, other.s);
	broker_key_of(7, 1, &one, &key);
	cr_expect_null(strstr(key.s, p.s));
}
