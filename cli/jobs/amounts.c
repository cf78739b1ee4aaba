/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See amounts.h.
 */
#include "cli/jobs/amounts.h"

#include "cli/ui/render.h"
#include "common/mem.h"
#include "common/str.h"
#include <inttypes.h>

void amount_money(char out[AMOUNT_SIZE], uint64_t micro)
{
	size_t n;

	(void)snprintf(out, AMOUNT_SIZE, "%" PRIu64 ".%06" PRIu64, micro / 1000000,
		       micro % 1000000);
	/* two places at least */
	for (n = strlen(out); out[n - 1] == '0' && out[n - 3] != '.'; n--)
		out[n - 1] = '\0';
}

void amount_text(char out[AMOUNT_SIZE], const char *thing, uint64_t n)
{
	if (str_eq(thing, "money"))
		amount_money(out, n);
	else if (str_eq(thing, "bytes"))
		render_size(out, n);
	else
		(void)snprintf(out, AMOUNT_SIZE, "%" PRIu64, n);
}

int amount_of_book(const struct json *book, const char *thing, char **ret,
		   struct err *err)
{
	const struct json *spent = NULL, *reserved = NULL, *limit = NULL;
	char used[AMOUNT_SIZE], open[AMOUNT_SIZE], most[AMOUNT_SIZE];
	uint64_t s = 0, r = 0, l = 0;

	if (json_get_obj(book, "spent", true, &spent, err) < 0 ||
	    json_get_obj(book, "reserved", true, &reserved, err) < 0 ||
	    json_get_obj(book, "limit", true, &limit, err) < 0 ||
	    json_get_u64(spent, thing, true, 0, UINT64_MAX, &s, err) < 0 ||
	    json_get_u64(reserved, thing, true, 0, UINT64_MAX, &r, err) < 0)
		return -1;
	amount_text(used, thing, s);
	amount_text(open, thing, r);
	(void)snprintf(most, sizeof(most), "any");
	if (!json_is_null(limit, thing)) {
		if (json_get_u64(limit, thing, true, 0, UINT64_MAX, &l, err) < 0)
			return -1;
		amount_text(most, thing, l);
	}
	*ret = r ? xasprintf("%s + %s of %s", used, open, most)
		 : xasprintf("%s of %s", used, most);
	return 0;
}
