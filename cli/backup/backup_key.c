/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See backup_key.h.
 */
#include "cli/backup/backup_key.h"

#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define KEY_LABEL "lychgate backup key 1"
#define ID_LABEL "lychgate backup key id 1"
#define ID_BYTES 8
#define LETTERS 32 /* five bits each */
#define GROUP 4

_Static_assert(LETTERS * 5 == BACKUP_CODE_BYTES * 8, "no bit is left over");

/* Without I, L, O and U. */
static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

void backup_code_new(struct backup_code *ret)
{
	random_bytes(ret->raw, sizeof(ret->raw));
}

void backup_code_write(const struct backup_code *code, char out[BACKUP_CODE_SIZE])
{
	char *to = out;

	for (unsigned i = 0; i < LETTERS; i++) {
		unsigned bit = i * 5, at = bit / 8;
		unsigned next = at + 1 < BACKUP_CODE_BYTES ? code->raw[at + 1] : 0;
		unsigned two = (unsigned)code->raw[at] << 8 | next;

		if (i > 0 && i % GROUP == 0)
			*to++ = '-';
		*to++ = alphabet[two >> (11 - bit % 8) & 31];
	}
	*to = '\0';
}

/* -1: not one of the alphabet. */
static int letter_value(char c)
{
	const char *at;

	if (c >= 'a' && c <= 'z')
		c = (char)(c - 'a' + 'A');
	if (c == 'O')
		c = '0';
	if (c == 'I' || c == 'L')
		c = '1';
	at = c ? strchr(alphabet, c) : NULL;
	return at ? (int)(at - alphabet) : -1;
}

static bool is_between(char c)
{
	return c == '-' || c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

int backup_code_parse(const char *text, size_t len, struct backup_code *ret,
		      struct err *err)
{
	struct backup_code code = {0};
	unsigned n = 0;

	for (size_t i = 0; i < len; i++) {
		int value = letter_value(text[i]);
		unsigned bit = n * 5, at = bit / 8, two;

		if (is_between(text[i]))
			continue;
		if (value < 0 || n == LETTERS) {
			explicit_bzero(&code, sizeof(code));
			return err_set_id(err, ERRID_BACKUP_CODE,
					  value < 0 ? "character %zu is none of a code"
						    : "it goes on at character %zu",
					  i + 1);
		}
		two = (unsigned)value << (11 - bit % 8);
		code.raw[at] |= (uint8_t)(two >> 8);
		if (at + 1 < BACKUP_CODE_BYTES)
			code.raw[at + 1] |= (uint8_t)two;
		n++;
	}
	if (n < LETTERS) {
		explicit_bzero(&code, sizeof(code));
		return err_set_id(err, ERRID_BACKUP_CODE,
				  "%u letters and digits, a code has %d", n, LETTERS);
	}
	*ret = code;
	explicit_bzero(&code, sizeof(code));
	return 0;
}

/* The id is of the key, so that the file need not hold it. */
static void name_key(struct backup_key *key)
{
	uint8_t mac[SHA256_SIZE];

	_Static_assert(2 * ID_BYTES + 1 == BACKUP_KEY_ID_SIZE, "an id in hex");
	hmac_sha256(key->key, sizeof(key->key), ID_LABEL, strlen(ID_LABEL), mac);
	hex_encode(mac, ID_BYTES, key->id);
}

void backup_key_of(const struct backup_code *code, struct backup_key *ret)
{
	hmac_sha256(code->raw, sizeof(code->raw), KEY_LABEL, strlen(KEY_LABEL), ret->key);
	name_key(ret);
}

void backup_key_seal(const struct backup_key *key, const void *data, size_t len,
		     char out[SHA256_HEX_SIZE])
{
	uint8_t mac[SHA256_SIZE];

	hmac_sha256(key->key, sizeof(key->key), data, len, mac);
	hex_encode(mac, sizeof(mac), out);
}

void backup_key_wipe(struct backup_key *key)
{
	explicit_bzero(key, sizeof(*key));
}

/* ---- where it is kept ---------------------------------------------------------- */

/* -1 with ENOENT in err->sys: there is none. */
static int open_dir(const struct paths *p, struct err *err)
{
	cleanup_free char *dir = paths_config_dir(p);
	cleanup_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return err_sys(err, "%s", dir);
	if (fstat(fd, &st) < 0)
		return err_sys(err, "%s", dir);
	if (st.st_uid != geteuid() || (st.st_mode & 022))
		return err_set_id(err, ERRID_SECRET_FILE,
				  "%s, where " BACKUP_KEY_FILE
				  " is, must be yours and closed to others' writing",
				  dir);
	return TAKE_FD(fd);
}

int backup_key_load(const struct paths *p, struct backup_key *ret, bool *ret_has,
		    struct err *err)
{
	struct backup_key key = {0};
	char text[2 * SHA256_HEX_SIZE];
	struct err why = ERR_INIT;
	cleanup_close int dirfd = open_dir(p, &why);
	int r;

	*ret_has = false;
	if (dirfd < 0)
		return why.sys == ENOENT ? 0 : (*err = why, -1);
	if (fs_read_secret(dirfd, BACKUP_KEY_FILE, text, sizeof(text), &why) < 0)
		return why.id == ERRID_SECRET_MISSING ? 0 : (*err = why, -1);
	r = strlen(text) == 2 * sizeof(key.key)
		    ? hex_decode(text, key.key, sizeof(key.key))
		    : -1;
	explicit_bzero(text, sizeof(text));
	if (r < 0) {
		backup_key_wipe(&key);
		return err_set_id(err, ERRID_SECRET_FILE,
				  BACKUP_KEY_FILE " beside %s is no key", p->config);
	}
	name_key(&key);
	*ret = key;
	*ret_has = true;
	backup_key_wipe(&key);
	return 0;
}

int backup_key_lock(const struct paths *p, int *ret_fd, struct err *err)
{
	cleanup_free char *dir = paths_config_dir(p);
	cleanup_close int fd = -1;
	int r;

	if (fs_mkdir_all(dir, 0700, err) < 0 || (fd = open_dir(p, err)) < 0)
		return -1;
	r = flock(fd, LOCK_EX | LOCK_NB);
	if (r < 0 && errno == EWOULDBLOCK)
		(void)fprintf(stderr,
			      "lych: waiting for another backup, which has %s locked\n",
			      dir);
	while (r < 0 && (errno == EINTR || errno == EWOULDBLOCK))
		r = flock(fd, LOCK_EX);
	if (r < 0)
		return err_sys(err, "lock %s", dir);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int backup_key_keep(const struct paths *p, const struct backup_key *key, struct err *err)
{
	cleanup_free char *dir = paths_config_dir(p);
	cleanup_close int dirfd = -1;
	char text[SHA256_HEX_SIZE + 1], tmp[64];
	struct request_id unique;
	int r;

	if (fs_mkdir_all(dir, 0700, err) < 0 || (dirfd = open_dir(p, err)) < 0)
		return -1;
	request_id_new(&random_real, &unique);
	r = str_fmt(tmp, sizeof(tmp), BACKUP_KEY_FILE ".%s", unique.s);
	assert(r == 0);
	hex_encode(key->key, sizeof(key->key), text);
	text[SHA256_HEX_SIZE - 1] = '\n';
	r = fs_write_atomic(dirfd, tmp, text, SHA256_HEX_SIZE, 0600, err);
	explicit_bzero(text, sizeof(text));
	if (r < 0)
		return err_wrap(err, "%s", dir);
	if (renameat2(dirfd, tmp, dirfd, BACKUP_KEY_FILE, RENAME_NOREPLACE) < 0) {
		r = err_sys_id(err,
			       errno == EEXIST ? ERRID_STORE_EXISTS : ERRID_BACKUP_FAILED,
			       "%s/" BACKUP_KEY_FILE, dir);
		(void)unlinkat(dirfd, tmp, 0);
		return r;
	}
	return fsync(dirfd) < 0 ? err_sys(err, "fsync %s", dir) : 0;
}
