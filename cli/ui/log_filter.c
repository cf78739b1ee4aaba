/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See log_filter.h.
 */
#include "cli/ui/log_filter.h"

#include "cli/ui/glyph.h"
#include "common/str.h"
#include "common/term/csi.h"
#include "common/utf8.h"

/* Before anything else is shown: a \r that was no half of \r\n. */
static void settle_return(struct log_filter *f, struct buf *out)
{
	if (f->returned && f->on_line) {
		buf_addc(out, '\n');
		f->on_line = false;
	}
	f->returned = false;
}

static void show_bytes(struct log_filter *f, const char *s, size_t n, struct buf *out)
{
	settle_return(f, out);
	for (size_t i = 0; i < n; i++)
		buf_addf(out, "\\x%02x", (unsigned char)s[i]);
	f->on_line = true;
}

static void show_character(struct log_filter *f, uint32_t c, struct buf *out)
{
	char bytes[4];
	size_t n = utf8_put(c, bytes);

	settle_return(f, out);
	if (glyph_is_dangerous(c))
		buf_addf(out, "\\u{%x}", c);
	else
		buf_add(out, bytes, n);
	f->on_line = true;
}

static void control(struct log_filter *f, char c, struct buf *out)
{
	switch (c) {
	case '\r':
		f->returned = true;
		break;
	case '\n':
		f->returned = f->on_line = false;
		buf_addc(out, c);
		break;
	case '\t':
		settle_return(f, out);
		buf_addc(out, c);
		f->on_line = true;
		break;
	default:
		show_bytes(f, &c, 1, out);
		break;
	}
}

static void rendition(const struct term_token *t, struct buf *out)
{
	char sgr[2 * TERM_SEQUENCE_MAX + 8];
	struct term_csi csi;
	size_t n;

	if (!term_csi_read(t->text, t->size, &csi) || !str_eq(csi.id, "m"))
		return;
	n = term_csi_sgr(&csi, true, sgr);
	buf_add(out, sgr, n);
}

static void show(struct log_filter *f, const struct term_token *t, struct buf *out)
{
	switch (t->kind) {
	case TERM_CHARACTER:
		show_character(f, t->value, out);
		break;
	case TERM_BROKEN:
		show_bytes(f, t->text, t->size, out);
		break;
	case TERM_CONTROL:
		control(f, (char)t->value, out);
		break;
	case TERM_CSI:
		rendition(t, out);
		break;
	case TERM_ESCAPE:
	case TERM_NOTHING:
	default:
		break;
	}
}

void log_filter(struct log_filter *f, const void *data, size_t len, struct buf *out)
{
	const unsigned char *s = data;
	struct term_token t;

	f->parser.is_by_line = true;
	for (size_t i = 0; i < len; i++) {
		bool again;

		do {
			again = term_parse(&f->parser, s[i], &t);
			show(f, &t, out);
		} while (again);
	}
}

void log_filter_end(struct log_filter *f, struct buf *out)
{
	struct term_token t;

	/* A line's end ends whatever there is; it is not shown. */
	if (term_parse(&f->parser, '\n', &t))
		show(f, &t, out);
	settle_return(f, out);
	buf_adds(out, "\x1b[0m");
	*f = (struct log_filter){0};
}
