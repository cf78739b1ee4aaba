/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See filter.h.
 */
#include "common/term/filter.h"

#include "common/str.h"
#include "common/term/csi.h"
#include "common/term/table.h"
#include "common/utf8.h"
#include <string.h>

#define REPLACEMENT 0xfffd

const char term_question[] = "\x1b[5n";
const char term_answer[] = "\x1b[0n";

/*
 * Margins are set back between "save" and "restore cursor", since setting them moves it. Leaving the
 * other screen brings the cursor to where it was when that was entered, also where one is on the first
 * screen, and long ago: so it is entered before, which does nothing there, and here notes where the
 * cursor is. What "restore" brings with it (renditions, character sets) is set back last.
 */
const char term_reset[] =
	"\x1b\\"      /* ends what was cut in its middle */
	"\x1b[?2026l" /* shows what it holds back */
	"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l"
	"\x1b[?1l\x1b>\x1b[4l\x1b[?5l"
	"\x1b\x37\x1b[r\x1b\x38"
	"\x1b[?1049h\x1b[?1049l"
	"\x1b\x37\x1b[r\x1b\x38"
	"\x1b[?7h\x1b[?12l\x1b[?25h\x1b[0 q"
	"\x0f\x1b(B\x1b)B\x1b[0m";

struct writer {
	char *out;
	size_t n;
};

static void put(struct writer *w, const char *s, size_t n)
{
	memcpy(w->out + w->n, s, n);
	w->n += n;
}

static void put_char(const struct term_filter *f, struct writer *w, uint32_t c)
{
	char bytes[4];
	size_t n;

	if (c >= 0x80 && f->is_ascii) {
		put(w, "?", 1);
		return;
	}
	n = utf8_put(c, bytes);
	put(w, bytes, n);
}

/* Bells in a row are one. */
static void take_control(struct term_filter *f, struct writer *w, char c)
{
	const char id[] = {c, '\0'};

	if (c == '\0' || (c == '\a' && f->has_rung) ||
	    !term_rule_find(TERM_OF_C0, id, NULL, 0))
		return;
	put(w, &c, 1);
	f->has_rung = c == '\a';
}

static void take_escape(struct writer *w, const struct term_token *t)
{
	char id[4];

	if (t->size >= sizeof(id))
		return;
	memcpy(id, t->text, t->size);
	id[t->size] = '\0';
	if (!term_rule_find(TERM_OF_ESC, id, NULL, 0))
		return;
	put(w, "\x1b", 1);
	put(w, t->text, t->size);
}

static void answer(struct term_filter *f, const char *text)
{
	if (f->n_replies < TERM_FILTER_REPLIES_MAX)
		f->replies[f->n_replies++] = text;
}

/* All but lists: it passes as it came, or not at all. */
static void take_sequence(struct term_filter *f, struct writer *w,
			  const struct term_token *t, const struct term_csi *csi)
{
	uint32_t values[TERM_CSI_VALUES_MAX];
	const struct term_rule *rule;
	size_t n;

	if (!term_csi_values(csi, values, &n))
		return;
	rule = term_rule_find(TERM_OF_CSI, csi->id, values, n);
	if (!rule)
		return;
	if (rule->verdict == TERM_ANSWERED) {
		answer(f, rule->answer);
		return;
	}
	if (rule->verdict == TERM_ASKED) {
		if (f->asked == TERM_FILTER_ASKED_MAX)
			return;
		f->asked++;
	}
	put(w, "\x1b[", 2);
	put(w, t->text, t->size);
}

static void take_csi(struct term_filter *f, struct writer *w, const struct term_token *t)
{
	struct term_csi csi;

	if (!term_csi_read(t->text, t->size, &csi))
		return;
	if (str_eq(csi.id, "m"))
		w->n += term_csi_sgr(&csi, false, w->out + w->n);
	else if (str_eq(csi.id, "h") || str_eq(csi.id, "l") || str_eq(csi.id, "?h") ||
		 str_eq(csi.id, "?l"))
		w->n += term_csi_modes(&csi, w->out + w->n);
	else
		take_sequence(f, w, t, &csi);
}

static void take(struct term_filter *f, struct writer *w, const struct term_token *t)
{
	size_t before = w->n;

	switch (t->kind) {
	case TERM_CHARACTER:
		if (term_char_passes(t->value))
			put_char(f, w, t->value);
		break;
	case TERM_BROKEN:
		put_char(f, w, REPLACEMENT);
		break;
	case TERM_CONTROL:
		take_control(f, w, (char)t->value);
		return;
	case TERM_ESCAPE:
		take_escape(w, t);
		break;
	case TERM_CSI:
		take_csi(f, w, t);
		break;
	case TERM_NOTHING:
	default:
		break;
	}
	if (w->n > before)
		f->has_rung = false;
}

size_t term_filter(struct term_filter *f, const char *in, size_t size, char *out)
{
	struct writer w = {.out = out};
	struct term_token t;

	for (size_t i = 0; i < size; i++) {
		bool again;

		do {
			again = term_parse(&f->parser, (unsigned char)in[i], &t);
			take(f, &w, &t);
		} while (again);
	}
	return w.n;
}

size_t term_filter_replies(struct term_filter *f, char *out, size_t room)
{
	size_t n = 0, i = 0;

	for (; i < f->n_replies; i++) {
		size_t len = strlen(f->replies[i]);

		if (len > room - n)
			break;
		memcpy(out + n, f->replies[i], len);
		n += len;
	}
	f->n_replies = (unsigned char)(f->n_replies - i);
	memmove(f->replies, f->replies + i, f->n_replies * sizeof(f->replies[0]));
	return n;
}

/* "ESC [ row ; column R" */
void term_filter_typed(struct term_filter *f, const char *in, size_t size)
{
	enum { NO_ANSWER, BEGUN, ROW, COLUMN };

	for (size_t i = 0; i < size; i++) {
		char c = in[i];
		bool is_digit = c >= '0' && c <= '9';

		if (c == '\x1b') {
			f->typed = BEGUN;
		} else if (f->typed == BEGUN && c == '[') {
			f->typed = ROW;
		} else if (f->typed == ROW && c == ';') {
			f->typed = COLUMN;
		} else if (f->typed < ROW || !is_digit) {
			if (f->typed == COLUMN && c == 'R' && f->asked)
				f->asked--;
			f->typed = NO_ANSWER;
		}
	}
}
