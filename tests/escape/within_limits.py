# SPDX-License-Identifier: Apache-2.0
"""Run in a job by within_limits.sh and limits_beside.sh: memory that is easily counted twice, or taken for more than it is."""
import ctypes
import mmap
import os
import signal
import subprocess
import sys
import time

MIB = 1 << 20


def touched(size):
    m = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, size, 4096):
        m[at] = 1
    return m


def shared_pages(n):
    """Mappings that have no descriptor: nobody outside sees how large their objects are."""
    held = [mmap.mmap(-1, 4096) for _ in range(n)]
    for m in held:
        m[0] = 1
    time.sleep(2)


def beside(n):
    """The same while somebody outside fills shared memory of his own, and for a while after that."""
    held = [mmap.mmap(-1, 4096) for _ in range(n)]
    for m in held:
        m[0] = 1
    with open("made", "wb"):
        pass
    while not os.path.exists("filled"):
        time.sleep(0.02)
    time.sleep(1)


def remnants(n):
    """Beyond the limit: of each object one page stays mapped."""
    held = []
    page = LIBC.munmap
    page.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    for _ in range(n):
        m = mmap.mmap(-1, 16 * MIB)
        m.write(b"x" * (16 * MIB))
        at = ctypes.addressof(ctypes.c_char.from_buffer(m))
        assert page(at + 4096, 16 * MIB - 4096) == 0
        held.append(m)
    time.sleep(5)
    os._exit(0)


def vfork(n):
    """A child has its parent's memory until it executes."""
    held = touched(400 * MIB)
    assert subprocess._USE_VFORK
    for _ in range(n):
        subprocess.run(["/bin/true"], check=True)
    held.close()


def forked(n):
    """Children that write nothing share all pages."""
    held = touched(300 * MIB)
    for _ in range(n):
        if os.fork() == 0:
            time.sleep(3)
            os._exit(held[0] - 1)
    for _ in range(n):
        assert os.wait()[1] == 0


def ending(n):
    """The same ones, which go one after the other while they are counted, and stay zombies for a while."""
    held = touched(300 * MIB)
    for i in range(n):
        if os.fork() == 0:
            time.sleep(1 + i / 50)
            os._exit(held[0] - 1)
    time.sleep(2 + n / 50)
    for _ in range(n):
        assert os.wait()[1] == 0


def threads_end(n):
    """A shared object that many processes have mapped, whose makers have ended."""
    held = mmap.mmap(-1, 200 * MIB)
    for at in range(0, 200 * MIB, 4096):
        held[at] = 1
    for _ in range(n):
        if os.fork() == 0:
            if os.fork() == 0:
                time.sleep(2)
            os._exit(held[0] - 1)
    for _ in range(n):
        assert os.wait()[1] == 0
    time.sleep(2)


def waitcopy(n):
    """Beyond the limit: a parent that waits like one of vfork(2) and has its child's numbers, but the
    child has memory of its own."""
    held = touched(n * MIB)
    pid = LIBC.syscall(SYS_CLONE, CLONE_VFORK | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        for at in range(0, n * MIB, 4096):
            held[at] = 2
        time.sleep(300)
    os._exit(0)


LIBC = ctypes.CDLL(None)
CLONE_VFORK = 0x4000
SYS_CLONE = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
LIBC.prctl(4, 0)  # as programs with secrets: not dumpable
globals()[sys.argv[1]](int(sys.argv[2]))
