/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The running services: the daemons' own self-tests and the database's rights, as they
 * report them.
 */
#include "cli/doctor/doctor.h"

#include "cli/base/client.h"
#include "cli/base/mode.h"
#include "cli/base/paths.h"
#include "cli/local/up.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/str.h"
#include <inttypes.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

static void examine_walls(struct doctor_lines *d, const char *where,
			  const struct json *obj)
{
	const struct json *arr = NULL;
	struct err err = ERR_INIT;

	if (json_get_arr(obj, "walls", true, 64, &arr, &err) < 0 ||
	    json_arr_len(arr) == 0) {
		doctor_line(d, where, "self-test", "it reports no walls", FAIL);
		return;
	}
	for (size_t i = 0; i < json_arr_len(arr); i++) {
		const struct json *l = json_arr_at(arr, i);
		const char *wall = "?", *answer = "?";
		bool held = false;

		if (json_get_str(l, "wall", true, 256, &wall, &err) < 0 ||
		    json_get_str(l, "answer", true, 256, &answer, &err) < 0 ||
		    json_get_bool(l, "held", true, &held, &err) < 0)
			held = false;
		doctor_line(d, where, wall, answer, held ? PASS : FAIL);
	}
}

/* The processes that speak to the network; each tried its walls at its start. */
static void examine_workers(struct doctor_lines *d, const struct json *status)
{
	const struct json *arr = NULL;
	struct err err = ERR_INIT;

	if (json_get_arr(status, "egress_workers", true, 64, &arr, &err) < 0 ||
	    json_arr_len(arr) == 0) {
		doctor_line(d, "egress", "self-test", "there are no workers", FAIL);
		return;
	}
	for (size_t i = 0; i < json_arr_len(arr); i++) {
		const struct json *w = json_arr_at(arr, i);
		const char *name = "?";
		char where[96];
		bool up = false;

		if (json_get_str(w, "name", true, 80, &name, &err) < 0 ||
		    json_get_bool(w, "up", true, &up, &err) < 0)
			up = false;
		(void)snprintf(where, sizeof(where), "egress %s", name);
		doctor_line(d, where, "up", up ? "yes" : "no", up ? PASS : FAIL);
		examine_walls(d, where, w);
	}
}

/* Where one is asked: when it did not answer the last time, asks are refused. */
static void examine_classifier(struct doctor_lines *d, const struct json *status)
{
	const struct json *c = NULL;
	struct err ignored = ERR_INIT;
	bool answers = false;

	if (json_is_null(status, "classifier") ||
	    json_get_obj(status, "classifier", true, &c, &ignored) < 0)
		return;
	if (json_get_bool(c, "answers", true, &answers, &ignored) < 0)
		answers = false;
	doctor_line(d, "gate", "the classifier answers",
		    answers ? "yes, or it was not asked yet"
			    : "not the last time: asks are refused",
		    answers ? PASS : FAIL);
}

/* What jobs did that may be an attack, since the vessel began. */
static void examine_triggers(struct doctor_lines *d, const struct json *status)
{
	const struct json *arr = NULL;
	struct err ignored = ERR_INIT;
	uint64_t pulled, contained;
	char text[160];

	if (!json_has(status, "triggers") ||
	    json_get_arr(status, "triggers", true, 64, &arr, &ignored) < 0)
		return;
	for (size_t i = 0; i < json_arr_len(arr); i++) {
		const struct json *t = json_arr_at(arr, i);
		const char *name = NULL, *act = NULL;

		if (json_get_str(t, "trigger", true, 32, &name, &ignored) < 0 ||
		    json_get_str(t, "act", true, 16, &act, &ignored) < 0 ||
		    json_get_u64(t, "pulled", true, 0, INT64_MAX, &pulled, &ignored) <
			    0 ||
		    json_get_u64(t, "contained", true, 0, INT64_MAX, &contained,
				 &ignored) < 0)
			return;
		if (str_eq(act, "off"))
			(void)snprintf(text, sizeof(text), "off: nothing tells of it");
		else
			(void)snprintf(text, sizeof(text),
				       "%s; %llu since the vessel began, %llu contained",
				       act, (unsigned long long)pulled,
				       (unsigned long long)contained);
		doctor_line(d, "triggers", name, text, NOTE);
		if (pulled)
			doctor_next(d, NOTE, "lych audit tail | grep detection");
	}
}

/* The scribe speaks to the vessel only, which passes its self-test on. */
static void examine_audit(struct doctor_lines *d, const struct json *audit)
{
	const char *code = "?", *detail = "";
	struct err ignored = ERR_INIT;
	bool ok = false;
	char text[160];

	examine_walls(d, "scribe", audit);
	if (json_get_bool(audit, "ok", true, &ok, &ignored) == 0 && ok) {
		doctor_line(d, "scribe", "the log is written", "yes", PASS);
		return;
	}
	(void)!json_get_str(audit, "error_code", true, 32, &code, &ignored);
	(void)!json_get_str(audit, "detail", true, 1024, &detail, &ignored);
	(void)snprintf(text, sizeof(text), "%s %s", code, detail);
	doctor_line(d, "scribe", "the log is written", text, FAIL);
}

/* Every job is looked at. */
static void examine_database(struct doctor_lines *d, struct client *c)
{
	const struct client_request rq = {
		.method = "GET", .target = "/v1/check", .timeout_ms = 65000};
	cleanup_json struct json *check = NULL;
	const struct json *inv = NULL, *v;
	struct err err = ERR_INIT;
	const char *key;

	if (client_json(c, &rq, &check, NULL, &err) < 0 ||
	    json_get_obj(check, "invariants", true, &inv, &err) < 0) {
		doctor_line(d, "database", "invariants", err.msg, FAIL);
		return;
	}
	for (size_t i = 0; json_obj_at(inv, i, &key, &v); i++) {
		uint64_t n = 1;
		char text[64];

		if (json_get_u64(inv, key, true, 0, INT64_MAX, &n, &err) < 0)
			n = 1;
		(void)snprintf(text, sizeof(text), "%" PRIu64 " violations", n);
		doctor_line(d, "database", key, text, n ? FAIL : PASS);
	}
}

/* Who spoke to the vessel, and whether it speaks our version. */
static void examine_tombs(struct doctor_lines *d, const struct json *status)
{
	const struct json *arr = NULL;
	struct err err = ERR_INIT;

	if (json_get_arr(status, "tombs", true, 64, &arr, &err) < 0 ||
	    json_arr_len(arr) == 0) {
		doctor_line(d, "tombs", "hello", "no tomb has spoken to the vessel",
			    FAIL);
		return;
	}
	for (size_t i = 0; i < json_arr_len(arr); i++) {
		const struct json *t = json_arr_at(arr, i);
		const char *name = "?", *release = "?";
		uint64_t protocol = 0, ago = 0;
		bool refused = true;
		char text[160];

		if (json_get_str(t, "name", true, 64, &name, &err) < 0 ||
		    json_get_u64(t, "protocol", true, 0, UINT32_MAX, &protocol, &err) <
			    0 ||
		    json_get_u64(t, "seen_ago_s", true, 0, INT64_MAX, &ago, &err) < 0 ||
		    json_get_bool(t, "refused", true, &refused, &err) < 0)
			refused = true;
		if (!json_is_null(t, "release") &&
		    json_get_str(t, "release", true, 64, &release, &err) < 0)
			release = "?";
		(void)snprintf(text, sizeof(text),
			       "version %" PRIu64 "%s, release %.40s, seen %" PRIu64
			       " s ago",
			       protocol,
			       refused ? " (refused: upgrade the older of it and the "
					 "vessel)"
				       : "",
			       release, ago);
		doctor_line(d, "tombs", name, text, refused ? FAIL : PASS);
	}
}

/* One JSON-RPC call on the tomb's control socket. */
static int tomb_health(const struct paths *p, struct json **ret, struct err *err)
{
	static const char call[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"healthCheck\"}\n";
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = 5};
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char reply[65536];
	size_t len = 0;
	ssize_t n;

	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
		return err_sys(err, "socket");
	if (str_fmt(sa.sun_path, sizeof(sa.sun_path), "%s/tomb-" TOMB_NAME ".sock",
		    p->work_dir) < 0)
		return err_set_id(err, ERRID_START_SOCKET, "the path is too long");
	if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0)
		return err_sys(err, "%s", sa.sun_path);
	if (fs_write_all(fd, call, sizeof(call) - 1, err) < 0)
		return -1;
	while (len < sizeof(reply) && !memchr(reply, '\n', len)) {
		n = read(fd, reply + len, sizeof(reply) - len);
		if (n <= 0)
			return err_set(err, ERR_UPSTREAM, "the tomb does not answer");
		len += (size_t)n;
	}
	while (len && (reply[len - 1] == '\n' || reply[len - 1] == '\r'))
		len--;
	return json_parse(reply, len, JSON_DEPTH_DEFAULT, ret, err);
}

/* No socket: nothing runs, or what runs cannot be reached. */
static void examine_absence(struct doctor_lines *d, const struct paths *p)
{
	cleanup_close int pidfd = -1;
	struct err err = ERR_INIT;
	pid_t pid = 0;
	char text[PATH_MAX + 200];

	if (starter_hold(p, &pidfd, &pid, &err) < 0) {
		doctor_line(d, "services", "who holds the data", err.msg, FAIL);
		return;
	}
	if (!pid) {
		const char *start = mode_start(mode_is_pod(p));

		(void)snprintf(text, sizeof(text), "not running: '%s' first", start);
		doctor_line(d, "services", "vessel, scribe, tomb, database, a real job",
			    text, SKIP);
		doctor_next(d, SKIP, "%s", start);
		return;
	}
	(void)snprintf(text, sizeof(text),
		       "not there, but process %d ('lych up') runs: if it is not back in "
		       "10 s, 'lych down', 'lych up' (%s)",
		       pid, p->api_sock);
	doctor_line(d, "vessel", "its socket", text, FAIL);
	doctor_next(d, FAIL, "%s", mode_restart(false));
}

bool doctor_services(struct doctor_lines *d, const struct paths *p)
{
	cleanup_client struct client *c = NULL;
	cleanup_json struct json *status = NULL;
	cleanup_json struct json *reply = NULL;
	const struct json *health = NULL, *audit = NULL;
	struct err err = ERR_INIT;
	bool ready = false; /* examine_database() looks closer */

	if (access(p->api_sock, F_OK) < 0) {
		examine_absence(d, p);
		return false;
	}
	if (client_new(p->api_sock, &c, &err) < 0 ||
	    client_status(c, &status, &ready, &err) < 0) {
		doctor_line(d, "vessel", "GET /v1/status", err.msg, FAIL);
		doctor_next(d, FAIL, "%s", mode_restart(mode_is_pod(p)));
		return false;
	}
	examine_walls(d, "vessel", status);
	examine_workers(d, status);
	examine_classifier(d, status);
	examine_triggers(d, status);
	if (json_get_obj(status, "audit", true, &audit, &err) < 0) {
		doctor_line(d, "scribe", "self-test", err.msg, FAIL);
	} else {
		examine_audit(d, audit);
		doctor_anchors(d, p, audit);
	}
	examine_database(d, c);
	examine_tombs(d, status);
	if (tomb_health(p, &reply, &err) < 0 ||
	    json_get_obj(reply, "result", true, &health, &err) < 0)
		doctor_line(d, "tomb", "healthCheck", err.msg, FAIL);
	else
		examine_walls(d, "tomb", health);
	return true;
}
