/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See follow_words.h.
 */
#include "cli/follow/follow_words.h"

#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/ui/render.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include <inttypes.h>
#include <stdio.h>

void follow_say_away(job_id_t id, const char *before)
{
	(void)fprintf(stderr,
		      "%s\nlych: the vessel does not answer ('lych status'); job %" PRId64
		      " is followed on if it comes back within a minute\n",
		      before, id);
}

void follow_say_waiting(const char *socket, job_id_t id, const char *before)
{
	cleanup_client struct client *c = NULL;
	cleanup_json struct json *vessel = NULL;
	cleanup_buf struct buf text = {.max = 8192};
	const struct json *audit = NULL;
	struct err ignored = ERR_INIT;
	bool ready = false, ok = true;

	if (client_new(socket, &c, &ignored) < 0 ||
	    client_status(c, &vessel, &ready, &ignored) < 0 ||
	    json_get_obj(vessel, "audit", true, &audit, &ignored) < 0 ||
	    json_get_bool(audit, "ok", true, &ok, &ignored) < 0 || ok)
		return;
	const char *code = render_text_of(audit, "error_code");
	const char *detail = render_text_of(audit, "detail");

	render_escape(&text, code, strlen(code), 0);
	buf_adds(&text, "  ");
	render_escape(&text, detail, strlen(detail), 0);
	(void)fprintf(stderr,
		      "%s\nlych: job %" PRId64
		      " waits: no job is begun while the audit log is not "
		      "written\n      %s\n",
		      before, id, buf_str(&text));
}

bool follow_tell_missing(const struct json *job, const uint64_t have[2])
{
	static const char *const keys[2][2] = {{"stdout_bytes", "stdout_truncated"},
					       {"stderr_bytes", "stderr_truncated"}};
	const struct json *result = NULL;
	struct err ignored = ERR_INIT;
	bool any = false;

	if (json_get_obj(job, "result", true, &result, &ignored) < 0)
		return false;
	for (int i = 0; i < 2; i++) {
		cleanup_free char *detail = NULL;
		bool is_cut = false;
		uint64_t bytes = 0;

		if (json_get_u64(result, keys[i][0], false, 0, INT64_MAX, &bytes,
				 &ignored) < 0 ||
		    json_get_bool(result, keys[i][1], false, &is_cut, &ignored) < 0 ||
		    is_cut || bytes <= have[i])
			continue;
		detail = xasprintf("the last %" PRIu64
				   " bytes of its %s are not there any more",
				   bytes - have[i], i ? "stderr" : "stdout");
		cmd_tell(ERRID_STORE_DAMAGED, detail);
		any = true;
	}
	return any;
}
