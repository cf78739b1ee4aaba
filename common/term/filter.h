/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * What a job that has a terminal may say to the person's.
 *
 * The job's bytes are taken apart (parse.h), and each whole piece is looked up in a list of what
 * passes (table.c, docs/TERMINAL.md); what is in no row of it is removed. So a program of a whole
 * screen works: cursor, colours, erasing, scrolling, the other screen, mouse, bracketed paste. What
 * speaks to the terminal itself is gone: its title, clipboard, colours, fonts, keys, windows,
 * printers, files and pictures, and the questions that it would answer into the person's input.
 *
 * Theory of operation. Nothing is written before it is whole, so the terminal is never left inside
 * of something, and filter and terminal can't disagree about where a sequence ends. What is written
 * is 7-bit controls and valid UTF-8, whatever came in: another reading of it (C1 controls in eight
 * bits) has nothing to find. A terminal that is not in UTF-8 would find C1 controls within
 * characters: for that there is is_ascii. What is filtered twice is as if filtered once.
 *
 * Pure: no allocation, no input or output; how the bytes are cut into pieces changes nothing.
 */
#ifndef LYCH_COMMON_TERM_FILTER_H
#define LYCH_COMMON_TERM_FILTER_H

#include "common/term/parse.h"
#include <stdbool.h>
#include <stddef.h>

#define TERM_FILTER_REPLIES_MAX 8
/* Questions for the cursor's place that the terminal has not answered yet. */
#define TERM_FILTER_ASKED_MAX 4
/* What size bytes of input can become: one that is broken is three of U+FFFD, and a sequence that
 * came before may end in them. */
#define TERM_FILTER_ROOM(size) (3 * (size_t)(size) + 2 * TERM_SEQUENCE_MAX + 16)

/* It begins with zeros. */
struct term_filter {
	/* Set by the owner before the first byte: the terminal is not in UTF-8 (its c_iflag has no
	 * IUTF8), so each character that is not ASCII becomes '?'. */
	bool is_ascii;
	bool has_rung; /* the bell was the last that was written */
	unsigned char asked;
	unsigned char typed; /* how far into an answer the terminal's input is */
	unsigned char n_replies;
	const char *replies[TERM_FILTER_REPLIES_MAX];
	struct term_parser parser;
};

/* Of the job's output what may go to the terminal: at most TERM_FILTER_ROOM(size) bytes. How
 * many. What is not whole at the job's end is never written. */
size_t term_filter(struct term_filter *filter, const char *in, size_t size, char *out);

/* Programs ask two things whose answer tells nothing about the person's terminal: what it is (DA1),
 * and whether it works (DSR 5). The filter answers in fixed words: after each term_filter() the
 * owner writes them to the job's input, before what the person types next. Each is given once, whole;
 * what does not fit into room is there the next time. While eight wait, others are not answered. */
size_t term_filter_replies(struct term_filter *filter, char *out, size_t room);

/* Where the cursor is (CSI 6 n) only the terminal knows, and programs that draw below the prompt
 * can't do without: the question passes, up to TERM_FILTER_ASKED_MAX that have no answer yet.
 * The owner shows the filter all that comes from the terminal (it changes nothing and keeps nothing,
 * and gives it to the job as it is), so that answers are counted. An answer may come after the
 * job's end: before the terminal is given back the owner sends term_question, and throws away what
 * comes until term_answer has come or some time has passed. No job can send term_question. */
void term_filter_typed(struct term_filter *filter, const char *in, size_t size);
extern const char term_question[]; /* CSI 5 n */
extern const char term_answer[];   /* CSI 0 n */

/* Gives the terminal back: all that the filter lets through is as before, whatever that was, and
 * the cursor stays where it is (on the first screen, if the job was on the other). Written in any
 * state of the terminal, also when the last write to it was cut short. Always the same. */
extern const char term_reset[];

#endif
