/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See tty_read.h.
 */
#include "common/json/tty_read.h"

int tty_read(const struct json *spec, struct tty_wish *ret, struct err *err)
{
	static const char *const keys[] = {SPEC_TTY_KEYS};
	const char *term = TTY_TERM_DEFAULT;
	const struct json *tty = NULL;
	uint64_t cols = 0, rows = 0;
	struct tty_wish wish = {0};

	if (json_get_obj(spec, "tty", false, &tty, err) < 0)
		return -1;
	if (!tty)
		return 0;
	if (json_check_keys(tty, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_u64(tty, "cols", true, 1, TTY_SIDE_MAX, &cols, err) < 0 ||
	    json_get_u64(tty, "rows", true, 1, TTY_SIDE_MAX, &rows, err) < 0 ||
	    json_get_str(tty, "term", false, TTY_TERM_SIZE - 1, &term, err) < 0 ||
	    json_get_bool(tty, "stays", false, &wish.stays, err) < 0)
		return err_wrap(err, "tty");
	if (!spec_term_is_valid(term) || str_copy(wish.term, sizeof(wish.term), term) < 0)
		return err_set_id(err, ERRID_SPEC_RANGE,
				  "tty.term: [A-Za-z0-9][A-Za-z0-9._+-]{0,31} only");
	if (!json_has(spec, "stdin_stream"))
		return err_set_id(err, ERRID_SPEC_MISSING,
				  "stdin_stream: what is typed at a tty comes by it");
	wish.cols = (unsigned)cols;
	wish.rows = (unsigned)rows;
	*ret = wish;
	return 0;
}
