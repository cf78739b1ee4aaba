/* SPDX-License-Identifier: Apache-2.0 */
/* What System V objects cost: never less than the kernel keeps for them. */
#include "sandbox/contract/sysvipc.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

static uint64_t cost(struct sysvipc_counts c, unsigned tasks)
{
	return sysvipc_kernel_bytes(&c, tasks);
}

Test(sysvipc, objects_cost_what_the_kernel_keeps_for_them)
{
	cr_expect_eq(cost((struct sysvipc_counts){0}, 256), 0u);
	/* sets of 32,000, as many as fit into a gibibyte */
	cr_expect_geq(
		cost((struct sysvipc_counts){.sets = 500, .semaphores = 16000000}, 0),
		976 * MIB);
	cr_expect_geq(
		cost((struct sysvipc_counts){.messages = 1000, .message_bytes = 8192000},
		     0),
		1000 * (8192 + 48 + 8) + 0u);
	/* without a text each still has its head, in a piece of 64 bytes */
	cr_expect_geq(cost((struct sysvipc_counts){.messages = 1000}, 0), 64000u);
	cr_expect_leq(cost((struct sysvipc_counts){.segments = 4096}, 0), 8 * MIB);
}

/* A hundred tasks with 64 KB each for one set of 2 MB. */
Test(sysvipc, what_tasks_could_undo_counts)
{
	const struct sysvipc_counts one = {.sets = 1, .semaphores = 32000};

	cr_expect_geq(cost(one, 100) - cost(one, 0), 100 * 64000u);
	/* PostgreSQL with a hundred connections: next to nothing */
	cr_expect_leq(cost((struct sysvipc_counts){.sets = 8, .semaphores = 136}, 110),
		      MIB / 4);
}

/* In a user namespace of its own that kept the ipc namespace of whoever made it. */
static int check_in_new_user_namespace(void)
{
	struct err err = ERR_INIT;
	int proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (proc_fd < 0 || unshare(CLONE_NEWUSER) < 0)
		return 2;
	return sysvipc_check(proc_fd, &err) < 0 && err.id == ERRID_SANDBOX_NS &&
			       strstr(err.msg, "ipc namespace")
		       ? 0
		       : 1;
}

Test(sysvipc, a_namespace_that_is_not_its_own_is_refused)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(check_in_new_user_namespace());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%#x", status);
}
