/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych doctor: attempt, don't ask. A probe tries every forbidden act inside a real
 * sandbox of each grade, and as a real job of the running service; the victims live
 * outside and are looked at from here afterwards. Then the daemons' own self-tests and
 * the database's rights, as the running services report them. One line a wall; exit 1
 * when one of them doesn't hold.
 */
#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/base/proc.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/victims.h"
#include "cli/local/up.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include <argp.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/un.h>

#define SANDBOX_TIMEOUT (60 * USEC_PER_SEC)

static const char *const verdict_names[] = {"PASS", "FAIL", "KNOWN", "SKIP", "NOTE"};
static const char *const count_names[] = {"passed", "failed", "known", "skipped",
					  "notes"};

struct doctor {
	struct paths paths;
	struct victims victims;
	char *sandbox, *probe, *self;
	char **env;
	struct doctor_lines out;
};

void doctor_line(struct doctor_lines *d, const char *where, const char *tried,
		 const char *answer, enum verdict v)
{
	struct buf b;

	d->count[v]++;
	jsonw_obj(&d->w);
	jsonw_kstr(&d->w, "where", where);
	jsonw_kstr(&d->w, "tried", tried);
	jsonw_kstr(&d->w, "answer", answer);
	jsonw_kstr(&d->w, "verdict", verdict_names[v]);
	jsonw_obj_end(&d->w);
	if (d->json)
		return;
	bool colour = render_has_colour(STDOUT_FILENO);
	const char *on = !colour     ? ""
			 : v == PASS ? "\x1b[32m"
			 : v == FAIL ? "\x1b[1;31m"
				     : "\x1b[33m";

	buf_init(&b, 65536);
	render_escape(&b, tried, strlen(tried), 60);
	buf_addc(&b, '\0');
	size_t second = b.len;

	render_escape(&b, answer, strlen(answer), 120);
	(void)printf("%s%-5s%s  %-8s  %-34s  %s\n", on, verdict_names[v],
		     colour ? "\x1b[0m" : "", where, buf_str(&b), buf_str(&b) + second);
	buf_done(&b);
}

/* ---- the probe's answers ----------------------------------------------------- */

/* In grade floor the time stamps of one's own files can't be protected (docs/SANDBOX.md).
 */
static bool is_known(const char *where, const char *act)
{
	return str_eq(where, "floor") && str_eq(act, "touch a key");
}

/* How many acts the probe reported. */
static unsigned read_answers(struct doctor *d, const char *where, char *text,
			     bool *ret_touched)
{
	unsigned n = 0;
	char *next;

	for (char *s = text; s && *s; s = next) {
		char *verdict, *answer;

		next = strchr(s, '\n');
		if (next)
			*next++ = '\0';
		verdict = strchr(s, '\t');
		if (!verdict)
			continue;
		*verdict++ = '\0';
		answer = strchr(verdict, '\t');
		if (!answer)
			continue;
		*answer++ = '\0';
		n++;
		if (str_eq(verdict, "refused")) {
			doctor_line(&d->out, where, s, answer, PASS);
		} else if (str_eq(verdict, "inert")) {
			doctor_line(&d->out, where, s, answer, PASS);
		} else if (is_known(where, s)) {
			*ret_touched = true;
			doctor_line(&d->out, where, s,
				    "possible: a documented gap of grade floor", KNOWN);
		} else {
			doctor_line(&d->out, where, s, "IT SUCCEEDED", FAIL);
		}
	}
	return n;
}

static bool someone_survived(const struct doctor *d)
{
	cleanup_dir DIR *proc = opendir("/proc");
	const struct dirent *e;

	while (proc && (e = readdir(proc))) {
		struct err ignored = ERR_INIT;
		uint64_t pid;
		char path[64], cmd[4096];
		ssize_t n;

		if (parse_u64(e->d_name, 1, INT32_MAX, &pid, &ignored) < 0)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%" PRIu64 "/cmdline", pid);
		cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);

		n = fd < 0 ? -1 : read(fd, cmd, sizeof(cmd));
		if (n > 0 &&
		    memmem(cmd, (size_t)n, d->victims.secret, strlen(d->victims.secret)))
			return true;
	}
	return false;
}

static void judge(struct doctor *d, const char *where, bool touched)
{
	cleanup_free char *sign = xasprintf("%s/survivor", d->victims.work);
	struct timespec nap = {.tv_sec = 1};
	const char *why;
	bool alive = someone_survived(d);

	(void)nanosleep(&nap, NULL);
	if (alive || access(sign, F_OK) == 0)
		doctor_line(&d->out, where, "seen from outside: survivors",
			    "a process outlived the job", FAIL);
	else
		doctor_line(&d->out, where, "seen from outside: survivors", "none", PASS);
	why = victims_judge(&d->victims, touched);
	doctor_line(&d->out, where, "seen from outside: victims", why ? why : "untouched",
		    why ? FAIL : PASS);
	(void)unlink(sign);
}

#define PROBE_ARGS 9
static void probe_args(const struct doctor *d, char *out[PROBE_ARGS + 1],
		       const char *survivor)
{
	size_t n = 0;

	out[n++] = xasprintf("secret=%s", d->victims.secret);
	out[n++] = xasprintf("home=%s", d->paths.home);
	out[n++] = xasprintf("unix=%s", d->victims.path);
	out[n++] = xasprintf("abstract=%s", d->victims.abstract);
	out[n++] = xasprintf("tcp=%u", d->victims.tcp);
	out[n++] = xasprintf("udp=%u", d->victims.udp);
	out[n++] = xasprintf("pid=%d", d->victims.pid);
	out[n++] = xasprintf("api=%s", d->paths.api_sock);
	out[n++] = xasprintf("survivor=%s", survivor);
	out[n] = NULL;
}

/* Run argv + the probe's arguments, read what it says, look at the victims. */
static void examine(struct doctor *d, const char *where, const char *const *argv,
		    size_t n_argv)
{
	char *args[PROBE_ARGS + 1];
	cleanup_free const char **all = xcalloc(n_argv + PROBE_ARGS + 1, sizeof(*all));
	cleanup_free char *out = NULL;
	struct err err = ERR_INIT;
	bool touched = false;
	int status = 0;

	probe_args(d, args, "survivor");
	memcpy(all, argv, n_argv * sizeof(*all));
	memcpy(all + n_argv, args, sizeof(args));
	if (proc_output(all, (const char *const *)d->env, NULL, SANDBOX_TIMEOUT, &out,
			&status, &err) < 0)
		doctor_line(&d->out, where, "run the probe", err.msg, FAIL);
	else if (read_answers(d, where, out, &touched) < 40)
		doctor_line(&d->out, where, "run the probe",
			    out[0] ? out : "it said too little", FAIL);
	judge(d, where, touched);
	for (size_t i = 0; i < PROBE_ARGS; i++)
		free(args[i]);
}

/* Into the workspace: then it needs no path of its own inside, wherever we are installed.
 */
static int copy_probe(const struct doctor *d, struct err *err)
{
	cleanup_close int dir = open(d->victims.work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_free char *bytes = NULL;
	size_t len;

	if (dir < 0)
		return err_sys(err, "%s", d->victims.work);
	if (fs_read_file(AT_FDCWD, d->probe, (size_t)16 << 20, &bytes, &len, err) < 0)
		return -1;
	return fs_write_atomic(dir, "lych-probe", bytes, len, 0700, err);
}

static void examine_grade(struct doctor *d, const char *grade)
{
	const char *const argv[] = {
		d->sandbox,  "--grade", grade, "--workspace",  d->victims.work,
		"--timeout", "30",	"--",  "./lych-probe",
	};
	struct err err = ERR_INIT;

	if (copy_probe(d, &err) < 0)
		doctor_line(&d->out, grade, "copy the probe", err.msg, FAIL);
	else
		examine(d, grade, argv, ARRAY_SIZE(argv));
}

static void examine_job(struct doctor *d)
{
	cleanup_free char *file = xasprintf("%s=lych-probe", d->probe);
	const char *const argv[] = {d->self,  "run", "--no-stdin", "--timeout",	  "30",
				    "--file", file,  "--",	   "./lych-probe"};

	examine(d, "job", argv, ARRAY_SIZE(argv));
}

/* ---- the running services ---------------------------------------------------- */

static void examine_walls(struct doctor *d, const char *where, const struct json *obj)
{
	const struct json *arr = NULL;
	struct err err = ERR_INIT;

	if (json_get_arr(obj, "walls", true, 64, &arr, &err) < 0 ||
	    json_arr_len(arr) == 0) {
		doctor_line(&d->out, where, "self-test", "it reports no walls", FAIL);
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
		doctor_line(&d->out, where, wall, answer, held ? PASS : FAIL);
	}
}

/* The processes that speak to the network; each tried its walls at its start. */
static void examine_workers(struct doctor *d, const struct json *status)
{
	const struct json *arr = NULL;
	struct err err = ERR_INIT;

	if (json_get_arr(status, "egress_workers", true, 64, &arr, &err) < 0 ||
	    json_arr_len(arr) == 0) {
		doctor_line(&d->out, "egress", "self-test", "there are no workers", FAIL);
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
		doctor_line(&d->out, where, "up", up ? "yes" : "no", up ? PASS : FAIL);
		examine_walls(d, where, w);
	}
}

/* The scribe speaks to the vessel only, which passes its self-test on. */
static void examine_audit(struct doctor *d, const struct json *audit)
{
	const char *code = "?", *detail = "";
	struct err ignored = ERR_INIT;
	bool ok = false;
	char text[160];

	examine_walls(d, "scribe", audit);
	if (json_get_bool(audit, "ok", true, &ok, &ignored) == 0 && ok) {
		doctor_line(&d->out, "scribe", "the log is written", "yes", PASS);
		return;
	}
	(void)!json_get_str(audit, "error_code", true, 32, &code, &ignored);
	(void)!json_get_str(audit, "detail", true, 1024, &detail, &ignored);
	(void)snprintf(text, sizeof(text), "%s %s", code, detail);
	doctor_line(&d->out, "scribe", "the log is written", text, FAIL);
}

/* Every job is looked at. */
static void examine_database(struct doctor *d, struct client *c)
{
	const struct client_request rq = {
		.method = "GET", .target = "/v1/check", .timeout_ms = 65000};
	cleanup_json struct json *check = NULL;
	const struct json *inv = NULL, *v;
	struct err err = ERR_INIT;
	const char *key;

	if (client_json(c, &rq, &check, NULL, &err) < 0 ||
	    json_get_obj(check, "invariants", true, &inv, &err) < 0) {
		doctor_line(&d->out, "database", "invariants", err.msg, FAIL);
		return;
	}
	for (size_t i = 0; json_obj_at(inv, i, &key, &v); i++) {
		uint64_t n = 1;
		char text[64];

		if (json_get_u64(inv, key, true, 0, INT64_MAX, &n, &err) < 0)
			n = 1;
		(void)snprintf(text, sizeof(text), "%" PRIu64 " violations", n);
		doctor_line(&d->out, "database", key, text, n ? FAIL : PASS);
	}
}

/* Who spoke to the vessel, and whether it speaks our version. */
static void examine_tombs(struct doctor *d, const struct json *status)
{
	const struct json *arr = NULL;
	struct err err = ERR_INIT;

	if (json_get_arr(status, "tombs", true, 64, &arr, &err) < 0 ||
	    json_arr_len(arr) == 0) {
		doctor_line(&d->out, "tombs", "hello", "no tomb has spoken to the vessel",
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
		doctor_line(&d->out, "tombs", name, text, refused ? FAIL : PASS);
	}
}

/* One JSON-RPC call on the tomb's control socket. */
static int tomb_health(const struct doctor *d, struct json **ret, struct err *err)
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
		    d->paths.work_dir) < 0)
		return err_set(err, ERR_INVALID, "the path is too long");
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
static void examine_absence(struct doctor *d)
{
	cleanup_close int pidfd = -1;
	struct err err = ERR_INIT;
	pid_t pid = 0;
	char text[PATH_MAX + 200];

	if (starter_hold(&d->paths, &pidfd, &pid, &err) < 0) {
		doctor_line(&d->out, "services", "who holds the data", err.msg, FAIL);
		return;
	}
	if (!pid) {
		doctor_line(&d->out, "services",
			    "vessel, scribe, tomb, database, a real job",
			    "not running: 'lych up' first", SKIP);
		return;
	}
	(void)snprintf(text, sizeof(text),
		       "not there, but process %d ('lych up') runs: if it is not back in "
		       "10 s, 'lych down', 'lych up' (%s)",
		       pid, d->paths.api_sock);
	doctor_line(&d->out, "vessel", "its socket", text, FAIL);
}

static void examine_services(struct doctor *d)
{
	cleanup_client struct client *c = NULL;
	cleanup_json struct json *status = NULL;
	cleanup_json struct json *reply = NULL;
	const struct json *health = NULL, *audit = NULL;
	struct err err = ERR_INIT;
	bool ready = false; /* examine_database() looks closer */

	if (access(d->paths.api_sock, F_OK) < 0) {
		examine_absence(d);
		return;
	}
	if (client_new(d->paths.api_sock, &c, &err) < 0 ||
	    client_status(c, &status, &ready, &err) < 0) {
		doctor_line(&d->out, "vessel", "GET /v1/status", err.msg, FAIL);
		return;
	}
	examine_walls(d, "vessel", status);
	examine_workers(d, status);
	if (json_get_obj(status, "audit", true, &audit, &err) < 0)
		doctor_line(&d->out, "scribe", "self-test", err.msg, FAIL);
	else
		examine_audit(d, audit);
	examine_database(d, c);
	examine_tombs(d, status);
	if (tomb_health(d, &reply, &err) < 0 ||
	    json_get_obj(reply, "result", true, &health, &err) < 0)
		doctor_line(&d->out, "tomb", "healthCheck", err.msg, FAIL);
	else
		examine_walls(d, "tomb", health);
	examine_job(d);
}

/* ---- the command ------------------------------------------------------------- */

static error_t doctor_parse(int key, char *arg, struct argp_state *state)
{
	struct doctor *d = state->input;

	(void)arg;
	if (key == 'j') {
		d->out.json = true;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_option doctor_options[] = {
	{"json", 'j', NULL, 0, "answer in JSON", 0},
	{0},
};
static const struct argp doctor_argp = {
	.options = doctor_options,
	.parser = doctor_parse,
	.doc = "Attempt every forbidden act and print one line a wall. Exit 1 when one "
	       "doesn't hold."};

static int doctor(struct doctor *d, struct err *err)
{
	if (paths_resolve(&d->paths, err) < 0 || paths_self(&d->self, err) < 0 ||
	    paths_program("lych-sandbox", &d->sandbox, err) < 0 ||
	    paths_program("lych-probe", &d->probe, err) < 0 ||
	    victims_make(d->paths.home, &d->victims, err) < 0)
		return -1;
	d->env = proc_env();
	doctor_host(&d->out);
	doctor_pod(&d->out);
	doctor_broker(&d->out, &d->paths);
	examine_grade(d, "full");
	examine_grade(d, "floor");
	examine_services(d);
	return d->out.count[FAIL] ? EXIT_FAILED : 0;
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor d = {
		.victims = {
			.fd_path = -1, .fd_abstract = -1, .fd_tcp = -1, .fd_udp = -1}};
	struct err err = ERR_INIT;
	int r;

	cmd_parse(&doctor_argp, argc, argv, 0, &d);
	buf_init(&d.out.text, (size_t)4 << 20);
	jsonw_init(&d.out.w, &d.out.text);
	jsonw_obj(&d.out.w);
	jsonw_key(&d.out.w, "lines");
	jsonw_arr(&d.out.w);
	r = doctor(&d, &err);
	jsonw_arr_end(&d.out.w);
	for (int i = 0; i < VERDICT_MAX_; i++)
		jsonw_ku64(&d.out.w, count_names[i], d.out.count[i]);
	jsonw_obj_end(&d.out.w);
	if (r >= 0 && d.out.json)
		(void)puts(buf_str(&d.out.text));
	else if (r >= 0)
		(void)printf(
			"\n%u walls hold, %u DO NOT, %u known gaps, %u not examined\n",
			d.out.count[PASS], d.out.count[FAIL], d.out.count[KNOWN],
			d.out.count[SKIP]);
	if (d.out.count[FAIL] && !d.out.json)
		(void)printf("Do not run untrusted code here until the failed lines are "
			     "explained.\n");
	victims_done(&d.victims);
	paths_done(&d.paths);
	free(d.sandbox);
	free(d.probe);
	free(d.self);
	proc_env_free(d.env);
	buf_done(&d.out.text);
	if (r < 0)
		return cmd_fail(&err, d.out.json);
	return render_flush(&err) < 0 ? cmd_fail(&err, d.out.json) : r;
}
