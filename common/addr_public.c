/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See addr_public.h.
 */
#include "common/addr_public.h"

#include "common/attr.h"

#include <string.h>

struct range {
	uint8_t b[16];
	unsigned bits;
};

/* IPv4 that is not public unicast (IANA's special-purpose registry, multicast, reserved) and two
 * public numbers behind which cloud hosts have their metadata. */
static const struct range closed_v4[] = {
	{{0}, 8},
	{{10}, 8},
	{{100, 64}, 10},
	{{127}, 8},
	{{169, 254}, 16},
	{{172, 16}, 12},
	{{192, 0, 0}, 24},
	{{192, 0, 2}, 24},
	{{192, 31, 196}, 24},
	{{192, 52, 193}, 24},
	{{192, 88, 99}, 24},
	{{192, 168}, 16},
	{{192, 175, 48}, 24},
	{{198, 18}, 15},
	{{198, 51, 100}, 24},
	{{203, 0, 113}, 24},
	{{224}, 4},
	{{240}, 4},
	{{100, 100, 100, 200}, 32},
	{{168, 63, 129, 16}, 32},
};

/* IPv6: only 2000::/3 is open, and of it not these. */
static const struct range open_v6 = {{0x20}, 3};
static const struct range closed_v6[] = {
	{{0x20, 0x01, 0x00}, 23},	      /* IETF protocols; Teredo */
	{{0x20, 0x01, 0x0d, 0xb8}, 32},	      /* documentation */
	{{0x20, 0x02}, 16},		      /* 6to4 */
	{{0x3f, 0xff}, 20},		      /* documentation */
	{{0x26, 0x20, 0x00, 0x4f, 0x80}, 48}, /* AS112 */
};

static bool in_range(const struct addr *a, const struct range *r)
{
	unsigned whole = r->bits / 8, rest = r->bits % 8;
	uint8_t mask = (uint8_t)(0xff00u >> rest);

	if (memcmp(a->b, r->b, whole) != 0)
		return false;
	return rest == 0 || ((a->b[whole] ^ r->b[whole]) & mask) == 0;
}

/* An interface number that is an IPv4 address in disguise (RFC 5214). */
static bool is_isatap(const struct addr *a)
{
	return (a->b[8] & 0xfd) == 0 && a->b[9] == 0 && a->b[10] == 0x5e &&
	       a->b[11] == 0xfe;
}

bool addr_is_public(const struct addr *a)
{
	const struct range *closed = a->v6 ? closed_v6 : closed_v4;
	size_t n = a->v6 ? ARRAY_SIZE(closed_v6) : ARRAY_SIZE(closed_v4);

	if (a->v6 && (!in_range(a, &open_v6) || is_isatap(a)))
		return false;
	for (size_t i = 0; i < n; i++)
		if (in_range(a, &closed[i]))
			return false;
	return true;
}
