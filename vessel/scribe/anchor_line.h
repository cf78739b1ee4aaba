/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe and lych-audit.
 * One seal as a line of an anchor, which is a place beside the log where its last seals are kept:
 *
 *	{"v":1,"log":"<uuid>","size":N,"root":"<base64>","epoch":N,"time":"...Z","prev":"<hex>",
 *	 "genesis":"<base64>","next":"<base64>","signature":"<base64>"}
 *
 * (without the break; genesis and next only where the seal has them). It says what the seal's
 * note says, so the note can be made of it again, and there is one way to write it.
 */
#ifndef LYCH_VESSEL_SCRIBE_ANCHOR_LINE_H
#define LYCH_VESSEL_SCRIBE_ANCHOR_LINE_H

#include "common/proto.h"
#include "vessel/scribe/seal.h"

#define ANCHOR_LINE_MAX ((size_t)1024) /* with its newline */

/* Append it, with its newline. */
void anchor_line_write(struct buf *out, const struct seal *s);
/* Without the newline. Who signed it is not looked at. ERRID_AUDIT_ANCHOR. */
MUST_CHECK int anchor_line_parse(const char *line, size_t len, struct seal *ret,
				 struct err *err);
/* All of a file may be what was written of its first line, and no more: empty is, another's text is not. */
bool anchor_line_is_begun(const char *s, size_t len);
/* anchor_name_in(), copied. ERRID_AUDIT_ANCHOR. */
MUST_CHECK int anchor_name(const char *path, char ret[ANCHOR_NAME_MAX], struct err *err);

#endif
