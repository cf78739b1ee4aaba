/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See status_wait.h.
 */
#include "cli/pod/status_wait.h"

#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define MISSING_MAX 8192

void status_missing(struct buf *missing, const char *part, const char *state)
{
	buf_addf(missing, "%s%s (%s)", missing->len ? ", " : "", part, state);
}

static void say(const char *missing)
{
	cleanup_free char *shown = render_shown(missing);
	cleanup_free char *line = xasprintf("waiting for %s", shown);
	cleanup_free char *fit = render_fit(line, STDERR_FILENO);

	(void)fprintf(stderr, "%s\n", fit);
}

int status_wait(status_look *look, void *arg, usec_t time, struct err *err)
{
	const struct timespec pause = {.tv_nsec = 500 * 1000 * 1000};
	usec_t until = clock_boot_usec() + time;
	cleanup_free char *said = xstrdup("");

	for (;;) {
		cleanup_buf struct buf missing = {0};

		buf_init(&missing, MISSING_MAX);
		if (look(arg, &missing, err) < 0)
			return -1;
		if (missing.len == 0 && buf_ok(&missing))
			return 0;
		if (clock_boot_usec() >= until)
			return err_set_id(err, ERRID_START_PARTS,
					  "after %" PRIu64 " s: %s", time / USEC_PER_SEC,
					  buf_str(&missing));
		if (isatty(STDERR_FILENO) && !str_eq(said, buf_str(&missing))) {
			free(said);
			said = xstrdup(buf_str(&missing));
			say(said);
		}
		(void)nanosleep(&pause, NULL);
	}
}
