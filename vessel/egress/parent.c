/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress parent.
 * Theory of operation. What a process may no longer do, its children may not either: the
 * seccomp filter and the Landlock domain of the parent bind the workers. So the parent is
 * left with the sockets of the network that they need and makes none; it is without any
 * file but the secrets' directory, which it has by a descriptor, in a root of its own in
 * which nothing has a name (or, where there are no user namespaces and the owner said so,
 * below Landlock and a filter that leads to no socket); it may fork and may not exec. Each worker takes the rest from
 * itself (worker.c).
 *
 * A worker that is forked later, when it died or because the vessel wants it for another key of a host,
 * is what one of the start is: it reads its one secret by that descriptor and nobody else does.
 *
 * Ends: the vessel's death or its closing the socket is an end of file here, and this
 * process ends; its children have its death as their signal (they are inside its domain,
 * so it reaches them), and their sockets to the vessel end besides.
 */
#include "vessel/egress/parent.h"

#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/landlock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/net/children.h"
#include "common/str.h"
#include "common/worker/pulse.h"
#include "vessel/egress/hosts/places.h"
#include "vessel/egress/hosts/word.h"
#include "vessel/egress/watcher.h"
#include "vessel/egress/wire.h"
#include "vessel/egress/worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#define BACKOFF_USEC (100 * USEC_PER_MSEC)
#define BACKOFF_MAX_USEC (30 * USEC_PER_SEC)
#define STEADY_USEC (60 * USEC_PER_SEC) /* one that lived so long begins anew */

struct child {
	pid_t pid; /* 0: none */
	struct egress_pulse *pulse;
	struct egress_heard heard;
	usec_t started;	   /* boot clock */
	usec_t due;	   /* when to start it */
	unsigned in_a_row; /* ends, each soon after the start */
	bool is_wanted;	   /* there shall be one */
	bool is_ended;	   /* by us, because it was not any more */
	/* of a place for a key of a host */
	const struct egress_portal *host;
	struct host_word *word; /* which has it; NULL: our maker's */
	uint32_t turn;
	struct seen secret; /* before the worker read it */
};

struct parent {
	struct egress_world world;
	struct child *child;
	size_t n, first_host;
	struct places *places;
	struct egress_pulse *pulse; /* our own */
	int control, signals;
	struct {
		pid_t pid; /* 0: none */
		int fd;	   /* its end, when this ends */
		struct egress_pulse *pulse;
		struct egress_heard heard;
		struct confine_report walls;
		bool lost;
	} watcher;
	struct sources *sources;
};

/* ---- one worker ---- */

NORETURN static void become_worker(struct parent *p, size_t i, int fd, pid_t parent)
{
	if (child_begin(parent) < 0)
		_exit(EXIT_FAILURE);
	/* the secrets and its own socket */
	children_keep(p->world.secrets_fd, fd);
	for (size_t k = 0; k < p->n; k++)
		if (k != i)
			egress_pulse_free(p->child[k].pulse);
	egress_pulse_free(p->pulse);
	egress_pulse_free(p->watcher.pulse);
	p->world.pulse = p->child[i].pulse;
	_exit(egress_worker_run(&p->world, i, p->child[i].host, fd));
}

static void put_turn(unsigned char *at, uint32_t turn)
{
	for (unsigned k = 0; k < EGRESS_TURN_BYTES; k++)
		at[k] = (unsigned char)(turn >> (8 * k));
}

/* -1: it could not even be begun; tried again later. */
static int start_worker(struct parent *p, size_t i)
{
	struct child *c = &p->child[i];
	unsigned char which[1 + EGRESS_TURN_BYTES] = {(unsigned char)i};
	size_t size = c->host ? sizeof(which) : 1;
	pid_t self = getpid();
	int pair[2];

	put_turn(which + 1, c->turn);
	/* what changes from here on is seen as a change, though it may be what is read */
	if (c->host)
		c->secret = seen_now(p->world.secrets_fd, c->host->secret);

	c->started = clock_boot_usec();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	c->pid = fork();
	if (c->pid == 0)
		become_worker(p, i, pair[1], self);
	if (c->pid > 0 && fdpass_send(p->control, which, size, pair, 1, 0) < 0)
		log_kv(LOG_WARN_, "the vessel took no worker", "why", strerror(errno),
		       NULL);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	if (c->pid > 0) {
		egress_heard_begin(&c->heard, c->pulse, WATCH_SILENCE_USEC);
		return 0;
	}
	c->pid = 0;
	return -1;
}

static void put_off(struct child *c)
{
	usec_t now = clock_boot_usec(), wait = BACKOFF_USEC;

	c->pid = 0;
	c->in_a_row = now - c->started > STEADY_USEC ? 0 : c->in_a_row + 1;
	for (unsigned k = 1; k < c->in_a_row && wait < BACKOFF_MAX_USEC; k++)
		wait *= 2;
	c->due = now + (wait < BACKOFF_MAX_USEC ? wait : BACKOFF_MAX_USEC);
}

static void say_ended(const struct parent *p, size_t i, int status)
{
	char name[EGRESS_NAME_SIZE + 8], how[64];

	egress_worker_name(p->world.cfg, i, p->child[i].host, name);
	(void)snprintf(how, sizeof(how), "%s %d",
		       WIFSIGNALED(status) ? "signal" : "exit code",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	log_kv(LOG_WARN_, "an egress worker ended", "worker", name, "how", how, NULL);
}

static void reap(struct parent *p)
{
	int status;
	pid_t pid;

	children_heard(p->signals);
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		p->watcher.lost |= pid == p->watcher.pid;
		for (size_t i = 0; i < p->n; i++) {
			if (p->child[i].pid != pid)
				continue;
			if (p->child[i].is_ended) {
				p->child[i].pid = 0;
				p->child[i].is_ended = false;
				continue;
			}
			say_ended(p, i, status);
			put_off(&p->child[i]);
		}
	}
}

/* ---- the parent ---- */

static int start_due(struct parent *p)
{
	usec_t now = clock_boot_usec(), next = USEC_INFINITY;

	for (size_t i = 0; i < p->n; i++) {
		struct child *c = &p->child[i];

		if (!c->is_wanted)
			continue;
		if (c->pid == 0 && c->due <= now && start_worker(p, i) < 0)
			put_off(c);
		if (c->pid == 0 && c->due < next)
			next = c->due;
	}
	if (next == USEC_INFINITY)
		return -1;
	return next <= now ? 0 : (int)((next - now) / USEC_PER_MSEC) + 1;
}

/* The end of a worker is seen as any other, and the next one started. */
static void end_stuck(struct parent *p)
{
	char name[EGRESS_NAME_SIZE + 8];

	for (size_t i = 0; i < p->n; i++) {
		struct child *c = &p->child[i];

		if (c->pid == 0 || !egress_heard_look(&c->heard, c->pulse))
			continue;
		egress_worker_name(p->world.cfg, i, c->host, name);
		log_kv(LOG_WARN_, "an egress worker is stopped or stuck; it is killed",
		       "worker", name, NULL);
		(void)kill(c->pid, SIGKILL);
		egress_heard_begin(&c->heard, c->pulse, WATCH_SILENCE_USEC);
	}
}

/* It cannot be started again, and without it nobody sees that an authority was taken back. */
static bool is_blind(struct parent *p)
{
	if (!p->watcher.lost && !egress_heard_look(&p->watcher.heard, p->watcher.pulse))
		return false;
	log_kv(LOG_ERROR_,
	       "the egress watcher ended, or is stopped or stuck: egress ends", NULL);
	return true;
}

/* ---- other keys of hosts ---- */

static void say_of_place(const struct parent *p, unsigned what,
			 const struct host_word *word, const struct err *why)
{
	unsigned char turn[EGRESS_TURN_BYTES];
	cleanup_buf struct buf b;

	buf_init(&b, EGRESS_PARENT_PACKET_MAX);
	buf_addc(&b, (char)what);
	buf_addc(&b, (char)word->place);
	put_turn(turn, word->turn);
	buf_add(&b, turn, sizeof(turn));
	if (why)
		egress_failed_add(&b, why);
	if (fdpass_send(p->control, b.data, b.len, NULL, 0, 0) < 0)
		log_kv(LOG_WARN_, "the vessel took no word", "why", strerror(errno),
		       NULL);
}

static void empty_place(struct child *c)
{
	c->is_wanted = false;
	c->host = NULL;
	host_word_free(TAKE_PTR(c->word));
	if (c->pid > 0 && !c->is_ended) {
		(void)kill(c->pid, SIGKILL);
		c->is_ended = true;
	}
}

/* The worker that is there, of the same key, has read what it would read now. */
static bool has_it(const struct parent *p, const struct host_word *word,
		   const struct seen *secret)
{
	const struct child *c;

	if (word->same < p->first_host || word->same >= p->n)
		return false;
	c = &p->child[word->same];
	return c->is_wanted && c->pid > 0 && places_are_same(c->host, &word->host) &&
	       seen_are_same(&c->secret, secret);
}

/* word becomes the place's. */
static void fill_place(struct parent *p, struct host_word *word)
{
	struct seen secret = seen_now(p->world.secrets_fd, word->host.secret);
	struct child *c = &p->child[word->place];
	struct err err = ERR_INIT;

	if (has_it(p, word, &secret)) {
		say_of_place(p, EGRESS_PARENT_SAME, word, NULL);
		host_word_free(word);
		return;
	}
	if (secret.error)
		(void)err_set_id(&err, ERRID_CREDENTIAL_SECRET,
				 "credential %s: secret %s is missing", word->host.name,
				 word->host.secret);
	if (secret.error || places_take(p->places, &word->host, &err) < 0) {
		say_of_place(p, EGRESS_PARENT_REFUSED, word, &err);
		host_word_free(word);
		return;
	}
	c->word = word;
	c->host = &word->host;
	c->turn = word->turn;
	c->in_a_row = 0;
	c->due = 0;
	c->is_wanted = true;
}

/* False: the end of the vessel, or of its sense. */
static bool hear(struct parent *p)
{
	static char data[HOST_WORD_MAX_BYTES + 1];
	ssize_t n = recv(p->control, data, sizeof(data), MSG_DONTWAIT);
	struct host_word *word;
	struct child *c;

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	word = host_word_parse(data, (size_t)n);
	c = word && word->place >= p->first_host && word->place < p->n
		    ? &p->child[word->place]
		    : NULL;
	if (!c || (!word->is_end && c->is_wanted)) {
		log_kv(LOG_ERROR_, "the vessel says nothing that can be understood",
		       NULL);
		host_word_free(word);
		return false;
	}
	if (!word->is_end) {
		fill_place(p, word);
		return true;
	}
	empty_place(c);
	host_word_free(word);
	return true;
}

/* Until the vessel's end closes. */
static int supervise(struct parent *p)
{
	const int look_msec = WATCH_LOOK_USEC / USEC_PER_MSEC;

	for (;;) {
		struct pollfd fds[] = {{.fd = p->control, .events = POLLIN},
				       {.fd = p->signals, .events = POLLIN}};
		int timeout = start_due(p);

		if (timeout < 0 || timeout > look_msec)
			timeout = look_msec;
		if (poll(fds, ARRAY_SIZE(fds), timeout) < 0 && errno != EINTR)
			return EXIT_FAILURE;
		egress_pulse_beat(p->pulse);
		if (fds[0].revents && !hear(p))
			return 0;
		if (fds[1].revents)
			reap(p);
		end_stuck(p);
		if (is_blind(p))
			return EXIT_FAILURE;
	}
}

/* No variable has a say here or in a worker: not SSL_CERT_FILE or SSL_CERT_DIR, not
 * SSLKEYLOGFILE (curl writes sessions' keys there), no proxy, no resolver's options. Left is
 * what the self-tests aim at. */
static void drop_environment(void)
{
	static const char *const names[] = {
		"HOME=",
		"XDG_RUNTIME_DIR=",
		"SSH_AUTH_SOCK=",
#ifdef LYCH_TEST_BUILD
		"LYCH_TEST_LEAVE_OUT=",
#endif
	};
	static char *kept[ARRAY_SIZE(names) + 1];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char **e = environ;

		while (e && *e && !str_starts(*e, names[i]))
			e++;
		if (e && *e)
			kept[n++] = *e;
	}
	environ = kept;
}

static int load(struct parent *p, enum egress_source which, const char *path, char **ret,
		size_t *ret_len, struct err *err)
{
	if (sources_load(which, path, ret, ret_len, err) < 0)
		return -1;
	sources_put(p->sources, which, *ret, *ret_len);
	return 0;
}

/* What the workers begin with. What is wrong in it now ends the start. */
static int read_sources(struct parent *p, struct err *err)
{
	const char *authorities = sources_authorities(p->world.cfg->authorities);
	cleanup_free char *resolv = NULL, *hosts = NULL, *roots = NULL;
	size_t len;

	if (load(p, SOURCE_RESOLV, "/etc/resolv.conf", &resolv, &len, err) < 0 ||
	    load(p, SOURCE_HOSTS, "/etc/hosts", &hosts, &len, err) < 0)
		return -1;
	resolve_config_read(&p->world.resolve, resolv, hosts);
	if (load(p, SOURCE_ROOTS, authorities, &roots, &len, err) < 0 ||
	    egress_roots_new(roots, len, &p->world.roots, err) < 0)
		return -1;
	p->world.sources = p->sources;
	p->world.generation = sources_generation(p->sources);
	return 0;
}

static int prepare(struct parent *p, struct err *err)
{
	if (children_begin("lych-egress", &p->signals, err) < 0)
		return -1;
	drop_environment();
	if (sources_new(&p->sources, err) < 0 || read_sources(p, err) < 0 ||
	    egress_pulse_new(&p->watcher.pulse, err) < 0 ||
	    watcher_start(p->world.cfg, p->sources, p->watcher.pulse, &p->watcher.pid,
			  &p->watcher.fd, &p->watcher.walls, err) < 0)
		return -1;
	sources_read_only(p->sources);
	egress_heard_begin(&p->watcher.heard, p->watcher.pulse, WATCH_SILENCE_USEC);
	return addr_policy_read_own(&p->world.addresses, err);
}

/* Outside of our walls: no signal reaches it, but the end of its socket does. */
static void end_watcher(struct parent *p)
{
	struct timespec while_it_ends = {.tv_nsec = 10 * 1000 * 1000};

	fd_close(&p->watcher.fd);
	for (int i = 0; i < 200 && p->watcher.pid > 0 && !p->watcher.lost; i++) {
		if (waitpid(p->watcher.pid, NULL, WNOHANG) != 0)
			return;
		(void)nanosleep(&while_it_ends, NULL);
	}
}

static int confine(struct parent *p, struct confine_report *ret, struct err *err)
{
	const struct confine_policy policy = {
		.name = "egress parent",
		.private_root = !p->world.cfg->unrooted,
		.unrooted = p->world.cfg->unrooted,
		.api_socket = p->world.cfg->api_socket,
		.may_make_inet_sockets = true, /* for its children */
		.may_fork = true,
		.held_dir = p->world.cfg->secrets_dir,
		.held_rights = LL_FS_RO,
		.held_fd = &p->world.secrets_fd,
	};
	/* Without a root the directory that it holds has its name, too. */
	const char *const foreign[] = {
		"/etc/passwd", policy.unrooted ? NULL : p->world.cfg->secrets_dir, NULL};

	if (confine_self(&policy, err) < 0)
		return -1;
	return confine_selftest(&policy, foreign, ret, err);
}

static int say(const struct parent *p, unsigned who, const struct confine_report *walls,
	       const struct err *why)
{
	cleanup_buf struct buf b;

	buf_init(&b, EGRESS_PARENT_PACKET_MAX);
	buf_addc(&b, (char)who);
	if (why)
		egress_failed_add(&b, why);
	else
		egress_ready_add(&b, walls);
	return fdpass_send(p->control, b.data, b.len, NULL, 0, 0);
}

static void take_workers(struct parent *p, struct egress_pulse *const *pulses)
{
	const struct egress_config *cfg = p->world.cfg;

	p->n = egress_workers_count(cfg);
	p->first_host = egress_first_host(cfg);
	p->child = xcalloc(p->n, sizeof(*p->child));
	for (size_t i = 0; i < p->n; i++) {
		p->child[i].pulse = pulses[i];
		p->child[i].is_wanted = i < p->first_host + cfg->n_hosts;
		if (i >= p->first_host && p->child[i].is_wanted)
			p->child[i].host = &cfg->hosts[i - p->first_host];
	}
}

/* Those of the start are what codex.yaml said before any job has spoken. */
static int take_places(struct parent *p, struct err *err)
{
	p->places = places_new();
	for (size_t i = 0; i < p->world.cfg->n_hosts; i++)
		if (places_take(p->places, &p->world.cfg->hosts[i], err) < 0)
			return -1;
	return 0;
}

int egress_parent_run(const struct egress_config *cfg, int control,
		      struct egress_pulse *pulse, struct egress_pulse *const *workers)
{
	struct parent p = {.world = {.cfg = cfg, .secrets_fd = -1},
			   .pulse = pulse,
			   .control = control,
			   .signals = -1,
			   .watcher = {.fd = -1}};
	struct confine_report walls;
	struct err err = ERR_INIT;
	int code;

	take_workers(&p, workers);
	if (take_places(&p, &err) < 0 || prepare(&p, &err) < 0 ||
	    confine(&p, &walls, &err) < 0) {
		log_err(LOG_ERROR_, "cannot start", &err);
		(void)say(&p, EGRESS_PARENT_ITSELF, NULL, &err);
		code = err_exit_code(&err);
	} else {
		egress_worker_probe(cfg, "parent");
		code = say(&p, EGRESS_PARENT_WATCHER, &p.watcher.walls, NULL) < 0 ||
				       say(&p, EGRESS_PARENT_ITSELF, &walls, NULL) < 0
			       ? EXIT_FAILURE
			       : supervise(&p);
	}
	end_watcher(&p);
	resolve_config_done(&p.world.resolve);
	egress_roots_free(p.world.roots);
	sources_free(p.sources);
	egress_pulse_free(p.watcher.pulse);
	fd_close(&p.world.secrets_fd);
	fd_close(&p.signals);
	for (size_t i = 0; i < p.n; i++)
		host_word_free(p.child[i].word);
	places_free(p.places);
	free(p.child);
	return code;
}
