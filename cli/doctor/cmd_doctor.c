/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych doctor: attempt, don't ask. A probe tries every forbidden act inside a real
 * sandbox of each grade, and as a real job of the running service; the victims live
 * outside and are looked at from here afterwards. Then the daemons' own self-tests and
 * the database's rights, as the running services report them. One line a wall; exit 1
 * when one of them doesn't hold.
 */
#include "cli/base/cmd.h"
#include "cli/base/config_file.h"
#include "cli/base/paths.h"
#include "cli/base/proc.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/victims.h"
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
#include <stdarg.h>

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

void doctor_next(struct doctor_lines *d, enum verdict v, const char *fmt, ...)
{
	va_list ap;

	if (d->next[0] && (v != FAIL || d->next_of == FAIL))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(d->next, sizeof(d->next), fmt, ap);
	va_end(ap);
	d->next_of = v;
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
	       "doesn't hold.\v"
	       "Examples:\n"
	       "  lych doctor"};

static int doctor(struct doctor *d, const char *dir, struct err *err)
{
	struct err ignored = ERR_INIT;
	struct conf conf = {0};
	bool unrooted = false; /* what is wrong with the file is said further down */

	if (paths_self(&d->self, err) < 0 ||
	    paths_program("lych-sandbox", &d->sandbox, err) < 0 ||
	    paths_program("lych-probe", &d->probe, err) < 0 ||
	    victims_make(dir, &d->victims, err) < 0)
		return -1;
	d->env = proc_env();
	if (config_load_or_defaults(d->paths.config, &conf, &ignored) == 0) {
		unrooted = conf.unrooted;
		conf_done(&conf);
	}
	doctor_host(&d->out, unrooted);
	doctor_pod(&d->out);
	doctor_broker(&d->out, &d->paths);
	if (unrooted && doctor_try_userns() != 0)
		doctor_line(
			&d->out, "full", "a sandbox of this grade",
			"user namespaces are refused here, and nothing of yours needs "
			"them",
			SKIP);
	else
		examine_grade(d, "full");
	examine_grade(d, "floor");
	if (doctor_services(&d->out, &d->paths))
		examine_job(d);
	return d->out.count[FAIL] ? EXIT_FAILED : 0;
}

/* It ends with what to do: that of the first line that asks for something. */
static void print_end(struct doctor *d)
{
	const struct doctor_lines *out = &d->out;

	(void)printf("\n%u walls hold, %u DO NOT, %u known gaps, %u not examined\n",
		     out->count[PASS], out->count[FAIL], out->count[KNOWN],
		     out->count[SKIP]);
	if (out->count[FAIL])
		(void)printf("Do not run untrusted code here until the failed lines are "
			     "explained: docs/OPERATIONS.md.\n");
	(void)printf("Next: %s\n", out->next);
}

static int examine_all(const char *dir, void *arg)
{
	struct doctor *d = arg;
	struct doctor_lines *out = &d->out;
	struct err err = ERR_INIT;
	int r;

	buf_init(&out->text, (size_t)4 << 20);
	jsonw_init(&out->w, &out->text);
	jsonw_obj(&out->w);
	jsonw_key(&out->w, "lines");
	jsonw_arr(&out->w);
	r = doctor(d, dir, &err);
	jsonw_arr_end(&out->w);
	for (int i = 0; i < VERDICT_MAX_; i++)
		jsonw_ku64(&out->w, count_names[i], out->count[i]);
	doctor_next(out, out->count[FAIL] ? FAIL : NOTE, "%s",
		    out->count[FAIL] ? "lych doctor | grep FAIL"
				     : "lych run -- echo hello");
	jsonw_kstr(&out->w, "next", out->next);
	jsonw_obj_end(&out->w);
	if (r >= 0 && out->json)
		(void)puts(buf_str(&out->text));
	else if (r >= 0)
		print_end(d);
	victims_done(&d->victims);
	free(d->sandbox);
	free(d->probe);
	free(d->self);
	proc_env_free(d->env);
	buf_done(&out->text);
	if (r < 0)
		return cmd_fail(&err, out->json);
	return render_flush(&err) < 0 ? cmd_fail(&err, out->json) : r;
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor d = {
		.victims = {
			.fd_path = -1, .fd_abstract = -1, .fd_tcp = -1, .fd_udp = -1}};
	cleanup_free char *dir = NULL;
	struct err err = ERR_INIT;
	int r;

	cmd_parse(&doctor_argp, argc, argv, 0, &d);
	if (paths_resolve(&d.paths, &err) < 0)
		return cmd_fail(&err, d.out.json);
	dir = victims_name(d.paths.home);
	r = doctor_guard(dir, examine_all, &d);
	if (r < 0) {
		(void)err_sys(&err, "fork");
		r = cmd_fail(&err, d.out.json);
	}
	paths_done(&d.paths);
	return r;
}
