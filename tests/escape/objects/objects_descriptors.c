/* SPDX-License-Identifier: Apache-2.0 */
/* Runs inside: descriptors, and what an open file keeps in the kernel. */
#include "tests/escape/objects/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

/* ---- descriptors ---------------------------------------------------------------------- */

static void make_eventfds(void)
{
	while (eventfd(0, 0) >= 0 || timerfd_create(CLOCK_MONOTONIC, 0) >= 0)
		;
}

static void make_pidfds(void)
{
	while (syscall(SYS_pidfd_open, getpid(), 0) >= 0)
		;
}

/* A set of items is (file, number): the same files under other numbers are others. */
static void make_epoll_items(void)
{
	int base = eventfd(0, 0), ep[256], n = 0;

	while (n < 256 && (ep[n] = epoll_create1(0)) >= 0)
		n++;
	for (int fd = base; fd >= 0; fd = dup(base)) {
		struct epoll_event e = {.events = EPOLLIN};

		for (int i = 0; i < n; i++)
			if (epoll_ctl(ep[i], EPOLL_CTL_ADD, fd, &e) < 0)
				return;
	}
}

static void make_inotify(void)
{
	char name[64];
	int in = inotify_init();

	for (int i = 0; i < MANY && in >= 0; i++) {
		(void)snprintf(name, sizeof(name), "watched.%d.%d", who, i);
		if (mknod(name, S_IFREG | 0600, 0) < 0 ||
		    inotify_add_watch(in, name, IN_ALL_EVENTS) < 0)
			return;
	}
}

static void make_pipes(void)
{
	int p[2];

	while (pipe(p) == 0) {
		(void)fcntl(p[1], F_SETPIPE_SZ, 1 << 20);
		stuff(p[1]);
	}
}

static void make_pipe_rings(void)
{
	int p[2];

	while (pipe(p) == 0)
		(void)fcntl(p[1], F_SETPIPE_SZ, 1 << 20);
}

/* ---- what an open file keeps ------------------------------------------------------------ */

/* Of the kernel's own files: a buffer for what is read. */
static void make_proc_files(void)
{
	static const char *const names[] = {"/proc/self/maps", "/proc/stat",
					    "/proc/cpuinfo", "/proc/meminfo"};
	char byte;

	for (int i = 0;; i++, made++) {
		int fd = open(names[i % 4], O_RDONLY | O_CLOEXEC);

		if (fd < 0 && errno == EMFILE)
			return;
		if (fd >= 0)
			(void)!read(fd, &byte, 1);
	}
}

/* What is told of a descriptor, a line for each of its locks: each open file has the whole text. */
static void make_fdinfo_files(void)
{
	int fd = open(own_name("told", 0), O_RDWR | O_CREAT, 0600);
	char name[64], byte;

	for (off_t at = 1000; fd >= 0 && at > 0; at--) {
		struct flock l = {.l_type = F_RDLCK,
				  .l_whence = SEEK_SET,
				  .l_start = at * 2,
				  .l_len = 1};

		if (fcntl(fd, F_OFD_SETLK, &l) < 0)
			return;
	}
	(void)snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fd);
	while ((fd = open(name, O_RDONLY | O_CLOEXEC)) >= 0 && read(fd, &byte, 1) == 1)
		made++;
}

/* Of a directory with many entries: those that come next. */
static void make_directory_reads(void)
{
	static char entries[512];
	int fd;

	if (who == 0 && mkdir("many", 0700) == 0)
		for (int i = 0; i < 20000; i++) {
			char name[300];

			(void)snprintf(name, sizeof(name), "many/%d.%0200d", i, 0);
			(void)mknod(name, S_IFREG | 0600, 0);
		}
	while ((fd = open("many", O_RDONLY | O_DIRECTORY)) >= 0 || errno == ENOENT) {
		if (fd >= 0 && syscall(SYS_getdents64, fd, entries, sizeof(entries)) > 0)
			made++;
	}
}

/* Each another file, with its inode. */
static void make_open_files(void)
{
	while (open(own_name("opened", (int)made), O_RDWR | O_CREAT, 0600) >= 0)
		made++;
}

/* The same, mapped and closed again: as many as there may be mappings. */
static void make_mapped_files(void)
{
	for (;; made++) {
		int fd = open(own_name("mapped", (int)made), O_RDWR | O_CREAT, 0600);
		void *p = fd < 0 ? MAP_FAILED
				 : mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

		(void)close(fd);
		if (p == MAP_FAILED)
			return;
	}
}

/* Events that nobody reads. */
static void make_inotify_events(void)
{
	char name[256];
	int in;

	(void)mkdir(own_name("noted", 0), 0700);
	(void)snprintf(name, sizeof(name), "%s/%0200d", own_name("noted", 0), 0);
	while ((in = inotify_init()) >= 0) {
		if (inotify_add_watch(in, own_name("noted", 0), IN_ALL_EVENTS) < 0)
			return;
		made++;
		for (int i = 0; i < 6000; i++) {
			(void)close(open(name, O_RDWR | O_CREAT, 0600));
			(void)unlink(name);
		}
	}
}

/* What is left of processes that are gone. */
static void make_of_the_dead(int (*keep)(pid_t))
{
	for (;; made++) {
		int go[2];
		pid_t pid;
		char byte;

		if (pipe(go) < 0)
			return;
		pid = fork();
		if (pid == 0) {
			(void)close(go[1]);
			(void)!read(go[0], &byte, 1);
			_exit(0);
		}
		if (pid < 0 || keep(pid) < 0)
			return;
		(void)close(go[0]);
		(void)close(go[1]);
		(void)waitpid(pid, NULL, 0);
	}
}

static int keep_memory(pid_t pid)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "/proc/%d/mem", pid);
	return open(name, O_RDONLY | O_CLOEXEC);
}

static void make_dead_memories(void)
{
	make_of_the_dead(keep_memory);
}

static int keep_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static void make_dead_pidfds(void)
{
	make_of_the_dead(keep_pidfd);
}

/* A page of a file that is there no more, in a pipe or in a socket. */
static void make_folios(bool in_socket)
{
	const off_t whole = (off_t)8 << 20;

	for (;;) {
		int sv[2], n = 0;
		const char *name = own_name("folio", 0);

		if (in_socket ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sv)
			      : pipe(sv))
			return;
		for (; n < 200; n++, made++) {
			int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
			bool put = fd >= 0;

			for (int i = 0; i < 8; i++)
				(void)!write(fd, block, BLOCK_BYTES);
			for (off_t at = 0; at < whole && put; at += (off_t)1 << 19) {
				off_t from = at;

				put = in_socket ? sendfile(sv[1], fd, &from, 1) > 0
						: splice(fd, &from, sv[1], NULL, 1,
							 SPLICE_F_NONBLOCK) > 0;
			}
			(void)!ftruncate(fd, 0);
			(void)close(fd);
			if (!put)
				break;
		}
		if (n == 0)
			return;
	}
}

static void make_spliced_folios(void)
{
	make_folios(false);
}

static void make_sent_folios(void)
{
	make_folios(true);
}

/* Each with something to read on both sides. */
static void make_terminals(void)
{
	for (;;) {
		int fd = posix_openpt(O_RDWR | O_NOCTTY);
		int other = fd < 0 || unlockpt(fd) < 0
				    ? -1
				    : open(ptsname(fd), O_RDWR | O_NOCTTY);

		if (other < 0)
			return;
		stuff(fd);
		stuff(other);
		made++;
	}
}

const struct object_kind objects_of_descriptors[] = {
	{"eventfds", make_eventfds, "both", "descriptors, 1 KiB each", ""},
	{"pidfds", make_pidfds, "full", "descriptors, 1 KiB each", ""},
	{"dead-pidfds", make_dead_pidfds, "full", "descriptors, 1 KiB each; processes",
	 ""},
	{"dead-memories", make_dead_memories, "full",
	 "descriptors, 16 KiB each (a file of `/proc`); processes", ""},
	{"epoll-items", make_epoll_items, "both",
	 "256 bytes each, by fdinfo; ended where they are made faster than they are "
	 "counted",
	 "245 MiB"},
	{"inotify", make_inotify, "full",
	 "1,280 bytes a watch, by fdinfo; the kernel's bounds for a uid", ""},
	{"inotify-events", make_inotify_events, "full",
	 "five times what can be read of it (FIONREAD)", ""},
	{"pipes", make_pipes, "both", "one with anything in it: its capacity; 3 KiB",
	 "249 MiB"},
	{"pipe-rings", make_pipe_rings, "both",
	 "descriptors, 3 KiB each; the kernel's bound for a uid", ""},
	{"spliced-folios", make_spliced_folios, "both",
	 "the pipes that hold them: their capacity. What a page keeps beside itself is a "
	 "known gap (THREAT_MODEL.md)",
	 "200 MiB"},
	{"sent-folios", make_sent_folios, "both",
	 "the sockets that hold them: what the kernel charges to them. The same gap",
	 "200 MiB"},
	{"proc-files", make_proc_files, "both", "descriptors, 16 KiB each", "139 MiB"},
	{"fdinfo-files", make_fdinfo_files, "full", "descriptors, 16 MiB each", ""},
	{"directory-reads", make_directory_reads, "both", "descriptors, 16 KiB each", ""},
	{"open-files", make_open_files, "both",
	 "descriptors, 512 bytes each and 1.5 KiB for each file", ""},
	{"mapped-files", make_mapped_files, "both",
	 "512 bytes a mapping and 1.5 KiB for each file", ""},
	{"terminals", make_terminals, "full", "the mount's own bound (64), 50 KiB each",
	 ""},
	{0},
};
