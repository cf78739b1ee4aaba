/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych, lych-sandbox and keeper.
 * See sandbox_options.h.
 */
#include "common/proto/sandbox_options.h"

#include "common/near.h"

#include <string.h>

static const char *const names[] = {
#define OPTION(symbol, name, kind, repeats) name,
#define LIMIT(symbol, name) name,
#include "common/proto/sandbox_options.def"
};

static const char *const alone[] = {"help", "version"};

int sandbox_option_unknown(enum err_id id, const char *name, size_t len, struct err *err)
{
	int shown = (int)(len < NEAR_WORD_MAX ? len : NEAR_WORD_MAX);
	struct near n = {.word = name, .len = len};

	for (size_t i = 0; i < ARRAY_SIZE(alone); i++)
		if (len == strlen(alone[i]) && memcmp(name, alone[i], len) == 0)
			return err_set_id(err, id,
					  "'--%s' goes alone and takes no value: "
					  "'lych-sandbox --%s'",
					  alone[i], alone[i]);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		near_offer(&n, names[i]);
	if (n.best)
		return err_set_id(err, id,
				  "unknown option '--%.*s'; did you mean '--%s'?", shown,
				  name, n.best);
	return err_set_id(err, id, "unknown option '--%.*s'", shown, name);
}
