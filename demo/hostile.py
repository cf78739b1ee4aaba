#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries what a job must never be able to do, prints a table, exits 1 if anything succeeded.

Standard library only. Arguments are KEY=VALUE: what exists outside and is worth attacking.
Whoever starts it looks from outside whether anything happened; this is the attacker's view."""
import ctypes
import errno
import os
import signal
import socket
import struct
import sys
import time

WORLD = dict(a.split("=", 1) for a in sys.argv[1:])
LIBC = ctypes.CDLL(None, use_errno=True)
ROWS = []


def attempt(number, what, act):
    """act() returns something when it succeeded, None when that shows outside only; OSError: it was refused."""
    try:
        got = act()
        verdict, answer = ("SUCCEEDED", repr(got)[:40]) if got is not None else ("left", "the demo looks from outside")
    except OSError as e:
        verdict, answer = "refused", errno.errorcode.get(e.errno, str(e))
    except Exception as e:  # pylint: disable=broad-except
        verdict, answer = "refused", type(e).__name__
    ROWS.append(verdict)
    print(f"{number:>3}  {verdict:<9}  {what:<52}  {answer}", flush=True)


def syscall(number, *args):
    ctypes.set_errno(0)
    r = LIBC.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in args])
    if r < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return r


def libc(name, *args):
    ctypes.set_errno(0)
    r = getattr(LIBC, name)(*args)
    if r < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return r


def read(path):
    with open(path, "rb") as f:
        return f.read(64)


def write(path, data=b"owned\n"):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        return os.write(fd, data)
    finally:
        os.close(fd)


def connect(family, kind, address, proto=0):
    with socket.socket(family, kind, proto) as s:
        s.settimeout(2)
        s.connect(address)
        return "connected"


def reach(where):
    """Any address of another network, by UDP: a route is enough."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect((where, 53))
        return "a route"


def resolve():
    return socket.getaddrinfo("example.com", 443)


def listing(path):
    return os.listdir(path) or "empty"


def foreign_pids():
    """Processes that are not this job's own."""
    mine = os.getpid()
    found = []
    for p in os.listdir("/proc"):
        if p.isdigit() and int(p) != mine:
            try:
                found.append((int(p), read(f"/proc/{p}/cmdline")))
            except OSError:
                pass
    if not found:
        raise OSError(errno.ESRCH, "none visible")
    return found


def kill_everybody():
    """Linux answers that it was sent, even when each of them was refused; who receives it ends."""
    os.kill(-1, signal.SIGKILL)


def ptrace(pid):
    return libc("ptrace", 0x4206, pid, None, None)  # PTRACE_SEIZE


def steal_memory(pid):
    buf = ctypes.create_string_buffer(16)
    local = struct.pack("PN", ctypes.addressof(buf), 16)
    remote = struct.pack("PN", 0x400000, 16)
    return syscall(310, pid, ctypes.addressof(ctypes.create_string_buffer(local)), 1,
                   ctypes.addressof(ctypes.create_string_buffer(remote)), 1, 0)


def mount():
    return libc("mount", b"none", b"/tmp", b"tmpfs", 0, None)


def chmod_away(path):
    os.chmod(path, 0o777)
    return "changed"


def symlink_out(path):
    try:
        os.unlink("way-out")
    except OSError:
        pass
    os.symlink(path, "way-out")
    return read("way-out")


def hard_link(path):
    os.link(path, "mine-now")
    return "linked"


def inject_terminal():
    import fcntl
    return fcntl.ioctl(0, 0x5412, b"x")  # TIOCSTI


def outlive():
    """Two forks, a session of its own, deaf to TERM; writes where the demo looks later."""
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if os.fork() == 0:
            for fd in range(3):
                os.close(fd)
            time.sleep(30)
            os._exit(0)
        os._exit(0)
    os.wait()
    return None


KEY, API, WORK = WORLD["key"], WORLD["api"], WORLD["work"]
PG, DATA, PID = WORLD["pg"], WORLD["data"], int(WORLD["pid"])
HOME = os.path.dirname(os.path.dirname(KEY))

ACTS = [
    ("read a private key in the home directory", lambda: read(KEY)),
    ("write to it", lambda: write(KEY)),
    ("make it readable by everybody", lambda: chmod_away(KEY)),
    ("read it through a symlink of its own", lambda: symlink_out(KEY)),
    ("take it by a hard link", lambda: hard_link(KEY)),
    ("plant a line in ~/.bashrc", lambda: write(HOME + "/.bashrc")),
    ("list the home directory", lambda: listing(HOME)),
    ("look into other jobs' folders", lambda: listing(DATA + "/tomb/jobs")),
    ("read the database password", lambda: read(DATA + "/secrets/lychgate_db_tomb")),
    ("read /etc/shadow", lambda: read("/etc/shadow")),
    ("connect to the database", lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, PG)),
    ("connect to the owner's api socket",
     lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, API)),
    ("connect to the work socket", lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, WORK)),
    ("connect to the user's bus",
     lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, f"/run/user/{os.getuid()}/bus")),
    ("connect to an abstract socket outside",
     lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + WORLD["abstract"])),
    ("reach a listener on the host, TCP over IPv4",
     lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(WORLD["tcp"])))),
    ("the same over IPv6",
     lambda: connect(socket.AF_INET6, socket.SOCK_STREAM, ("::1", int(WORLD["tcp"])))),
    ("the same over MPTCP",
     lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(WORLD["tcp"])), 262)),
    ("find a route to the world", lambda: reach("192.0.2.1")),
    ("resolve a name", resolve),
    ("open a raw socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)),
    ("open a packet socket", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)),
    ("talk to the hypervisor (vsock)",
     lambda: socket.socket(getattr(socket, "AF_VSOCK", 40), socket.SOCK_STREAM)),
    ("open the kernel's crypto sockets",
     lambda: socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)),
    ("kill a process of the user", lambda: os.kill(PID, signal.SIGKILL) or "killed"),
    ("signal everybody", kill_everybody),
    ("trace a process of the user", lambda: ptrace(PID)),
    ("read its memory", lambda: steal_memory(PID)),
    ("read its environment", lambda: read(f"/proc/{PID}/environ")),
    ("look into the tomb's memory map", lambda: read(f"/proc/{WORLD['tomb']}/maps")),
    ("kill the tomb", lambda: os.kill(int(WORLD["tomb"]), signal.SIGKILL) or "killed"),
    ("see any process but its own", foreign_pids),
    ("make a user namespace", lambda: syscall(272, 0x10000000)),
    ("make a mount namespace", lambda: syscall(272, 0x00020000)),
    ("make a namespace with clone3", lambda: syscall(435, 0, 0)),
    ("mount a file system", mount),
    ("change its root", lambda: os.chroot("/tmp") or "changed"),
    ("set up io_uring", lambda: syscall(425, 1, 0)),
    ("load a BPF program", lambda: syscall(321, 5, 0, 0)),
    ("read the kernel's keyrings", lambda: syscall(250, 0, -3, 0)),
    ("open performance counters", lambda: syscall(298, 0, 0, -1, -1, 0)),
    ("handle page faults for others", lambda: syscall(323, 1)),
    ("load a kernel module", lambda: syscall(175, 0, 0, 0)),
    ("become root", lambda: os.setuid(0) or "root"),
    ("write to the system", lambda: write("/usr/bin/ls")),
    ("change a kernel setting", lambda: write("/proc/sys/kernel/core_pattern")),
    ("type into the user's terminal", inject_terminal),
    ("leave a process that forked twice, in its own session", outlive),
]

print("  #  verdict    act                                                   answer")
for i, (title, function) in enumerate(ACTS, 1):
    attempt(i, title, function)
bad = ROWS.count("SUCCEEDED")
print(f"\n{len(ROWS)} forbidden acts tried, {ROWS.count('refused')} refused, {ROWS.count('left')} left to see, {bad} succeeded")
sys.exit(1 if bad else 0)
