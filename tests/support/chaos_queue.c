/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chaos_queue DIR SECONDS SEED postgres|vessel
 *
 * Six tombs, two submitters and a reaper work on the cluster of tests/support/pg in DIR,
 * while this process kills and stops them and kills the server. With `vessel` the tombs
 * go through the vessel's door (tests/support/door.c), a process that is killed and
 * stopped like the others. Every tenth call is sent
 * twice on purpose. What each of them was told goes to append-only ledgers in DIR; when
 * everything has drained, the ledgers are compared with what the database says.
 * Exit 0: nothing lost, nothing double, nothing wrong.
 */
#include "common/attr.h"
#include "common/crypto/sha256.h"
#include "common/id.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/support/chaos/chaos_verdict.h"
#include "tests/support/door_client.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define TOMBS 6
#define SUBMITTERS 2
#define REAPER (TOMBS + SUBMITTERS)
#define DOOR (REAPER + 1) /* only with `vessel` */
#define CHILDREN_MAX (DOOR + 1)
#define CLAIM_MAX 4
#define LEASE_SEC 5
#define VESSEL_BOOT "00000000-0000-4000-8000-00000000feed"

static const char *dir;
static int ledger = -1;
static uint64_t rng;
static PGconn *conn;
static volatile bool *draining; /* shared with the children */
static const char *role;
static unsigned n_children = DOOR;
static bool through_vessel;
static struct door_client client;

static uint64_t rnd(uint64_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng % n;
}

static void nap_ms(uint64_t ms)
{
	struct timespec ts = {.tv_sec = (time_t)(ms / 1000),
			      .tv_nsec = (long)(ms % 1000) * 1000000};

	(void)nanosleep(&ts, NULL);
}

static void make_path(char *out, size_t size, const char *name)
{
	if (str_fmt(out, size, "%s/%s", dir, name) < 0)
		abort();
}

static PRINTF_FMT(1, 2) void note(const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	assert(n > 0 && n < (int)sizeof(line));
	if (write(ledger, line, (size_t)n) != n)
		abort();
}

static void random_uuid(char out[37])
{
	uint64_t a = rng, b;

	(void)rnd(2);
	b = rng;
	if (str_fmt(out, 37, "%08x-%04x-4%03x-8%03x-%012llx", (unsigned)(a >> 32),
		    (unsigned)(a >> 16) & 0xffff, (unsigned)a & 0xfff,
		    (unsigned)(b >> 48) & 0xfff,
		    (unsigned long long)b & 0xffffffffffffULL) < 0)
		abort();
	(void)rnd(2);
}

/* Reconnect until the server is back. */
static void connect_again(void)
{
	char sock[128], secret_path[160], secret[128];
	bool is_ours = str_starts(role, "lych_");
	char name[96];

	if (str_fmt(name, sizeof(name), "secrets/lychgate_db_%s%s", is_ours ? "" : "of_",
		    is_ours ? role + strlen("lych_") : role) < 0)
		abort();
	make_path(sock, sizeof(sock), "sock");
	make_path(secret_path, sizeof(secret_path), name);
	FILE *f = fopen(secret_path, "re");
	if (!f || !fgets(secret, sizeof(secret), f))
		abort();
	(void)fclose(f);
	const char *const keys[] = {
		"host", "user", "password", "dbname", "connect_timeout", NULL};
	const char *const values[] = {sock, role, secret, "lychgate", "5", NULL};
	for (;;) {
		PQfinish(conn);
		conn = PQconnectdbParams(keys, values, 0);
		if (PQstatus(conn) == CONNECTION_OK)
			return;
		nap_ms(50 + rnd(100));
	}
}

static bool is_loss(const PGresult *r)
{
	const char *s = PQresultErrorField(r, PG_DIAG_SQLSTATE);

	return PQstatus(conn) != CONNECTION_OK || !s || str_starts(s, "57P0");
}

/* The unknown outcome's rule: the same call again, until there is an answer. */
static PGresult *ask(const char *sql, int n, const char *const *params)
{
	for (;;) {
		PGresult *r = PQexecParams(conn, sql, n, NULL, params, NULL, NULL, 0);

		if (PQresultStatus(r) == PGRES_TUPLES_OK) {
			if (rnd(10) != 0)
				return r;
			/* resent on purpose: the answer to the last one counts */
			PQclear(r);
			r = PQexecParams(conn, sql, n, NULL, params, NULL, NULL, 0);
			if (PQresultStatus(r) == PGRES_TUPLES_OK)
				return r;
		}
		if (!is_loss(r)) {
			fprintf(stderr, "chaos: %s: %s", role, PQerrorMessage(conn));
			note("V %s\n", "error");
			_exit(1);
		}
		PQclear(r);
		connect_again();
	}
}

/* ---- the workers ---------------------------------------------------------------- */

static void submitter(unsigned n, unsigned life)
{
	for (unsigned i = 0;; i++) {
		char key[64], spec[96];

		if (str_fmt(key, sizeof(key), "k%u-%u-%u", n, life, i) < 0 ||
		    str_fmt(spec, sizeof(spec), "{\"argv\":[\"%s\"]}", key) < 0)
			abort();
		const char *const params[] = {key, spec};
		PGresult *r =
			ask("SELECT job_id, status FROM vessel_api.enqueue('main', $1,"
			    " convert_to($2, 'UTF8'), 50, true, 3600, 100000)",
			    2, params);
		if (!str_eq(PQgetvalue(r, 0, 1), "ok"))
			note("V enqueue-%s\n", PQgetvalue(r, 0, 1));
		note("A %s %s\n", key, PQgetvalue(r, 0, 0));
		PQclear(r);
		nap_ms(rnd(4));
	}
}

static void answer_note(char kind, const char *job, const char *epoch, const char *answer)
{
	if (str_starts(answer, "ERROR")) {
		fprintf(stderr, "chaos: %s: job %s: %s\n", role, job, answer);
		note("V %s\n", "error");
		_exit(1);
	}
	note("%c %s %s %s\n", kind, job, epoch, answer);
}

/* Both doors: the same call again until there is an answer, and now and then twice. */
static const char *door_end(const char *target, const struct door_client_job *j,
			    const char *result)
{
	for (bool again = rnd(10) == 0;;) {
		const char *a = door_client_end(&client, target, j->job, j->epoch,
						j->token, result, strlen(result));

		if (a && !again)
			return a;
		if (a)
			again = false;
		else
			nap_ms(20 + rnd(50));
	}
}

static void door_extend(const char *boot, const struct door_client_job *j)
{
	while (!door_client_extend(&client, LEASE_SEC, boot, j->job, j->epoch, j->token))
		nap_ms(20 + rnd(50));
}

static void end_by_sql(uint64_t dice, const char *boot, const struct door_client_job *j,
		       const char *result, bool extend)
{
	const char *const params[] = {j->job, j->epoch, j->token, result};
	const char *const lease[] = {boot, j->job, j->epoch, j->token};
	PGresult *r;

	if (extend)
		PQclear(ask(
			"SELECT status FROM tomb_api.extend($1::uuid, ARRAY[$2::bigint],"
			" ARRAY[$3::bigint], ARRAY[$4::uuid], 5)",
			4, lease));
	if (dice < 85)
		/* no backslash in it, so its bytes as they are */
		r = ask("SELECT tomb_api.ack($1::bigint, $2::bigint, $3::uuid,"
			" $4::bytea)",
			4, params);
	else if (dice < 93)
		r = ask("SELECT tomb_api.fail($1::bigint, $2::bigint, $3::uuid, true,"
			" 'transport_loss', NULL)",
			3, params);
	else
		r = ask("SELECT tomb_api.release($1::bigint, $2::bigint, $3::uuid)", 3,
			params);
	answer_note(dice < 85 ? 'K' : 'F', j->job, j->epoch, PQgetvalue(r, 0, 0));
	PQclear(r);
}

static void end_job(const char *boot, const struct door_client_job *j)
{
	uint64_t dice = rnd(100);
	char result[256];
	bool extend;

	/* The spec here is the digest that the claim made of it. */
	if (str_fmt(result, sizeof(result), "{\"job\":%s,\"epoch\":%s,\"spec\":\"%s\"}",
		    j->job, j->epoch, j->spec) < 0)
		abort();
	if (*draining) {
		/* the liveness half: nobody dawdles, everything must finish */
	} else if (rnd(200) == 0) {
		nap_ms(6000 + rnd(3000)); /* a zombie: longer than its lease */
	} else if (!str_eq(j->epoch, "1") && rnd(8) == 0) {
		nap_ms(2000 + rnd(2000)); /* still at it when the zombie comes back */
	}
	extend = rnd(10) == 0;
	if (!through_vessel) {
		end_by_sql(dice, boot, j, result, extend);
		return;
	}
	if (extend)
		door_extend(boot, j);
	if (dice < 85)
		answer_note('K', j->job, j->epoch, door_end("ack", j, result));
	else if (dice < 93)
		answer_note('F', j->job, j->epoch,
			    door_end("fail?retry=true&class=transport_loss", j, ""));
	else
		answer_note('F', j->job, j->epoch, door_end("release", j, ""));
}

/* In hex; the caller's. */
static char *digest_of(const void *spec, size_t len)
{
	uint8_t digest[SHA256_SIZE];
	char *hex = xmalloc(SHA256_HEX_SIZE);

	sha256_of(spec, len, digest);
	hex_encode(digest, sizeof(digest), hex);
	return hex;
}

static int claim_by_sql(const char *boot, const char *claim_id,
			struct door_client_job *jobs)
{
	const char *const params[] = {boot, claim_id};
	PGresult *r = ask("SELECT job_id, epoch, token, spec"
			  " FROM tomb_api.claim('main', 4, 5, $1::uuid, $2::uuid)",
			  2, params);
	int n = PQntuples(r);

	assert(n <= CLAIM_MAX);
	for (int i = 0; i < n; i++) {
		if (str_copy(jobs[i].job, sizeof(jobs[i].job), PQgetvalue(r, i, 0)) < 0 ||
		    str_copy(jobs[i].epoch, sizeof(jobs[i].epoch), PQgetvalue(r, i, 1)) <
			    0 ||
		    str_copy(jobs[i].token, sizeof(jobs[i].token), PQgetvalue(r, i, 2)) <
			    0)
			abort();
		size_t len;
		unsigned char *spec =
			PQunescapeBytea((const unsigned char *)PQgetvalue(r, i, 3), &len);

		assert(spec);
		jobs[i].spec = digest_of(spec, len);
		PQfreemem(spec);
	}
	PQclear(r);
	return n;
}

static int claim_by_door(const char *boot, const char *claim_id,
			 struct door_client_job *jobs)
{
	int n;

	while ((n = door_client_claim(&client, CLAIM_MAX, LEASE_SEC, boot, claim_id,
				      jobs)) == -1)
		nap_ms(20 + rnd(50));
	if (n < 0)
		answer_note('S', "?", "?", "ERROR refused");
	for (int i = 0; i < n; i++) {
		char *hex = digest_of(jobs[i].spec, jobs[i].spec_len);

		free(jobs[i].spec);
		jobs[i].spec = hex;
	}
	return n;
}

static void tomb(void)
{
	char boot[37], claim_id[37];

	random_uuid(boot);
	for (;;) {
		struct door_client_job jobs[CLAIM_MAX];

		random_uuid(claim_id);
		int n = through_vessel ? claim_by_door(boot, claim_id, jobs)
				       : claim_by_sql(boot, claim_id, jobs);
		for (int i = 0; i < n; i++)
			note("S %s %s\n", jobs[i].job, jobs[i].epoch);
		for (int i = 0; i < n; i++) {
			nap_ms(rnd(10));
			end_job(boot, &jobs[i]);
			free(jobs[i].spec);
		}
		if (n == 0)
			nap_ms(20 + rnd(50));
	}
}

static void reaper(void)
{
	for (;;) {
		PQclear(ask("SELECT vessel_api.vessel_beat('" VESSEL_BOOT "')", 0, NULL));
		PQclear(ask("SELECT count(*) FROM vessel_api.reap('" VESSEL_BOOT
			    "', 100, 1)",
			    0, NULL));
		nap_ms(100 + rnd(100));
	}
}

/* Beside us: tests/support/door. */
NORETURN static void exec_door(void)
{
	char path[256];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	if (len <= 0)
		abort();
	path[len] = '\0';
	slash = strrchr(path, '/');
	if (!slash ||
	    str_copy(slash + 1, (size_t)(path + sizeof(path) - slash - 1), "door") < 0)
		abort();
	execl(path, "door", dir, "tomb_1", "tomb_2", (char *)NULL);
	abort();
}

static pid_t start_child(unsigned n, unsigned life)
{
	static char tomb_role[16];
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	rng ^= (n + 1) * 0x9e3779b97f4a7c15ULL + life * 0xbf58476d1ce4e5b9ULL;
	conn = NULL;
	if (n == DOOR)
		exec_door();
	if (n < TOMBS) {
		if (str_fmt(tomb_role, sizeof(tomb_role), "tomb_%u", n % 2 + 1) < 0)
			abort();
		role = tomb_role;
	} else {
		role = "lych_vessel";
	}
	if (n < TOMBS && through_vessel)
		door_client_init(&client, dir, role);
	else
		connect_again();
	if (n < TOMBS)
		tomb();
	else if (n == REAPER)
		reaper();
	else
		submitter(n, life);
	_exit(0);
}

/* ---- the nemesis ------------------------------------------------------------------ */

static pid_t children[CHILDREN_MAX];
static time_t stopped_until[CHILDREN_MAX];
static unsigned lives[CHILDREN_MAX];
static unsigned kills, stops, server_kills, door_kills;

static void pg_tool(const char *verb)
{
	extern char **environ;
	const char *const argv[] = {"tests/support/pg", verb, dir, NULL};
	pid_t pid;
	int status;

	if (posix_spawn(&pid, argv[0], NULL, NULL, (char *const *)(uintptr_t)argv,
			environ) != 0 ||
	    waitpid(pid, &status, 0) != pid || status != 0)
		abort();
}

static time_t now_sec(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_BOOTTIME, &ts);
	return ts.tv_sec;
}

static void kill_child(unsigned n)
{
	(void)kill(children[n], SIGKILL);
	(void)waitpid(children[n], NULL, 0);
	children[n] = 0;
	stopped_until[n] = 0;
}

static void wake(bool all)
{
	for (unsigned n = 0; n < n_children; n++) {
		if (stopped_until[n] && (all || stopped_until[n] <= now_sec())) {
			(void)kill(children[n], SIGCONT);
			stopped_until[n] = 0;
		}
	}
}

static void torment(time_t until)
{
	time_t next_server = now_sec() + 3 + (time_t)rnd(4);

	while (now_sec() < until) {
		unsigned n = (unsigned)rnd(n_children);

		nap_ms(50 + rnd(100));
		wake(false);
		if (rnd(10) == 0 && !stopped_until[n]) {
			(void)kill(children[n], SIGSTOP);
			stopped_until[n] = now_sec() + 1 + (time_t)rnd(9);
			stops++;
		} else if (rnd(6) == 0 && !stopped_until[n]) {
			kill_child(n);
			children[n] = start_child(n, ++lives[n]);
			kills++;
		}
		if (through_vessel && rnd(8) == 0 && !stopped_until[DOOR]) {
			kill_child(DOOR);
			children[DOOR] = start_child(DOOR, ++lives[DOOR]);
			door_kills++;
		}
		if (now_sec() >= next_server) {
			pg_tool("kill");
			nap_ms(rnd(500));
			pg_tool("start");
			server_kills++;
			next_server = now_sec() + 4 + (time_t)rnd(4);
		}
	}
	wake(true);
}

/* ---- the run ------------------------------------------------------------------------ */

static void set_up(char *ledger_path, size_t size)
{
	make_path(ledger_path, size, "ledger");
	ledger = open(ledger_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (ledger < 0)
		abort();
	draining = mmap(NULL, sizeof(*draining), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (draining == MAP_FAILED)
		abort();
	role = "lych_migrate";
	connect_again();
	/* Here everything shall end in success: retries without end, no rate limit. */
	chaos_command(
		conn,
		"CREATE FUNCTION lych.chaos() RETURNS trigger LANGUAGE plpgsql AS $$ "
		"BEGIN"
		" NEW.max_lost := 100000; NEW.max_attempts := 100; RETURN NEW; END $$;"
		"CREATE TRIGGER chaos BEFORE INSERT ON lych.job FOR EACH ROW"
		" EXECUTE FUNCTION lych.chaos();"
		"UPDATE lych.worker_queue SET claim_rate = 1e6, claim_burst = 1e6, "
		"tokens = 1e6");
	PQfinish(conn);
	conn = NULL;
}

/* Until all that was accepted has ended, for a minute at most. */
static void drain(void)
{
	time_t limit;

	*draining = true;
	for (unsigned n = TOMBS; n < REAPER; n++)
		kill_child(n);
	connect_again();
	limit = now_sec() + 60;
	while (chaos_count(conn,
			   "SELECT count(*) FROM lych.job WHERE state <> 'succeeded'") >
		       0 &&
	       now_sec() < limit) {
		chaos_command(
			conn,
			"UPDATE lych.job SET run_at = now() WHERE state = 'queued' AND"
			" run_at > now()");
		nap_ms(200);
	}
	for (unsigned n = 0; n < n_children; n++)
		if (children[n])
			kill_child(n);
}

int main(int argc, char **argv)
{
	char path[160];
	uint64_t seconds, seed;

	if (argc != 5 || parse_u64(argv[2], 1, 86400, &seconds, NULL) < 0 ||
	    parse_u64(argv[3], 1, UINT32_MAX, &seed, NULL) < 0 ||
	    (!str_eq(argv[4], "postgres") && !str_eq(argv[4], "vessel"))) {
		fprintf(stderr, "usage: chaos_queue DIR SECONDS SEED postgres|vessel\n");
		return 2;
	}
	dir = argv[1];
	through_vessel = str_eq(argv[4], "vessel");
	n_children = through_vessel ? CHILDREN_MAX : DOOR;
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	rng = seed * 0x2545f4914f6cdd1dULL;
	printf("chaos: seed %llu, %llu s, door %s\n", (unsigned long long)seed,
	       (unsigned long long)seconds, argv[4]);
	set_up(path, sizeof(path));
	for (unsigned n = 0; n < n_children; n++)
		children[n] = start_child(n, 0);
	torment(now_sec() + (time_t)seconds);

	drain();
	printf("chaos: %u kills, %u stops, %u server kills, %u kills of the door\n",
	       kills, stops, server_kills, door_kills);
	if (through_vessel && door_kills == 0) {
		printf("chaos: the door was never killed\n");
		return 1;
	}
	int bad = chaos_verdict(conn, path);
	printf("chaos: %s\n", bad ? "FAILED" : "held");
	return bad != 0;
}