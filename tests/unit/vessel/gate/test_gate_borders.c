/* SPDX-License-Identifier: Apache-2.0 */
/* Where one text ends and another begins: what was judged as a whole, a sound or a run of random
 * bytes, is not read on into what stands behind it; what was cut to pass is. */
#include "common/attr.h"
#include "common/cleanup.h"
#include "tests/support/gate_texts.h"
#include "vessel/gate/gate.h"

TestSuite(gate_borders, .init = begin, .fini = end, .timeout = 60);

#define TAG 7
#define NOISE_BYTES 2998 /* with its head a multiple of three: no padding */

static uint32_t seed = 99;

static void add_random64(struct buf *out, size_t bytes)
{
	cleanup_buf struct buf b = new_buf();

	for (size_t i = 0; i < bytes; i++) {
		seed = seed * 1664525 + 1013904223;
		buf_addc(&b, (char)(seed >> 24));
	}
	add64(out, b.data, b.len, 0);
}

static void add_le32(struct buf *out, uint32_t v)
{
	for (int shift = 0; shift < 32; shift += 8)
		buf_addc(out, (char)(v >> shift));
}

/* A sound of noise, in base64. */
static void add_wav64(struct buf *out)
{
	cleanup_buf struct buf b = new_buf();

	buf_adds(&b, "RIFF");
	add_le32(&b, 4 + 24 + 8 + NOISE_BYTES);
	buf_adds(&b, "WAVEfmt ");
	add_le32(&b, 16);
	buf_add(&b, "\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\10\0", 16);
	buf_adds(&b, "data");
	add_le32(&b, NOISE_BYTES);
	for (size_t i = 0; i < NOISE_BYTES; i++) {
		seed = seed * 1664525 + 1013904223;
		buf_addc(&b, (char)(seed >> 24));
	}
	add64(out, b.data, b.len, 0);
}

static struct gate_part text_part(const struct buf *b)
{
	return (struct gate_part){.data = b->data, .len = b->len, .tag = TAG};
}

static struct gate_part text(const char *s)
{
	return (struct gate_part){.data = s, .len = strlen(s), .tag = TAG};
}

static void scan(const struct gate_part *p, size_t n)
{
	const struct gate_input in = {.parts = p, .n_parts = n};

	gate_scan(g, &in, &r);
}

/* As a row they are letters of base64, and whatever they decode to is none of theirs. */
Test(gate_borders, names_that_many_texts_have_are_no_random_bytes)
{
	static const char *const required[] = {
		"description", "prompt",       "command",	"cron",
		"prompt",      "id",	       "file_path",	"old_string",
		"new_string",  "action",       "notebook_path", "new_source",
		"file_path",   "file",	       "summary",	"failure_scenario",
		"findings",    "delaySeconds", "reason",	"prompt",
		"to",	       "message",      "skill",		"subject",
		"description", "taskId",       "task_id",	"block",
		"timeout",     "taskId",       "url",		"prompt",
		"query",       "file_path",    "content"};
	struct gate_part p[4 * ARRAY_SIZE(required)];

	for (size_t i = 0; i < ARRAY_SIZE(p); i++)
		p[i] = text(required[i % ARRAY_SIZE(required)]);
	scan(p, ARRAY_SIZE(p));
	cr_assert_eq(r.n, 0, "%s in part %u", r.finding[0].rule, r.finding[0].part);
}

Test(gate_borders, random_bytes_in_many_texts_are_found)
{
	cleanup_buf struct buf all = new_buf();
	struct gate_part p[2 * 64];

	add_random64(&all, 480); /* 640 letters */
	for (size_t i = 0; i < ARRAY_SIZE(p); i += 2) {
		p[i] = (struct gate_part){
			.data = all.data + 5 * i, .len = 10, .tag = TAG};
		p[i + 1] = text("a word, and more");
		p[i + 1].tag = TAG + 1;
	}
	scan(p, ARRAY_SIZE(p));
	cr_assert_gt(r.n, 0);
	cr_assert(r.finding[0].is_split);
}

Test(gate_borders, a_sound_in_a_text_is_not_read_on)
{
	cleanup_buf struct buf wav = new_buf();
	struct gate_part p[4];

	buf_adds(&wav, "saved as ");
	add_wav64(&wav);
	p[0] = text_part(&wav);
	p[1] = text("Please");
	p[2] = text("continue");
	scan(p, 3);
	cr_assert_eq(r.n, 0, "%s at %u of %u", r.finding[0].rule, r.finding[0].offset,
		     r.finding[0].part);
	cr_assert_eq(r.n_judged, 1);
	cr_assert_eq(r.judged[0].part, 0);
	cr_assert_eq(r.judged[0].left, 0);
	buf_adds(&wav, " at 9 o'clock");
	p[0] = text_part(&wav);
	scan(p, 3);
	cr_assert_eq(r.n, 0);
	cr_assert_eq(r.judged[0].left, 13);
}

Test(gate_borders, a_random_text_alone_is_one_that_can_be_rewritten)
{
	static const size_t sizes[] = {400, 900, 3000};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		cleanup_buf struct buf b = new_buf();
		struct gate_part p[4] = {text("user"), {0}, text("model"), text("go")};

		add_random64(&b, sizes[i]);
		p[1] = text_part(&b);
		scan(p, 4);
		cr_assert_eq(r.n, 1, "%zu bytes: %zu findings", sizes[i], r.n);
		cr_assert_eq(r.finding[0].part, 1);
		cr_assert_eq(r.finding[0].offset, 0);
		cr_assert_eq(r.finding[0].len, b.len);
		cr_assert_not(r.finding[0].is_split);
		cr_assert_eq(r.n_judged, 1);
		cr_assert_eq(r.judged[0].left, 0);
	}
}

static bool has_cut_bytes(void)
{
	for (size_t i = 0; i < r.n; i++)
		if (r.finding[i].family == GATE_BINARY && r.finding[i].is_split)
			return true;
	return false;
}

/* A sound before it makes no way for it. */
Test(gate_borders, random_bytes_that_were_cut_are_found)
{
	enum { PIECES = 12, LETTERS = 48 };
	cleanup_buf struct buf wav = new_buf(), cut = new_buf();
	struct gate_part p[1 + PIECES];

	add_wav64(&wav);
	p[0] = text_part(&wav);
	add_random64(&cut, (size_t)PIECES * LETTERS * 3 / 4);
	for (size_t i = 0; i < PIECES; i++)
		p[1 + i] = (struct gate_part){
			.data = cut.data + LETTERS * i, .len = LETTERS, .tag = TAG};
	scan(p, 2);
	cr_assert_not(has_cut_bytes());
	scan(p, 1 + PIECES);
	cr_assert(has_cut_bytes());
}

Test(gate_borders, a_key_behind_a_sound_is_found)
{
	cleanup_buf struct buf wav = new_buf();
	struct gate_part p[2];

	add_wav64(&wav);
	buf_adds(&wav, " it: ghp_zQWBuTSOoRi4A9spHcVY");
	p[0] = text_part(&wav);
	p[1] = text("5ncnsDkxkJ0mLq17");
	scan(p, 1);
	cr_assert_lt(r.score, 0.4);
	scan(p, 2);
	cr_assert_eq(r.score, 1.0);
}

static bool has_split(void)
{
	for (size_t i = 0; i < r.n; i++)
		if (r.finding[i].is_split)
			return true;
	return false;
}

/* A picture that an agent cut, and a word behind it: one finding, which can be replaced. */
Test(gate_borders, a_picture_that_was_cut_is_one_that_can_be_rewritten)
{
	static const char head[] =
		"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x40\0\0\0\x40\x8\x2\0\0\0"
		"\045\013\346\211\0\0\377\377IDAT\170\234";
	cleanup_buf struct buf raw = new_buf(), cut = new_buf();
	struct gate_part p[2];

	buf_add(&raw, head, sizeof(head) - 1);
	for (size_t i = 0; i < NOISE_BYTES; i++) {
		seed = seed * 1664525 + 1013904223;
		buf_addc(&raw, (char)(seed >> 24));
	}
	add64(&cut, raw.data, raw.len, 0);
	p[0] = text_part(&cut);
	p[1] = text("PleaseContinue");
	scan(p, 2);
	cr_assert_eq(r.n, 1);
	cr_assert_eq(r.finding[0].family, GATE_MEDIA);
	cr_assert_eq(r.finding[0].len, cut.len);
	cr_assert_not(has_split());
}

/* What was let out where it stood, remembered from its midst on. */
Test(gate_borders, a_tail_and_a_word_are_no_random_bytes)
{
	cleanup_buf struct buf b = new_buf();
	struct gate_tail tail = {.tag = TAG, .len = GATE_TAIL_BYTES};
	struct gate_part p = text("PleaseContinueNow");
	const struct gate_input in = {
		.parts = &p, .n_parts = 1, .tails = &tail, .n_tails = 1};

	add_random64(&b, GATE_TAIL_BYTES);
	memcpy(tail.data, b.data, GATE_TAIL_BYTES);
	gate_scan(g, &in, &r);
	cr_assert_not(has_cut_bytes());
	p = (struct gate_part){.data = b.data, .len = 140, .tag = TAG};
	gate_scan(g, &in, &r);
	cr_assert(has_cut_bytes());
}

/* Letters that are folded, and far from them a digest and an address: no piece cuts them, or goes on
 * into the next one. */
Test(gate_borders, what_is_near_something_folded_is_not_cut)
{
	static const char sum[] =
		"c0535e4be2b79ffd93291305436bf889314e4a3faec05ecffcbb7df31ad9e51a\n";

	for (size_t gap = 400; gap < 640; gap += 7) {
		cleanup_buf struct buf b = new_buf();
		struct gate_part p;

		buf_adds(&b, sum);
		for (size_t i = 0; i < gap; i++)
			buf_addc(&b, i % 8 ? '.' : ' ');
		buf_adds(&b, "\nGr\xc3\xb6\xc3\x9f"
			     "e ");
		for (size_t i = 0; i < gap; i++)
			buf_addc(&b, i % 8 ? '.' : ' ');
		buf_adds(&b, " jane.roe@corp-mail.org ");
		for (size_t i = 0; i < 3000; i++)
			buf_addc(&b, i % 8 ? '.' : ' ');
		buf_adds(&b, "\xc3\xb6\n");
		p = text_part(&b);
		scan(&p, 1);
		for (size_t i = 0; i < r.n; i++) {
			cr_assert_neq(r.finding[i].family, GATE_ENTROPY, "gap %zu", gap);
			cr_assert_leq(r.finding[i].len, 24, "gap %zu", gap);
		}
	}
}
