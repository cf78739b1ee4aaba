/* SPDX-License-Identifier: Apache-2.0 */
#include "common/proto/denied.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static struct spawn_denied sample(const char *object, const char *grant)
{
	struct spawn_denied d = {.type = SPAWN_DENIED,
				 .wall = SPAWN_WALL_LANDLOCK,
				 .act = SPAWN_ACT_READ,
				 .count = 1,
				 .sys = EACCES,
				 .call = "openat"};

	cr_assert_eq(str_copy(d.object, sizeof(d.object), object), 0);
	cr_assert_eq(str_copy(d.grant, sizeof(d.grant), grant), 0);
	return d;
}

static void says(const struct spawn_denied *d, const char *want)
{
	struct buf b;

	buf_init(&b, 8192);
	denied_sentence(d, &b);
	cr_assert(buf_ok(&b));
	cr_assert_str_eq(buf_str(&b), want);
	buf_done(&b);
}

Test(denied, records_outside_the_protocol_are_not_valid)
{
	struct spawn_denied d = sample("/srv", ""), bad;

	cr_assert(denied_is_valid(&d));
	bad = d, bad.wall = 0;
	cr_assert_not(denied_is_valid(&bad));
	bad = d, bad.wall = SPAWN_WALL_MAX_;
	cr_assert_not(denied_is_valid(&bad));
	bad = d, bad.act = SPAWN_ACT_MAX_;
	cr_assert_not(denied_is_valid(&bad));
	bad = d, bad.act = 0;
	cr_assert_not(denied_is_valid(&bad));
	bad = d, bad.count = 0;
	cr_assert_not(denied_is_valid(&bad));
	bad = d, bad.sys = -1;
	cr_assert_not(denied_is_valid(&bad));
	bad = d, memset(bad.call, 'x', sizeof(bad.call));
	cr_assert_not(denied_is_valid(&bad));
	bad = d, memset(bad.object, 'x', sizeof(bad.object));
	cr_assert_not(denied_is_valid(&bad));
	bad = d, memset(bad.grant, 'x', sizeof(bad.grant));
	cr_assert_not(denied_is_valid(&bad));
}

Test(denied, every_wall_act_and_errno_has_a_name_that_leads_back)
{
	char name[32];
	uint32_t v;

	for (uint32_t i = 1; i < SPAWN_WALL_MAX_; i++) {
		cr_assert(spawn_wall_from_name(spawn_wall_name(i), &v));
		cr_assert_eq(v, i);
	}
	for (uint32_t i = 1; i < SPAWN_ACT_MAX_; i++) {
		cr_assert(spawn_act_from_name(spawn_act_name(i), &v));
		cr_assert_eq(v, i);
	}
	cr_assert_null(spawn_wall_name(0));
	cr_assert_not(spawn_wall_from_name("", &v));
	cr_assert_not(spawn_act_from_name("eat", &v));
	denied_errno_name(EPERM, name, sizeof(name));
	cr_assert_str_eq(name, "EPERM");
	cr_assert_eq(denied_errno_from_name("EPERM"), EPERM);
	cr_assert_eq(denied_errno_from_name("EVIL"), 0);
}

Test(denied, what_the_job_named_cannot_act_on_a_terminal_or_a_shell)
{
	struct spawn_denied d = sample("/a\n\x1b[31mb\"\xff", "--ro /a\nb");

	says(&d, "read \"/a\\n\\u001b[31mb\\\"\xef\xbf\xbd\" refused (landlock: nothing "
		 "grants this), openat gave EACCES; --ro with that very name would allow "
		 "it");
	d = sample("/a b;reboot", "--ro /a b;reboot");
	says(&d, "read \"/a b;reboot\" refused (landlock: nothing grants this), openat "
		 "gave EACCES; --ro '/a b;reboot' would allow it");
	d = sample("/it's", "--ro /it's");
	says(&d, "read \"/it's\" refused (landlock: nothing grants this), openat gave "
		 "EACCES; --ro with that very name would allow it");
}

Test(denied, what_is_withheld_is_said_in_place_of_a_grant)
{
	struct spawn_denied d = sample("/home/u/.ssh", ""), bad;
	cleanup_buf struct buf b = {0};
	struct jsonw w;

	(void)snprintf(d.withheld, sizeof(d.withheld), "it keeps secrets (SSH keys)");
	says(&d, "read \"/home/u/.ssh\" refused (landlock: nothing grants this), openat "
		 "gave EACCES; no option is offered: it keeps secrets (SSH keys)");
	buf_init(&b, 4096);
	jsonw_init(&w, &b);
	denied_json(&d, &w);
	cr_assert(strstr(buf_str(&b), "\"grant\":\"\",\"withheld\":\"it keeps secrets "
				      "(SSH keys)\"}"));
	/* no text that came from elsewhere gets out of its line */
	(void)snprintf(d.withheld, sizeof(d.withheld), "x\033[2J\n");
	says(&d, "read \"/home/u/.ssh\" refused (landlock: nothing grants this), openat "
		 "gave EACCES; no option is offered");
	bad = d, memset(bad.withheld, 'x', sizeof(bad.withheld));
	cr_assert_not(denied_is_valid(&bad));
}

Test(denied, the_sentence_names_the_smallest_grant_and_the_count)
{
	struct spawn_denied d = sample("/srv/data", "--ro /srv/data");

	d.count = 3;
	says(&d, "read \"/srv/data\" refused (landlock: nothing grants this), openat "
		 "gave EACCES, 3 times; --ro /srv/data would allow it");
	d = (struct spawn_denied){.wall = SPAWN_WALL_SECCOMP,
				  .act = SPAWN_ACT_CALL,
				  .count = 1,
				  .sys = EPERM,
				  .call = "mount"};
	says(&d, "call mount refused (seccomp: no job may do this), EPERM");
	cr_assert_eq(str_copy(d.object, sizeof(d.object), "flags 0x1"), 0);
	says(&d, "call mount \"flags 0x1\" refused (seccomp: no job may do this), EPERM");
	d = sample("/nowhere", "--ro /nowhere");
	d.wall = SPAWN_WALL_ABSENT;
	d.sys = ENOENT;
	says(&d, "read \"/nowhere\" not found (absent: it is not shown inside), openat "
		 "gave ENOENT; --ro /nowhere would allow it");
}

Test(denied, the_json_is_escaped)
{
	struct spawn_denied d = sample("/a\"\n\xff", "");
	struct jsonw w;
	struct buf b;

	buf_init(&b, 4096);
	jsonw_init(&w, &b);
	denied_json(&d, &w);
	cr_assert_str_eq(buf_str(&b),
			 "{\"act\":\"read\",\"wall\":\"landlock\",\"call\":\"openat\","
			 "\"object\":\"/a\\\"\\n\xef\xbf\xbd\",\"errno\":\"EACCES\","
			 "\"count\":1,\"grant\":\"\"}");
	buf_done(&b);
}
