/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * Requests by ioctl that the keeper decides, in full.
 *
 * Network interfaces: the kernel answers for the network namespace in which the socket was made, and
 * any socket will do: a stdio that came from outside would tell the host's interfaces, addresses and
 * MACs. So the keeper asks in the job's place, on a socket of its own, which is in the job's network
 * namespace. Only what asks: to set anything takes a capability that no job has.
 *
 * TIOCSCTTY: a terminal as the controlling one of a session of the job. forkpty(3) asks for it, of a
 * terminal of the job's own devpts. Of another one a job can hold no descriptor but a stdio that
 * is a terminal, or one that came through a stdio that is a socket. The kernel gives nobody a terminal
 * that is a session's already, but a session ends before its job does (a shell that is left while a job
 * runs in the background), and then its terminal is nobody's. So with such a stdio every call is
 * refused. Which descriptor a call names is not asked, since it may be another by the time that the
 * kernel looks.
 */
#include "sandbox/keeper/notify.h"

#include "common/cleanup.h"
#include "common/fs.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* The job can't add any to its loopback. */
#define INTERFACES_MAX 16

static bool asks_one(unsigned request)
{
	static const unsigned ask[] = {SIOCGIFNAME,    SIOCGIFFLAGS,   SIOCGIFADDR,
				       SIOCGIFDSTADDR, SIOCGIFBRDADDR, SIOCGIFNETMASK,
				       SIOCGIFMETRIC,  SIOCGIFMTU,     SIOCGIFHWADDR,
				       SIOCGIFINDEX,   SIOCGIFTXQLEN,  SIOCGIFMAP};

	for (size_t i = 0; i < ARRAY_SIZE(ask); i++)
		if (ask[i] == request)
			return true;
	return false;
}

static int ask_one(const struct notify *n, const struct seccomp_notif *req, int sock)
{
	struct ifreq one;
	int r = notify_read(req, req->data.args[2], &one, sizeof(one));

	if (r < 0)
		return r;
	if (!notify_still_waits(n, req))
		return -ESRCH;
	if (ioctl(sock, (unsigned)req->data.args[1], &one) < 0)
		return -errno;
	return notify_write(n, req, req->data.args[2], &one, sizeof(one));
}

static int list_all(const struct notify *n, const struct seccomp_notif *req, int sock)
{
	struct ifreq all[INTERFACES_MAX] = {0};
	struct ifconf theirs = {0}, ours = {.ifc_req = all};
	int r = notify_read(req, req->data.args[2], &theirs, sizeof(theirs));

	if (r < 0)
		return r;
	if (!notify_still_waits(n, req))
		return -ESRCH;
	if (theirs.ifc_buf && theirs.ifc_len < 0)
		return -EINVAL;
	ours.ifc_len = theirs.ifc_buf && theirs.ifc_len < (int)sizeof(all)
			       ? theirs.ifc_len
			       : (int)sizeof(all);
	if (ioctl(sock, SIOCGIFCONF, &ours) < 0)
		return -errno;
	/* Without a buffer it asks for the length. */
	if (theirs.ifc_buf) {
		r = notify_write(n, req, (uintptr_t)theirs.ifc_buf, all,
				 (size_t)ours.ifc_len);
		if (r < 0)
			return r;
	}
	theirs.ifc_len = ours.ifc_len;
	return notify_write(n, req, req->data.args[2], &theirs, sizeof(theirs));
}

int notify_interfaces(struct notify *n, const struct seccomp_notif *req)
{
	unsigned request = (unsigned)req->data.args[1];
	cleanup_close int theirs = -1, sock = -1;
	struct stat st;
	int r = notify_take_fd(n, req, (int)(int32_t)req->data.args[0], &theirs);

	if (r < 0)
		return r;
	if (fstat(theirs, &st) < 0 || !S_ISSOCK(st.st_mode))
		return -ENOTTY;
	/* The loopback has nothing to say to it. */
	if (request == SIOCETHTOOL)
		return -EOPNOTSUPP;
	if (request != SIOCGIFCONF && !asks_one(request))
		return NOTIFY_OUTSIDE;
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	return request == SIOCGIFCONF ? list_all(n, req, sock) : ask_one(n, req, sock);
}

/* ---- terminals ------------------------------------------------------------------------ */

/* No terminal, and nothing through which one could come. */
static bool is_no_terminal(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && !S_ISSOCK(st.st_mode) &&
	       !(S_ISCHR(st.st_mode) && isatty(fd));
}

void notify_note_terminals(struct notify *n, const int stdio[3])
{
	n->own_terminals = true;
	for (int i = 0; i < 3; i++)
		if (!is_no_terminal(stdio[i]))
			n->own_terminals = false;
}

int notify_take_terminal(struct notify *n, const struct seccomp_notif *req)
{
	if (n->own_terminals)
		return NOTIFY_GO_ON;
	notify_record_call(n, req);
	return -EPERM;
}
