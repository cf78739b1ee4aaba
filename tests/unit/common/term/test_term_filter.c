/* SPDX-License-Identifier: Apache-2.0 */
/* The filter between a job's output and a person's terminal: what passes, how it is cut, what is answered. */
#include "common/term/filter.h"

#include "common/attr.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/term/table.h"
#include "tests/unit/common/term/term_cases.h"
#include "tests/unit/common/term/term_clean.h"
#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(term_filter, .timeout = 60);

struct text {
	size_t n;
	char s[8192];
};

static void filter_into(struct text *out, const char *in, size_t size, size_t first)
{
	struct term_filter f = {0};

	cr_assert(TERM_FILTER_ROOM(size) * 2 <= sizeof(out->s));
	out->n = term_filter(&f, in, first, out->s);
	out->n += term_filter(&f, in + first, size - first, out->s + out->n);
}

/* Whole, cut at each byte, byte by byte, and what came of it once more: always the same, and clean. */
static struct text filtered(const char *in, size_t size, const char *name)
{
	struct term_filter f = {0};
	struct text whole, other;

	filter_into(&whole, in, size, 0);
	for (size_t cut = 1; cut < size; cut++) {
		filter_into(&other, in, size, cut);
		cr_assert_eq(other.n, whole.n, "%s, cut at %zu", name, cut);
		cr_assert_arr_eq(other.s, whole.s, whole.n, "%s, cut at %zu", name, cut);
	}
	other.n = 0;
	for (size_t i = 0; i < size; i++)
		other.n += term_filter(&f, in + i, 1, other.s + other.n);
	cr_assert_eq(other.n, whole.n, "%s, byte by byte", name);
	cr_assert_arr_eq(other.s, whole.s, whole.n, "%s, byte by byte", name);
	filter_into(&other, whole.s, whole.n, 0);
	cr_assert_eq(other.n, whole.n, "%s, twice", name);
	cr_assert_arr_eq(other.s, whole.s, whole.n, "%s, twice", name);
	cr_assert_null(term_clean(whole.s, whole.n),
		       "%s: what is left speaks to the terminal", name);
	whole.s[whole.n] = '\0';
	return whole;
}

Test(term_filter, no_sequence_of_an_advisory_or_manual_arrives)
{
	cr_assert_geq(ARRAY_SIZE(term_attacks), 60);
	for (size_t i = 0; i < ARRAY_SIZE(term_attacks); i++) {
		const struct term_case *a = &term_attacks[i];
		char in[1024], want[256];
		struct text got;

		cr_assert_lt(a->size, sizeof(in) - 2);
		in[0] = '<';
		memcpy(in + 1, a->in, a->size);
		in[a->size + 1] = '>';
		(void)snprintf(want, sizeof(want), "<%s>", a->left);
		got = filtered(in, a->size + 2, a->source);
		cr_assert_str_eq(got.s, want, "%s: %s", a->source, got.s);
	}
}

Test(term_filter, what_programs_of_a_whole_screen_say_passes_as_it_is)
{
	for (size_t i = 0; i < ARRAY_SIZE(term_needed); i++) {
		const struct term_case *a = &term_needed[i];
		struct text got = filtered(a->in, a->size, a->source);

		cr_assert_eq(got.n, a->size, "%s: %s", a->source, got.s);
		cr_assert_arr_eq(got.s, a->in, a->size, "%s", a->source);
	}
}

Test(term_filter, lists_and_broken_text_are_written_anew)
{
	for (size_t i = 0; i < ARRAY_SIZE(term_rewritten); i++) {
		const struct term_case *a = &term_rewritten[i];
		struct text got = filtered(a->in, a->size, a->source);

		cr_assert_str_eq(got.s, a->left, "%s: %s", a->source, got.s);
	}
}

/* ---- the table ------------------------------------------------------------------ */

/* What a row is about, with its first value. */
static size_t sample_of(const struct term_rule *r, char *out, size_t size)
{
	const char *id = r->id ? r->id : "";
	bool has_prefix = *id >= '<' && *id <= '?';
	int n = 0;

	switch (r->kind) {
	case TERM_OF_C0:
		n = snprintf(out, size, "%s", id);
		break;
	case TERM_OF_ESC:
		n = snprintf(out, size, "\x1b%s", id);
		break;
	case TERM_OF_CSI:
		n = snprintf(out, size, "\x1b[%.*s", has_prefix, id);
		for (unsigned i = 0; i < r->n; i++)
			n += snprintf(out + n, size - n, "%s%u", i ? ";" : "", r->from);
		n += snprintf(out + n, size - n, "%s", id + has_prefix);
		break;
	case TERM_OF_MODE:
		n = snprintf(out, size, "\x1b[%uh", r->from);
		break;
	case TERM_OF_DEC:
		n = snprintf(out, size, "\x1b[?%uh", r->from);
		break;
	case TERM_OF_SGR:
		n = snprintf(out, size, "\x1b[%u%sm", r->from,
			     r->from == 38 || r->from == 48 ? ";5;1" : "");
		break;
	case TERM_OF_STRING:
		n = snprintf(out, size, "\x1b%s\x1b\\", id);
		break;
	case TERM_OF_CHAR:
		return utf8_put(r->from, out);
	case TERM_KIND_MAX_:
	default:
		cr_assert_fail("a row of no kind");
	}
	return (size_t)n;
}

Test(term_filter, does_what_each_row_of_its_table_says)
{
	for (size_t i = 0; i < term_table_len; i++) {
		const struct term_rule *r = &term_table[i];
		char in[256], reply[64];
		size_t size = sample_of(r, in, sizeof(in));
		struct term_filter f = {0};
		struct text got = filtered(in, size, r->name);

		cr_assert(r->name && r->why, "row %zu", i);
		if (r->verdict == TERM_PASSES || r->verdict == TERM_ASKED)
			cr_assert(got.n == size && !memcmp(got.s, in, size),
				  "row %zu, %s: %s", i, r->name, got.s);
		else
			cr_assert_eq(got.n, 0, "row %zu, %s: %s", i, r->name, got.s);
		(void)term_filter(&f, in, size, got.s);
		reply[term_filter_replies(&f, reply, sizeof(reply) - 1)] = '\0';
		cr_assert_str_eq(reply, r->answer ? r->answer : "");
		cr_assert_eq(r->answer != NULL, r->verdict == TERM_ANSWERED);
		cr_assert_eq(f.asked, r->verdict == TERM_ASKED);
	}
}

/* All that has the form of a sequence, in no row: nothing passes that the second list does not have. */
Test(term_filter, what_is_in_no_row_is_removed)
{
	static const char *const prefixes[] = {"", "?", ">", "<", "="},
				 *const inters[] = {"",	 " ", "!", "\"", "#",
						    "$", "&", "'", "*",	 "+"};
	static const char *const params[] = {
		"",    "0",	"1",	  "2",	"3",	"5",	"6",	 "8",
		"4;1", "1;1;1", "38;5;8", "52", "2004", "9999", "99999", "1:2"};
	size_t n_passed = 0;

	for (size_t p = 0; p < ARRAY_SIZE(prefixes); p++)
		for (size_t i = 0; i < ARRAY_SIZE(inters); i++)
			for (size_t v = 0; v < ARRAY_SIZE(params); v++)
				for (char final = '@'; final <= '~'; final++) {
					struct term_filter f = {0};
					char in[32], out[TERM_FILTER_ROOM(32)];
					int n = snprintf(in, sizeof(in), "\x1b[%s%s%s%c",
							 prefixes[p], params[v],
							 inters[i], final);
					size_t wrote =
						term_filter(&f, in, (size_t)n, out);

					cr_assert_null(term_clean(out, wrote), "CSI %s",
						       in + 2);
					n_passed += wrote > 0;
				}
	cr_assert_gt(n_passed, 100);
	for (int c = 0x20; c < 0x7f; c++) {
		struct term_filter f = {0};
		char in[] = {'\x1b', (char)c}, out[TERM_FILTER_ROOM(2)];
		size_t wrote = term_filter(&f, in, 2, out);

		cr_assert_eq(wrote, strchr("78=>DEM", c) ? 2 : 0, "ESC %c", c);
	}
}

/* ---- any bytes ------------------------------------------------------------------ */

static uint32_t dice(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

Test(term_filter, any_bytes_come_out_clean_and_the_same_in_any_pieces)
{
	static const char alphabet[] = "\x1b\x1b\x1b[[]]P_^X\\?>=<!$ "
				       ";;:"
				       "0123456789mhlHJKcnqrtui\a\x18\x1a\x05\x0e\n\r\xc2"
				       "\x9b\x9d\x9c\x90\xe2\x80\xae\xf0\x9f\xff\x7f"
				       "ab";
	uint32_t seed = 20030224;

	for (int round = 0; round < 3000; round++) {
		char in[64];
		size_t size = dice(&seed) % sizeof(in);

		for (size_t i = 0; i < size; i++)
			in[i] = alphabet[dice(&seed) % (sizeof(alphabet) - 1)];
		(void)filtered(in, size, "dice");
	}
}

Test(term_filter, a_terminal_that_is_not_in_utf_8_gets_ascii_only)
{
	static const char in[] =
		"gr\xc3\xbc\xc3\x9f \xe2\x9b\x94 \xf0\x9f\x98\x80 \xff\x1b[1mx";
	struct term_filter f = {.is_ascii = true};
	char out[TERM_FILTER_ROOM(sizeof(in))];
	size_t n = term_filter(&f, in, sizeof(in) - 1, out);

	out[n] = '\0';
	cr_assert_str_eq(out, "gr?? ? ? ?\x1b[1mx");
}

/* One of more bytes than there is room for, whatever it is, and the text behind it. */
Test(term_filter, what_is_too_long_is_dropped_whole)
{
	static const char *const begins[] = {"\x1b[", "\x1b[?", "\x1b]52;c;",
					     "\x1bP", "\x1b_G", "\x1b("};
	static const char *const ends[] = {"m", "h", "\a", "\x1b\\", "\x1b\\", "B"};
	char *in = xmalloc(1 << 20), *out = xmalloc(TERM_FILTER_ROOM(1 << 20));

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++) {
		struct term_filter f = {0};
		size_t n = strlen(begins[i]);

		memcpy(in, begins[i], n);
		memset(in + n, i == 5 ? '(' : '1', (1 << 20) - 64 - n);
		n = (1 << 20) - 64;
		memcpy(in + n, ends[i], strlen(ends[i]));
		n += strlen(ends[i]);
		in[n++] = '!';
		cr_assert_eq(term_filter(&f, in, n, out), 1, "%s", begins[i] + 1);
		cr_assert_eq(out[0], '!');
	}
	free(in);
	free(out);
}

Test(term_filter, no_input_needs_more_room_than_was_promised)
{
	static const struct {
		const char *held, *in;
	} worst[] = {
		{"", "\xff"}, {"", "\xf0\x9f\x98"}, {"\xf0\x9f\x98", "\xff"}, {"", ";"}};
	char in[2048], out[TERM_FILTER_ROOM(2048)];

	for (size_t i = 0; i < ARRAY_SIZE(worst); i++) {
		struct term_filter f = {0};
		size_t n = 0;

		(void)term_filter(&f, worst[i].held, strlen(worst[i].held), out);
		for (size_t len = strlen(worst[i].in); n + len <= sizeof(in); n += len)
			memcpy(in + n, worst[i].in, len);
		cr_assert_leq(term_filter(&f, in, n, out), TERM_FILTER_ROOM(n));
	}
	/* renditions without numbers: each becomes a 0, the one before this piece too; one more is too many */
	for (size_t n = TERM_SEQUENCE_MAX - 1; n <= TERM_SEQUENCE_MAX; n++) {
		struct term_filter f = {0};

		memset(in, ';', n);
		(void)term_filter(&f, "\x1b[", 2, out);
		(void)term_filter(&f, in, n, out);
		cr_assert_eq(term_filter(&f, "m", 1, out),
			     n < TERM_SEQUENCE_MAX ? 2 * TERM_SEQUENCE_MAX + 2 : 0);
	}
}

/* ---- questions ------------------------------------------------------------------ */

Test(term_filter, fixed_answers_are_bounded_and_never_cut)
{
	struct term_filter f = {0};
	char out[TERM_FILTER_ROOM(4)], got[256];
	size_t n = 0, total = 0;

	for (int i = 0; i < 1000; i++)
		cr_assert_eq(term_filter(&f, i % 2 ? "\x1b[5n" : "\x1b[0c", 4, out), 0);
	cr_assert_eq(term_filter_replies(&f, got, 6), 0);
	while ((n = term_filter_replies(&f, got, 8)) > 0) {
		cr_assert(!memcmp(got, total % 2 ? "\x1b[0n" : "\x1b[?1;2c", n));
		total++;
	}
	cr_assert_eq(total, TERM_FILTER_REPLIES_MAX);
	(void)term_filter(&f, "\x1b[n", 3, out);
	(void)term_filter(&f, "\x1b[0n", 4, out);
	(void)term_filter(&f, "\x1b[1c", 4, out);
	cr_assert_eq(term_filter_replies(&f, got, sizeof(got)), 0);
	(void)term_filter(&f, "\x1b[c", 3, out);
	n = term_filter_replies(&f, got, sizeof(got));
	cr_assert(n == 7 && !memcmp(got, "\x1b[?1;2c", 7));
}

static size_t ask(struct term_filter *f)
{
	char out[TERM_FILTER_ROOM(4)];

	return term_filter(f, "\x1b[6n", 4, out);
}

Test(term_filter, the_cursors_place_is_asked_four_times_without_an_answer)
{
	static const char *const no_answers[] = {
		"R",	     "\x1b[R", "\x1b[1R",	 "\x1bO;R",
		"\x1b[1;2~", "12;34R", "\x1b[1;\x1b[2R", "\x1b[1;2;3R"};
	struct term_filter f = {0};

	for (int i = 0; i < TERM_FILTER_ASKED_MAX; i++)
		cr_assert_eq(ask(&f), 4);
	for (size_t i = 0; i < ARRAY_SIZE(no_answers); i++) {
		term_filter_typed(&f, no_answers[i], strlen(no_answers[i]));
		term_filter_typed(&f, " ", 1);
		cr_assert_eq(ask(&f), 0, "%s", no_answers[i] + 1);
	}
	for (const char *c = "x\x1b[24;80R"; *c; c++)
		term_filter_typed(&f, c, 1);
	cr_assert_eq(ask(&f), 4);
	cr_assert_eq(ask(&f), 0);
	for (int i = 0; i < 100; i++)
		term_filter_typed(&f, "\x1b[1;1R", 6);
	for (int i = 0; i < TERM_FILTER_ASKED_MAX; i++)
		cr_assert_eq(ask(&f), 4);
	cr_assert_eq(ask(&f), 0);
}

Test(term_filter, no_job_can_ask_the_owners_own_question)
{
	struct term_filter f = {0};
	char out[TERM_FILTER_ROOM(16)];

	cr_assert_eq(term_filter(&f, term_question, strlen(term_question), out), 0);
	cr_assert_eq(term_filter(&f, term_answer, strlen(term_answer), out), 0);
}

/* ---- giving it back --------------------------------------------------------------- */

Test(term_filter, the_reset_sets_back_each_mode_that_passes)
{
	static const unsigned on[] = {7, 25}, other_screen[] = {47, 1047, 1048};

	cr_assert_eq(strncmp(term_reset, "\x1b\\", 2), 0);
	cr_assert_null(term_clean(term_reset + 2, strlen(term_reset) - 2));
	for (size_t i = 0; i < term_table_len; i++) {
		const struct term_rule *r = &term_table[i];
		char want[32];

		if (r->verdict != TERM_PASSES ||
		    (r->kind != TERM_OF_DEC && r->kind != TERM_OF_MODE))
			continue;
		if (term_clean_is_one_of(r->from, other_screen, ARRAY_SIZE(other_screen)))
			continue; /* 1049 leaves it */
		(void)snprintf(
			want, sizeof(want), "\x1b[%s%u%c",
			r->kind == TERM_OF_DEC ? "?" : "", r->from,
			r->kind == TERM_OF_DEC &&
					term_clean_is_one_of(r->from, on, ARRAY_SIZE(on))
				? 'h'
				: 'l');
		cr_assert(strstr(term_reset, want), "%s", r->name);
	}
	/* renditions and character sets come last: "restore cursor" brings those that were saved */
	cr_assert(
		str_eq(term_reset + strlen(term_reset) - 11, "\x0f\x1b(B\x1b)B\x1b[0m"));
}
