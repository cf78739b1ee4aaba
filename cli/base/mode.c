/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See mode.h.
 */
#include "cli/base/mode.h"

#include "common/attr.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include <string.h>
#include <unistd.h>

bool mode_is_pod(const struct paths *p)
{
	cleanup_free char *receipt = xasprintf("%s/bind/receipt.json", p->data);
	cleanup_free char *ours = paths_config_dir(p);
	char *slash = strrchr(ours, '/');

	if (slash)
		*slash = '\0';
	cleanup_free char *unit =
		xasprintf("%s/containers/systemd/lychgate.pod", slash ? ours : "");

	return access(receipt, F_OK) == 0 && access(unit, F_OK) == 0;
}

const char *mode_start(bool is_pod)
{
	return is_pod ? "systemctl --user start lychgate-pod" : "lych up --detach";
}

const char *mode_stop(bool is_pod)
{
	return is_pod ? "systemctl --user stop lychgate-pod" : "lych down";
}

const char *mode_restart(bool is_pod)
{
	return is_pod ? "systemctl --user restart lychgate-pod"
		      : "lych down; lych up --detach";
}

const char *mode_store(bool is_pod)
{
	return is_pod ? "podman" : "files";
}

static bool is_here_pod(void)
{
	cleanup_paths struct paths p = {0};
	struct err ignored = ERR_INIT;

	return paths_resolve(&p, &ignored) == 0 && mode_is_pod(&p);
}

const char *mode_hint(enum err_id id)
{
	static const struct {
		enum err_id id;
		const char *hint;
	} of_pod[] = {
		{ERRID_HTTP_AWAY, "Start the pod with 'systemctl --user start "
				  "lychgate-pod', or see 'lych status'."},
		{ERRID_SECRET_MISSING,
		 "In the pod: 'lych secret set NAME --store=podman', then 'systemctl "
		 "--user restart lychgate-pod'."},
	};

	for (size_t i = 0; i < ARRAY_SIZE(of_pod); i++)
		if (of_pod[i].id == id && is_here_pod())
			return of_pod[i].hint;
	return err_info(id)->hint;
}
