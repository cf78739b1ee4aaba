/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Templates of Quadlet units. A unit file is a small program: systemd expands %x and $X,
 * undoes quotes and backslashes, and Podman splits at ':' and ','. So a value that comes
 * from the configuration is checked for the place that it goes to when it is set, and
 * never escaped: what cannot be written plainly is refused.
 *
 *	Memory=@TOMB_MEMORY@          a value; an unset or unknown one is refused
 *	@?CGROUPS@ PodmanArgs=...     the line stands only when CGROUPS is true, or set
 *	@*MOUNT@ Volume=@ITEM@        the line stands once for each item of the list MOUNT
 *
 * NAME is [A-Z][A-Z0-9_]*; any other '@' is just one. Substitution happens once: what a
 * value holds is not looked at again.
 */
#ifndef LYCH_CLI_POD_UNIT_TEMPLATE_H
#define LYCH_CLI_POD_UNIT_TEMPLATE_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNIT_TEMPLATE_MAX_BYTES ((size_t)64 << 10)
#define UNIT_MAX_BYTES ((size_t)256 << 10)

enum unit_value_kind {
	UNIT_WORD,  /* letters, digits, '.', '_', '-' */
	UNIT_IMAGE, /* also '/', ':', '@' */
	UNIT_PATH,  /* absolute and plain: see unit_path_check() */
	UNIT_BIND,  /* PATH:PATH:options */
};

struct unit_values {
	struct unit_value {
		char name[32];
		enum { UNIT_IS_TEXT, UNIT_IS_FLAG, UNIT_IS_LIST } shape;
		bool flag;
		char **item; /* one of a text that is set */
		size_t n;
	} *v;
	size_t n;
};

/* Each name is set once. text NULL: known, and unset. ERRID_BIND_VALUE names it. */
MUST_CHECK int unit_values_text(struct unit_values *v, const char *name,
				enum unit_value_kind kind, const char *text,
				struct err *err);
void unit_values_number(struct unit_values *v, const char *name, uint64_t number);
void unit_values_flag(struct unit_values *v, const char *name, bool flag);
/* Begin a list (empty), then add to it. */
void unit_values_list(struct unit_values *v, const char *name);
MUST_CHECK int unit_values_add(struct unit_values *v, const char *name,
			       enum unit_value_kind kind, const char *item,
			       struct err *err);
void unit_values_done(struct unit_values *v);
#define cleanup_unit_values __attribute__((cleanup(unit_values_done)))

/* An absolute path of printable UTF-8, with no '%', backslash, quote, '$', '`', blank,
 * ':', ',', ';', no "." or ".." component and no empty one. ERRID_BIND_VALUE. */
MUST_CHECK int unit_path_check(const char *path, struct err *err);

/* One template to one unit; name is for messages. ERRID_BIND_TEMPLATE with the line. */
MUST_CHECK int unit_template_render(const char *name, const char *text, size_t len,
				    const struct unit_values *v, struct buf *out,
				    struct err *err);

#endif
