/* SPDX-License-Identifier: Apache-2.0 */
/* Section B, numbers 47 and 48: io_uring, and the second ways into the kernel. */
#include "tests/escape/probe/probe_ways.h"
#include "tests/escape/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- 47: io_uring ---------------------------------------------------------------------------- */

int uring_setup(void)
{
	char params[256] = {0};

	return answer_of(syscall(SYS_io_uring_setup, 1, params));
}
int uring_enter(void)
{
	return answer_of(syscall(SYS_io_uring_enter, 0, 0, 0, 0, NULL, 0));
}
/* A ring that was inherited: the call is refused before the descriptor is looked at. */
int uring_inherited(void)
{
	for (int fd = 0; fd < 64; fd++) {
		if (syscall(SYS_io_uring_enter, fd, 1, 0, 0, NULL, 0) >= 0)
			return GOT_THROUGH;
		if (errno != EPERM)
			return errno;
	}
	return EPERM;
}
int uring_register(void)
{
	return answer_of(syscall(SYS_io_uring_register, 0, 0, NULL, 0));
}
int aio(void)
{
	unsigned long ctx = 0;

	return answer_of(syscall(SYS_io_setup, 1, &ctx));
}

/* ---- 48: other ways into the kernel ------------------------------------------------------------- */

#ifdef __x86_64__
static int x32(long nr, long a, long b, long c)
{
	return answer_of(syscall(0x40000000 + nr, a, b, c));
}
int x32_getpid(void)
{
	return x32(39, 0, 0, 0);
}
int x32_socket(void)
{
	return x32(41, AF_INET, SOCK_STREAM, 0);
}
static int ia32(unsigned nr, unsigned b, unsigned c, unsigned d)
{
	int r;

	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(nr), "b"(b), "c"(c), "d"(d)
			 : "memory", "r8", "r9", "r10", "r11");
	return r >= 0 ? GOT_THROUGH : -r;
}
int ia32_getpid(void)
{
	return ia32(20, 0, 0, 0);
}
int ia32_socket(void)
{
	return ia32(359, AF_INET, SOCK_STREAM, 0);
}
int ia32_socketcall(void)
{
	/* Its arguments must lie below 4 GiB. */
	unsigned *args = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	if (args == MAP_FAILED)
		return NO_ANSWER;
	args[0] = AF_INET;
	args[1] = SOCK_STREAM;
	args[2] = 0;
	return ia32(102, 1, (unsigned)(unsigned long)args, 0);
}
int sysenter(void)
{
	__asm__ volatile("mov $20, %%eax\n\txor %%ebp, %%ebp\n\tsysenter"
			 :
			 :
			 : "memory", "rax", "rcx", "rdx");
	return GOT_THROUGH;
}

/* A whole program of 32 bits: socket(AF_INET, SOCK_STREAM, 0), then exit(0). */
int elf32(void)
{
	static const unsigned char code[] = {
		0xb8, 0x67, 0x01, 0x00, 0x00, /* mov eax, 359 */
		0xbb, 0x02, 0x00, 0x00, 0x00, /* mov ebx, AF_INET */
		0xb9, 0x01, 0x00, 0x00, 0x00, /* mov ecx, SOCK_STREAM */
		0x31, 0xd2,		      /* xor edx, edx */
		0xcd, 0x80,		      /* int 0x80 */
		0xb8, 0x01, 0x00, 0x00, 0x00, /* mov eax, exit */
		0x31, 0xdb,		      /* xor ebx, ebx */
		0xcd, 0x80,		      /* int 0x80 */
	};
	static const unsigned char head[84] = {
		0x7f, 'E',  'L',  'F',	1,    1,    1,	  0,
		0,    0,    0,	  0,	0,    0,    0,	  0, /* ident */
		2,    0,    3,	  0,	1,    0,    0,	  0, /* EXEC, 386, version */
		0x54, 0x80, 0x04, 0x08, 52,   0,    0,	  0, /* entry, program headers */
		0,    0,    0,	  0,	0,    0,    0,	  0, /* sections, flags */
		52,   0,    32,	  0,	1,    0,    0,	  0, /* sizes, one header */
		0,    0,    0,	  0,			     /* no sections */
		1,    0,    0,	  0,	0,    0,    0,	  0, /* LOAD, offset */
		0x00, 0x80, 0x04, 0x08, 0x00, 0x80, 0x04, 0x08, /* addresses */
		0,    2,    0,	  0,	0,    2,    0,	  0,	/* sizes */
		5,    0,    0,	  0,	0,    0x10, 0,	  0,	/* R-X, alignment */
	};
	char *const argv[] = {(char[]){"elf32"}, NULL}, *const env[] = {NULL};
	char image[512] = {0};
	int fd = open("elf32", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700), status;
	pid_t pid;

	memcpy(image, head, sizeof(head));
	memcpy(image + sizeof(head), code, sizeof(code));
	if (fd < 0 || write(fd, image, sizeof(image)) != sizeof(image) || close(fd) < 0)
		return NO_ANSWER;
	pid = fork();
	if (pid == 0) {
		(void)execve("./elf32", argv, env);
		_exit(errno == ENOEXEC ? 3 : 4);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return NO_ANSWER;
	if (WIFSIGNALED(status))
		return KILLED_BY + WTERMSIG(status);
	return WEXITSTATUS(status) == 3 ? ENOEXEC : GOT_THROUGH;
}
#else
int not_here(void)
{
	return NOT_HERE;
}
#endif
