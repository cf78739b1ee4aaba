/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real parent and its real, confined workers, beside them a hostile server on loopback
 * (tests/support/python/egress_server.py), and answers that keep what a caller is told.
 */
#ifndef LYCH_TESTS_INTEGRATION_BROKER_EGRESS_BENCH_H
#define LYCH_TESTS_INTEGRATION_BROKER_EGRESS_BENCH_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/str.h"
#include "common/worker/pulse.h"
#include "vessel/egress/egress.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>

#define KEY "sk-test-Zq7/R+xV2m9LbT0cHs51"
#define BIG (8u << 20)

static char dir[] = "/tmp/ly-egress-XXXXXX";
static char secrets[64], seen[64], base[64], https_base[64];
static pid_t server, https_server;
static const char *authorities; /* NULL: the system's */

/* ---- the server ---- */

static inline pid_t start_server(const char *pem, char *url, size_t size,
				 const char *scheme)
{
	char program[] = "/usr/bin/python3",
	     script[] = "tests/support/python/egress_server.py";
	char log[sizeof(seen)], certificate[128] = "", port[16] = "";
	char *const argv[] = {program, script, log, pem ? certificate : NULL, NULL};
	int out[2];
	ssize_t n;
	pid_t pid;

	cr_assert_eq(str_copy(log, sizeof(log), seen), 0);
	cr_assert_eq(str_copy(certificate, sizeof(certificate), pem ? pem : ""), 0);
	cr_assert_eq(pipe2(out, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (dup2(out[1], 1) == 1)
			(void)execve(argv[0], argv, environ);
		_exit(127);
	}
	fd_close(&out[1]);
	n = read(out[0], port, sizeof(port) - 1);
	cr_assert(n > 1, "no server");
	port[n - 1] = '\0';
	cr_assert_eq(str_fmt(url, size, "%s://127.0.0.1:%s", scheme, port), 0);
	fd_close(&out[0]);
	return pid;
}

static inline void write_secret(const char *name, const char *text)
{
	char path[128];
	struct err err = ERR_INIT;
	cleanup_close int fd = -1;

	cr_assert_eq(str_fmt(path, sizeof(path), "%s/%s", secrets, name), 0);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	cr_assert(fd >= 0 && fs_write_all(fd, text, strlen(text), &err) == 0);
}

static inline void set_up(void)
{
	cr_assert(mkdtemp(dir));
	cr_assert_eq(str_fmt(secrets, sizeof(secrets), "%s/secrets", dir), 0);
	cr_assert_eq(str_fmt(seen, sizeof(seen), "%s/seen", dir), 0);
	cr_assert_eq(mkdir(secrets, 0700), 0);
	write_secret("portal_test", KEY "\n");
	write_secret("portal_claude", KEY "\n");
	write_secret("host_forge", KEY "\n");
	write_secret("host_field", KEY "\n");
	server = start_server(NULL, base, sizeof(base), "http");
}

static inline void tear_down(void)
{
	cleanup_close int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct err err = ERR_INIT;

	if (server > 0)
		(void)kill(server, SIGKILL);
	if (https_server > 0)
		(void)kill(https_server, SIGKILL);
	cr_expect(fs_remove_beneath(tmp, dir + strlen("/tmp/"), &err) == 0, "%s",
		  err.msg);
}

TestSuite(egress, .init = set_up, .fini = tear_down, .timeout = 120);

/* What the server was sent, whole. */
static inline const char *server_saw(void)
{
	static char *text;
	struct err err = ERR_INIT;
	size_t len;

	free(text);
	cr_assert_eq(fs_read_file(AT_FDCWD, seen, BIG, &text, &len, &err), 0, "%s",
		     err.msg);
	return text;
}

/* ---- the system under test ---- */

struct world {
	struct loop *loop;
	struct egress *egress;
	unsigned redactions, ups, downs, lost, gates;
	int gate_fd, large_fd;
};

static inline void on_redacted(const char *portal, bool in_header UNUSED, unsigned count,
			       void *arg)
{
	struct world *w = arg;

	cr_assert_not_null(portal);
	w->redactions += count;
}

static inline void on_worker(const char *name, bool up, const struct err *why, void *arg)
{
	struct world *w = arg;

	if (why)
		(void)fprintf(stderr, "%s: %s\n", name, why->msg);
	w->ups += up;
	w->downs += !up;
	if (up && w->downs > 0)
		loop_stop(w->loop, 0);
}

static inline void on_gate(unsigned which, int fd, struct reading *note UNUSED, void *arg)
{
	struct world *w = arg;

	if (which > 0) { /* the other one is not asked here */
		fd_close(&w->large_fd);
		w->large_fd = fd;
		return;
	}
	fd_close(&w->gate_fd);
	w->gate_fd = fd;
	w->gates++;
}

static inline void on_lost(const struct err *why, void *arg)
{
	struct world *w = arg;

	cr_assert(err_is_set(why));
	w->lost++;
	loop_stop(w->loop, 0);
}

/* Echoes what it is asked; tries what it may not. */
static inline int gate_main(int fd, struct egress_pulse *pulse, void *arg UNUSED)
{
	char byte;

	if (open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0)
		return 3;
	do
		egress_pulse_wait(pulse, fd);
	while (read(fd, &byte, 1) == 1 && write(fd, &byte, 1) == 1);
	return 0;
}

static const char *const loopback[] = {"127.0.0.1"};
/* Is the first portal one of this machine? */
static bool test_is_local;
static const char *host_secret = "host_forge";

static inline int begin(struct world *w, const char *secret, struct err *err)
{
	static struct egress_portal portals[4];
	const struct egress_portal hosts[] = {
		{.name = "forge",
		 .url = base,
		 .secret = host_secret,
		 .addresses = loopback,
		 .n_addresses = 1,
		 .is_host = true,
		 .path = "/team/repo",
		 .user = "git"},
		{.name = "field",
		 .url = base,
		 .secret = "host_field",
		 .addresses = loopback,
		 .n_addresses = 1,
		 .is_host = true,
		 .path = "",
		 .field = "X-Api-Key"},
	};
	struct egress_config cfg = {.secrets_dir = secrets,
				    .authorities = authorities,
				    .portals = portals,
				    .n_portals = https_base[0] ? 4 : 3,
				    .hosts = hosts,
				    .n_hosts = ARRAY_SIZE(hosts),
				    .gate = gate_main};
	struct egress_events events = {.on_redacted = on_redacted,
				       .on_worker = on_worker,
				       .on_gate = on_gate,
				       .on_lost = on_lost,
				       .arg = w};

	*w = (struct world){.gate_fd = -1, .large_fd = -1};
	portals[0] = (struct egress_portal){.name = "test",
					    .url = base,
					    .dialect = HEADERS_OPENAI,
					    .secret = secret,
					    .addresses = loopback,
					    .n_addresses = 1,
					    .is_local = test_is_local};
	portals[1] = (struct egress_portal){.name = "claude",
					    .url = base,
					    .dialect = HEADERS_ANTHROPIC,
					    .secret = "portal_claude",
					    .addresses = loopback,
					    .n_addresses = 1};
	portals[2] = (struct egress_portal){
		.name = "fenced", .url = base, .dialect = HEADERS_OPENAI};
	portals[3] = (struct egress_portal){.name = "tls",
					    .url = https_base,
					    .dialect = HEADERS_OPENAI,
					    .secret = secret,
					    .addresses = loopback,
					    .n_addresses = 1};
	cr_assert_eq(egress_fork(&cfg, &w->egress, err), 0, "%s", err->msg);
	cr_assert_eq(loop_new(&w->loop, err), 0);
	return egress_attach(w->egress, w->loop, &events, err);
}

static inline void up(struct world *w)
{
	struct err err = ERR_INIT;

	cr_assert_eq(begin(w, "portal_test", &err), 0, "%s", err.msg);
}

static inline void down(struct world *w)
{
	egress_free(w->egress);
	loop_free(w->loop);
	fd_close(&w->large_fd);
	fd_close(&w->gate_fd);
}

struct answer {
	struct world *world;
	struct egress_call *call;
	struct buf head, body;
	char location[128];
	unsigned status;
	struct egress_end end;
	struct err err;
	uint64_t bytes;
	bool done, discard, pause_once, cancel_at_body;
};

static inline void on_head(const struct egress_head *h, void *arg)
{
	struct answer *a = arg;

	a->status = h->status;
	for (size_t i = 0; i < h->n_headers; i++)
		buf_addf(&a->head, "%s: %s\n", h->headers[i].name, h->headers[i].value);
	if (h->location)
		cr_assert_eq(str_copy(a->location, sizeof(a->location), h->location), 0);
}

static inline bool on_body(const void *data, size_t len, void *arg)
{
	struct answer *a = arg;

	a->bytes += len;
	if (!a->discard)
		buf_add(&a->body, data, len);
	if (a->cancel_at_body) {
		egress_cancel(a->call);
		a->done = true;
		loop_stop(a->world->loop, 0);
		return true;
	}
	if (a->pause_once) {
		a->pause_once = false;
		loop_stop(a->world->loop, 0);
		return false;
	}
	return true;
}

static inline void on_end(const struct egress_end *end, void *arg)
{
	struct answer *a = arg;

	a->end = *end;
	if (end->err) {
		a->err = *end->err;
		a->end.err = &a->err;
	}
	a->done = true;
	loop_stop(a->world->loop, 0);
}

static inline void start_with(struct world *w, struct answer *a,
			      const struct egress_request *rq)
{
	static const struct egress_ops ops = {on_head, on_body, on_end, NULL};
	struct err err = ERR_INIT;

	a->world = w;
	buf_init(&a->head, BIG);
	buf_init(&a->body, BIG);
	cr_assert_eq(egress_start(w->egress, rq, &ops, a, &a->call, &err), 0, "%s",
		     err.msg);
}

static inline void run(struct world *w)
{
	struct err err = ERR_INIT;

	cr_assert_geq(loop_run(w->loop, &err), 0);
}

static inline void wait_end(struct answer *a)
{
	while (!a->done)
		run(a->world);
	buf_addc(&a->body, '\0');
	a->body.len--;
}

static inline void ask_with(struct world *w, struct answer *a,
			    const struct egress_request *rq)
{
	start_with(w, a, rq);
	wait_end(a);
}

static inline void ask(struct world *w, struct answer *a, const char *path)
{
	struct egress_request rq = {.portal = "test",
				    .method = "POST",
				    .target = path,
				    .body = "{}",
				    .body_len = 2};

	ask_with(w, a, &rq);
}

static inline void answer_done(struct answer *a)
{
	buf_done(&a->head);
	buf_done(&a->body);
	*a = (struct answer){0};
}

#endif
