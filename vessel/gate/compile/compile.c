/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the build.
 * At build time: the anchors of the gate's rules as Vectorscan databases, serialised, and
 * how long their matches are, as vessel/gate/rules/anchors.c includes them. Compiled for the plainest
 * processor, so that it runs on each one that Vectorscan itself runs on. An anchor or an
 * expression that does not compile ends the build.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "vessel/gate/rules/rules.h"
#include "vessel/gate/rules/words.h"
#include <hs.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>

#define LINE_BYTES 64
#define WORD_SIZE 128

/* Each byte of it for itself, as an expression. */
static const char *write_word(const char *word, char out[WORD_SIZE])
{
	char *at = out;

	for (; *word && at + 4 < out + WORD_SIZE; word++)
		at += snprintf(at, 5, "\\x%02x", (unsigned char)*word);
	return out;
}

static unsigned flags_of(const struct gate_rule *rule)
{
	return HS_FLAG_DOTALL | (rule->flags & GATE_RULE_CASELESS ? HS_FLAG_CASELESS : 0);
}

/* Of the rules that have none of the flags `without`, and the words, whose ids follow those
 * of the rules. */
static int compile(unsigned without, hs_database_t **ret)
{
	const size_t max = gate_rules_n + gate_words_n;
	const char **anchors = calloc(max, sizeof(*anchors));
	char *words = calloc(gate_words_n, WORD_SIZE);
	unsigned *flags = calloc(max, sizeof(*flags));
	unsigned *ids = calloc(max, sizeof(*ids));
	const hs_platform_info_t plain = {HS_TUNE_FAMILY_GENERIC, 0, 0, 0};
	hs_compile_error_t *why = NULL;
	hs_error_t r = HS_NOMEM;
	unsigned n = 0;

	if (anchors && words && flags && ids) {
		for (unsigned i = 0; i < gate_rules_n; i++) {
			if (gate_rules[i].flags & without)
				continue;
			anchors[n] = gate_rules[i].anchor;
			flags[n] = flags_of(&gate_rules[i]);
			ids[n++] = i;
		}
		for (unsigned i = 0; i < gate_words_n; i++, n++) {
			anchors[n] = write_word(gate_words[i], words + i * WORD_SIZE);
			flags[n] = HS_FLAG_CASELESS;
			ids[n] = (unsigned)gate_rules_n + i;
		}
		r = hs_compile_multi(anchors, flags, ids, n, HS_MODE_BLOCK, &plain, ret,
				     &why);
	}
	if (r != HS_SUCCESS)
		(void)fprintf(stderr, "compile: %s: %s\n",
			      why && why->expression >= 0 ? anchors[why->expression]
							  : "?",
			      why ? why->message : "no memory");
	(void)hs_free_compile_error(why);
	free(anchors);
	free(words);
	free(flags);
	free(ids);
	return r == HS_SUCCESS ? 0 : -1;
}

static int check_expressions(void)
{
	for (size_t i = 0; i < gate_rules_n; i++) {
		int why;
		PCRE2_SIZE at;
		pcre2_code *re = pcre2_compile((PCRE2_SPTR)gate_rules[i].expression,
					       PCRE2_ZERO_TERMINATED, 0, &why, &at, NULL);

		if (!re) {
			(void)fprintf(stderr, "compile: rule %s: expression, byte %zu\n",
				      gate_rules[i].name, at);
			return -1;
		}
		pcre2_code_free(re);
	}
	return 0;
}

static void write_bytes(const unsigned char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (i % LINE_BYTES == 0)
			(void)fputs(i ? "\"\n\"" : "\"", stdout);
		(void)printf("\\%03o", data[i]);
	}
	(void)puts("\"");
}

static int write_database(unsigned without)
{
	hs_database_t *db = NULL;
	char *bytes = NULL;
	size_t len = 0;

	if (compile(without, &db) < 0)
		return -1;
	if (hs_serialize_database(db, &bytes, &len) != HS_SUCCESS) {
		(void)fputs("compile: cannot serialise\n", stderr);
		return -1;
	}
	write_bytes((const unsigned char *)bytes, len);
	free(bytes);
	(void)hs_free_database(db);
	return 0;
}

static int write_widths(void)
{
	for (size_t i = 0; i < gate_rules_n; i++) {
		hs_expr_info_t *info = NULL;
		hs_compile_error_t *why = NULL;
		const struct gate_rule *rule = &gate_rules[i];

		if (hs_expression_info(rule->anchor, flags_of(rule), &info, &why) !=
			    HS_SUCCESS ||
		    info->max_width > GATE_REACH) {
			(void)fprintf(stderr, "compile: rule %s: its anchor's width\n",
				      rule->name);
			(void)hs_free_compile_error(why);
			free(info);
			return -1;
		}
		(void)printf("{%u, %u},\n", info->min_width, info->max_width);
		free(info);
	}
	return 0;
}

int main(void)
{
	if (check_expressions() < 0)
		return EXIT_FAILURE;
	(void)puts("#if GATE_DB_PART == 0");
	if (write_database(GATE_RULE_RUN) < 0)
		return EXIT_FAILURE;
	(void)puts("#elif GATE_DB_PART == 1");
	if (write_database(GATE_RULE_RUN | GATE_RULE_WEAK) < 0)
		return EXIT_FAILURE;
	(void)puts("#else");
	if (write_widths() < 0)
		return EXIT_FAILURE;
	(void)puts("#endif");
	return fflush(stdout) == 0 && !ferror(stdout) ? EXIT_SUCCESS : EXIT_FAILURE;
}
