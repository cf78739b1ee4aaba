/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pod/mounts.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/stat.h>

TestSuite(mounts, .timeout = 30);

/* ---- the allow-list --------------------------------------------------------- */

Test(mounts, refuses_lists)
{
	static const struct {
		const char *text, *part;
	} bad[] = {
		{"", "JSON"},
		{"[]", ""},
		{"{}", "allowedRoots"},
		{"{\"allowedRoots\":{}}", "allowedRoots"},
		{"{\"allowedRoots\":[\"/a\"]}", "allowedRoots[0]"},
		{"{\"allowedRoots\":[{}]}", "path"},
		{"{\"allowedRoots\":[{\"path\":1}]}", "path"},
		{"{\"allowedRoots\":[{\"path\":\"a\"}]}", "not absolute"},
		{"{\"allowedRoots\":[{\"path\":\"~other/a\"}]}", "not absolute"},
		{"{\"allowedRoots\":[{\"path\":\"/a\",\"allowReadwrite\":true}]}",
		 "allowReadwrite"},
		{"{\"allowedRoots\":[{\"path\":\"/a\",\"allowReadWrite\":\"yes\"}]}",
		 "allowReadWrite"},
		{"{\"allowedRoots\":[{\"path\":\"/a\",\"path\":\"/b\"}]}", ""},
		{"{\"allowedRoots\":[],\"extra\":1}", "extra"},
		{"{\"allowedRoots\":[],\"blockedPatterns\":\"x\"}", "blockedPatterns"},
		{"{\"allowedRoots\":[],\"blockedPatterns\":[\"\"]}",
		 "blockedPatterns[0]"},
		{"{\"allowedRoots\":[],\"blockedPatterns\":[\"a/b\"]}",
		 "blockedPatterns[0]"},
		{"{\"allowedRoots\":[],\"nonMainReadOnly\":1}", "nonMainReadOnly"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct mount_allowlist l = {0};
		struct err err = ERR_INIT;

		cr_expect(mount_allowlist_parse(bad[i].text, strlen(bad[i].text), "/h",
						&l, &err) < 0,
			  "%s", bad[i].text);
		cr_expect_eq(err.id, ERRID_BIND_ALLOWLIST, "%s", bad[i].text);
		cr_expect(i == 0 || strstr(err.msg, bad[i].part), "%s: %s", bad[i].text,
			  err.msg);
		cr_expect_null(l.root);
	}
}

Test(mounts, reads_what_nanoclaw_wrote)
{
	static const char text[] = "{\"allowedRoots\": [{\"path\": \"~/projects\", "
				   "\"allowReadWrite\": true, "
				   "\"description\": \"work\"}, {\"path\": "
				   "\"/srv/data\", \"allowReadWrite\": "
				   "false}], \"blockedPatterns\": [\"password\"], "
				   "\"nonMainReadOnly\": false}";
	struct mount_allowlist l = {0};
	struct err err = ERR_INIT;

	cr_assert(mount_allowlist_parse(text, sizeof(text) - 1, "/home/me", &l, &err) ==
			  0,
		  "%s", err.msg);
	cr_assert_eq(l.n_roots, 2);
	cr_expect_str_eq(l.root[0].path, "/home/me/projects");
	cr_expect(l.root[0].read_write);
	cr_expect_not(l.root[1].read_write);
	cr_expect_not(l.read_only);
	cr_assert_eq(l.n_blocked, 1);
	mount_allowlist_done(&l);
}

/* ---- wishes ----------------------------------------------------------------- */

struct world {
	char dir[64]; /* holds home/ and else/ */
	char *home, *data;
	const char *own[2];
	struct mount_world w;
	struct mount_allowlist l;
};

static char *at(const struct world *w, const char *rest)
{
	return xasprintf("%s/%s", w->dir, rest);
}

static void make(const struct world *w, const char *rest)
{
	cleanup_free char *path = at(w, rest);
	struct err err = ERR_INIT;

	cr_assert(fs_mkdir_all(path, 0700, &err) == 0, "%s", err.msg);
}

static void put(const struct world *w, const char *rest, const char *text)
{
	cleanup_free char *path = at(w, rest);
	cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static void turn(const struct world *w, const char *rest, const char *target)
{
	cleanup_free char *path = at(w, rest);

	(void)unlink(path);
	cr_assert(symlink(target, path) == 0);
}

static void allow(struct world *w, const char *text)
{
	struct err err = ERR_INIT;

	mount_allowlist_done(&w->l);
	cr_assert(mount_allowlist_parse(text, strlen(text), w->home, &w->l, &err) == 0,
		  "%s", err.msg);
}

static void begin(struct world *w)
{
	*w = (struct world){0};
	(void)snprintf(w->dir, sizeof(w->dir), "/tmp/lych-mounts-XXXXXX");
	cr_assert(mkdtemp(w->dir) != NULL);
	make(w, "home/src/app/lib");
	make(w, "home/ro/sub");
	make(w, "home/.ssh");
	make(w, "home/.config/lychgate");
	make(w, "home/data/tomb");
	make(w, "else/x");
	w->home = at(w, "home");
	w->data = at(w, "home/data");
	w->own[0] = w->data;
	w->w = (struct mount_world){.home = w->home, .own = w->own};
	cleanup_free char *list = xasprintf(
		"{\"allowedRoots\":[{\"path\":\"~/src\",\"allowReadWrite\":true},"
		"{\"path\":\"~/ro\"},{\"path\":\"%s/else\"},{\"path\":\"%s/void\"}]}",
		w->dir, w->dir);
	allow(w, list);
}

static void end(struct world *w)
{
	struct err err = ERR_INIT;
	cleanup_close int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	cr_expect(fs_remove_beneath(tmp, w->dir + strlen("/tmp/"), &err) == 0, "%s",
		  err.msg);
	mount_allowlist_done(&w->l);
	free(w->home);
	free(w->data);
}

static int try(struct world *w, const char *path, bool rw, char **ret, struct err *err)
{
	struct mount_wish wish = {.path = xstrdup(path), .read_write = rw};
	int r = mount_check(&w->w, &w->l, &wish, ret, err);

	free(wish.path);
	return r;
}

static void refused(struct world *w, const char *path, bool rw, const char *part)
{
	cleanup_free char *real = NULL;
	struct err err = ERR_INIT;

	cr_expect(try(w, path, rw, &real, &err) < 0, "%s was taken", path);
	cr_expect(err.id == ERRID_BIND_MOUNT || err.id == ERRID_BIND_VALUE, "%s: %s",
		  path, err.msg);
	cr_expect(strstr(err.msg, part), "%s: expected '%s', got: %s", path, part,
		  err.msg);
}

static void refused_below(struct world *w, const char *rest, const char *part)
{
	cleanup_free char *path = at(w, rest);

	refused(w, path, false, part);
}

Test(mounts, refuses_places)
{
	struct world w;

	begin(&w);
	refused(&w, "/", false, "whole system");
	refused(&w, "/etc", false, "/etc");
	refused(&w, "/proc/self", false, "/proc");
	refused(&w, "/usr/share", false, "/usr");
	refused(&w, "/dev", false, "/dev");
	refused(&w, "/tmp", false, "home directory");
	refused(&w, "~", false, "whole home");
	refused(&w, "~/", false, "empty");
	refused(&w, w.dir, false, "home directory");
	refused(&w, "~/.ssh", false, "keeps secrets");
	refused(&w, "~/.config", false, ".config/lychgate");
	refused(&w, "~/.config/lychgate", false, ".config/lychgate");
	refused(&w, "~/data", false, "data");
	refused(&w, "~/data/tomb", false, "data");
	refused(&w, "~/nowhere", false, "No such file");
	refused(&w, "src", false, "not absolute");
	refused(&w, "~/src/../.ssh", false, "'..'");
	refused_below(&w, "home/data", "data");
	make(&w, "home/other");
	refused(&w, "~/other", false, "no root");
	make(&w, "home/src2");
	refused(&w, "~/src2", false, "no root"); /* a prefix of the name is no root */
	end(&w);
}

Test(mounts, resolves_links_first)
{
	struct world w;

	begin(&w);
	turn(&w, "home/src/link", "/");
	refused(&w, "~/src/link", false, "whole system");
	turn(&w, "home/src/link", "../.ssh");
	refused(&w, "~/src/link", false, "keeps secrets");
	turn(&w, "home/src/link", "..");
	refused(&w, "~/src/link", false, "whole home");
	turn(&w, "home/src/link", "../data");
	refused(&w, "~/src/link", false, "data");
	turn(&w, "home/src/link", "/etc");
	refused(&w, "~/src/link", false, "/etc");
	make(&w, "home/a%b");
	turn(&w, "home/src/link", "../a%b");
	refused(&w, "~/src/link", false, "'%'");
	turn(&w, "home/src/link", "link");
	refused(&w, "~/src/link", false, "symbolic links");
	end(&w);
}

Test(mounts, refuses_what_lies_in_it)
{
	static const char key[] = "-----BEGIN OPENSSH PRIVATE KEY-----\nx\n";
	static const char *const names[] = {
		".aws",	  ".ssh",    ".gnupg", ".kube", ".docker", ".netrc",
		".npmrc", ".pypirc", ".env",   ".AWS",	"id_rsa",  ".azure",
	};
	struct world w;

	begin(&w);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		cleanup_free char *rest = xasprintf("home/src/app/lib/%s", names[i]);
		cleanup_free char *path = at(&w, rest);

		make(&w, rest);
		refused(&w, "~/src", false, names[i]);
		refused(&w, "~/src/app/lib", false, names[i]);
		refused(&w, path, false, "keeps secrets");
		cr_assert(rmdir(path) == 0);
	}
	put(&w, "home/ro/sub/credentials", "x");
	refused(&w, "~/ro", false, "sub/credentials', which keeps secrets");
	cleanup_free char *file = at(&w, "home/ro/sub/credentials");

	cr_assert(unlink(file) == 0);
	make(&w,
	     "home/ro/sub/credentials"); /* as libraries have one: a directory of code */
	put(&w, "home/ro/sub/credentials/x", key);
	refused(&w, "~/ro", false, "sub/credentials/x': a private key");
	put(&w, "home/ro/sub/credentials/x", "x");
	make(&w, "home/src/backup/.config/gcloud");
	refused(&w, "~/src", false, "backup/.config/gcloud");
	turn(&w, "home/src/backup/x",
	     "/"); /* a link in it leads nowhere in the container */
	refused(&w, "~/src", false, "gcloud");
	put(&w, "home/ro/sub/server.pem", key);
	refused(&w, "~/ro", false, "server.pem': a private key");
	put(&w, "home/ro/sub/server.pem", "-----BEGIN CERTIFICATE-----\n");
	put(&w, "home/ro/sub/id_deploy", key);
	refused(&w, "~/ro", false, "id_deploy': a private key");
	put(&w, "home/ro/sub/id_deploy", "ssh-ed25519 AAAA\n");
	put(&w, "home/ro/sub/plain", key);
	refused(&w, "~/ro", false, "plain': a private key");
	put(&w, "home/ro/sub/plain", "x");
	make(&w, "home/ro/.git");
	put(&w, "home/ro/.git/config", "[remote]\n\turl = https://u:token@host/r\n");
	refused(&w, "~/ro", false, ".git/config': a password or token");
	put(&w, "home/ro/.git/config", "[remote]\n\turl = https://host/r\n");
	/* the shared directory itself is the first part of the place */
	make(&w, "home/src/copy/.config/gh");
	refused(&w, "~/src/copy/.config", false, "'gh', which keeps secrets");
	end(&w);
}

Test(mounts, refuses_what_cannot_be_looked_through)
{
	struct world w;
	cleanup_free char *dir = NULL, *fifo = NULL;

	begin(&w);
	make(&w, "home/src/app/closed");
	dir = at(&w, "home/src/app/closed");
	cr_assert(chmod(dir, 0) == 0);
	if (getuid() != 0)
		refused(&w, "~/src", false, "cannot be looked through");
	cr_assert(chmod(dir, 0700) == 0);
	fifo = at(&w, "home/src/app/fifo");
	cr_assert(mkfifo(fifo, 0600) == 0);
	refused(&w, "~/src", false, "a socket, pipe or device");
	put(&w, "home/ro/file", "x");
	refused(&w, "~/ro/file", false, "Not a directory");
	end(&w);
}

Test(mounts, refuses_writing_that_is_not_allowed)
{
	struct world w;

	begin(&w);
	refused(&w, "~/ro", true, "its root allows reading only");
	allow(&w, "{\"allowedRoots\":[{\"path\":\"~/src\",\"allowReadWrite\":true}],"
		  "\"nonMainReadOnly\":true}");
	refused(&w, "~/src", true, "nonMainReadOnly");
	allow(&w,
	      "{\"allowedRoots\":[{\"path\":\"~/src\"}],\"blockedPatterns\":[\"LIB\"]}");
	refused(&w, "~/src/app/lib", false, "blockedPatterns");
	refused(&w, "~/src", false, "app/lib', which is blocked");
	allow(&w, "{\"allowedRoots\":[{\"path\":\"/\"},{\"path\":\"~\"}]}");
	refused(&w, "~/src", false, "allowedRoots[0]");
	allow(&w, "{\"allowedRoots\":[{\"path\":\"~\"}]}");
	refused(&w, "~/src", false, "allowedRoots[0]");
	allow(&w, "{\"allowedRoots\":[]}");
	refused(&w, "~/src", false, "no root");
	end(&w);
}

Test(mounts, refuses_overlap)
{
	char *const same[] = {(char[]){"/a/b"}, (char[]){"/a/b"}};
	char *const nested[] = {(char[]){"/a/b/c"}, (char[]){"/x"}, (char[]){"/a/b"}};
	char *const apart[] = {(char[]){"/a/b"}, (char[]){"/a/bc"}, (char[]){"/a/c"}};
	struct err err = ERR_INIT;

	cr_expect(mounts_check_overlap(same, 2, &err) < 0);
	cr_expect(mounts_check_overlap(nested, 3, &err) < 0);
	cr_expect_eq(err.id, ERRID_BIND_MOUNT);
	cr_expect(mounts_check_overlap(apart, 3, &err) == 0);
}

Test(mounts, takes_what_is_allowed)
{
	static const struct {
		const char *path, *want;
		bool rw;
	} good[] = {
		{"~/src", "home/src", true},
		{"~/src/app", "home/src/app", true},
		{"~/src/link", "home/src/app/lib", false},
		{"~/ro/sub", "home/ro/sub", false},
	};
	struct world w;

	begin(&w);
	turn(&w, "home/src/link", "app/lib");
	put(&w, "home/src/id_rsa.pub", "ssh-rsa AAAA\n");
	put(&w, "home/src/cacert.pem", "-----BEGIN CERTIFICATE-----\n");
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		cleanup_free char *want = at(&w, good[i].want);
		cleanup_free char *real = NULL;
		struct err err = ERR_INIT;

		cr_expect(try(&w, good[i].path, good[i].rw, &real, &err) == 0, "%s: %s",
			  good[i].path, err.msg);
		cr_expect_str_eq(real ? real : "", want);
	}
	end(&w);
}

/* ---- the file --------------------------------------------------------------- */

static void load_refused(struct world *w, const char *path, const char *part)
{
	struct mount_allowlist l = {0};
	struct err err = ERR_INIT;

	cr_expect(mount_allowlist_load(path, w->home, &l, &err) < 0);
	cr_expect_eq(err.id, ERRID_BIND_ALLOWLIST);
	cr_expect(strstr(err.msg, part), "expected '%s', got: %s", part, err.msg);
}

Test(mounts, believes_no_file_that_others_can_change)
{
	struct world w;
	struct mount_allowlist l = {0};
	struct err err = ERR_INIT;

	begin(&w);
	cleanup_free char *file = at(&w, "home/.config/lychgate/list.json");
	cleanup_free char *dir = at(&w, "home/.config/lychgate");
	cleanup_free char *link = at(&w, "home/.config/lychgate/link.json");

	load_refused(&w, file, "does not exist");
	put(&w, "home/.config/lychgate/list.json", "{\"allowedRoots\":[]}");
	turn(&w, "home/.config/lychgate/link.json", "list.json");
	load_refused(&w, link, "symbolic links");
	cr_assert(chmod(file, 0666) == 0);
	load_refused(&w, file, "can be written by others");
	cr_assert(chmod(file, 0600) == 0 && chmod(dir, 0777) == 0);
	load_refused(&w, file, "can be written by others");
	cr_assert(chmod(dir, 0700) == 0);
	put(&w, "home/.config/lychgate/list.json", "{\"allowedRoots\":[}");
	load_refused(&w, file, "list.json: ");
	put(&w, "home/.config/lychgate/list.json", "{\"allowedRoots\":[]}");
	cr_expect(mount_allowlist_load(file, w.home, &l, &err) == 0, "%s", err.msg);
	mount_allowlist_done(&l);
	end(&w);
}
