/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See codex.h.
 */
#include "vessel/codex.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "vessel/api/ward_reload.h"
#include <string.h>

/* What a file says that says nothing. */
#define NO_FILE "version: \"1\"\n"

int codex_open(struct vessel *v, const char *path, struct err *err)
{
	cleanup_buf struct buf text = {.max = CONF_FILE_MAX_BYTES};
	cleanup_buf struct buf flat = {.max = CONF_FLAT_MAX_BYTES};

	conf_defaults(&v->conf);
	if (!path)
		buf_adds(&text, NO_FILE);
	else if (conf_read_text(path, &text, err) < 0)
		return -1;
	if (conf_parse(buf_str(&text), text.len, &v->conf, err) < 0 ||
	    conf_flatten(buf_str(&text), text.len, &flat, err) < 0)
		return err_wrap(err, "%s", path ? path : "no file");
	v->codex.flat = xstrdup(buf_str(&flat));
	v->codex.generation = 1;
	ward_reload_digest(text.data, text.len, v->codex.sha256);
	return 0;
}

void codex_close(struct vessel *v)
{
	ward_reload_free(v->codex.reload);
	v->codex.reload = NULL;
	free(v->codex.flat);
	conf_done(&v->conf);
}
