/* SPDX-License-Identifier: Apache-2.0 */
/* The egress workers and their parent: what is left when one dies, and the walls of each. */
#include "common/clock.h"
#include "tests/integration/broker/egress_bench.h"
#include "tests/support/proc_stat.h"
#include "vessel/egress/egress.h"
#include "vessel/egress/redact.h"

Test(egress, a_killed_worker_loses_its_calls_and_comes_back)
{
	struct world w;
	struct answer a = {0}, b = {0};
	struct egress_request rq = {
		.portal = "test", .method = "POST", .target = "/stall"};
	struct egress_worker_info info;
	pid_t pid;

	up(&w);
	start_with(&w, &a, &rq);
	a.pause_once = true;
	while (a.bytes == 0)
		run(&w);
	egress_resume(a.call);
	pid = grandchild_named("(portal:test)");
	cr_assert(pid > 0 && kill(pid, SIGKILL) == 0);
	wait_end(&a);
	cr_expect_eq(a.err.id, ERRID_EGRESS_LOST, "%s", a.err.msg);
	cr_expect(a.end.sent, "it counts as spent");
	cr_expect_eq(a.end.bytes_down, 5u);
	do {
		run(&w);
		egress_worker_info(w.egress, 1, &info);
	} while (!info.up);
	cr_expect_eq(info.restarts, 1u);
	ask(&w, &b, "/raw");
	cr_expect_eq(b.status, 401u);
	cr_expect(strstr(b.body.data, REDACT_MARK), "the new one has the key");
	answer_done(&a);
	answer_done(&b);
	down(&w);
}

Test(egress, the_gate_is_alone_with_its_socket_and_comes_back)
{
	struct world w;
	char byte = 'x';
	pid_t pid;

	up(&w);
	cr_assert_eq(w.gates, 1u);
	for (unsigned life = 1; life <= 2; life++) {
		cr_assert_eq(write(w.gate_fd, &byte, 1), 1);
		byte = 0;
		(void)fcntl(w.gate_fd, F_SETFL, 0);
		cr_assert_eq(read(w.gate_fd, &byte, 1), 1);
		cr_assert_eq(byte, 'x');
		pid = grandchild_named("(gate)");
		cr_assert(pid > 0);
		(void)kill(pid, SIGKILL);
		w.downs = 1;
		while (w.gates == life)
			run(&w);
	}
	down(&w);
}

/* That a stopped worker is: tests/soak/hangs.sh. */
Test(egress, a_stopped_parent_is_lost)
{
	char name[64];
	struct world w;
	usec_t stopped;
	pid_t parent;

	up(&w);
	parent = proc_parent(grandchild_named("(keyless)"), name);
	cr_assert(parent > 1);
	(void)kill(parent, SIGSTOP); /* before its first sign of life */
	stopped = clock_boot_usec();
	while (!w.lost)
		run(&w);
	cr_expect(clock_boot_usec() - stopped < 15 * USEC_PER_SEC);
	for (size_t i = 0; i < 10; i += 9) {
		struct egress_worker_info info;

		egress_worker_info(w.egress, i, &info);
		cr_expect_not(info.up, "%s", info.name);
	}
	down(&w);
	cr_expect_eq(kill(parent, 0), 0, "who lost it does not wait for it");
	(void)kill(parent, SIGKILL);
}

Test(egress, without_the_vessel_nobody_is_left)
{
	struct world w;
	int status[2];
	pid_t vessel, pid = -1;

	cr_assert_eq(pipe2(status, O_CLOEXEC), 0);
	vessel = fork();
	if (vessel == 0) {
		up(&w);
		pid = grandchild_named("(keyless)");
		cr_assert(write(status[1], &pid, sizeof(pid)) == sizeof(pid));
		pause();
		_exit(0);
	}
	cr_assert_eq(read(status[0], &pid, sizeof(pid)), (ssize_t)sizeof(pid));
	cr_assert(pid > 0 && kill(pid, 0) == 0);
	(void)kill(vessel, SIGKILL);
	for (unsigned i = 0; i < 3000 && kill(pid, 0) == 0; i++)
		(void)usleep(10000);
	cr_expect(kill(pid, 0) < 0, "worker %d lives on", pid);
}

Test(egress, every_wall_of_every_worker_was_tried)
{
	struct world w;

	up(&w);
	cr_expect_eq(egress_worker_count(w.egress), 10u);
	for (size_t i = 0; i < egress_worker_count(w.egress); i++) {
		struct egress_worker_info info;
		bool inet = false;

		egress_worker_info(w.egress, i, &info);
		cr_expect(info.up, "%s", info.name);
		cr_expect_gt(info.walls->n, 10u, "%s", info.name);
		for (unsigned k = 0; k < info.walls->n; k++) {
			cr_expect(info.walls->line[k].held, "%s: %s", info.name,
				  info.walls->line[k].wall);
			inet = inet || str_eq(info.walls->line[k].wall, "socket:inet");
		}
		if (str_starts(info.name, "gate"))
			cr_expect(inet, "the gate has no network");
		/* it is nobody's to speak to, and stands in the list all the same */
		cr_expect_eq(str_eq(info.name, "watcher"), i == 9);
	}
	down(&w);
}
