/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The anchors of the audit log, as the scribe reports them, and whether one of them may be off this
 * machine: another file system is all that can be seen of that from here.
 */
#include "cli/doctor/doctor.h"

#include "cli/base/client.h"
#include "cli/base/paths.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#define WHERE "anchors"

/* A disk that was taken out is not asked: its directory is one of another disk then. */
static bool is_elsewhere(const struct paths *p, const char *path)
{
	cleanup_free char *dir = xstrdup(path);
	char *slash = strrchr(dir, '/');
	struct stat here, there;

	if (!slash)
		return false;
	slash[slash == dir] = '\0';
	return stat(p->data, &here) == 0 && stat(dir, &there) == 0 &&
	       here.st_dev != there.st_dev;
}

/* true: it stands, and on another file system. */
static bool examine_one(struct doctor_lines *d, const struct paths *p,
			const struct json *anchor)
{
	const char *name = "?", *path = "", *detail = "it reports nothing";
	struct err err = ERR_INIT;
	uint64_t size = 0;
	char answer[200];
	bool ok = false, elsewhere;

	if (json_get_str(anchor, "name", true, 64, &name, &err) < 0 ||
	    (!json_is_null(anchor, "path") &&
	     json_get_str(anchor, "path", true, 4096, &path, &err) < 0) ||
	    json_get_bool(anchor, "ok", true, &ok, &err) < 0 ||
	    json_get_u64(anchor, "size", true, 0, INT64_MAX, &size, &err) < 0)
		ok = false;
	if (!ok) {
		if (!json_is_null(anchor, "detail") &&
		    json_get_str(anchor, "detail", true, 1024, &detail, &err) < 0)
			detail = "?";
		doctor_line(d, WHERE, name, detail, FAIL);
		if (*path)
			doctor_next(d, FAIL, "lych-audit verify %s/audit --anchor %s",
				    p->data, path);
		return false;
	}
	if (json_is_null(anchor, "path")) {
		(void)snprintf(answer, sizeof(answer),
			       "has a checkpoint of %" PRIu64 " records", size);
		doctor_line(d, WHERE, name, answer, PASS);
		return false;
	}
	elsewhere = is_elsewhere(p, path);
	(void)snprintf(answer, sizeof(answer),
		       "has a checkpoint of %" PRIu64 " records, on %s", size,
		       elsewhere ? "another file system"
				 : "the log's file system: who rolls that back has both");
	doctor_line(d, WHERE, name, answer, elsewhere ? PASS : KNOWN);
	return elsewhere;
}

void doctor_anchors(struct doctor_lines *d, const struct paths *p,
		    const struct json *audit)
{
	const struct json *arr = NULL;
	struct err err = ERR_INIT;
	bool elsewhere = false;

	if (!json_is_null(audit, "anchors") &&
	    json_get_arr(audit, "anchors", true, 64, &arr, &err) < 0) {
		doctor_line(d, WHERE, "reported", err.msg, FAIL);
		return;
	}
	for (size_t i = 0; arr && i < json_arr_len(arr); i++)
		elsewhere |= examine_one(d, p, json_arr_at(arr, i));
	doctor_line(d, WHERE, "one is off this machine",
		    elsewhere ? "may be: a disk that is always in it is not"
			      : "none is set: all of it put back as it was yesterday is "
				"seen by nothing here (audit.anchors)",
		    elsewhere ? NOTE : KNOWN);
}
