/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See run_summary.h.
 */
#include "cli/jobs/run_summary.h"

#include "common/base64.h"
#include "common/jsonw.h"
#include "common/str.h"
#include "common/utf8.h"
#include <stdio.h>

/* Of a letter that was cut a part may be left: at most three bytes. */
static size_t whole_letters(const struct buf *b)
{
	size_t len = b->len;

	for (int i = 0; i < 4 && len; i++, len--)
		if (utf8_is_valid(b->data, len))
			return len;
	return utf8_is_valid(b->data, len) ? len : b->len;
}

static void put_stream(struct jsonw *w, const char *name, const struct buf *kept,
		       uint64_t bytes)
{
	bool is_cut = bytes > kept->len;
	size_t len = is_cut ? whole_letters(kept) : kept->len;
	char key[32];

	if (utf8_is_valid(buf_str(kept), len)) {
		jsonw_key(w, name);
		jsonw_strn(w, buf_str(kept), len);
	} else {
		cleanup_buf struct buf coded = {.max = 2 * RUN_SUMMARY_MAX_BYTES};

		(void)snprintf(key, sizeof(key), "%s_base64", name);
		base64_add(&coded, kept->data, len);
		jsonw_kstr(w, key, buf_str(&coded));
	}
	(void)snprintf(key, sizeof(key), "%s_cut", name);
	jsonw_kbool(w, key, is_cut);
}

int run_summary_put(const struct follow *f, int exit_code, struct err *err)
{
	/* each byte of output as an escape of six, and the job */
	cleanup_buf struct buf b = {.max = 14 * RUN_SUMMARY_MAX_BYTES + CLIENT_REPLY_MAX};
	struct jsonw w;

	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_key(&w, "job");
	json_write(f->job, &w);
	jsonw_key(&w, "exit_code");
	jsonw_i64(&w, exit_code);
	put_stream(&w, "stdout", f->keep[0], f->offset[0]);
	put_stream(&w, "stderr", f->keep[1], f->offset[1]);
	jsonw_key(&w, "untrusted");
	jsonw_arr(&w);
	jsonw_str(&w, "stdout");
	jsonw_str(&w, "stderr");
	jsonw_str(&w, "job.result");
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	(void)puts(buf_str(&b));
	return render_flush(err);
}
