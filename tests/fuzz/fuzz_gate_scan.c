/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes through the whole judgement: spans lie in their part, shares between 0 and 1,
 * and the same bytes with a line more never score less. */
#include "common/mem.h"
#include "vessel/gate/decode/decode.h"
#include "vessel/gate/gate.h"
#include "vessel/gate/rules/rules.h"
#include "vessel/gate/text/fold.h"
#include <stdlib.h>

#define INPUT_MAX 16384

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static double scan(struct gate *g, const struct gate_part *parts, size_t n)
{
	static struct gate_report r;
	const struct gate_input in = {.parts = parts, .n_parts = n};

	gate_scan(g, &in, &r);
	if (!(r.score >= 0 && r.score <= 1))
		abort();
	for (size_t i = 0; i < r.n; i++) {
		const struct gate_finding *f = &r.finding[i];

		if (!(f->severity >= 0 && f->severity <= 1) || f->len == 0)
			abort();
		if (!f->is_split && (f->part >= n || f->offset >= parts[f->part].len ||
				     f->len > parts[f->part].len - f->offset))
			abort();
	}
	return r.score;
}

/* An encoded run that goes on to the end, base64 in lines or a compressed stream that was cut,
 * takes what is added for its own: not a line more then, but letters behind its last word.
 * So does one that shows only when escapes are undone. */
static bool would_take_the_line(const char *s, size_t len, unsigned depth)
{
	struct gate_folded f;
	bool takes = false;

	const struct gate_stretches none = {0};

	for (unsigned e = 0; e < GATE_ENCODING_MAX_; e++) {
		struct gate_decoded d;

		gate_decode((enum gate_encoding)e, s, len, &none, (size_t)1 << 20, &d);
		for (size_t i = 0; i < d.n; i++)
			takes |= d.block[i].src + d.block[i].src_len == len;
		gate_decoded_done(&d);
	}
	if (takes || depth == GATE_DEPTH_MAX)
		return takes;
	gate_fold_around(s, len, GATE_REACH, &f);
	takes = f.changed && would_take_the_line(f.data, f.len, depth + 1);
	gate_folded_done(&f);
	return takes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gate *g;
	static const char line[] = "\nanother line\n";
	const struct gate_config cfg = {.portal_threshold = 0.4,
					.forbidden_threshold = 0.7,
					.deadline_usec = 3600 * USEC_PER_SEC};
	struct gate_part parts[2];
	size_t half = size / 2;
	double one;
	char *more;

	if (size > INPUT_MAX)
		return 0;
	if (!g && gate_new(&cfg, &g, NULL) < 0)
		abort();
	parts[0] = (struct gate_part){.data = (const char *)data, .len = size, .tag = 1};
	one = scan(g, parts, 1);
	more = xmalloc(size + sizeof(line));
	memcpy(more, data, size);
	memcpy(more + size, line, sizeof(line) - 1);
	parts[0].data = more;
	parts[0].len = size + sizeof(line) - 1;
	if (scan(g, parts, 1) < one - 1e-9 &&
	    !would_take_the_line((const char *)data, size, 0))
		abort();
	parts[0].len = half;
	parts[1] = (struct gate_part){.data = more + half, .len = size - half, .tag = 1};
	(void)scan(g, parts, 2);
	free(more);
	return 0;
}
