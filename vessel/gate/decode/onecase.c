/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Long runs of digits and letters of one case, as base32 in any of its alphabets writes bytes:
 * opaque, when they look drawn by lot. They are not decoded.
 *
 * What a run is, is said by the share of its windows that look so, each by itself: letters of a
 * protein have no digit among them, those of hexadecimal numbers are too few.
 */
#include "vessel/gate/decode/decode_priv.h"
#include "vessel/gate/text/runs.h"

#define WINDOW 128    /* letters: 80 bytes of base32 */
#define DIGITS_MIN 5  /* of them; 24 are most likely */
#define DIGITS_MAX 72 /* base32 that begins with the digits has 40 */
#define DISTINCT_MIN 20
#define LINE_MIN 32

static const uint8_t upper[256] = {['A' ... 'Z'] = 1, ['0' ... '9'] = 1};
static const uint8_t lower[256] = {['a' ... 'z'] = 1, ['0' ... '9'] = 1};

/* n letters from s on, without what lies between them. */
static bool is_drawn(const uint8_t in[256], const char *s, size_t n)
{
	uint64_t seen = 0;
	size_t digits = 0;

	for (size_t k = 0; k < n; s++) {
		unsigned char c = (unsigned char)*s;

		if (!in[c])
			continue;
		digits += c <= '9';
		seen |= 1ULL << (c <= '9' ? c - '0' : 10 + ((c | 0x20) - 'a'));
		k++;
	}
	return digits >= DIGITS_MIN && digits <= DIGITS_MAX &&
	       __builtin_popcountll(seen) >= DISTINCT_MIN;
}

/* At least half of its windows: s holds n letters, n >= WINDOW. */
static bool is_opaque(const uint8_t in[256], const char *s, size_t n)
{
	size_t windows = 0, drawn = 0;

	for (size_t k = 0; k + WINDOW <= n; k += WINDOW) {
		windows++;
		drawn += is_drawn(in, s, WINDOW);
		for (size_t i = 0; i < WINDOW; s++)
			i += in[(unsigned char)*s] != 0;
	}
	return 2 * drawn >= windows;
}

static void look_for(const uint8_t in[256], const char *s, size_t len,
		     struct gate_decoded *d)
{
	size_t at = 0, end;
	struct gate_lines l;

	/* most texts have no such line */
	if (gate_next_run(in, LINE_MIN, s, len, 0) == len)
		return;
	while ((at = gate_next_run(in, WINDOW, s, len, at)) < len) {
		end = gate_run_end(in, s, len, at);
		if (is_opaque(in, s + at, end - at))
			decoded_note_opaque(d, at, end - at);
		at = end;
	}
	at = 0;
	while (gate_next_lines(in, "", s, len, &at, &l)) {
		const struct gate_lines_way *w = &l.way[0];

		if (!w->is_loose && w->n >= WINDOW && l.width >= LINE_MIN &&
		    l.width < WINDOW && is_opaque(in, s + w->from, w->n))
			decoded_note_opaque(d, w->from, w->to - w->from);
	}
}

void gate_note_one_case(const char *s, size_t len, struct gate_decoded *d)
{
	look_for(upper, s, len, d);
	look_for(lower, s, len, d);
}
