/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See second_factor.h.
 */
#include "cli/secret/second_factor.h"
#include "cli/ui/prompt.h"
#include "common/cleanup.h"
#include "common/crypto/factor.h"
#include "common/crypto/sha256.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include "secrets/seal.h"
#include <stdio.h>
#include <string.h>

#define TARGET "/v1/passphrase"
#define TIMEOUT_MS 30000
#define BODY_MAX_BYTES 1024
#define ASK "passphrase (not shown): "
_Static_assert(SEAL_KEY_BYTES == SHA256_SIZE, "a key of one size");

/* What the vessel says of it. */
struct question {
	bool is_set;
	struct seal_params params;
	char nonce[FACTOR_NONCE_SIZE];
};

struct typed {
	char s[SEAL_PASSPHRASE_MAX + 1];
	size_t len;
};

static void typed_wipe(struct typed *t)
{
	explicit_bzero(t, sizeof(*t));
}
#define cleanup_typed __attribute__((cleanup(typed_wipe)))

static int read_params(const struct json *j, struct question *q, struct err *err)
{
	const char *salt = "", *nonce = "";
	uint64_t log2_n = 0, r = 0, p = 0;

	if (json_get_u64(j, "log2_n", true, FACTOR_LOG2_N_MIN, FACTOR_LOG2_N_MAX, &log2_n,
			 err) < 0 ||
	    json_get_u64(j, "r", true, FACTOR_R, FACTOR_R, &r, err) < 0 ||
	    json_get_u64(j, "p", true, 1, FACTOR_P_MAX, &p, err) < 0 ||
	    json_get_str(j, "salt", true, (size_t)2 * SEAL_SALT_BYTES, &salt, err) < 0 ||
	    json_get_str(j, "nonce", true, FACTOR_NONCE_SIZE - 1, &nonce, err) < 0)
		return -1;
	q->params = (struct seal_params){.kdf = SEAL_KDF_SCRYPT,
					 .log2_n = (uint8_t)log2_n,
					 .r = (uint32_t)r,
					 .p = (uint32_t)p};
	if (hex_decode(salt, q->params.salt, sizeof(q->params.salt)) < 0 ||
	    str_copy(q->nonce, sizeof(q->nonce), nonce) < 0)
		return err_set_id(err, ERRID_HTTP_ANSWER, "the passphrase's salt");
	return 0;
}

static int ask_vessel(struct client *c, struct question *ret, struct err *err)
{
	const struct client_request rq = {
		.method = "GET", .target = TARGET, .timeout_ms = TIMEOUT_MS};
	cleanup_json struct json *j = NULL;

	*ret = (struct question){0};
	if (client_json(c, &rq, &j, NULL, err) < 0 ||
	    json_get_bool(j, "set", true, &ret->is_set, err) < 0)
		return -1;
	return ret->is_set ? read_params(j, ret, err) : 0;
}

static int ask_person(const char *question, struct typed *ret, struct err *err)
{
	return prompt_passphrase(question, ret->s, SEAL_PASSPHRASE_MAX, &ret->len, err);
}

/* The caller wipes the key. */
static int ask_key(const struct question *q, const char *question,
		   uint8_t ret_key[SEAL_KEY_BYTES], struct err *err)
{
	cleanup_typed struct typed t = {.len = 0};

	if (ask_person(question, &t, err) < 0)
		return -1;
	if (t.len < SEAL_PASSPHRASE_MIN)
		return err_set_id(err, ERRID_PASSPHRASE_WRONG,
				  "it is shorter than any that is taken");
	return seal_derive(&q->params, t.s, t.len, ret_key, err);
}

void second_factor_wipe(struct second_factor *f)
{
	explicit_bzero(f, sizeof(*f));
}

char *second_factor_prove(struct second_factor *f, const char *act)
{
	char proof[FACTOR_PROOF_SIZE], *said;

	factor_prove(f->key, f->nonce, act, proof);
	said = xasprintf("%s:%s", f->nonce, proof);
	second_factor_wipe(f);
	return said;
}

/* The answer to this question of the vessel's. */
static int ask_answer(const struct question *q, const char *question,
		      struct second_factor *ret, struct err *err)
{
	memcpy(ret->nonce, q->nonce, sizeof(ret->nonce));
	return ask_key(q, question, ret->key, err);
}

int second_factor_need(struct client *c, struct err *err)
{
	struct question q;

	if (ask_vessel(c, &q, err) < 0)
		return -1;
	return q.is_set ? 0 : err_set_id(err, ERRID_PASSPHRASE_UNSET, "nothing was done");
}

int second_factor_ask(struct client *c, struct second_factor *ret, struct err *err)
{
	struct question q;

	if (ask_vessel(c, &q, err) < 0)
		return -1;
	if (!q.is_set)
		return err_set_id(err, ERRID_PASSPHRASE_UNSET, "nothing was done");
	return ask_answer(&q, ASK, ret, err);
}

int second_factor_json(struct client *c, const struct client_request *rq, const char *act,
		       struct json **ret, struct err *err)
{
	cleanup_free char *proof = NULL;
	struct client_request again = *rq;
	struct err first = ERR_INIT;
	cleanup_second_factor struct second_factor f = {.nonce = ""};

	if (client_json(c, rq, ret, NULL, &first) == 0)
		return 0;
	if (first.id != ERRID_PASSPHRASE_NEEDED) {
		*err = first;
		return -1;
	}
	if (second_factor_ask(c, &f, err) < 0)
		return -1;
	again.proof = proof = second_factor_prove(&f, act);
	return client_json(c, &again, ret, NULL, err);
}

/* ---- a new one --------------------------------------------------------------- */

static int ask_new(struct typed *ret, struct err *err)
{
	cleanup_typed struct typed again = {.len = 0};

	if (ask_person("new passphrase (not shown): ", ret, err) < 0 ||
	    ask_person("the same again (not shown): ", &again, err) < 0)
		return -1;
	if (ret->len < SEAL_PASSPHRASE_MIN)
		return err_set_id(err, ERRID_PASSPHRASE_LENGTH, "it has %zu bytes",
				  ret->len);
	if (ret->len != again.len || memcmp(ret->s, again.s, again.len) != 0)
		return err_set_id(err, ERRID_PASSPHRASE_LENGTH,
				  "they are not the same; nothing was done");
	return 0;
}

/* The old one is made into a key before the new one is asked for, which takes a while. */
static int ask_change(const struct question *q, bool is_change, struct second_factor *old,
		      struct typed *ret, struct err *err)
{
	cleanup_prompt_hold bool held UNUSED = prompt_hold();

	if (is_change && ask_answer(q, "old passphrase (not shown): ", old, err) < 0)
		return -1;
	return ask_new(ret, err);
}

/* What the vessel stores of it. */
static int write_verifier(const struct typed *t, struct buf *out,
			  char stored[SHA256_HEX_SIZE], struct err *err)
{
	char salt[2 * SEAL_SALT_BYTES + 1];
	uint8_t key[SEAL_KEY_BYTES], hash[SHA256_SIZE];
	struct seal_params p;
	struct jsonw w;

	if (seal_params_new(SEAL_KDF_SCRYPT, SEAL_LOG2_N_DEFAULT, &random_real, &p, err) <
		    0 ||
	    seal_derive(&p, t->s, t->len, key, err) < 0)
		return -1;
	sha256_of(key, sizeof(key), hash);
	explicit_bzero(key, sizeof(key));
	hex_encode(hash, sizeof(hash), stored);
	hex_encode(p.salt, sizeof(p.salt), salt);
	jsonw_init(&w, out);
	jsonw_obj(&w);
	jsonw_kstr(&w, "kdf", "scrypt");
	jsonw_ku64(&w, "log2_n", p.log2_n);
	jsonw_ku64(&w, "r", p.r);
	jsonw_ku64(&w, "p", p.p);
	jsonw_kstr(&w, "salt", salt);
	jsonw_kstr(&w, "stored", stored);
	jsonw_obj_end(&w);
	return 0;
}

int second_factor_set(struct client *c, bool is_change, struct err *err)
{
	cleanup_buf struct buf body = {.max = BODY_MAX_BYTES};
	cleanup_typed struct typed t = {.len = 0};
	cleanup_free char *act = NULL, *proof = NULL;
	cleanup_json struct json *j = NULL;
	struct client_request rq = {
		.method = "POST", .target = TARGET, .timeout_ms = TIMEOUT_MS};
	char stored[SHA256_HEX_SIZE];
	cleanup_second_factor struct second_factor old = {.nonce = ""};
	struct question q;

	if (ask_vessel(c, &q, err) < 0)
		return -1;
	if (q.is_set != is_change)
		return err_set_id(
			err, is_change ? ERRID_PASSPHRASE_UNSET : ERRID_PASSPHRASE_THERE,
			"nothing was done");
	if (ask_change(&q, is_change, &old, &t, err) < 0 ||
	    write_verifier(&t, &body, stored, err) < 0)
		return -1;
	if (is_change) {
		act = xasprintf("change the passphrase to %s", stored);
		proof = second_factor_prove(&old, act);
	}
	rq.proof = proof;
	rq.body = buf_str(&body);
	rq.body_len = body.len;
	return client_json(c, &rq, &j, NULL, err);
}
