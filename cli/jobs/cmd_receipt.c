/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych receipt: what the vessel wrote into the audit log of a job that has ended, with the proof that it
 * stands there; and whether such a file holds, which needs nothing but that file and a public key. Both
 * are lych-audit's work. No daemon need run.
 */
#include "cli/base/audit_log.h"
#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/base/proc.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A record is written some milliseconds after the end of its job, a checkpoint once a minute. */
#define RECORD_USEC (3 * USEC_PER_SEC)
#define SEALED_USEC (90 * USEC_PER_SEC)
#define NAP_NSEC (200L * 1000 * 1000)
#define PROOF_USEC (600 * USEC_PER_SEC)

struct receipt_args {
	struct cmd_words words; /* JOB, or verify FILE */
	const char *out, *pin;
	bool json, no_wait;
};

static error_t receipt_parse(int key, char *arg, struct argp_state *state)
{
	struct receipt_args *a = state->input;

	switch (key) {
	case 'o':
		a->out = arg;
		return 0;
	case 'p':
		a->pin = arg;
		return 0;
	case 'w':
		a->no_wait = true;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		return cmd_take_word(&a->words, arg);
	case ARGP_KEY_END:
		if (cmd_words_are(&a->words, 2, "verify")) {
			if (!a->pin)
				cmd_usage(state, "verify needs --pin KEY, the first key "
						 "of the log: 'lych-audit verify' "
						 "prints it");
			if (a->out || a->no_wait)
				cmd_usage(state, "--out and --no-wait are for a job");
		} else if (a->words.n != 1 || a->pin) {
			cmd_usage(state, "say which job, or: verify FILE --pin KEY");
		}
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- verify ------------------------------------------------------------------ */

static int verify(const struct receipt_args *a, struct err *err)
{
	cleanup_free char *program = NULL;
	const char *argv[] = {
		NULL, "receipt",      "--pin", a->pin, a->json ? "--json" : "--",
		"--", a->words.at[1], NULL};
	sigset_t none;

	if (paths_program("lych-audit", &program, err) < 0)
		return -1;
	argv[0] = program;
	if (!a->json) {
		argv[5] = a->words.at[1];
		argv[6] = NULL;
	}
	/* As whoever started this wants them: lych itself ignores these. */
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGXFSZ, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)execv(program, (char *const *)(uintptr_t)argv);
	return err_sys_id(err, ERRID_START_TOOL, "execute %s", program);
}

/* ---- which record ------------------------------------------------------------- */

static int on_record(const char *event, const struct json *record, void *arg,
		     struct err *err)
{
	uint64_t *seq = arg, n = 0;

	(void)err;
	/* what is tried again has not ended; its next end has a receipt of its own */
	if (str_eq(event, "job.retried"))
		*seq = 0;
	else if (str_eq(event, "job.receipt") &&
		 str_eq(render_text_of(record, "prod"), "vessel") &&
		 json_get_u64(record, "seq", true, 1, INT64_MAX, &n, NULL) == 0)
		*seq = n;
	return 0;
}

static void nap(void)
{
	const struct timespec pause = {.tv_nsec = NAP_NSEC};

	(void)nanosleep(&pause, NULL);
}

static int find(int dirfd, job_id_t job, bool no_wait, uint64_t *ret, struct err *err)
{
	usec_t until = clock_boot_usec() + RECORD_USEC;
	char text[32];
	/* from: before all of them */
	const struct audit_log_query q = {
		.job = text, .from = "0", .to = "", .on_record = on_record, .arg = ret};

	(void)snprintf(text, sizeof(text), "%" PRId64, job);
	for (;;) {
		*ret = 0;
		if (audit_log_read(dirfd, &q, err) < 0)
			return -1;
		if (*ret)
			return 0;
		if (no_wait || clock_boot_usec() > until)
			return err_set_id(err, ERRID_AUDIT_NO_RECEIPT, "job %" PRId64,
					  job);
		nap();
	}
}

static int wait_sealed(int dirfd, uint64_t seq, bool no_wait, struct err *err)
{
	usec_t until = clock_boot_usec() + SEALED_USEC;
	bool is_told = false;
	uint64_t sealed = 0;

	for (;;) {
		if (audit_log_sealed(dirfd, &sealed, err) < 0)
			return -1;
		if (sealed >= seq)
			return 0;
		if (no_wait || clock_boot_usec() > until)
			return err_set_id(err, ERRID_AUDIT_NOT_SEALED,
					  "record %" PRIu64 ", the newest is of %" PRIu64
					  " records",
					  seq, sealed);
		if (!is_told)
			(void)fputs("lych: waiting for the next checkpoint of the audit "
				    "log, a minute at most\n",
				    stderr);
		is_told = true;
		nap();
	}
}

/* lych-audit's own word for it: nothing is wrong with the log then. */
#define CANNOT_WRITE "LYCH-CORE-006"

/* ---- the proof ----------------------------------------------------------------- */

static int prove(const char *dir, uint64_t seq, int out, struct err *err)
{
	cleanup_free char *program = NULL, *said = NULL;
	cleanup_env char **env = proc_env();
	char number[24];
	const char *argv[] = {NULL, "proof", dir, "--record", number, NULL};
	int status = 0;

	if (paths_program("lych-audit", &program, err) < 0)
		return -1;
	argv[0] = program;
	(void)snprintf(number, sizeof(number), "%" PRIu64, seq);
	if (proc_pipe(argv, (const char *const *)env, -1, out, PROOF_USEC, &said, &status,
		      err) < 0)
		return -1;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (strstr(said, CANNOT_WRITE) && out == STDOUT_FILENO)
		return err_set_id(err, ERRID_CORE_OUTPUT, "stdout");
	return err_set_id(
		err, proc_says_disk_full(said) ? ERRID_CORE_DISK_FULL : ERRID_AUDIT_SEAL,
		"%s", proc_why(said));
}

static int write_file(const char *dir, uint64_t seq, const char *name, struct err *err)
{
	cleanup_close int fd =
		open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 && errno == EEXIST)
		return err_set_id(err, ERRID_STORE_EXISTS, "%s", name);
	if (fd < 0)
		return err_sys(err, "%s", name);
	if (prove(dir, seq, fd, err) == 0 && fsync(fd) == 0)
		return 0;
	if (!err_is_set(err))
		(void)err_sys(err, "%s", name);
	(void)unlink(name);
	return -1;
}

static void tell(const struct receipt_args *a, job_id_t job, uint64_t seq,
		 const char *key)
{
	cleanup_free char *shown = render_shown(a->out);
	cleanup_buf struct buf b = {.max = 65536};
	struct jsonw w;

	if (!a->json) {
		(void)printf("job %" PRId64 ": its receipt, record %" PRIu64
			     " of the audit log, is in %s\n"
			     "Who has that file and the log's first key, %s, checks it "
			     "with 'lych receipt verify FILE --pin KEY'.\n",
			     job, seq, shown, key);
		return;
	}
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_ki64(&w, "job", job);
	jsonw_ku64(&w, "record", seq);
	jsonw_kstr(&w, "file", a->out);
	jsonw_kstr(&w, "genesis", key);
	jsonw_obj_end(&w);
	(void)puts(buf_str(&b));
}

static int receipt(const struct receipt_args *a, struct err *err)
{
	cleanup_paths struct paths p = {0};
	cleanup_free char *dir = NULL;
	cleanup_close int dirfd = -1;
	char key[AUDIT_KEY_TEXT];
	job_id_t job = 0;
	uint64_t seq = 0;

	if (cmd_words_are(&a->words, 2, "verify"))
		return verify(a, err);
	if (job_id_parse(a->words.at[0], &job, err) < 0)
		return err_set_id(err, ERRID_CORE_USAGE, "%s: no number of a job",
				  a->words.at[0]);
	/* before it waits for a minute */
	if (a->out && access(a->out, F_OK) == 0)
		return err_set_id(err, ERRID_STORE_EXISTS, "%s", a->out);
	if (paths_resolve(&p, err) < 0 || audit_log_open(&p, &dirfd, err) < 0 ||
	    find(dirfd, job, a->no_wait, &seq, err) < 0 ||
	    wait_sealed(dirfd, seq, a->no_wait, err) < 0 ||
	    audit_log_first_key(dirfd, key, err) < 0)
		return -1;
	dir = xasprintf("%s/audit", p.data);
	if (!a->out)
		return prove(dir, seq, STDOUT_FILENO, err);
	if (write_file(dir, seq, a->out, err) < 0)
		return -1;
	tell(a, job, seq, key);
	return render_flush(err);
}

int cmd_receipt(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"out", 'o', "FILE", 0, "into this file, which must not be there yet", 0},
		{"no-wait", 'w', NULL, 0, "do not wait for the checkpoint that seals it",
		 0},
		{"pin", 'p', "KEY", 0,
		 "verify: the public key with which the log's keys must begin", 0},
		{"json", 'j', NULL, 0, "answer in JSON", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = receipt_parse,
		.args_doc = "JOB\nverify FILE",
		.doc = "The receipt of a job that has ended: digests of its spec, inputs "
		       "and outputs, the walls that stood, what its broker let through "
		       "and what it used, with the proof that the audit log has it. "
		       "verify checks such a file, on any machine, as 'lych-audit "
		       "receipt' does and with its exit codes.\v"
		       "Examples:\n"
		       "  lych receipt 1 --out job-1.receipt\n"
		       "  lych receipt verify job-1.receipt --pin KEY"};
	struct receipt_args a = {0};
	struct err err = ERR_INIT;

	cmd_parse(&argp, argc, argv, 0, &a);
	return cmd_end(receipt(&a, &err), &err, a.json);
}
