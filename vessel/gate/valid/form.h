/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker and the build.
 * What a value looks like: what people call things and can read, or what was drawn by lot. Pure, on
 * the bytes alone; by itself, without the other files of this room.
 */
#ifndef LYCH_VESSEL_GATE_VALID_FORM_H
#define LYCH_VESSEL_GATE_VALID_FORM_H

#include <stdbool.h>
#include <stddef.h>

/* Like what people call things: words of one case, or with a capital, joined by signs,
 * a few digits. What is drawn by lot is not. */
bool gate_is_name(const char *s, size_t len);
/* A name whose words are some letters long. By chance what is drawn by lot is a name, too, but has
 * another class at more than every second letter, or a digit within. */
bool gate_is_word_chain(const char *s, size_t len);
/* The length of the word of a name at s: "pass", "Pass", "PASS", or a number; 0: there is none. */
size_t gate_name_word(const char *s, size_t len);
/* At least half of its letters are in words that could be spoken. */
bool gate_is_readable(const char *s, size_t len);
/* With a slash: names of directories and files, for the most part, and nothing else that is so long that it
 * could have been drawn by lot. */
bool gate_is_path(const char *s, size_t len, size_t drawn_min);
/* Most of its bytes follow on the one before, as in an alphabet, or repeat it. */
bool gate_counts_on(const char *s, size_t len);
/* How often a byte is of another kind (small, capital, digit, other) than the one before. */
size_t gate_class_changes(const char *s, size_t len);

#endif
