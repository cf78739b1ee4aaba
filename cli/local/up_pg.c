/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The private PostgreSQL cluster: unix socket only, scram for everybody, data
 * checksums, named roles. It is built in data.tmp and renamed when it is complete, so
 * an interrupted build is seen and done again. Roles, database and schema are made by
 * `lych-vessel migrate`: this program speaks no PostgreSQL protocol.
 */
#include "cli/local/up.h"

#include "cli/base/proc.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/id.h"
#include "common/mem.h"
#include "common/str.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define PG_MAJOR_MIN 15u
#define PG_MAJOR_MAX 99
#define PG_DEBIAN_DIR "/usr/lib/postgresql"
#define INITDB_TIMEOUT (300 * USEC_PER_SEC)
#define OLD_SERVER_PATIENCE (3 * USEC_PER_SEC)
#define OLD_SERVER_TIMEOUT (30 * USEC_PER_SEC)

void pg_cluster_done(struct pg_cluster *c)
{
	free(c->bin);
	free(c->data);
	free(c->log);
	fd_close(&c->lock_fd);
	*c = (struct pg_cluster){.lock_fd = -1};
}

/* ---- secrets -------------------------------------------------------------- */

static int secret_make(int dirfd, const char *name, struct err *err)
{
	unsigned char raw[32];
	char hex[2 * sizeof(raw) + 1];
	int r;

	random_bytes(raw, sizeof(raw));
	hex_encode(raw, sizeof(raw), hex);
	r = fs_write_atomic(dirfd, name, hex, sizeof(hex) - 1, 0600, err);
	explicit_bzero(raw, sizeof(raw));
	explicit_bzero(hex, sizeof(hex));
	return r;
}

/* One cluster, one server: the embedded starter or a container, not both. The lock is held
 * until the process ends; the caller executes the server or outlives it. */
static int take_lock(const struct paths *p, int *ret, struct err *err)
{
	cleanup_free char *path = xasprintf("%s/phylactery/lock", p->data);
	cleanup_close int fd =
		open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	pid_t holder = 0;

	if (fd < 0)
		return err_sys_id(err, ERRID_START_LOCKED, "%s", path);
	if (fs_lock(fd, &holder, err) < 0)
		return err_wrap(err, "%s", path);
	*ret = TAKE_FD(fd);
	return 0;
}

/* Make the secrets that are missing. A cluster without its superuser's password is
 * refused. */
static int secrets_make(const struct paths *p, struct err *err)
{
	static const char *const names[] = {
		"lychgate_db_migrate", "lychgate_db_vessel", "lychgate_db_watchdog",
		"lychgate_db_tomb",    "lychgate_work",
	};
	cleanup_free char *dir = xasprintf("%s/secrets", p->data);
	cleanup_free char *cluster = xasprintf("%s/phylactery/data/PG_VERSION", p->data);
	cleanup_close int dirfd =
		open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dirfd < 0)
		return err_sys_id(err, ERRID_SECRET_FILE, "%s", dir);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct stat st;
		char value[256];

		if (fstatat(dirfd, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0) {
			int r = fs_read_secret(dirfd, names[i], value, sizeof(value),
					       err);

			explicit_bzero(value, sizeof(value));
			if (r < 0)
				return err_wrap(err, "%s/%s", dir, names[i]);
			continue;
		}
		if (errno != ENOENT)
			return err_sys_id(err, ERRID_SECRET_FILE, "%s/%s", dir, names[i]);
		if (i == 0 && access(cluster, F_OK) == 0)
			return err_set_id(
				err, ERRID_SECRET_MISSING,
				"%s/%s: the cluster exists and only this password "
				"opens it; restore the file from a backup",
				dir, names[i]);
		if (secret_make(dirfd, names[i], err) < 0)
			return err_wrap(err, "%s/%s", dir, names[i]);
	}
	return 0;
}

/* ---- which PostgreSQL ----------------------------------------------------- */

static bool has_programs(const char *dir)
{
	cleanup_free char *initdb = xasprintf("%s/initdb", dir);
	cleanup_free char *postgres = xasprintf("%s/postgres", dir);

	return access(initdb, X_OK) == 0 && access(postgres, X_OK) == 0;
}

/* "postgres (PostgreSQL) 15.14 (Debian ...)" */
static int ask_version(const char *dir, unsigned *ret, struct err *err)
{
	cleanup_free char *postgres = xasprintf("%s/postgres", dir);
	const char *const argv[] = {postgres, "--version", NULL};
	cleanup_free char *out = NULL;
	cleanup_env char **env = proc_env();
	uint64_t major;
	char *num, *end;

	if (proc_run(argv, (const char *const *)env, NULL, 10 * USEC_PER_SEC,
		     ERRID_START_TOOL, &out, err) < 0)
		return -1;
	num = strstr(out, ") ");
	if (!num)
		return err_set_id(err, ERRID_START_TOOL, "%s: no version in its answer",
				  postgres);
	num += 2;
	end = num + strspn(num, "0123456789");
	*end = '\0';
	if (parse_u64(num, 1, 999, &major, err) < 0)
		return err_wrap(err, "%s --version", postgres);
	*ret = (unsigned)major;
	return 0;
}

static bool find_debian(unsigned want, char **ret_dir, unsigned *ret_major)
{
	cleanup_dir DIR *d = opendir(PG_DEBIAN_DIR);
	const struct dirent *e;
	unsigned best = 0;

	while (d && (e = readdir(d))) {
		struct err ignored = ERR_INIT;
		uint64_t major;

		if (parse_u64(e->d_name, 1, PG_MAJOR_MAX, &major, &ignored) < 0)
			continue;
		cleanup_free char *dir = xasprintf(PG_DEBIAN_DIR "/%s/bin", e->d_name);
		if (!has_programs(dir))
			continue;
		if (want ? major == want : major > best)
			best = (unsigned)major;
	}
	if (!best)
		return false;
	*ret_dir = xasprintf(PG_DEBIAN_DIR "/%u/bin", best);
	*ret_major = best;
	return true;
}

static bool find_in_path(char **ret_dir)
{
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t n = strcspn(path, ":");
		cleanup_free char *dir = xstrndup(path, n);

		if (dir[0] == '/' && has_programs(dir)) {
			*ret_dir = TAKE_PTR(dir);
			return true;
		}
		path += n + (path[n] == ':');
	}
	return false;
}

/* want: the cluster's major version, 0 when there is no cluster yet. */
static int find_programs(const char *conf_bin, unsigned want, struct pg_cluster *c,
			 struct err *err)
{
	if (conf_bin) {
		if (!has_programs(conf_bin))
			return err_set_id(err, ERRID_START_TOOL,
					  "postgres.bin: no initdb and postgres in %s",
					  conf_bin);
		c->bin = xstrdup(conf_bin);
		return ask_version(c->bin, &c->major, err);
	}
	if (want && find_debian(want, &c->bin, &c->major))
		return 0;
	if (find_debian(0, &c->bin, &c->major))
		return 0;
	if (find_in_path(&c->bin))
		return ask_version(c->bin, &c->major, err);
	return err_set_id(
		err, ERRID_START_TOOL,
		"PostgreSQL's server programs were found neither in " PG_DEBIAN_DIR
		"/*/bin nor in PATH: install the package postgresql, or name their "
		"directory as postgres.bin in codex.yaml");
}

/* 0: no cluster. */
static int cluster_version(const char *data, unsigned *ret, struct err *err)
{
	cleanup_free char *file = xasprintf("%s/PG_VERSION", data);
	cleanup_free char *text = NULL;
	uint64_t major;
	size_t len;

	*ret = 0;
	if (access(data, F_OK) < 0 && errno == ENOENT)
		return 0;
	if (fs_read_file(AT_FDCWD, file, 64, &text, &len, err) < 0)
		return err_wrap(err, "%s exists and is no cluster", data);
	text[strcspn(text, "\n")] = '\0';
	if (parse_u64(text, 1, 999, &major, err) < 0)
		return err_set_id(err, ERRID_START_DB_VERSION, "%s: unreadable", file);
	*ret = (unsigned)major;
	return 0;
}

/* ---- first use ------------------------------------------------------------ */

static int run_initdb(const char *secrets, const struct pg_cluster *c, const char *tmp,
		      struct err *err)
{
	cleanup_free char *initdb = xasprintf("%s/initdb", c->bin);
	cleanup_free char *pwfile = xasprintf("--pwfile=%s/lychgate_db_migrate", secrets);
	const char *const argv[] = {
		initdb,
		"-D",
		tmp,
		"-U",
		"lych_migrate",
		pwfile,
		"--auth=scram-sha-256",
		"--data-checksums",
		"--encoding=UTF8",
		"--locale=C",
		"--no-instructions",
		NULL,
	};
	cleanup_env char **env = proc_env();

	return proc_run(argv, (const char *const *)env, NULL, INITDB_TIMEOUT,
			ERRID_START_DB, NULL, err);
}

static int build_cluster(const struct paths *p, const char *secrets,
			 const struct pg_cluster *c, struct err *err)
{
	cleanup_free char *parent = xasprintf("%s/phylactery", p->data);
	cleanup_free char *tmp = xasprintf("%s/data.tmp", parent);
	cleanup_close int dirfd =
		open(parent, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dirfd < 0)
		return err_sys(err, "%s", parent);
	if (fs_remove_beneath(dirfd, "data.tmp", err) < 0)
		return err_wrap(err, "remains of an interrupted first start in %s",
				parent);
	if (run_initdb(secrets, c, tmp, err) < 0)
		return -1;
	if (renameat(dirfd, "data.tmp", dirfd, "data") < 0)
		return err_sys(err, "rename %s", tmp);
	if (fsync(dirfd) < 0)
		return err_sys(err, "fsync %s", parent);
	return 0;
}

/* *ret_have: the cluster's major version, 0 without one. */
static int find(const struct paths *p, const char *conf_bin, struct pg_cluster *c,
		unsigned *ret_have, struct err *err)
{
	unsigned have = 0;

	c->data = xasprintf("%s/phylactery/data", p->data);
	c->log = xasprintf("%s/phylactery/log/postgres.log", p->data);
	if (cluster_version(c->data, &have, err) < 0 ||
	    find_programs(conf_bin, have, c, err) < 0)
		return -1;
	if (have && have != c->major)
		return err_set_id(err, ERRID_START_DB_VERSION,
				  "%s is of PostgreSQL %u, the programs in %s are of %u",
				  c->data, have, c->bin, c->major);
	if (c->major < PG_MAJOR_MIN)
		return err_set_id(err, ERRID_START_TOOL,
				  "PostgreSQL %u is too old, needs %u", c->major,
				  PG_MAJOR_MIN);
	*ret_have = have;
	return 0;
}

int pg_find(const struct paths *p, const char *conf_bin, struct pg_cluster *ret,
	    struct err *err)
{
	struct pg_cluster c = {.lock_fd = -1};
	unsigned have = 0;

	if (find(p, conf_bin, &c, &have, err) < 0) {
		pg_cluster_done(&c);
		return -1;
	}
	*ret = c;
	return 0;
}

int pg_prepare(const struct paths *p, const char *conf_bin, const char *given_secrets,
	       struct pg_cluster *ret, struct err *err)
{
	cleanup_free char *own_secrets = xasprintf("%s/secrets", p->data);
	const char *secrets = given_secrets ? given_secrets : own_secrets;
	struct pg_cluster c = {.lock_fd = -1};
	unsigned have = 0;

	if (find(p, conf_bin, &c, &have, err) < 0 ||
	    (!given_secrets && secrets_make(p, err) < 0) ||
	    take_lock(p, &c.lock_fd, err) < 0 ||
	    (!have && build_cluster(p, secrets, &c, err) < 0)) {
		pg_cluster_done(&c);
		return -1;
	}
	*ret = c;
	return 0;
}

/* ---- configuration -------------------------------------------------------- */

static const char postgresql_conf[] =
	"# Written by Lychgate at every start. Changes are lost.\n"
	"listen_addresses = ''\n"
	"unix_socket_permissions = 0700\n"
	"max_connections = 40\n"
	"superuser_reserved_connections = 3\n"
	"password_encryption = 'scram-sha-256'\n"
	"shared_buffers = 64MB\n"
	"max_wal_size = 512MB\n"
	"min_wal_size = 64MB\n"
	"fsync = on\n"
	"synchronous_commit = on\n"
	"full_page_writes = on\n"
	"restart_after_crash = on\n"
	"max_slot_wal_keep_size = 1GB\n"
	"idle_in_transaction_session_timeout = '60s'\n"
	"authentication_timeout = '10s'\n"
	/* no parallel workers: a tomb's statement would have more processors and memory
	 * than its session */
	"max_worker_processes = 0\n"
	"max_logical_replication_workers = 0\n"
	"autovacuum = on\n"
	"autovacuum_naptime = '15s'\n"
	"jit = off\n"
	"logging_collector = off\n"
	"log_destination = 'stderr'\n"
	"log_line_prefix = '%m [%p] %q%u@%d '\n"
	"log_checkpoints = off\n"
	"log_timezone = 'UTC'\n"
	"timezone = 'UTC'\n"
	"datestyle = 'iso, ymd'\n"
	"lc_messages = 'C'\n";

static const char pg_hba_conf[] =
	"# Written by Lychgate at every start. Changes are lost.\n"
	"# TYPE  DATABASE  USER                                               METHOD\n"
	"local   lychgate  lych_migrate,lych_vessel,lych_watchdog,+lych_tomb  "
	"scram-sha-256\n"
	"local   postgres  lych_migrate                                       "
	"scram-sha-256\n"
	"local   all       all                                                reject\n";

static const char pg_ident_conf[] =
	"# Written by Lychgate at every start. Nothing is mapped.\n";

/* pid of the server that postmaster.pid names and that really is one on this directory,
 * else 0 */
static pid_t live_server(const struct pg_cluster *c)
{
	cleanup_free char *file = xasprintf("%s/postmaster.pid", c->data);
	cleanup_free char *text = NULL;
	char link[64], cwd[PATH_MAX], real[PATH_MAX];
	struct err ignored = ERR_INIT;
	uint64_t pid;
	ssize_t n;
	size_t len;

	if (fs_read_file(AT_FDCWD, file, 4096, &text, &len, &ignored) < 0)
		return 0;
	text[strcspn(text, "\n")] = '\0';
	if (parse_u64(text, 2, INT_MAX, &pid, &ignored) < 0)
		return 0;
	if (str_fmt(link, sizeof(link), "/proc/%llu/cwd", (unsigned long long)pid) < 0)
		return 0;
	n = readlink(link, cwd, sizeof(cwd) - 1);
	if (n < 0 || !realpath(c->data, real))
		return 0;
	cwd[n] = '\0';
	return str_eq(cwd, real) ? (pid_t)pid : 0;
}

/* The lock is ours, so whatever serves this directory was left by a starter that was
 * killed. It is continued, for it may be stopped; and where a child of it is, only an
 * immediate shutdown ends, from which the next start recovers. It removes its file before it
 * has ended: that is waited for too. */
static int stop_left_over(const struct pg_cluster *c, struct err *err)
{
	cleanup_free char *file = xasprintf("%s/postmaster.pid", c->data);
	cleanup_close int pidfd = -1;
	usec_t begun = clock_boot_usec();
	pid_t pid, last = 0;

	while ((pid = live_server(c)) > 0) {
		struct timespec nap = {.tv_nsec = 20 * 1000 * 1000};
		usec_t waited = clock_boot_usec() - begun;
		int how = waited < OLD_SERVER_PATIENCE ? SIGINT : SIGQUIT;

		fd_close(&pidfd);
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		last = pid;
		if (pidfd >= 0 && live_server(c) == pid) {
			(void)syscall(SYS_pidfd_send_signal, pidfd, how, NULL, 0);
			(void)syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, NULL, 0);
		}
		if (waited >= OLD_SERVER_TIMEOUT)
			break;
		(void)nanosleep(&nap, NULL);
	}
	if (pid > 0 ||
	    (pidfd >= 0 && poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1,
				(int)(OLD_SERVER_TIMEOUT / USEC_PER_MSEC)) == 0))
		return err_set_id(err, ERRID_START_DB,
				  "an earlier server (pid %d) does not stop", last);
	if (unlink(file) < 0 && errno != ENOENT)
		return err_sys_id(err, ERRID_START_DB, "unlink %s", file);
	return 0;
}

int pg_configure(const struct paths *p, const struct pg_cluster *c, struct err *err)
{
	static const char *const stale[] = {".s.PGSQL.5432", ".s.PGSQL.5432.lock"};
	const struct {
		const char *name, *text;
	} files[] = {
		{"postgresql.conf", postgresql_conf},
		{"pg_hba.conf", pg_hba_conf},
		{"pg_ident.conf", pg_ident_conf},
	};
	cleanup_close int dirfd =
		open(c->data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dirfd < 0)
		return err_sys_id(err, ERRID_START_DB, "%s", c->data);
	if (stop_left_over(c, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(stale); i++) {
		cleanup_free char *path = xasprintf("%s/%s", p->pg_dir, stale[i]);

		if (unlink(path) < 0 && errno != ENOENT)
			return err_sys_id(err, ERRID_START_SOCKET, "unlink %s", path);
	}
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		cleanup_free char *have = NULL;
		struct err ignored = ERR_INIT;
		size_t len = 0;

		if (fs_read_file(dirfd, files[i].name, 65536, &have, &len, &ignored) ==
			    0 &&
		    str_eq(have, files[i].text))
			continue;
		if (fs_write_atomic(dirfd, files[i].name, files[i].text,
				    strlen(files[i].text), 0600, err) < 0)
			return err_wrap(err, "%s/%s", c->data, files[i].name);
	}
	return 0;
}

char **pg_server_argv(const struct paths *p, const struct pg_cluster *c)
{
	char **argv = xcalloc(6, sizeof(*argv));
	cleanup_buf struct buf b = {0};

	/* a list of directories to PostgreSQL: quoted, so that a comma stays a comma */
	buf_init(&b, 16384);
	buf_adds(&b, "unix_socket_directories=\"");
	for (const char *s = p->pg_dir; *s; s++) {
		if (*s == '"')
			buf_addc(&b, '"');
		buf_addc(&b, *s);
	}
	buf_addc(&b, '"');
	argv[0] = xasprintf("%s/postgres", c->bin);
	argv[1] = xstrdup("-D");
	argv[2] = xstrdup(c->data);
	argv[3] = xstrdup("-c");
	argv[4] = xstrdup(buf_str(&b));
	return argv;
}

bool pg_is_ready(const struct pg_cluster *c, pid_t pid)
{
	cleanup_free char *file = xasprintf("%s/postmaster.pid", c->data);
	cleanup_free char *text = NULL;
	struct err ignored = ERR_INIT;
	char *line, *end;
	uint64_t named;
	size_t len;

	if (fs_read_file(AT_FDCWD, file, 4096, &text, &len, &ignored) < 0)
		return false;
	line = text;
	for (int i = 0; i < 7; i++) {
		end = strchr(line, '\n');
		if (!end)
			return false;
		*end = '\0';
		if (i == 0 && (parse_u64(line, 1, INT_MAX, &named, &ignored) < 0 ||
			       (pid_t)named != pid))
			return false;
		line = end + 1;
	}
	return str_starts(line, "ready");
}
