/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker and the build.
 * What documents write where a secret would stand (vessel/gate/rules/words.def): words that are no
 * secret, and secrets that everybody knows.
 *
 * A word is never a reason to let go what stands beside it. A value is judged by what is left
 * of it without the words (gate_without_words), a text also as it would be had nobody
 * glued a word to anything (gate_fold_words): whatever is found in a text is found, too,
 * when words are put before it, behind it or into it.
 */
#ifndef LYCH_VESSEL_GATE_RULES_WORDS_H
#define LYCH_VESSEL_GATE_RULES_WORDS_H

#include "vessel/gate/text/fold.h"
#include <stdbool.h>
#include <stddef.h>

/* Lower case; at least one byte. */
extern const char *const gate_words[];
extern const size_t gate_words_n;

struct gate_span {
	size_t start, end;
};

/* s without its words, at most len bytes: how many. */
size_t gate_without_words(const char *s, size_t len, char *out);

/* A name in the brackets of some template language and nothing else: "${DB_PASS}",
 * "{{ vault.key }}", "<your-token>", "%(name)s", "$NAME". */
bool gate_is_template(const char *s, size_t len);

/* Is text[start, end) a published value, or a piece of one that stands there whole? */
bool gate_is_published(const char *text, size_t len, size_t start, size_t end);

/*
 * What is within `around` bytes of words that touch something, without them: pieces with a newline
 * between them. A piece with runs of one sign is there several times, for the first or last
 * ones of a run may be no part of the word. Empty when nothing is glued. map[i] is where byte i came from; it has
 * no last entry, and does not always grow.
 * words: in order, apart from each other. Words that open a template, join a name or lie in a
 * published value stay.
 */
void gate_fold_words(const char *s, size_t len, const struct gate_span *word, size_t n,
		     size_t around, struct gate_folded *ret);

#endif
