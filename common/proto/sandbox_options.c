/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych, lych-sandbox and keeper.
 * See sandbox_options.h.
 */
#include "common/proto/sandbox_options.h"

#include "common/near.h"

static const char *const names[] = {
#define OPTION(symbol, name, kind, repeats) name,
#define LIMIT(symbol, name) name,
#include "common/proto/sandbox_options.def"
};

int sandbox_option_unknown(enum err_id id, const char *name, size_t len, struct err *err)
{
	int shown = (int)(len < NEAR_WORD_MAX ? len : NEAR_WORD_MAX);
	struct near n = {.word = name, .len = len};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		near_offer(&n, names[i]);
	if (n.best)
		return err_set_id(err, id,
				  "unknown option '--%.*s'; did you mean '--%s'?", shown,
				  name, n.best);
	return err_set_id(err, id, "unknown option '--%.*s'", shown, name);
}
