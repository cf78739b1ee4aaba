/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the egress worker.
 * See reason.h.
 */
#include "vessel/egress/reason.h"
#include "common/str.h"

#include <stdarg.h>

static const struct {
	const char *word;
	enum err_id id;
} reasons[REASON_MAX_] = {
	[REASON_NONE] = {"-", ERRID_NONE},
#define X(symbol_, word_, id_) [REASON_##symbol_] = {word_, ERRID_##id_},
#include "vessel/egress/reason.def"
#undef X
};

const char *reason_word(enum reason r)
{
	return (unsigned)r < REASON_MAX_ ? reasons[r].word : "-";
}

/* The public error that it belongs to. */
static enum err_id reason_id(enum reason r)
{
	return (unsigned)r < REASON_MAX_ ? reasons[r].id : ERRID_NONE;
}

int reason_set(enum reason *ret, enum reason r, struct err *err, const char *fmt, ...)
{
	struct err text = ERR_INIT;
	va_list ap;

	if (ret)
		*ret = r;
	/* What lies behind a name is nothing that a job may learn by asking. */
	if (reason_id(r) == ERRID_FETCH_DNS)
		return err_set_id(err, ERRID_FETCH_DNS, "the name has no usable answer");
	if (reason_id(r) == ERRID_FETCH_ADDRESS)
		return err_set_id(err, ERRID_FETCH_ADDRESS,
				  "the name leads where no job may go");
	va_start(ap, fmt);
	if (vsnprintf(text.msg, sizeof(text.msg), fmt, ap) < 0)
		text.msg[0] = '\0';
	va_end(ap);
	return err_set_id(err, reason_id(r), "%s: %s", reason_word(r), text.msg);
}
