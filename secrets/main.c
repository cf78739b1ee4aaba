/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-secret-driver.
 * lych-secret-driver: the commands of Podman's "shell" secret driver over our encrypted
 * store. Podman runs `/bin/sh -c COMMAND` with SECRET_ID in the environment; `store` has
 * the value on stdin, `lookup` answers it on stdout, `list` one id a line.
 *
 * Theory of operation
 *
 * One process does one thing and ends. Before it reads what opens the store it makes
 * itself undumpable and locks the memory that will hold opener, key and value; all of it
 * is wiped before the end. Only OpenSSL's scrypt works in memory that is not locked (it
 * is 64 MiB); OpenSSL clears it.
 *
 * Rootless Podman runs this in its user namespace, where the user is uid 0: that is not
 * root. Root itself is refused.
 */
#include "common/args/args.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/str.h"
#include "secrets/opener.h"
#include "secrets/store.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

struct options {
	const char *command, *store;
	struct opener_source from;
	enum seal_kdf kdf;
	unsigned n_sources;
};

/* Everything that must not be left anywhere. */
static struct {
	struct store store;
	size_t opener_len, value_len;
	char opener[SEAL_PASSPHRASE_MAX + 2];
	uint8_t value[SEAL_VALUE_MAX + 1];
} held = {.store = STORE_INIT};

/* ---- options --------------------------------------------------------------- */

enum { OPT_STORE = 256, OPT_CREDENTIAL, OPT_FILE, OPT_FD, OPT_KEY };

static const struct argp_option option_table[] = {
	{"store", OPT_STORE, "DIR", 0, "The store's directory, absolute (required)", 0},
	{"credential", OPT_CREDENTIAL, "NAME", 0,
	 "What opens it is this systemd credential", 0},
	{"passphrase-file", OPT_FILE, "FILE", 0, "... is in this file, 0600 and yours",
	 0},
	{"passphrase-fd", OPT_FD, "N", 0, "... comes from this descriptor", 0},
	{"key", OPT_KEY, NULL, 0,
	 "With init: what opens it is a random key (64 hex digits), not a passphrase", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	uint64_t n = 0;

	switch (key) {
	case OPT_STORE:
		o->store = arg;
		return 0;
	case OPT_CREDENTIAL:
		o->from.credential = arg;
		o->n_sources++;
		return 0;
	case OPT_FILE:
		o->from.file = arg;
		o->n_sources++;
		return 0;
	case OPT_FD:
		if (parse_u64(arg, 3, INT_MAX, &n, NULL) < 0)
			args_error(state, "--passphrase-fd: a descriptor above 2");
		o->from.fd = (int)n;
		o->n_sources++;
		return 0;
	case OPT_KEY:
		o->kdf = SEAL_KDF_HKDF;
		return 0;
	case ARGP_KEY_ARG:
		if (o->command)
			args_error(state, "one command");
		o->command = arg;
		return 0;
	case ARGP_KEY_END:
		if (!o->command)
			args_error(state, "a command is required");
		if (!o->store || o->store[0] != '/')
			args_error(state,
				   "--store DIR with an absolute path is required");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_table,
	.parser = parse_option,
	.args_doc = "init|list|lookup|store|delete",
	.doc = "Keep Podman's secrets encrypted at rest (docs/SECRETS.md).\v"
	       "Examples:\n"
	       "  lych-secret-driver --store ~/.local/share/lychgate-secrets list",
};

/* ---- the process ----------------------------------------------------------- */

/* uid 0 of a rootless container engine's namespace is an ordinary user outside. */
static int refuse_root(struct err *err)
{
	cleanup_free char *map = NULL;
	unsigned long long inside = 0, outside = 0;
	size_t len;
	char *end;

	if (geteuid() != 0)
		return 0;
	if (fs_read_file(AT_FDCWD, "/proc/self/uid_map", 4096, &map, &len, err) < 0)
		return -1;
	inside = strtoull(map, &end, 10);
	outside = strtoull(end, NULL, 10);
	if (inside != 0 || outside == 0)
		return err_set_id(err, ERRID_CORE_ROOT, "uid 0");
	return 0;
}

static int harden(struct err *err)
{
	const struct rlimit none = {0, 0};

	(void)umask(077);
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    setrlimit(RLIMIT_CORE, &none) < 0)
		return err_sys(err, "harden");
	if (mlock(&held, sizeof(held)) < 0)
		return err_sys_id(
			err, ERRID_START_LIMIT,
			"lock %zu bytes of memory (RLIMIT_MEMLOCK, which needs 1 MiB)",
			sizeof(held));
	return 0;
}

static int read_value(struct err *err)
{
	for (;;) {
		size_t len = held.value_len;
		ssize_t n;

		assert(len < sizeof(held.value));
		n = read(STDIN_FILENO, held.value + len, sizeof(held.value) - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "read the value from stdin");
		if (n == 0)
			return 0;
		held.value_len += (size_t)n;
		if (held.value_len > SEAL_VALUE_MAX)
			return err_set_id(err, ERRID_SECRET_VALUE,
					  "more than %d bytes on stdin", SEAL_VALUE_MAX);
	}
}

/* ---- the commands ---------------------------------------------------------- */

struct listing {
	bool failed;
};

static void print_id(const char *id, void *arg)
{
	struct listing *l = arg;

	l->failed |= printf("%s\n", id) < 0;
}

static int secret_id(const char **ret, struct err *err)
{
	*ret = getenv("SECRET_ID");
	if (!*ret || !seal_id_ok(*ret))
		return err_set_id(err, ERRID_SECRET_NAME,
				  "SECRET_ID in the environment is '%.80s'",
				  *ret ? *ret : "");
	return 0;
}

static int unlock(const struct options *o, struct err *err)
{
	if (o->n_sources != 1)
		return err_set_id(err, ERRID_CORE_USAGE,
				  "exactly one of --credential, --passphrase-file and "
				  "--passphrase-fd");
	return opener_read(&o->from, held.opener, sizeof(held.opener), &held.opener_len,
			   err);
}

static int do_init(const struct options *o, struct err *err)
{
	if (unlock(o, err) < 0)
		return -1;
	return store_make(o->store, o->kdf, SEAL_LOG2_N_DEFAULT, held.opener,
			  held.opener_len, err);
}

static int do_list(const struct options *o, struct err *err)
{
	struct listing l = {0};

	if (store_open(o->store, &held.store, err) < 0 ||
	    store_list(&held.store, print_id, &l, err) < 0)
		return -1;
	if (fflush(stdout) != 0 || l.failed)
		return err_sys_id(err, ERRID_CORE_OUTPUT, "stdout");
	return 0;
}

static int do_lookup(const struct options *o, struct err *err)
{
	const char *id;

	if (secret_id(&id, err) < 0 || store_open(o->store, &held.store, err) < 0 ||
	    unlock(o, err) < 0 ||
	    store_unlock(&held.store, held.opener, held.opener_len, err) < 0 ||
	    store_get(&held.store, id, held.value, &held.value_len, err) < 0)
		return -1;
	if (fs_write_all(STDOUT_FILENO, held.value, held.value_len, err) < 0)
		return err_sys_id(err, ERRID_CORE_OUTPUT, "stdout");
	return 0;
}

static int do_store(const struct options *o, struct err *err)
{
	const char *id;

	if (secret_id(&id, err) < 0 || store_open(o->store, &held.store, err) < 0 ||
	    unlock(o, err) < 0 || read_value(err) < 0 ||
	    store_unlock(&held.store, held.opener, held.opener_len, err) < 0)
		return -1;
	return store_put(&held.store, id, held.value, held.value_len, err);
}

static int do_delete(const struct options *o, struct err *err)
{
	const char *id;

	if (secret_id(&id, err) < 0 || store_open(o->store, &held.store, err) < 0)
		return -1;
	return store_delete(&held.store, id, err);
}

static int run(const struct options *o, struct err *err)
{
	static const struct {
		const char *name;
		int (*run)(const struct options *o, struct err *err);
	} commands[] = {
		{"init", do_init},   {"list", do_list},	    {"lookup", do_lookup},
		{"store", do_store}, {"delete", do_delete},
	};

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (str_eq(commands[i].name, o->command))
			return commands[i].run(o, err);
	return err_set_id(err, ERRID_CORE_USAGE, "no command '%.80s'", o->command);
}

int main(int argc, char **argv)
{
	struct options o = {.from = {.fd = -1}, .kdf = SEAL_KDF_SCRYPT};
	struct err err = ERR_INIT;
	int r = -1;

	args_name(argc, argv, "lych-secret-driver");
	if (fs_fill_stdio(&err) == 0) {
		args_read(&argp, argc, argv, 0, &o);
		if (refuse_root(&err) == 0 && harden(&err) == 0)
			r = run(&o, &err);
	}
	store_done(&held.store);
	explicit_bzero(held.opener, sizeof(held.opener));
	explicit_bzero(held.value, sizeof(held.value));
	if (r == 0)
		return 0;
	return args_fail("lych-secret-driver", &err);
}
