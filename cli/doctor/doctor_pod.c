/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The containers of a bound pod: what Podman made of the units, and what the kernel has of
 * their processes. Judged from outside, against the units as they were rendered: a mount,
 * a secret or a port that is not in its unit is one too many, wherever it came from.
 */
#include "cli/doctor/doctor.h"

#include "cli/local/up.h"
#include "cli/pod/bind.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>

#define WHERE "pod"
#define MARK "lych-at "

struct pod {
	struct doctor_lines *d;
	const struct bind *b;
	const char *name; /* of the container */
	char *unit;	  /* its text */
};

static void tell(const struct pod *p, const char *what, const char *answer,
		 enum verdict v)
{
	cleanup_free char *tried = xasprintf("%s: %s", p->name, what);

	doctor_line(p->d, WHERE, tried, answer, v);
}

/* ---- its first process, as the kernel has it -------------------------------- */

/* The text behind "Key:\t" in /proc/PID/status, up to the end of its line. */
static void status_field(const char *status, const char *key, char *out, size_t size)
{
	cleanup_free char *begin = xasprintf("\n%s:\t", key);
	const char *at = strstr(status, begin);

	out[0] = '\0';
	if (at)
		(void)snprintf(out, size, "%.*s", (int)strcspn(at + strlen(begin), "\n"),
			       at + strlen(begin));
}

static void examine_process(const struct pod *p, const char *pid)
{
	cleanup_free char *path = xasprintf("/proc/%.16s/status", pid);
	cleanup_free char *me =
		xasprintf("%u\t%u\t%u\t%u", getuid(), getuid(), getuid(), getuid());
	cleanup_free char *status = NULL;
	struct err err = ERR_INIT;
	size_t len;
	const struct {
		const char *key, *want, *what;
	} facts[] = {
		{"Uid", me, "runs as you, not as root"},
		{"CapEff", "0000000000000000", "no capability in effect"},
		{"CapBnd", "0000000000000000", "none to be had"},
		{"NoNewPrivs", "1", "no new privileges"},
		{"Seccomp", "2", "a seccomp filter"},
	};

	if (fs_read_file(AT_FDCWD, path, 65536, &status, &len, &err) < 0) {
		tell(p, "process", err.msg, FAIL);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(facts); i++) {
		char have[80];
		bool held;

		status_field(status, facts[i].key, have, sizeof(have));
		held = str_eq(have, facts[i].want);
		for (char *c = have; *c; c++)
			if (*c == '\t')
				*c = ' ';
		tell(p, facts[i].what, have, held ? PASS : FAIL);
	}
}

/* ---- what Podman says of it ------------------------------------------------- */

/* Does the unit say Key=value..., where value ends at one of `ends`? */
static bool unit_says(const struct pod *p, const char *key, const char *value, char end)
{
	struct unit_line l = {.at = p->unit};
	size_t n = strlen(value);

	while (unit_next_line(&l))
		if (str_eq(l.key, key) && strncmp(l.value, value, n) == 0 &&
		    (l.value[n] == end || !l.value[n]))
			return true;
	return false;
}

static bool is_own_cgroup(const char *path)
{
	return str_starts(path, "/sys/fs/cgroup/user.slice/") &&
	       str_ends(path, "/lychgate-tomb.service");
}

/* "mount SOURCE", "secret NAME MODE", "readonly BOOL", "ports N", "pid N". */
static unsigned take_fact(const struct pod *p, char *fact)
{
	char *value = strchr(fact, ' ');

	if (!value)
		return 0;
	*value++ = '\0';
	if (str_eq(fact, "pid")) {
		examine_process(p, value);
	} else if (str_eq(fact, "readonly")) {
		tell(p, "read-only root", value, str_eq(value, "true") ? PASS : FAIL);
	} else if (str_eq(fact, "mount")) {
		bool mine = unit_says(p, "Volume", value, ':') || is_own_cgroup(value);

		tell(p, "mount", value, mine ? PASS : FAIL);
	} else if (str_eq(fact, "secret")) {
		char *mode = strchr(value, ' ');
		bool mine;

		if (mode)
			*mode++ = '\0';
		mine = unit_says(p, "Secret", value, ',') && mode && str_eq(mode, "256");
		tell(p, "secret, readable by you alone", value, mine ? PASS : FAIL);
	} else if (str_eq(fact, "ports")) {
		tell(p, "ports on the host", value, str_eq(value, "0") ? PASS : FAIL);
	}
	return 1;
}

#define PORTS "{{println \"" MARK "ports\" (len .HostConfig.PortBindings)}}"

/* Every container of a pod has the ports of its infra container. */
static const char format_infra[] = PORTS;
static const char format_container[] = PORTS
	"{{println \"" MARK "pid\" .State.Pid}}"
	"{{println \"" MARK "readonly\" .HostConfig.ReadonlyRootfs}}"
	"{{range .Mounts}}{{println \"" MARK "mount\" .Source}}{{end}}"
	"{{range .Config.Secrets}}{{println \"" MARK "secret\" .Name .Mode}}{{end}}";

static void examine_container(const struct pod *p, const char *format, unsigned wanted)
{
	const char *const args[] = {"container", "inspect", "--format",
				    format,	 p->name,   NULL};
	cleanup_free char *out = NULL;
	struct err err = ERR_INIT;
	unsigned n = 0;

	if (podman_run(&p->b->podman, args, &out, &err) < 0) {
		/* A oneshot is gone when it is done; status tells what does not run. */
		tell(p, "container", "not running: see 'lych status'", SKIP);
		return;
	}
	for (char *at = out, *next; at && *at; at = next) {
		next = strchr(at, '\n');
		if (next)
			*next++ = '\0';
		if (str_starts(at, MARK))
			n += take_fact(p, at + strlen(MARK));
	}
	if (n < wanted)
		tell(p, "container", "Podman says too little of it", FAIL);
}

/* The unit as it is installed, if that is as it was rendered. */
static void examine_unit(struct doctor_lines *d, const struct bind *b, const char *file)
{
	bool is_pod = str_ends(file, ".pod");
	cleanup_free char *name = xasprintf("%.*s%s", (int)strcspn(file, "."), file,
					    is_pod ? "-infra" : "");
	cleanup_free char *text = NULL;
	struct pod p = {.d = d, .b = b, .name = name};
	struct err err = ERR_INIT;
	enum bind_state state;

	if (!is_pod && !str_ends(file, ".container"))
		return;
	if (bind_look(b, file, &state, &text, &err) < 0 || state != BIND_OURS) {
		tell(&p, "unit", "not installed, or not as rendered", SKIP);
		return;
	}
	p.unit = text;
	if (is_pod)
		examine_container(&p, format_infra, 1);
	else
		examine_container(&p, format_container, 3);
}

/* Units with limits do not start where the kernel has nothing to keep them with. */
static void examine_limits(struct doctor_lines *d, const struct bind *b)
{
	cleanup_free char *missing = up_missing_controllers(), *text = NULL;
	struct err ignored = ERR_INIT;
	enum bind_state state;

	if (bind_look(b, "lychgate-tomb.container", &state, &text, &ignored) < 0 ||
	    !text || !strstr(text, "\nMemory="))
		return;
	if (missing) {
		cleanup_free char *answer =
			xasprintf("your user manager has no %s", missing);

		doctor_line(d, WHERE, "controllers for the limits", answer, FAIL);
	} else {
		doctor_line(d, WHERE, "controllers for the limits", "delegated", PASS);
	}
}

void doctor_pod(struct doctor_lines *d)
{
	cleanup_bind struct bind b = BIND_INIT;
	struct err err = ERR_INIT;

	if (bind_open(&b, &err) < 0) {
		doctor_line(d, WHERE, "receipt", err.msg, FAIL);
		return;
	}
	if (!b.has_receipt)
		return;
	if (podman_open(&b.podman, &err) < 0) {
		doctor_line(d, WHERE, "Podman", err.msg, FAIL);
		return;
	}
	examine_limits(d, &b);
	for (size_t i = 0; i < b.receipt.n_files; i++)
		examine_unit(d, &b, b.receipt.file[i].name);
}
