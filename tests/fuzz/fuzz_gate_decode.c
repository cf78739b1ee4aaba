/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders and folding on any bytes: blocks in order and in bounds, maps that grow. */
#include "vessel/gate_decode.h"
#include "vessel/gate_fold.h"
#include "vessel/gate_kind.h"
#include <stdlib.h>

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
	if (d->opaque_len && (size_t)d->opaque + d->opaque_len > size)
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *s = (const char *)data;
	static const unsigned how[] = {FOLD_ESCAPES | FOLD_SHAPES,
				       FOLD_SHAPES | FOLD_CASE, FOLD_ESCAPES, 7};
	size_t at;

	for (unsigned e = 0; e < GATE_ENCODING_MAX_; e++) {
		size_t max = size * 4 + (e % 2 ? 0 : 65536);
		struct gate_decoded d;

		gate_decode((enum gate_encoding)e, s, size, max, &d);
		if (!d.too_large)
			check_decoded(&d, size, max);
		gate_decoded_done(&d);
	}
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
	(void)gate_kind_of(s, size);
	if (gate_find_binary(s, size, &at) && at >= size)
		abort();
	if (gate_readable(s, size) > size)
		abort();
	return 0;
}
