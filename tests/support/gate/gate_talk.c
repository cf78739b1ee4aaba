/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job says to a portal, and what the gate makes of it, the vessel's whole way: the texts of the
 * request, what the portal issued, a worker in a process of its own, placeholders and the second look,
 * what adds up over many requests. For tests/real/gate: records on stdin, each a line "KIND LENGTH"
 * with the bytes behind it, one line of JSON for each on stdout.
 *	job 0	a job that said nothing yet (answers {})
 *	say N	a request, N bytes of JSON
 *	hear N	the portal's reply to it (answers {})
 */
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/net/loop.h"
#include "common/str.h"
#include "vessel/broker/gate/client.h"
#include "vessel/gate/worker.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINE_MAX_BYTES 128
#define DEPTH_MAX 28
#define FINDINGS_SHOWN 200
#define PORTAL "portal:x"

static struct loop *loop;
static struct gate_client *client;
static struct gate_job *job;

NORETURN static void die(const char *what, const struct err *err)
{
	(void)fprintf(stderr, "gate_talk: %s: %s\n", what,
		      err ? err->msg : strerror(errno));
	exit(EXIT_FAILURE);
}

static void on_away(const struct err *why, void *arg UNUSED)
{
	die("a worker", why);
}

static void start_worker(enum gate_lanes which)
{
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		die("socketpair", NULL);
	pid = fork();
	if (pid < 0)
		die("fork", NULL);
	if (pid == 0) {
		(void)close(fds[0]);
		_exit(gate_worker_main(fds[1], NULL, NULL));
	}
	(void)close(fds[1]);
	if (fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0)
		die("fcntl", NULL);
	gate_client_attach(client, which, fds[0], NULL);
}

static void on_answer(const struct gate_answer *a, void *arg UNUSED)
{
	struct buf out;
	struct jsonw w;

	buf_init(&out, (size_t)1 << 20);
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_kstr(&w, "verdict", gate_verdict_name(a->verdict));
	jsonw_ku64(&w, "score", (uint64_t)(a->score * 1000 + 0.5));
	jsonw_ku64(&w, "after", (uint64_t)(a->score_after * 1000 + 0.5));
	jsonw_kstr(&w, "why", a->err ? a->err->msg : "");
	jsonw_key(&w, "findings");
	jsonw_arr(&w);
	for (size_t i = 0; i < a->n_findings && i < FINDINGS_SHOWN; i++) {
		jsonw_obj(&w);
		jsonw_kstr(&w, "family", gate_family_info(a->findings[i].family)->name);
		jsonw_kstr(&w, "rule", a->findings[i].rule ? a->findings[i].rule : "");
		jsonw_ku64(&w, "severity",
			   (uint64_t)(a->findings[i].severity * 1000 + 0.5));
		jsonw_obj_end(&w);
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	(void)puts(buf_str(&out));
	buf_done(&out);
	loop_stop(loop, 0);
}

static struct json *read_json(size_t n)
{
	cleanup_free char *b = xmalloc(n + 1);
	struct err err = ERR_INIT;
	struct json *j = NULL;

	if (fread(b, 1, n, stdin) != n)
		die("the input ends early", NULL);
	if (json_parse(b, n, DEPTH_MAX, &j, &err) < 0)
		die("a record", &err);
	return j;
}

static void say(size_t n)
{
	cleanup_json struct json *request = read_json(n);
	struct gate_parts *p = gate_parts_new();
	struct err err = ERR_INIT;
	struct gate_ask *a;

	gate_parts_add_json(p, request);
	gate_job_mark_issued(job, PORTAL, request, p, 0);
	if (gate_client_ask(client, job, PORTAL, p, on_answer, NULL, &a, &err) < 0)
		die("ask", &err);
	if (loop_run(loop, &err) != 0)
		die("the loop", &err);
}

static void hear(size_t n)
{
	cleanup_json struct json *reply = read_json(n);

	gate_job_issued(job, PORTAL, reply);
	(void)puts("{}");
}

static void renew(void)
{
	gate_job_free(job);
	job = gate_job_new(&clock_real);
	(void)puts("{}");
}

int main(void)
{
	struct gate_client_config cfg = {
		.portal_threshold = 0.4,
		.forbidden_threshold = 0.7,
		.refuses = {[GATE_PDF] = true}, /* as codex.yaml's defaults are */
		.timeout_usec = 600 * USEC_PER_SEC,
		.on_away = on_away,
	};
	struct err err = ERR_INIT;
	char line[LINE_MAX_BYTES], kind[16];

	(void)signal(SIGPIPE, SIG_IGN);
	if (loop_new(&loop, &err) < 0)
		die("the loop", &err);
	cfg.loop = loop;
	client = gate_client_new(&cfg);
	job = gate_job_new(&clock_real);
	start_worker(GATE_SMALL);
	start_worker(GATE_LARGE);
	while (fgets(line, sizeof(line), stdin)) {
		size_t n = 0;

		if (sscanf(line, "%15s %zu", kind, &n) != 2)
			die(line, NULL);
		if (str_eq(kind, "job"))
			renew();
		else if (str_eq(kind, "say"))
			say(n);
		else if (str_eq(kind, "hear"))
			hear(n);
		else
			die(line, NULL);
		(void)fflush(stdout);
	}
	gate_job_free(job);
	gate_client_free(client);
	loop_free(loop);
	return EXIT_SUCCESS;
}
