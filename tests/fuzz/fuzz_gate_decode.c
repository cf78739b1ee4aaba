/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders and folding on any bytes: blocks in order and in bounds, maps that grow; a text
 * without its words is made of the text. */
#include "vessel/gate/decode/decode.h"
#include "vessel/gate/decode/kind.h"
#include "vessel/gate/rules/words.h"
#include "vessel/gate/text/fold.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_decoded(const struct gate_decoded *d, size_t size, size_t max)
{
	size_t before = 0;

	if (d->len > max)
		abort();
	for (size_t i = 0; i < d->n; i++) {
		const struct gate_block *b = &d->block[i];

		if (b->out < before || (size_t)b->out + b->out_len > d->len ||
		    (size_t)b->src + b->src_len > size || b->src_len == 0)
			abort();
		before = b->out + b->out_len;
	}
	for (size_t i = 0; i < d->n_opaque; i++)
		if (d->opaque[i].start >= d->opaque[i].end || d->opaque[i].end > size)
			abort();
	if (d->n_opaque > GATE_OPAQUE_RUNS_MAX)
		abort();
}

static void check_folded(const struct gate_folded *f, size_t size)
{
	if (f->map[f->len] > size)
		abort();
	for (size_t i = 0; i < f->len; i++)
		if (f->map[i] > f->map[i + 1])
			abort();
}

/* Each byte is one of the text, or stands between two pieces. */
static void check_wordless(const char *s, size_t size)
{
	struct gate_span *word = calloc(size + 1, sizeof(*word));
	struct gate_folded f;
	size_t n = 0;

	for (size_t i = 0; word && i < size; i++)
		for (size_t k = 0; k < gate_words_n; k++) {
			size_t len = strlen(gate_words[k]);

			if (len > size - i || strncasecmp(s + i, gate_words[k], len) != 0)
				continue;
			if (n == 0 || word[n - 1].end < i)
				word[n++].start = i;
			if (word[n - 1].end < i + len)
				word[n - 1].end = i + len;
		}
	if (!word)
		return;
	gate_fold_words(s, size, word, n, 32, &f);
	for (size_t i = 0; i < f.len; i++)
		if (f.map[i] >= size || (f.data[i] != s[f.map[i]] && f.data[i] != '\n'))
			abort();
	gate_folded_done(&f);
	free(word);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *s = (const char *)data;
	static const unsigned how[] = {FOLD_ESCAPES | FOLD_SHAPES,
				       FOLD_SHAPES | FOLD_CASE,
				       FOLD_ESCAPES,
				       7,
				       15,
				       31,
				       FOLD_BYTES | FOLD_BACKSLASH,
				       FOLD_BYTES | FOLD_PERCENT | FOLD_FORM,
				       FOLD_BYTES | FOLD_REFERENCE};
	struct gate_stretch one = {size / 3, size / 2};
	const struct gate_stretches unread = {.one = &one, .n = one.end > one.start};
	struct gate_decoded few;
	size_t at;

	for (unsigned e = 0; e < GATE_ENCODING_MAX_; e++) {
		size_t max = size * 4 + (e % 2 ? 0 : 65536);
		struct gate_decoded d;

		gate_decode((enum gate_encoding)e, s, size, &unread, max, &d);
		if (!d.too_large)
			check_decoded(&d, size, max);
		gate_decoded_done(&d);
	}
	gate_decode_short(s, size, size * 2, &few);
	check_decoded(&few, size, size * 2);
	gate_decoded_done(&few);
	for (unsigned i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		struct gate_folded f;

		gate_fold(s, size, how[i], &f);
		if (f.len > size || f.map[f.len] != size)
			abort();
		check_folded(&f, size);
		gate_folded_done(&f);
		gate_fold_around(s, size, 1 + i * 37, &f);
		check_folded(&f, size);
		gate_folded_done(&f);
	}
	check_wordless(s, size);
	(void)gate_kind_of(s, size);
	if (gate_find_binary(s, size, &at) && at >= size)
		abort();
	if (gate_readable(s, size) > size)
		abort();
	return 0;
}
