/* SPDX-License-Identifier: Apache-2.0 */
/* Writes docs/TERMINAL.md from common/term/table.c (`make docs`). */
#include "common/attr.h"
#include "common/str.h"
#include "common/term/table.h"
#include <inttypes.h>
#include <stdio.h>

static const char *const head[] = {
	"# What a job may say to a terminal",
	"",
	"Generated from `common/term/table.c` by `make docs`; do not edit.",
	"",
	"A terminal obeys what is written to it. Bytes of a job could set its title and "
	"have it typed back as",
	"a command, read or fill the clipboard, save files, or change what keys send. So "
	"between a job and the",
	"terminal of a person stands a filter that lets through what is in a list, and "
	"nothing else:",
	"",
	"- **A job without a terminal** (`lych run`, `lych logs`): what it has shown "
	"stays. Text, line feeds, tabs",
	"  and colours pass (the column *logs*); a `\\r` ends a line, other controls are "
	"shown escaped, sequences are",
	"  gone. Behind a pipe nobody filters.",
	"- **A job with a terminal of its own**: what programs of a whole screen need "
	"passes too (the column",
	"  *terminal*), so that editors, pagers and agents work as they do elsewhere. "
	"`tests/real/terminal/run` compares",
	"  what vim, less, git's pager, node, Python, tmux and bash show there with what "
	"they show bare, key by key.",
	"",
	"The job's bytes are taken apart as a terminal does it, and each piece is "
	"written when it is whole or not at",
	"all. So the terminal is never left inside of a sequence, what follows a removed "
	"one does not become text,",
	"and nothing of a removed one arrives. Written are seven-bit controls and valid "
	"UTF-8: a byte that is no UTF-8",
	"becomes U+FFFD, and C1 controls are read as the sequences that they begin. On a "
	"terminal that is not in UTF-8",
	"each character that is not ASCII becomes `?`, because its bytes could be "
	"controls there. A sequence of more",
	"than 128 bytes, with a number above 9999 or with more than four numbers "
	"(renditions and modes: any) is",
	"removed. Lists of renditions and modes are written anew with what passes of "
	"them.",
	"",
	"**Questions.** What the terminal answers arrives as if you had typed it, and "
	"may arrive when the job is over.",
	"So a program gets fixed words where it waits for some answer, which tell "
	"nothing about your terminal, and none",
	"where it can do without: it takes that for a no. Only where the cursor is must "
	"be asked of the terminal. That",
	"question passes while fewer than four have no answer, and whoever gives the "
	"terminal back waits for what is on",
	"its way.",
	"",
	"**Giving it back.** All modes that pass are set back with one fixed sequence, "
	"whatever the job did: the other",
	"screen, mouse, focus, bracketed paste, keypad, insertion, margins, character "
	"sets, the cursor's shape,",
	"renditions. What could not be set back (tab stops, colours, titles, fonts) does "
	"not pass.",
	"",
	"**What it is not.** A job with a terminal draws what it likes, a shell's prompt "
	"or a question for your password",
	"too: what you type goes to the job until the session is over. Text may have the "
	"colour of its background.",
	"Faults of a terminal in showing plain text (as CVE-2021-27135, combining "
	"characters in xterm) are not",
	"recognised.",
	"",
	"What has no row below is removed.",
};

static const struct {
	enum term_kind kind;
	const char *title, *about;
} sections[] = {
	{TERM_OF_C0, "Controls", "Of C0; other ones are removed."},
	{TERM_OF_ESC, "Escape sequences", ""},
	{TERM_OF_CSI, "Control sequences",
	 "*n* is a number up to 9999; each may be left out."},
	{TERM_OF_MODE, "Modes", "`h` sets, `l` takes back."},
	{TERM_OF_DEC, "Modes of DEC and xterm", "`h` sets, `l` takes back."},
	{TERM_OF_SGR, "Renditions", ""},
	{TERM_OF_STRING, "Strings", "None passes, whatever it says; these are known."},
	{TERM_OF_CHAR, "Characters", "All others pass."},
};

/* In a cell, and between backticks. */
static void print_code(const char *s)
{
	for (; *s; s++)
		printf("%s%c", *s == '|' ? "\\" : "", *s);
}

static void print_apart(const char *s)
{
	for (; *s; s++) {
		const char c[] = {*s, '\0'};

		putchar(' ');
		print_code(*s == ' ' ? "SP" : c);
	}
}

static void print_values(const struct term_rule *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		fputs(i ? ";" : " ", stdout);
		if (r->from == r->to)
			printf("%" PRIu32, r->from);
		else if (r->to == TERM_VALUE_MAX)
			putchar('n');
		else
			printf("%" PRIu32 "–%" PRIu32, r->from, r->to);
	}
}

static void print_csi(const struct term_rule *r, const char *id)
{
	fputs("CSI", stdout);
	if (*id >= '<' && *id <= '?')
		printf(" %c", *id++);
	print_values(r);
	print_apart(id);
}

static void print_string(const char *id)
{
	const char *name = *id == ']'	? "OSC"
			   : *id == 'P' ? "DCS"
			   : *id == '_' ? "APC"
			   : *id == '^' ? "PM"
			   : *id == 'X' ? "SOS"
					: NULL;

	if (name)
		printf("%s%s", name, id[1] ? " " : "");
	else
		printf("ESC %c", *id);
	print_code(id + 1);
}

static void print_sequence(const struct term_rule *r)
{
	const char *quote = r->id && str_eq(r->id, "`") ? "``" : "`";

	fputs(quote, stdout);
	switch (r->kind) {
	case TERM_OF_C0:
		printf("0x%02x", (unsigned char)r->id[0]);
		break;
	case TERM_OF_ESC:
		fputs("ESC", stdout);
		print_apart(r->id);
		break;
	case TERM_OF_CSI:
		print_csi(r, r->id);
		break;
	case TERM_OF_MODE:
		print_csi(r, "h");
		break;
	case TERM_OF_DEC:
		print_csi(r, "?h");
		break;
	case TERM_OF_SGR:
		print_csi(r, "m");
		break;
	case TERM_OF_STRING:
		print_string(r->id);
		break;
	case TERM_OF_CHAR:
		printf("U+%04" PRIX32 "–U+%04" PRIX32, r->from, r->to);
		break;
	case TERM_KIND_MAX_:
	default:
		break;
	}
	printf("%s%s", *quote && quote[1] ? " " : "", quote);
}

static void print_verdict(const struct term_rule *r)
{
	switch (r->verdict) {
	case TERM_PASSES:
		fputs("passes", stdout);
		break;
	case TERM_ANSWERED:
		printf("answered: `ESC %s`", r->answer + 1);
		break;
	case TERM_ASKED:
		fputs("passes, few at a time", stdout);
		break;
	case TERM_REMOVED:
	default:
		fputs("removed", stdout);
		break;
	}
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(head); i++)
		puts(head[i]);
	for (size_t s = 0; s < ARRAY_SIZE(sections); s++) {
		printf("\n## %s\n\n%s%s", sections[s].title, sections[s].about,
		       *sections[s].about ? "\n\n" : "");
		puts("| sequence | what it does | terminal | logs | why |\n| --- | --- | "
		     "--- | --- | --- |");
		for (size_t i = 0; i < term_table_len; i++) {
			const struct term_rule *r = &term_table[i];

			if (r->kind != sections[s].kind)
				continue;
			fputs("| ", stdout);
			print_sequence(r);
			printf(" | %s | ", r->name);
			print_verdict(r);
			printf(" | %s | %s |\n", r->is_in_logs ? "passes" : "", r->why);
		}
	}
	return ferror(stdout) ? 1 : 0;
}
