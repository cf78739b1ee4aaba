/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See factor.h.
 */
#include "vessel/api/factor.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/api/api.h"
#include "vessel/audit/audit.h"
#include "vessel/audit/event.h"
#include "vessel/store/store.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define FILE_NAME "passphrase"
#define FILE_MAX_BYTES 512
#define REPLY_MAX_BYTES 1024

/* What is stored, and what sets it. */
struct verifier {
	uint64_t log2_n, r, p;
	uint8_t salt[FACTOR_SALT_BYTES], stored[SHA256_SIZE];
};

/* ---- what is stored ---------------------------------------------------------- */

static int read_hex(const struct json *j, const char *key, uint8_t *out, size_t len,
		    struct err *err)
{
	const char *hex = "";

	if (json_get_str(j, key, true, 2 * len, &hex, err) < 0)
		return -1;
	if (strlen(hex) != 2 * len || hex_decode(hex, out, len) < 0)
		return err_set_id(err, ERRID_SPEC_RANGE, "%s: %zu lower-case hex digits",
				  key, 2 * len);
	return 0;
}

static int verifier_parse(const void *text, size_t len, struct verifier *ret,
			  struct err *err)
{
	static const char *const keys[] = {"kdf", "log2_n", "r", "p", "salt", "stored"};
	cleanup_json struct json *j = NULL;
	const char *kdf = "";

	if (json_parse(text, len, JSON_DEPTH_DEFAULT, &j, err) < 0 ||
	    json_check_keys(j, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_str(j, "kdf", true, 16, &kdf, err) < 0 ||
	    json_get_u64(j, "log2_n", true, FACTOR_LOG2_N_MIN, FACTOR_LOG2_N_MAX,
			 &ret->log2_n, err) < 0 ||
	    json_get_u64(j, "r", true, FACTOR_R, FACTOR_R, &ret->r, err) < 0 ||
	    json_get_u64(j, "p", true, 1, FACTOR_P_MAX, &ret->p, err) < 0 ||
	    read_hex(j, "salt", ret->salt, sizeof(ret->salt), err) < 0 ||
	    read_hex(j, "stored", ret->stored, sizeof(ret->stored), err) < 0)
		return -1;
	return str_eq(kdf, "scrypt")
		       ? 0
		       : err_set_id(err, ERRID_SPEC_RANGE, "kdf: scrypt is taken");
}

/* The members of an open object. */
static void write_params(struct jsonw *w, const struct verifier *f)
{
	char salt[2 * FACTOR_SALT_BYTES + 1];

	hex_encode(f->salt, sizeof(f->salt), salt);
	jsonw_kstr(w, "kdf", "scrypt");
	jsonw_ku64(w, "log2_n", f->log2_n);
	jsonw_ku64(w, "r", f->r);
	jsonw_ku64(w, "p", f->p);
	jsonw_kstr(w, "salt", salt);
}

/* 1: there is one; 0: there is none. */
static int verifier_load(const struct vessel *v, struct verifier *ret, struct err *err)
{
	char text[FILE_MAX_BYTES];
	struct stat st;

	if (fstatat(v->data_fd, FILE_NAME, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(err, FILE_NAME);
	if (fs_read_secret(v->data_fd, FILE_NAME, text, sizeof(text), err) < 0 ||
	    verifier_parse(text, strlen(text), ret, err) < 0)
		return err_wrap(err, "the file '" FILE_NAME
				     "' in the vessel's data directory");
	return 1;
}

static int verifier_save(const struct vessel *v, const struct verifier *f,
			 struct err *err)
{
	cleanup_buf struct buf text = {.max = FILE_MAX_BYTES};
	char stored[SHA256_HEX_SIZE];
	struct jsonw w;

	hex_encode(f->stored, sizeof(f->stored), stored);
	jsonw_init(&w, &text);
	jsonw_obj(&w);
	write_params(&w, f);
	jsonw_kstr(&w, "stored", stored);
	jsonw_obj_end(&w);
	if (fs_write_atomic(v->data_fd, FILE_NAME, buf_str(&text), text.len, 0600, err) <
	    0)
		return store_err(err);
	return 0;
}

bool factor_is_set(const struct vessel *v)
{
	struct err ignored = ERR_INIT;
	struct verifier f;

	return verifier_load(v, &f, &ignored) != 0;
}

/* ---- a proof ----------------------------------------------------------------- */

static usec_t boot_now(const struct vessel *v)
{
	return v->clock->boot_usec(v->clock->ctx);
}

static unsigned wait_sec(const struct vessel *v)
{
	usec_t now = boot_now(v);

	return now >= v->factor.until
		       ? 0
		       : (unsigned)((v->factor.until - now) / USEC_PER_SEC) + 1;
}

static void new_nonce(struct vessel *v)
{
	uint8_t bytes[FACTOR_NONCE_BYTES];

	v->rng->bytes(v->rng->ctx, bytes, sizeof(bytes));
	hex_encode(bytes, sizeof(bytes), v->factor.nonce);
}

static void note(struct vessel *v, const char *name)
{
	const struct audit_event e = {
		.name = name,
		.time_ms = v->clock->wall_usec(v->clock->ctx) / USEC_PER_MSEC,
		.actor = "owner",
		.data = "",
	};

	audit_note(v->audit, &e);
}

static int wrong(struct vessel *v, struct err *err)
{
	if (++v->factor.wrong >= FACTOR_WRONG_MAX)
		v->factor.until = boot_now(v) + FACTOR_WAIT_USEC;
	note(v, "passphrase.wrong");
	return err_set_id(err, ERRID_PASSPHRASE_WRONG,
			  "%u wrong since the last right one", v->factor.wrong);
}

/* said: "NONCE:PROOF" */
static int check_proof(struct vessel *v, const struct verifier *f, const char *said,
		       const char *act, struct err *err)
{
	size_t n = FACTOR_NONCE_SIZE - 1;
	char nonce[FACTOR_NONCE_SIZE];

	if (wait_sec(v))
		return err_set_id(err, ERRID_PASSPHRASE_WAIT, "%u seconds", wait_sec(v));
	if (!v->factor.nonce[0] || strlen(said) != n + FACTOR_PROOF_SIZE ||
	    memcmp(said, v->factor.nonce, n) != 0 || said[n] != ':')
		return err_set_id(err, ERRID_PASSPHRASE_STALE,
				  "another question has been asked since");
	memcpy(nonce, v->factor.nonce, sizeof(nonce));
	v->factor.nonce[0] = '\0';
	if (!factor_is_proven(f->stored, nonce, act, said + n + 1))
		return wrong(v, err);
	v->factor.wrong = 0;
	return 0;
}

int factor_check(struct vessel *v, const struct httpd_req *req, const char *act,
		 struct err *err)
{
	const char *said = httpd_req_header(req, FACTOR_HEADER);
	struct verifier f;
	int r = verifier_load(v, &f, err);

	if (r < 0)
		return -1;
	if (r == 0)
		return err_set_id(err, ERRID_PASSPHRASE_UNSET, "to %s", act);
	if (!said)
		return err_set_id(err, ERRID_PASSPHRASE_NEEDED, "to %s", act);
	return check_proof(v, &f, said, act, err);
}

/* ---- routes ------------------------------------------------------------------ */

void api_passphrase(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;
	cleanup_buf struct buf out = {.max = REPLY_MAX_BYTES};
	struct err err = ERR_INIT;
	struct verifier f;
	struct jsonw w;
	int r = api_no_query(req, &err) < 0 ? -1 : verifier_load(v, &f, &err);

	if (r < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_kbool(&w, "set", r == 1);
	if (r == 1) {
		/* who asks in between does not spoil the proof that is under way */
		if (!v->factor.nonce[0])
			new_nonce(v);
		write_params(&w, &f);
		jsonw_kstr(&w, "nonce", v->factor.nonce);
		jsonw_ku64(&w, "wait_sec", wait_sec(v));
	}
	jsonw_obj_end(&w);
	httpd_reply_json(req, 200, &out);
}

struct setting {
	struct vessel *v;
	struct httpd_req *req;
	struct verifier next;
	bool is_change;
};

static int begin_setting(struct setting *s, struct err *err)
{
	char act[FACTOR_ACT_MAX_BYTES], stored[SHA256_HEX_SIZE];
	struct verifier old;
	const void *body;
	size_t len;
	int r;

	body = httpd_req_body(s->req, &len);
	if (api_no_query(s->req, err) < 0 ||
	    verifier_parse(len ? body : "", len, &s->next, err) < 0)
		return -1;
	r = verifier_load(s->v, &old, err);
	if (r <= 0)
		return r;
	s->is_change = true;
	hex_encode(s->next.stored, sizeof(s->next.stored), stored);
	if (str_fmt(act, sizeof(act), "change the passphrase to %s", stored) < 0)
		return err_set(err, ERR_INTERNAL, "an act's words");
	return factor_check(s->v, s->req, act, err);
}

/* In the log, and now it counts. A first one that somebody else has set meanwhile stands. */
static void setting_logged(const struct err *said, void *arg)
{
	static const char done[] = "{\"ok\":true}";
	cleanup_free struct setting *s = arg;
	struct err err = ERR_INIT;

	if (said)
		err = *said;
	else if (!s->is_change && factor_is_set(s->v))
		(void)err_set_id(&err, ERRID_PASSPHRASE_THERE, "since you asked");
	else
		(void)!verifier_save(s->v, &s->next, &err);
	if (err_is_set(&err))
		httpd_reply_err(s->req, &err);
	else
		httpd_reply(s->req, 200, "application/json", done, sizeof(done) - 1);
}

void api_passphrase_set(struct httpd_req *req, void *arg)
{
	struct setting *s = xnew(struct setting);
	struct err err = ERR_INIT;

	s->v = arg;
	s->req = req;
	if (begin_setting(s, &err) == 0) {
		const struct audit_event e = {
			.name = s->is_change ? "passphrase.changed" : "passphrase.set",
			.time_ms =
				s->v->clock->wall_usec(s->v->clock->ctx) / USEC_PER_MSEC,
			.actor = "owner",
			.data = "",
		};

		if (audit_before(s->v->audit, &e, setting_logged, s, &err))
			return;
	}
	httpd_reply_err(req, &err);
	free(s);
}
