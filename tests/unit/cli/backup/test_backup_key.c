/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/backup/backup_key.h"

#include "common/crypto/sha256.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/support/vectors.h"

#include <criterion/criterion.h>
#include <sys/stat.h>

static char top[] = "/tmp/lych-test-backup-key-XXXXXX";
static struct paths where;

static void make_top(void)
{
	cr_assert_not_null(mkdtemp(top));
	where.config = xasprintf("%s/codex.yaml", top);
}

static void remove_top(void)
{
	cleanup_free char *key = xasprintf("%s/" BACKUP_KEY_FILE, top);

	(void)unlink(key);
	(void)rmdir(top);
	free(where.config);
}

TestSuite(backup_key, .init = make_top, .fini = remove_top, .timeout = 20);

static int parse(const char *text, struct backup_code *ret)
{
	struct err err = ERR_INIT;
	int r = backup_code_parse(text, strlen(text), ret, &err);

	if (r < 0)
		cr_expect_eq(err.id, ERRID_BACKUP_CODE, "'%s': %s", text, err.msg);
	return r;
}

Test(backup_key, known_answers_of_the_document)
{
	cleanup_free char *text = vector("backup_code");
	cleanup_free char *hex = vector("backup_key");
	cleanup_free char *id = vector("backup_key_id");
	cleanup_free char *sealed = vector("backup_sealed");
	cleanup_free char *line = xasprintf("%s\n", sealed);
	cleanup_free char *seal = vector("backup_seal");
	char out[SHA256_HEX_SIZE], again[BACKUP_CODE_SIZE];
	struct backup_code code;
	struct backup_key key;

	cr_assert_eq(parse(text, &code), 0);
	backup_code_write(&code, again);
	cr_assert_str_eq(again, text);
	backup_key_of(&code, &key);
	hex_encode(key.key, sizeof(key.key), out);
	cr_assert_str_eq(out, hex);
	cr_assert_str_eq(key.id, id);
	backup_key_seal(&key, line, strlen(line), out);
	cr_assert_str_eq(out, seal);
}

Test(backup_key, every_code_reads_back_in_any_spelling)
{
	for (int i = 0; i < 2000; i++) {
		char text[BACKUP_CODE_SIZE], odd[4 * BACKUP_CODE_SIZE];
		struct backup_code code, back;
		size_t n = 0;

		backup_code_new(&code);
		backup_code_write(&code, text);
		cr_assert_eq(parse(text, &back), 0);
		cr_assert_arr_eq(code.raw, back.raw, sizeof(code.raw));
		for (const char *c = text; *c; c++) {
			char small = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);

			if (*c == '-')
				odd[n++] = " \t\n-\r"[i % 5];
			else if (*c == '0')
				odd[n++] = "0Oo"[i % 3];
			else if (*c == '1')
				odd[n++] = "1IiLl"[i % 5];
			else
				odd[n++] = i % 2 ? small : *c;
			if (i % 7 == 0)
				odd[n++] = ' ';
		}
		odd[n] = '\0';
		cr_assert_eq(parse(odd, &back), 0, "'%s'", odd);
		cr_assert_arr_eq(code.raw, back.raw, sizeof(code.raw), "'%s'", odd);
	}
}

Test(backup_key, what_is_no_code_is_refused_and_not_repeated)
{
	static const char *const wrong[] = {
		"",
		"----",
		"000G-40R4-0M30-E209-185G-R38E-1W81-24G",
		"000G-40R4-0M30-E209-185G-R38E-1W81-24GK0",
		"000G-40R4-0M30-E209-185G-R38E-1W81-24GU",
		"000G-40R4-0M30-E209-185G-R38E-1W81-24G_",
		"000G-40R4-0M30-E209-185G-R38E-1W81-24G\xc3\x96",
	};
	struct backup_code code;
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		cr_expect_eq(parse(wrong[i], &code), -1, "'%s'", wrong[i]);
		(void)!backup_code_parse(wrong[i], strlen(wrong[i]), &code, &err);
		cr_expect(!strstr(err.msg, "40R4"), "%s", err.msg);
	}
	cr_expect_eq(backup_code_parse("0\0"
				       "0",
				       3, &code, &err),
		     -1);
}

Test(backup_key, one_letter_more_or_less_is_another_key)
{
	char text[BACKUP_CODE_SIZE];
	struct backup_code code;
	struct backup_key key, other;

	backup_code_new(&code);
	backup_key_of(&code, &key);
	for (size_t bit = 0; bit < 8 * sizeof(code.raw); bit++) {
		struct backup_code turned = code;

		turned.raw[bit / 8] ^= (uint8_t)(1 << bit % 8);
		backup_code_write(&turned, text);
		cr_assert_eq(parse(text, &turned), 0);
		backup_key_of(&turned, &other);
		cr_expect_str_neq(other.id, key.id);
	}
}

Test(backup_key, it_is_kept_privately_once_and_read_back)
{
	cleanup_free char *path = xasprintf("%s/" BACKUP_KEY_FILE, top);
	struct backup_key key, back, other;
	struct err err = ERR_INIT;
	struct backup_code code;
	bool has = true;
	struct stat st;

	cr_assert_eq(backup_key_load(&where, &back, &has, &err), 0, "%s", err.msg);
	cr_assert(!has);
	backup_code_new(&code);
	backup_key_of(&code, &key);
	cr_assert_eq(backup_key_keep(&where, &key, &err), 0, "%s", err.msg);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600);
	cr_assert_eq(backup_key_load(&where, &back, &has, &err), 0, "%s", err.msg);
	cr_assert(has);
	cr_expect_arr_eq(back.key, key.key, sizeof(key.key));
	cr_expect_str_eq(back.id, key.id);
	/* another one does not take its place */
	backup_code_new(&code);
	backup_key_of(&code, &other);
	cr_expect_eq(backup_key_keep(&where, &other, &err), -1);
	cr_expect_eq(err.id, ERRID_STORE_EXISTS);
	cr_assert_eq(backup_key_load(&where, &back, &has, &err), 0);
	cr_expect_str_eq(back.id, key.id);
}

Test(backup_key, one_that_others_can_read_or_replace_is_refused)
{
	cleanup_free char *path = xasprintf("%s/" BACKUP_KEY_FILE, top);
	struct backup_key key, back = {0};
	struct err err = ERR_INIT;
	struct backup_code code;
	bool has = false;

	backup_code_new(&code);
	backup_key_of(&code, &key);
	cr_assert_eq(backup_key_keep(&where, &key, &err), 0);
	for (mode_t bad = 1; bad <= 040; bad <<= 1) {
		cr_assert_eq(chmod(path, 0600 | bad), 0);
		cr_expect_eq(backup_key_load(&where, &back, &has, &err), -1, "%o", bad);
		cr_expect_eq(err.id, ERRID_SECRET_FILE);
		cr_expect(!has && !back.id[0]);
	}
	cr_assert_eq(chmod(path, 0600), 0);
	cr_assert_eq(chmod(top, 0770), 0);
	cr_expect_eq(backup_key_load(&where, &back, &has, &err), -1);
	cr_expect_eq(backup_key_keep(&where, &key, &err), -1);
	cr_assert_eq(chmod(top, 0750), 0);
	cr_expect_eq(backup_key_load(&where, &back, &has, &err), 0);
	cr_assert_eq(truncate(path, 63), 0);
	cr_expect_eq(backup_key_load(&where, &back, &has, &err), -1);
	cr_expect_eq(err.id, ERRID_SECRET_FILE);
}
