/* SPDX-License-Identifier: Apache-2.0 */
#include "common/mem.h"
#include "vessel/gate_decode_priv.h"
#include "vessel/gate_runs.h"
#include "vessel/gate_valid.h"
#include <string.h>

#define BASE64_MIN 12	   /* characters of a run */
#define BASE64_LINE_MIN 40 /* a run goes on over a line's end behind that many */
#define OPAQUE_MIN 192	   /* bytes decoded of which nothing is known */

const uint8_t gate_values64[256] = {
	['A'] = 1,  ['B'] = 2,	['C'] = 3,  ['D'] = 4,	['E'] = 5,  ['F'] = 6,
	['G'] = 7,  ['H'] = 8,	['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12,
	['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16, ['Q'] = 17, ['R'] = 18,
	['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
	['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30,
	['e'] = 31, ['f'] = 32, ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36,
	['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40, ['o'] = 41, ['p'] = 42,
	['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
	['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54,
	['2'] = 55, ['3'] = 56, ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60,
	['8'] = 61, ['9'] = 62, ['+'] = 63, ['-'] = 63, ['/'] = 64, ['_'] = 64,
};

static int value64(char c)
{
	return gate_values64[(unsigned char)c] - 1;
}

/* Words and names of one case decode to nothing: base64 of a text has both, that of a
 * number at least capitals and digits. */
static bool is_mixed(const char *s, size_t len)
{
	bool upper = false, other = false;

	for (size_t i = 0; i < len && !(upper && other); i++) {
		upper |= s[i] >= 'A' && s[i] <= 'Z';
		other |= (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9');
	}
	return upper && other;
}

/* The run at s, over line ends: its length; *ret_n characters of the alphabet. */
static size_t run64(const char *s, size_t len, size_t *ret_n)
{
	size_t i = 0, line = 0, n = 0;

	for (;;) {
		size_t skip = 0;

		while (i < len && value64(s[i]) >= 0) {
			i++;
			n++;
			line++;
		}
		while (i + skip < len && skip < 3 && strchr("\r\n", s[i + skip]) &&
		       s[i + skip])
			skip++;
		if (line < BASE64_LINE_MIN || skip == 0 || i + skip >= len ||
		    value64(s[i + skip]) < 0)
			break;
		i += skip;
		line = 0;
	}
	for (unsigned pad = 0; pad < 2 && n >= BASE64_MIN && i < len && s[i] == '=';
	     pad++)
		i++;
	*ret_n = n;
	return i;
}

/* Six bits for each of n characters, without the first `skip`. */
static void put64(struct gate_decoded *d, const uint8_t *six, size_t n, unsigned skip)
{
	char *out;
	size_t i = skip;

	if (!decoded_reserve(d, n))
		return;
	out = d->data + d->len;
	for (; i + 4 <= n; i += 4, out += 3) {
		out[0] = (char)(six[i] << 2 | six[i + 1] >> 4);
		out[1] = (char)(six[i + 1] << 4 | six[i + 2] >> 2);
		out[2] = (char)(six[i + 2] << 6 | six[i + 3]);
	}
	if (i + 2 <= n)
		*out++ = (char)(six[i] << 2 | six[i + 1] >> 4);
	if (i + 3 <= n)
		*out++ = (char)(six[i + 1] << 4 | six[i + 2] >> 2);
	d->len = (size_t)(out - d->data);
}

/* The run s[i, i + run), n characters of the alphabet. six: room for all of them. */
static void take_run64(struct gate_decoded *d, const char *s, size_t i, size_t run,
		       size_t n, uint8_t *six)
{
	bool kept = false;
	size_t k = 0;

	for (size_t at = i; at < i + run; at++)
		if (value64(s[at]) >= 0)
			six[k++] = (uint8_t)value64(s[at]);
	/* It may begin with letters that are none of it. */
	for (unsigned skip = 0; skip < 4 && !kept && !d->too_large; skip++) {
		size_t before = d->len, out = decoded_begin(d);

		put64(d, six, k, skip);
		kept = decoded_keep(d, out, i, run);
		if (!kept)
			d->len = before;
	}
	if (!kept && n / 4 * 3 >= OPAQUE_MIN && distinct_bytes(s + i, run) > 40)
		decoded_note_opaque(d, i, run);
}

void gate_decode_base64(const char *s, size_t len, struct gate_decoded *d)
{
	uint8_t *six = NULL;
	size_t room = 0;

	for (size_t i = gate_next_run(gate_values64, BASE64_MIN, s, len, 0);
	     i < len && !d->too_large;
	     i = gate_next_run(gate_values64, BASE64_MIN, s, len, i)) {
		size_t n = 0, run = run64(s + i, len - i, &n);

		if (!six || n > room) {
			room = n * 2;
			six = xreallocarray(six, room, 1);
		}
		if (is_mixed(s + i, run))
			take_run64(d, s, i, run, n, six);
		i += run;
	}
	free(six);
}
