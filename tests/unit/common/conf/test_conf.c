/* SPDX-License-Identifier: Apache-2.0 */
#include "common/conf/conf.h"

#include "common/cleanup.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/stat.h>

TestSuite(conf, .timeout = 20);

#define V "version: \"1\"\n"
#define A "audit:\n  anchors:\n"

struct bad {
	const char *text;
	size_t len;
	const char *part; /* of the message */
};
#define BAD(text, part) {text, sizeof(text) - 1, part}

/* What libcyaml takes by itself (measured on 1.3.1) and everything else of that kind. */
static const struct bad bads[] = {
	BAD("", "line 1"),
	BAD("\n\n", "line 1"),
	BAD("# only a comment\n", "line 1"),
	BAD("tomb: {slots: 4}\n", "version"),
	BAD("version: \"2\"\n", "line 1: version"),
	BAD("version: \"1\"x\n", "line 1"),
	BAD(V "tomb: {slots: 12abc}\n", "line 2: tomb.slots"),
	BAD(V "tomb: {slots: 1.5}\n", "line 2: tomb.slots"),
	BAD(V "tomb:\n  slots: 010\n", "line 3: tomb.slots"),
	BAD(V "tomb: {slots: 0x10}\n", "line 2: tomb.slots"),
	BAD(V "tomb: {slots: -1}\n", "line 2: tomb.slots"),
	BAD(V "tomb: {slots: 0}\n", "line 2: tomb.slots"),
	BAD(V "tomb: {slots: 65}\n", "line 2: tomb.slots"),
	BAD(V "tomb: {slots: yes}\n", "line 2: tomb.slots"),
	BAD(V "tomb: {slots: 8, slots: 9}\n", "line 2"),
	BAD(V "tomb: {slots: 8}\ntomb: {grade: full}\n", "line 3"),
	BAD(V "limits:\n  memory:\n    max: 2GiB\n    max: 3GiB\n", "line 5"),
	BAD(V "tomb: {grade: maximal}\n", "line 2: tomb.grade"),
	BAD(V "tomb: {grade: FULL}\n", "line 2: tomb.grade"),
	BAD(V "tomb: {grade: auto}\n", "line 2: tomb.grade"),
	BAD(V "daemons: no_private_root\n", "line 2: daemons: no_private_root is for"),
	BAD(V "tomb: {grade: full}\ndaemons: no_private_root\n", "line 3: daemons"),
	BAD(V "tomb: {grade: floor}\ndaemons: yes\n", "line 3: daemons"),
	BAD(V "tomb: {grade: floor}\ndaemons: No_Private_Root\n", "line 3: daemons"),
	BAD(V "tomb: {grade: floor}\ndaemons: {private_root: no}\n", "line"),
	BAD(V "tomb: {grade: floor, jobs_tmpfs: 1GiB}\ndaemons: no_private_root\n",
	    "line 3: daemons: no_private_root leaves nobody"),
	BAD(V "tomb: {grade: floor, jobs_dir: /srv}\ndaemons: no_private_root\n",
	    "line 3: daemons: no_private_root leaves nobody"),
	BAD(V "tomb: {queue: auto}\n", "line 2: tomb.queue"),
	BAD(V "tomb: {queue: Vessel}\n", "line 2: tomb.queue"),
	BAD(V "tomb: {grade: \"\"}\n", "line 2"),
	BAD(V "tomb: {grade: \"full\\0x\"}\n", "line 2: a backslash"),
	BAD(V "tomb: {grade: \"full\\x00\"}\n", "line 2: a backslash"),
	BAD(V "tomb: {grade: \"full\\u0000\"}\n", "line 2: a backslash"),
	BAD(V "tomb: {grade: fu\0ll}\n", "line 2: NUL byte"),
	BAD(V "tomb:\n\tgrade: full\n", "line 3: tab"),
	BAD(V "tomb: {grade: full}\r\n", "line 2"),
	BAD(V "unknown: 1\n", "line 2"),
	BAD(V "tomb: {slotz: 8}\n", "line 2"),
	BAD(V "Tomb: {slots: 8}\n", "line 2: no key 'Tomb'; did you mean 'tomb'?"),
	BAD(V "tomb: {slotz: 8}\n",
	    "line 2: tomb: no key 'slotz'; did you mean 'slots'?"),
	BAD(V "limits:\n  disk:\n    dfault: 1MiB\n",
	    "line 4: limits.disk: no key 'dfault'; did you mean 'default'?"),
	BAD(V "pod:\n  vessel:\n    mmory: 1GiB\n", "did you mean 'memory'?"),
	BAD(V "ward:\n  - actoin: permit\n", "did you mean 'action'?"),
	BAD(V "portals:\n  - name: a\n    modles:\n      - name: b\n",
	    "did you mean 'models'?"),
	BAD(V "limits: {memory: {default: 1MiB, max: 1MiB, min: 1}}\n", "line 2"),
	BAD(V "tomb:\n", "line 2"),
	BAD(V "tomb: 5\n", "line 2"),
	BAD(V "tomb: null\n", "line 2"),
	BAD(V "---\n" V, "line 2: a document marker"),
	BAD("---\n" V, "line 1: a document marker"),
	BAD(V "...\n", "line 2: a document marker"),
	BAD(V "--- tomb\n", "line 2: a document marker"),
	BAD("%YAML 1.1\n" V, "line 1"),
	BAD(V "tomb: &a {slots: 8}\n", "line 2"),
	BAD(V "tomb: *a\n", "line 2"),
	BAD(V "tomb: !!map {slots: 8}\n", "line 2"),
	BAD(V "tomb: {grade: !x full}\n", "line 2"),
	BAD(V "tomb: {<<: {slots: 8}}\n", "line 2"),
	BAD(V "tomb: {grade: |\n  full}\n", "line 2"),
	BAD(V "tomb:\n  grade: >\n    full\n", "line 3"),
	BAD(V "tomb: [slots]\n", "line 2"),
	BAD(V "? tomb\n: {slots: 8}\n", "line 2"),
	BAD(V "- a\n", "line"),
	BAD(V "tomb: {grade: \"full\n  \"}\n", "line 2: a quote"),
	BAD(V "tomb: {grade: fu\"l\"l}\n", "line 2: a quote"),
	BAD(V "tomb: {grade: full#x}\n", "line 2: '#'"),
	BAD(V "# \xc2\x85tomb: {slots: 64}\n", "hidden"),
	BAD(V "# \xe2\x80\xa8tomb: {slots: 64}\n", "hidden"),
	BAD("\xef\xbb\xbf" V, "hidden"),
	BAD(V "# \xff\n", "UTF-8"),
	BAD(V "tomb: {slots: 8\n", "line"),
	BAD(V "tomb: {slots: 8}}\n", "line"),
	BAD(V "limits: {memory: {default: 2GiB, max: 1GiB}}\n",
	    "line 2: limits.memory.default"),
	BAD(V "limits:\n  memory:\n    max: 65GiB\n", "line 4: limits.memory.max"),
	BAD(V "limits:\n  disk: {max: 1GiB}\n  memory:\n    max: lots\n",
	    "line 5: limits.memory.max"),
	BAD(V "limits: {memory: {default: 512MB}}\n", "line 2: limits.memory.default"),
	BAD(V "limits: {memory: {default: 99999999999999999999}}\n",
	    "line 2: limits.memory.default"),
	BAD(V "limits: {timeout: {max: 5h}}\n", "line 2: limits.timeout.max"),
	BAD(V "limits: {timeout: {default: 0}}\n", "line 2: limits.timeout.default"),
	BAD(V "limits: {processes: {max: 4097}}\n", "line 2: limits.processes.max"),
	BAD(V "limits: {cpus: {default: 0}}\n", "line 2: limits.cpus.default"),
	BAD(V "queue: {max_waiting: 1000001}\n", "line 2: queue.max_waiting"),
	BAD(V "queue: {max_waiting: 0}\n", "line 2: queue.max_waiting"),
	BAD(V "store: {max: 1}\n", "line 2: store.max"),
	BAD(V "retention: 30\n", "line 2: retention"),
	BAD(V "retention: 59m\n", "line 2: retention"),
	BAD(V "retention: 3651d\n", "line 2: retention"),
	BAD(V "retention: never\n", "line 2: retention"),
	BAD(V "retention: {jobs: 7d}\n", "line 2"),
	BAD(V "postgres: {bin: bin}\n", "line 2: postgres.bin"),
	BAD(V A "    - {kind: git, path: /a/b}\n",
	    "line 3: audit.anchors: entry 1: kind: path"),
	BAD(V A "    - {path: /a/b}\n", "line 3: audit.anchors: entry 1: kind"),
	BAD(V A "    - {kind: path}\n", "line 3: audit.anchors: entry 1: path"),
	BAD(V A "    - {kind: path, path: a/b}\n", "entry 1: path: an absolute path"),
	BAD(V A "    - {kind: path, path: /a/}\n", "entry 1: path: an absolute path"),
	BAD(V A "    - {kind: path, path: /a/.b}\n", "entry 1: path: an absolute path"),
	BAD(V A "    - {kind: path, path: \"/a/b c\"}\n", "entry 1: path: an absolute"),
	BAD(V A "    - {kind: path, path: /a/b, required: true}\n",
	    "entry 1: required: yes or no"),
	BAD(V A "    - {kind: path, path: /a/b}\n    - {kind: path, path: /c/b}\n",
	    "line 3: audit.anchors: entry 2: path: two files of one name"),
	BAD(V A "    - {kind: path, path: /a/b, url: x}\n", "line 4"),
	BAD(V "audit: {anchors: no}\n", "line 2"),
	BAD(V "audit:\n  anchor:\n    - {kind: path, path: /a/b}\n", "line 3"),
	BAD(V "containment: {denials: kill}\n",
	    "line 2: containment.denials: contain, signal or off"),
	BAD(V "containment: {foreign_token: contain}\n",
	    "line 2: containment.foreign_token: signal or off"),
	BAD(V "containment: {foreign_token: x}\n",
	    "line 2: containment.foreign_token: contain, signal or off"),
	BAD(V "containment: {canary: yes}\n", "line 2: containment.canary"),
	BAD(V "containment: {denials: Contain}\n", "line 2: containment.denials"),
	BAD(V "containment: {denials: \"\"}\n", "line 2"),
	BAD(V "containment: {denial: off}\n", "line 2"),
	BAD(V "containment: {denials_count: 1}\n", "line 2: containment.denials_count"),
	BAD(V "containment: {denials_count: 101}\n", "line 2: containment.denials_count"),
	BAD(V "containment: {denials_within: 999ms}\n",
	    "line 2: containment.denials_within"),
	BAD(V "containment: {denials_within: 2h}\n",
	    "line 2: containment.denials_within"),
	BAD(V "containment: contain\n", "line 2"),
	BAD(V "pod: {profile: silver}\n", "line 2: pod.profile"),
	BAD(V "pod: {cgroups: auto}\n", "line 2: pod.cgroups: required or none"),
	BAD(V "pod: {unmask_proc: true}\n", "line 2: pod.unmask_proc: yes or no"),
	BAD(V "pod: {label: \"\"}\n", "line 2"),
	BAD(V "pod: {label: -a}\n", "line 2: pod.label"),
	BAD(V "pod: {label: .a}\n", "line 2: pod.label"),
	BAD(V "pod: {label: \"a b\"}\n", "line 2: pod.label"),
	BAD(V "pod: {label: \"a:b\"}\n", "line 2: pod.label"),
	BAD(V "pod: {label: \"a/b\"}\n", "line 2: pod.label"),
	BAD(V "pod: {label: \"a@sha256\"}\n", "line 2: pod.label"),
	BAD(V "pod: {label: \"a%h\"}\n", "line 2: pod.label"),
	BAD(V "pod:\n  label: a\n  tomb: {image: t}\n  vessel: {image: v}\n"
	      "  scribe: {image: s}\n  phylactery: {image: p}\n",
	    "line 3: pod.label: each image is named already"),
	BAD(V "pod: {network: host}\n", "line 2"),
	BAD(V "pod: {tomb: {memory: 1MiB}}\n", "line 2: pod.tomb.memory"),
	BAD(V "pod: {tomb: {processes: 63}}\n", "line 2: pod.tomb.processes"),
	BAD(V "pod: {tomb: {cpus: 0}}\n", "line 2: pod.tomb.cpus"),
	BAD(V "pod: {vessel: {cpus: 1}}\n", "line 2"),
	BAD(V "pod:\n  mounts: /a\n", "line 3"),
	BAD(V "pod:\n  mounts: [/a]\n",
	    "line 3: [a, b]: give each on a line of its own below the key, as"),
	BAD(V "pod:\n  mounts:\n    - {path: /a}\n", "line"),
	BAD(V "pod:\n  mounts:\n    - - /a\n", "line"),
	BAD(V "pod:\n  mounts:\n    - /a:rx\n", "line 3: pod.mounts"),
	BAD(V "pod:\n  mounts:\n    - \":rw\"\n", "line 3: pod.mounts"),
};

Test(conf, refuses)
{
	for (size_t i = 0; i < ARRAY_SIZE(bads); i++) {
		struct conf c;
		struct err err = ERR_INIT;

		cr_expect(conf_parse(bads[i].text, bads[i].len, &c, &err) < 0, "%zu: %s",
			  i, bads[i].text);
		cr_expect_eq(err.id, ERRID_START_CONFIG, "%zu: %s", i, bads[i].text);
		cr_expect(strstr(err.msg, bads[i].part), "%zu: %s: message is: %s", i,
			  bads[i].text, err.msg);
		cr_expect(strstr(err.msg, "line "), "%s", err.msg);
	}
}

static void expect_defaults(const struct conf *c)
{
	struct conf d;

	conf_defaults(&d);
	cr_expect_eq(c->grade, d.grade);
	cr_expect_eq(c->slots, d.slots);
	cr_expect_eq(c->memory_default, d.memory_default);
	cr_expect_eq(c->memory_max, d.memory_max);
	cr_expect_eq(c->disk_default, d.disk_default);
	cr_expect_eq(c->disk_max, d.disk_max);
	cr_expect_eq(c->output_default, d.output_default);
	cr_expect_eq(c->output_max, d.output_max);
	cr_expect_eq(c->timeout_default_usec, d.timeout_default_usec);
	cr_expect_eq(c->timeout_max_usec, d.timeout_max_usec);
	cr_expect_eq(c->processes_default, d.processes_default);
	cr_expect_eq(c->processes_max, d.processes_max);
	cr_expect_eq(c->cpus_default, d.cpus_default);
	cr_expect_eq(c->cpus_max, d.cpus_max);
	cr_expect_eq(c->queue_max, d.queue_max);
	cr_expect_eq(c->store_max_bytes, d.store_max_bytes);
	cr_expect_null(c->postgres_bin);
	cr_expect_eq(c->n_anchors, 0);
	for (unsigned i = 0; i < CONF_TRIGGER_MAX_; i++)
		cr_expect_eq(c->broker.containment.act[i], d.broker.containment.act[i]);
	cr_expect_eq(c->broker.containment.denials, d.broker.containment.denials);
	cr_expect_eq(c->broker.containment.denials_within_usec,
		     d.broker.containment.denials_within_usec);
	cr_expect_str_eq(c->pod.profile, d.pod.profile);
	cr_expect(c->pod.cgroups && d.pod.cgroups);
	cr_expect_not(c->pod.unmask_proc || d.pod.unmask_proc);
	cr_expect_null(c->pod.tomb.image);
	cr_expect_null(c->pod.label);
	cr_expect_eq(c->pod.tomb.memory, d.pod.tomb.memory);
	cr_expect_eq(c->pod.vessel.memory, d.pod.vessel.memory);
	cr_expect_eq(c->pod.scribe.memory, d.pod.scribe.memory);
	cr_expect_eq(c->pod.phylactery.memory, d.pod.phylactery.memory);
	cr_expect_eq(c->pod.tomb_processes, d.pod.tomb_processes);
	cr_expect_eq(c->pod.tomb_cpus, 0);
	cr_expect_eq(c->pod.n_mounts, 0);
}

Test(conf, template_is_the_defaults)
{
	struct conf c = {.slots = 99};
	struct err err = ERR_INIT;

	cr_assert(conf_parse(conf_template(), strlen(conf_template()), &c, &err) == 0,
		  "%s", err.msg);
	expect_defaults(&c);
	conf_done(&c);
	cr_expect(conf_parse(V, strlen(V), &c, &err) == 0, "%s", err.msg);
	expect_defaults(&c);
	conf_done(&c);
	cr_expect(conf_parse("version: 1", 10, &c, &err) == 0, "%s", err.msg);
	expect_defaults(&c);
	conf_done(&c);
}

Test(conf, every_key_is_read)
{
	static const char text[] =
		"version: '1' # ours\n"
		"tomb:\n  grade: floor\n  \"slots\": 64\n"
		"limits:\n"
		"  memory: {default: 256MiB, max: 1GiB}\n"
		"  disk: {default: 2MiB, max: 3MiB}\n"
		"  output:\n    max: 1KiB\n"
		"  timeout: {default: 250ms, max: 2h}\n"
		"  processes: {default: 3, max: 4}\n"
		"  cpus: {default: 2, max: 3}\n"
		"queue: {max_waiting: 7}\n"
		"store: {max: 5GiB}\n"
		"retention: 7d\n"
		"postgres: {bin: \"/opt/a b&c/bin\"}\n"
		"pod:\n  profile: sovereign\n  cgroups: none\n"
		"  unmask_proc: yes\n"
		"  label: 1.2_a-B\n"
		"  tomb: {image: \"r.example/t@sha256:00\", memory: 1GiB, "
		"processes: 64, cpus: 3}\n"
		"  vessel: {memory: 16MiB}\n"
		"  mounts:\n    - \"~/a\"\n    - /b:rw\n    - /c:ro\n";
	struct conf c;
	struct err err = ERR_INIT;

	cr_assert(conf_parse(text, sizeof(text) - 1, &c, &err) == 0, "%s", err.msg);
	cr_expect_eq(c.grade, GRADE_FLOOR);
	cr_expect_eq(c.slots, 64);
	cr_expect_eq(c.memory_default, 256u << 20);
	cr_expect_eq(c.memory_max, 1u << 30);
	cr_expect_eq(c.disk_default, 2u << 20);
	cr_expect_eq(c.disk_max, 3u << 20);
	cr_expect_eq(c.output_max, 1024);
	cr_expect_eq(c.output_default, 1024, "an unwritten default follows its ceiling");
	cr_expect_eq(c.timeout_default_usec, 250000);
	cr_expect_eq(c.timeout_max_usec, 7200 * USEC_PER_SEC);
	cr_expect_eq(c.processes_default, 3);
	cr_expect_eq(c.processes_max, 4);
	cr_expect_eq(c.cpus_default, 2);
	cr_expect_eq(c.cpus_max, 3);
	cr_expect_eq(c.queue_max, 7);
	cr_expect_eq(c.store_max_bytes, (uint64_t)5 << 30);
	cr_expect_eq(c.retention_usec, 7 * 86400 * USEC_PER_SEC);
	cr_expect_str_eq(c.postgres_bin, "/opt/a b&c/bin");
	cr_expect_str_eq(c.pod.label, "1.2_a-B");
	cr_expect_str_eq(c.pod.profile, "sovereign");
	cr_expect_not(c.pod.cgroups);
	cr_expect(c.pod.unmask_proc);
	cr_expect_str_eq(c.pod.tomb.image, "r.example/t@sha256:00");
	cr_expect_eq(c.pod.tomb.memory, 1u << 30);
	cr_expect_eq(c.pod.tomb_processes, 64);
	cr_expect_eq(c.pod.tomb_cpus, 3);
	cr_expect_eq(c.pod.vessel.memory, 16u << 20);
	cr_assert_eq(c.pod.n_mounts, 3);
	cr_expect_str_eq(c.pod.mount[0].path, "~/a");
	cr_expect_str_eq(c.pod.mount[1].path, "/b");
	cr_expect_str_eq(c.pod.mount[2].path, "/c");
	cr_expect(!c.pod.mount[0].read_write && c.pod.mount[1].read_write &&
		  !c.pod.mount[2].read_write);
	conf_done(&c);
}

Test(conf, anchors_are_read)
{
	static const char text[] =
		V A "    - {kind: path, path: \"/mnt/a b/c-1\"}\n"
		    "    - kind: path\n      path: /d\n      required: yes\n";
	struct err err = ERR_INIT;
	struct conf c;

	cr_assert(conf_parse(text, sizeof(text) - 1, &c, &err) == 0, "%s", err.msg);
	cr_assert_eq(c.n_anchors, 2);
	cr_expect_str_eq(c.anchor[0].path, "/mnt/a b/c-1");
	cr_expect_not(c.anchor[0].is_required);
	cr_expect_str_eq(c.anchor[1].path, "/d");
	cr_expect(c.anchor[1].is_required);
	conf_done(&c);
}

Test(conf, what_a_trigger_does_is_a_word_of_three)
{
	static const struct {
		const char *text;
		enum trigger_act act;
		unsigned count;
		usec_t within;
	} rows[] = {
		{V, TRIGGER_SIGNAL, 20, 60 * USEC_PER_SEC},
		{V "containment: {denials: signal}\n", TRIGGER_SIGNAL, 20,
		 60 * USEC_PER_SEC},
		{V "containment: {denials: contain, denials_count: 2}\n", TRIGGER_CONTAIN,
		 2, 60 * USEC_PER_SEC},
		{V "containment:\n  denials: off\n  denials_within: 1h\n", TRIGGER_OFF,
		 20, 3600 * USEC_PER_SEC},
		{V "containment: {denials_count: 100, denials_within: 1s}\n",
		 TRIGGER_SIGNAL, 100, USEC_PER_SEC},
	};
	static const char off[] = V "containment: {canary: off}\n";
	struct err err = ERR_INIT;
	struct conf c;

	conf_defaults(&c);
	cr_expect_eq(c.broker.containment.act[TRIGGER_CANARY], TRIGGER_CONTAIN);
	conf_done(&c);
	cr_assert_eq(conf_parse(off, sizeof(off) - 1, &c, &err), 0);
	cr_expect_eq(c.broker.containment.act[TRIGGER_CANARY], TRIGGER_OFF);
	conf_done(&c);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct conf_containment *k = &c.broker.containment;

		cr_assert(conf_parse(rows[i].text, strlen(rows[i].text), &c, &err) == 0,
			  "%zu: %s", i, err.msg);
		cr_expect_eq(k->act[TRIGGER_DENIALS], rows[i].act, "%zu", i);
		cr_expect_eq(k->denials, rows[i].count, "%zu", i);
		cr_expect_eq(k->denials_within_usec, rows[i].within, "%zu", i);
		conf_done(&c);
	}
}

Test(conf, retention_is_thirty_days_or_keep)
{
	static const char keep[] = V "retention: keep\n";
	struct err err = ERR_INIT;
	struct conf c;

	conf_defaults(&c);
	cr_expect_eq(c.retention_usec, 30 * 86400 * USEC_PER_SEC);
	conf_done(&c);
	cr_assert(conf_parse(keep, sizeof(keep) - 1, &c, &err) == 0, "%s", err.msg);
	cr_expect_eq(c.retention_usec, 0, "none is removed");
	conf_done(&c);
}

static void put(const char *path, size_t fill, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert(fd >= 0);
	cr_assert(write(fd, V, strlen(V)) == (ssize_t)strlen(V));
	for (size_t i = 0; i < fill; i++)
		cr_assert(write(fd, "\n", 1) == 1);
	cr_assert(fchmod(fd, mode) == 0);
	close(fd);
}

Test(conf, file_must_be_private)
{
	char dir[] = "/tmp/lych-conf-XXXXXX";
	char path[64], link[64];
	struct conf c;
	struct err err = ERR_INIT;

	cr_assert(mkdtemp(dir));
	cr_assert(str_fmt(path, sizeof(path), "%s/codex.yaml", dir) == 0);
	cr_assert(str_fmt(link, sizeof(link), "%s/link", dir) == 0);

	cr_expect(conf_load(path, &c, &err) < 0);
	cr_expect_eq(err.code, ERR_NOT_FOUND);
	for (mode_t bad = 0; bad < 0100; bad++) {
		if (bad == 0)
			continue;
		put(path, 0, 0600 | bad);
		cr_expect(conf_load(path, &c, &err) < 0, "mode 06%02o", bad);
		cr_expect_eq(err.id, ERRID_START_CONFIG_MODE);
	}
	put(path, 0, 0600);
	cr_assert(symlink(path, link) == 0);
	cr_expect(conf_load(link, &c, &err) < 0);
	cr_expect_eq(err.id, ERRID_START_CONFIG_MODE);
	cr_expect(conf_load(dir, &c, &err) < 0);
	cr_expect_eq(err.id, ERRID_START_CONFIG_MODE);
	cr_assert(unlink(link) == 0 && mkfifo(link, 0600) == 0);
	cr_expect(conf_load(link, &c, &err) < 0);
	cr_expect_eq(err.id, ERRID_START_CONFIG_MODE);
	put(path, CONF_FILE_MAX_BYTES, 0600);
	cr_expect(conf_load(path, &c, &err) < 0);
	cr_expect_eq(err.id, ERRID_START_CONFIG);

	put(path, 0, 0600);
	cr_expect(conf_load(path, &c, &err) == 0, "%s", err.msg);
	expect_defaults(&c);
	conf_done(&c);
	put(path, 0, 0400);
	cr_expect(conf_load(path, &c, &err) == 0, "%s", err.msg);
	conf_done(&c);
	(void)unlink(path);
	(void)unlink(link);
	(void)rmdir(dir);
}

/* By its own word and by nothing else: floor alone does not mean it. */
Test(conf, no_private_root_is_said_never_implied)
{
	static const char floor_only[] = V "tomb: {grade: floor}\n";
	static const char both[] = V "daemons: no_private_root\ntomb: {grade: floor}\n";
	struct err err = ERR_INIT;
	struct conf c;

	conf_defaults(&c);
	cr_assert(!c.unrooted);
	cr_assert(conf_parse(floor_only, sizeof(floor_only) - 1, &c, &err) == 0);
	cr_assert(!c.unrooted);
	conf_done(&c);
	cr_assert(conf_parse(both, sizeof(both) - 1, &c, &err) == 0, "%s", err.msg);
	cr_assert(c.unrooted);
	conf_done(&c);
}
