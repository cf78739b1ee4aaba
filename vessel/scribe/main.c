/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe.
 * lych-scribe: the one writer of the audit log (lych-scribe(8)). Order, each step final
 * before the next: refuse root, options, the log (its lock, its chain, its torn end), the
 * socket, confinement and its self-test, the first record on disk, ready, loop.
 *
 * From the confinement on it can open files in audit/ and nothing else, reach no network,
 * no other socket and no other directory, and execute nothing.
 */
#include "common/args/args.h"
#include "common/cleanup.h"
#include "common/confine/confine.h"
#include "common/confine/probe.h"
#include "common/fs.h"
#include "common/landlock.h"
#include "common/log.h"
#include "common/net/notify.h"
#include "common/net/starter_word.h"
#include "common/proto.h"
#include "common/str.h"
#include "vessel/scribe/scribe.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

struct options {
	const char *dir, *socket_dir;
	const char *probe_walls; /* test builds */
	uint64_t segment_bytes;
	struct anchor_want anchor[ANCHORS_MAX];
	size_t n_anchors;
	struct starter_word starter; /* it is connected to nobody */
};

struct service {
	struct options opt;
	struct loop *loop;
	struct scribe_log *log;
	struct anchors *anchors;
	struct scribe *scribe;
	struct notify *notify;
	struct confine_report walls;
	int listen_fd;
#ifdef LYCH_TEST_BUILD
	struct confine_probe probe;
#endif
};

enum {
	OPT_DIR = 256,
	OPT_SOCKET_DIR,
	OPT_PROBE_WALLS,
	OPT_SEGMENT,
	OPT_ANCHOR,
	OPT_ANCHOR_REQUIRED,
};

static const struct argp_option option_table[] = {
	{"dir", OPT_DIR, "DIR", 0, "The audit directory (required)", 0},
	{"socket-dir", OPT_SOCKET_DIR, "DIR", 0,
	 "Where the producers' socket is made (required)", 0},
	{"segment", OPT_SEGMENT, "SIZE", 0, "Begin a new file after SIZE (64MiB)", 0},
	{"anchor", OPT_ANCHOR, "FILE", 0,
	 "Append each checkpoint to FILE too, on another disk say (up to 4 of both)", 0},
	{"anchor-required", OPT_ANCHOR_REQUIRED, "FILE", 0,
	 "The same, and write no log while that can't be done", 0},
	STARTER_ROW_UNROOTED,
	STARTER_ROW_READY_FD,
#ifdef LYCH_TEST_BUILD
	{"probe-walls", OPT_PROBE_WALLS, "FILE", 0, "Confine, try what FILE lists, exit",
	 0},
#endif
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	if (starter_word_parse(&o->starter, key, arg, state))
		return 0;
	switch (key) {
	case OPT_DIR:
		o->dir = arg;
		return 0;
	case OPT_SOCKET_DIR:
		o->socket_dir = arg;
		return 0;
	case OPT_PROBE_WALLS:
		o->probe_walls = arg;
		return 0;
	case OPT_SEGMENT:
		if (parse_size(arg, 4096, (uint64_t)1 << 40, &o->segment_bytes, NULL) < 0)
			args_error(state, "--segment: a size from 4KiB");
		return 0;
	case OPT_ANCHOR:
	case OPT_ANCHOR_REQUIRED:
		if (o->n_anchors == ANCHORS_MAX || !str_starts(arg, "/"))
			args_error(state, "anchors: absolute paths, 4 at most");
		o->anchor[o->n_anchors++] =
			(struct anchor_want){arg, key == OPT_ANCHOR_REQUIRED};
		return 0;
	case ARGP_KEY_ARG:
		args_error(state, "'%s': no arguments are expected", arg);
		return 0;
	case ARGP_KEY_END:
		if (!o->dir || !o->socket_dir)
			args_error(state, "--dir and --socket-dir are required");
		if (!str_starts(o->dir, "/") || !str_starts(o->socket_dir, "/"))
			args_error(state, "directories are named by absolute paths");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int read_kernel_boot(struct uuid *ret, struct err *err)
{
	cleanup_close int fd =
		open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	struct uuid text = {0};

	if (fd < 0 || read(fd, text.s, 36) != 36)
		return err_sys(err, "read the kernel's boot id");
	return uuid_parse(text.s, ret, err);
}

static void on_signal(int signo UNUSED, void *arg)
{
	struct service *s = arg;
	struct err err = ERR_INIT;

	log_info("stopping");
	notify_stopping(s->notify);
	if (scribe_flush(s->scribe, &err) < 0 ||
	    scribe_log_own(s->log, "scribe.stop", NULL, &err) < 0 ||
	    scribe_flush(s->scribe, &err) < 0 || scribe_seal(s->scribe, true, &err) < 0) {
		log_err(LOG_ERROR_, "the last record is not written or sealed", &err);
		loop_stop(s->loop, err_exit_code(&err));
		return;
	}
	loop_stop(s->loop, 0);
}

static void on_failed(const struct err *why, void *arg)
{
	struct service *s = arg;

	log_err(LOG_ERROR_, "the log cannot be written; stopping", why);
	loop_stop(s->loop, err_exit_code(why));
}

static int confine(struct service *s, struct err *err)
{
	char api[PATH_MAX];
	/* Its own socket is bound already: nothing in that directory is needed. */
	const struct confine_path paths[] = {
		{s->opt.dir, LL_FS_RO | LL_FS_WRITE_FILE | LL_FS_MAKE_REG},
	};
	const struct confine_policy policy = {
		.name = "scribe",
		.paths = paths,
		.n_paths = ARRAY_SIZE(paths),
		.private_root = !s->opt.starter.unrooted,
		.unrooted = s->opt.starter.unrooted,
		.api_socket = api,
	};
	static const char *const names[] = {"vessel", "phylactery", "tomb", "secrets"};
	char beside[ARRAY_SIZE(names)][PATH_MAX];
	const char *foreign[ARRAY_SIZE(names) + 2] = {s->opt.socket_dir};
	size_t n = 1;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct stat st;

		if (str_fmt(beside[i], PATH_MAX, "%s/../%s", s->opt.dir, names[i]) == 0 &&
		    stat(beside[i], &st) == 0)
			foreign[n++] = beside[i];
	}
	if (str_fmt(api, sizeof(api), "%s/../api/vessel.sock", s->opt.socket_dir) < 0)
		return err_set_id(err, ERRID_START_CONFINE, "the api socket's path");
	if (confine_self(&policy, err) < 0)
		return -1;
	return confine_selftest(&policy, foreign, &s->walls, err);
}

static int open_log(struct service *s, const struct scribe_log_config *cfg,
		    struct err *err)
{
	if (anchors_open(s->opt.dir, s->opt.anchor, s->opt.n_anchors, &s->anchors, err) <
		    0 ||
	    scribe_log_open(cfg, &s->log, err) < 0)
		return -1;
	return anchors_compare(s->anchors, scribe_log_newest(s->log), err);
}

static int start(struct service *s, struct err *err)
{
	struct scribe_log_config cfg = {
		.dir = s->opt.dir,
		.segment_bytes = s->opt.segment_bytes,
		.clock = &clock_real,
		.rng = &random_real,
	};
	struct scribe_config sc = {.walls = &s->walls, .failed = on_failed, .arg = s};
	char genesis[SEAL_TEXT32];

#ifdef LYCH_TEST_BUILD
	if (s->opt.probe_walls &&
	    confine_probe_load(s->opt.probe_walls, &s->probe, err) < 0)
		return -1;
#endif
	if (read_kernel_boot(&cfg.kernel_boot, err) < 0 ||
	    fs_mkdir_all(s->opt.socket_dir, 0700, err) < 0 ||
	    open_log(s, &cfg, err) < 0 ||
	    scribe_listen(s->opt.socket_dir, &s->listen_fd, err) < 0 ||
	    loop_new(&s->loop, err) < 0 ||
	    loop_signal(s->loop, SIGTERM, on_signal, s, err) < 0 ||
	    loop_signal(s->loop, SIGINT, on_signal, s, err) < 0 ||
	    notify_new(s->loop, s->opt.starter.ready_fd, &s->notify, err) < 0 ||
	    confine(s, err) < 0)
		return -1;
#ifdef LYCH_TEST_BUILD
	if (s->opt.probe_walls)
		confine_probe_run(&s->probe);
#endif
	scribe_log_genesis(s->log, genesis);
	sc.loop = s->loop;
	sc.log = s->log;
	sc.anchors = s->anchors;
	sc.listen_fd = s->listen_fd;
	s->scribe = scribe_new(&sc);
	/* whatever could read the key while nobody ran has one that signs nothing more */
	if (scribe_log_commit(s->log, err) < 0 || scribe_seal(s->scribe, true, err) < 0)
		return -1;
	notify_ready(s->notify);
	log_kv(LOG_INFO_, "ready", "version", LYCH_VERSION, "log",
	       scribe_log_id(s->log)->s, "genesis", genesis, NULL);
	return 0;
}

static int run(struct service *s)
{
	struct err err = ERR_INIT;
	int code;

	if (start(s, &err) < 0) {
		log_err(LOG_ERROR_, "cannot start", &err);
		code = err_exit_code(&err);
	} else {
		code = loop_run(s->loop, &err);
		if (code < 0) {
			log_err(LOG_ERROR_, "loop", &err);
			code = err_exit_code(&err);
		}
	}
	scribe_free(s->scribe);
	anchors_free(s->anchors);
	scribe_log_free(s->log);
	notify_free(s->notify);
	loop_free(s->loop);
	fd_close(&s->listen_fd);
	return code;
}

/* For a container's health check: it answers a producer, or exit 1. */
static int health_main(int argc, char **argv)
{
	static const struct argp_option option[] = {
		{"socket-dir", ARGS_ONLY, "DIR", 0, "Where its socket is (required)", 0},
		{0},
	};
	static const char hello[] = "{\"hello\":1,\"prod\":\"health\",\"stream\":"
				    "\"00000000-0000-0000-0000-000000000000\"}";
	static const char welcome[] = "{\"hello\":1,";
	const struct timeval patience = {.tv_sec = 5};
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	cleanup_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	static char answer[SCRIBE_PACKET_MAX];
	ssize_t n;

	const char *dir = args_only(
		option, "Does the scribe answer? Exit 0: it does; 1: no.", argc, argv);
	if (str_fmt(sa.sun_path, sizeof(sa.sun_path), "%s/" SCRIBE_SOCKET, dir) < 0)
		args_refuse(argv[0], "--socket-dir is too long");
	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
	    connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    send(fd, hello, sizeof(hello) - 1, MSG_NOSIGNAL) < 0)
		n = -1;
	else
		n = recv(fd, answer, sizeof(answer), 0);
	if (n >= (ssize_t)sizeof(welcome) - 1 &&
	    memcmp(answer, welcome, sizeof(welcome) - 1) == 0)
		return 0;
	log_kv(LOG_ERROR_, "not healthy", "why", n < 0 ? strerror(errno) : "no welcome",
	       NULL);
	return 1;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		option_table, parse_option, NULL, "Write the audit log.",
		NULL,	      NULL,	    NULL};
	static struct service s = {.listen_fd = -1, .opt.starter = STARTER_WORD_NONE};
	struct err err = ERR_INIT;

	if (fs_fill_stdio(&err) < 0)
		return err_exit_code(&err);
	log_init("scribe", LOG_INFO_);
	(void)umask(077);
	if (confine_refuse_root(&err) < 0) {
		log_err(LOG_ERROR_, "refused", &err);
		return err_exit_code(&err);
	}
	/* a write past a size limit is an error, not an end */
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
		return EXIT_FAILURE;
	if (argc == 2 && str_eq(argv[1], "--version"))
		return args_version("lych-scribe");
	if (argc >= 2 && str_eq(argv[1], "health")) {
		args_name(argc - 1, argv + 1, "lych-scribe health");
		return health_main(argc - 1, argv + 1);
	}
	args_name(argc, argv, "lych-scribe");
	args_read(&argp, argc, argv, 0, &s.opt);
	return run(&s);
}
