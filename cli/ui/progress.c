/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See progress.h.
 */
#include "cli/ui/progress.h"

#include "cli/ui/render.h"
#include "cli/ui/when.h"
#include "common/cleanup.h"
#include "common/str.h"
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SILENT_USEC USEC_PER_SEC
#define EVERY_USEC (200 * USEC_PER_MSEC)
#define ERASE "\r\x1b[K"
#define OPEN_MAX_DIRS 16
/* What a double may hold and no integer does. */
#define RATE_MAX 1e15
#define LEFT_MAX_SEC 1e9

static struct {
	const char *what; /* NULL: nothing is under way, or nobody looks */
	uint64_t done, total;
	bool at_most, is_shown;
	usec_t began, told;
} now;

void progress_text(const char *what, uint64_t done, uint64_t total, bool at_most,
		   usec_t took, char out[PROGRESS_TEXT_SIZE])
{
	double rate = took ? (double)done * USEC_PER_SEC / (double)took : 0;
	double sec;
	char size[32], whole[32], speed[32], left[WHEN_SPAN_SIZE];
	bool is_known = total && done <= total;

	rate = rate < RATE_MAX ? rate : RATE_MAX;
	render_size(size, done);
	render_size(whole, total);
	render_size(speed, (unsigned long long)rate);
	(void)snprintf(out, PROGRESS_TEXT_SIZE, "%s: %s%s%s, %s/s", what, size,
		       !is_known ? ""
		       : at_most ? " of at most "
				 : " of ",
		       is_known ? whole : "", speed);
	if (!is_known || rate < 1)
		return;
	sec = (double)(total - done) / rate;
	when_span(0, (usec_t)(sec < LEFT_MAX_SEC ? sec : LEFT_MAX_SEC) * USEC_PER_SEC,
		  left);
	(void)snprintf(out + strlen(out), PROGRESS_TEXT_SIZE - strlen(out), ", %s left",
		       left);
}

void progress_hide(void)
{
	if (now.is_shown)
		(void)fputs(ERASE, stderr);
	now.is_shown = false;
}

void progress_begin(const char *what, uint64_t total, bool at_most, bool quiet)
{
	progress_end();
	if (quiet || !render_has_cursor(STDERR_FILENO))
		return;
	now.what = what;
	now.total = total;
	now.at_most = at_most;
	now.began = now.told = clock_boot_usec();
}

void progress_add(uint64_t bytes)
{
	char text[PROGRESS_TEXT_SIZE];
	usec_t at;

	if (!now.what)
		return;
	now.done += bytes;
	at = clock_boot_usec();
	if (at - now.began < SILENT_USEC || at - now.told < EVERY_USEC)
		return;
	now.told = at;
	progress_text(now.what, now.done, now.total, now.at_most, at - now.began, text);
	cleanup_free char *line = render_fit(text, STDERR_FILENO);

	(void)fprintf(stderr, ERASE "%s", line);
	(void)fflush(stderr);
	now.is_shown = true;
}

void progress_end(void)
{
	progress_hide();
	(void)memset(&now, 0, sizeof(now));
}

/* ---- totals -------------------------------------------------------------------- */

static uint64_t weight;

static int weigh_one(const char *path UNUSED, const struct stat *st, int kind,
		     struct FTW *at UNUSED)
{
	if (kind == FTW_F && S_ISREG(st->st_mode) && st->st_size > 0)
		weight += (uint64_t)st->st_size;
	return 0;
}

uint64_t progress_weigh(const char *dir)
{
	if (!render_has_cursor(STDERR_FILENO))
		return 0;
	weight = 0;
	(void)nftw(dir, weigh_one, OPEN_MAX_DIRS, FTW_PHYS);
	return weight;
}
