# SPDX-License-Identifier: Apache-2.0
"""Run by parent.sh inside a job: parent_reach.py GRADE DATA RUN "PID...". Looks for whatever its
parents hold: descriptors, sockets by name, files, memory. A line REACHED for each find."""
import errno
import os
import socket
import stat
import struct
import sys

GRADE, DATA, RUN, PIDS = sys.argv[1:]
tried = 0


def closed(what, fn, *args):
    """fn must fail; and not because of a mistake in here."""
    global tried
    tried += 1
    try:
        got = fn(*args)
    except OSError as e:
        if e.errno in (errno.EINVAL, errno.EBADF, errno.EFAULT):
            print("REACHED?", what, e)
        return
    print("REACHED", what, args, str(got)[:80])


def look(path):
    with open(path, "rb") as f:
        return f.read(64)


# Descriptors: three, none of them a socket, and none that leads anywhere but a pipe or a file.
for fd in range(3):
    tried += 1
    mode = os.fstat(fd).st_mode
    if stat.S_ISSOCK(mode) or stat.S_ISDIR(mode) or stat.S_ISBLK(mode):
        print("REACHED descriptor", fd, oct(mode))
for fd in range(3, 1024):
    tried += 1
    try:
        os.fstat(fd)
        print("REACHED descriptor", fd)
    except OSError:
        pass

# Sockets by name: the owner's, the tombs', the database's; in the open and by every other way in.
names = [RUN + "/lychgate/api/vessel.sock", RUN + "/lychgate/work/vessel.sock",
         RUN + "/lychgate/work/tomb_1.sock", DATA + "/phylactery/sock/.s.PGSQL.5432",
         "/run/user/%d/bus" % os.getuid(), "/run/dbus/system_bus_socket", "/run/podman/podman.sock",
         "/var/run/docker.sock", "/run/systemd/private", "/run/systemd/journal/socket", "/dev/log",
         "/tmp/.X11-unix/X0"]
for top in (RUN, DATA):
    closed("listing", os.listdir, top)
for name in names:
    for prefix in ("", "/proc/self/root", "/proc/1/root", "/proc/self/cwd/../.."):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
            def to():
                s = socket.socket(socket.AF_UNIX, kind)
                s.connect(prefix + name)
            closed("socket", to)
        closed("its file", os.stat, prefix + name) if GRADE == "full" else None

# Their files and secrets, and the workspaces of others.
for rel in ("secrets/lychgate_work", "secrets/lychgate_db_tomb", "secrets/lychgate_work_of_tomb_1",
            "secrets/lychgate_db_of_tomb_1", "starter.json", "lock", "log/tomb.log",
            "phylactery/data/PG_VERSION", "vessel/blobs", "tomb/quarantine", "tomb/artifacts"):
    closed("file", look, os.path.join(DATA, rel))
for n in range(1, 8):
    for where in (DATA + "/tomb/jobs", "..", "../..", "/work/..", "/proc/self/cwd/../.."):
        for rel in (f"{n}.1/work/own", f"{n}.1/spool/stdout"):
            closed("another job's file", look, f"{where}/{rel}")

# Their processes: by the numbers that they have outside, and whoever is visible in here.
own = {os.getpid(), os.getppid()} if GRADE == "floor" else {os.getpid()}
pids = {int(p) for p in PIDS.split() if p.isdigit()} if GRADE == "floor" else set()
try:
    pids |= {int(n) for n in os.listdir("/proc") if n.isdigit()}
except OSError:
    pass
pids = (pids | {1, os.getppid()}) - {os.getpid(), 0}
for pid in sorted(pids):
    for name in ("environ", "maps", "mem", "auxv", "stack", "syscall", "fd/0", "fd/3", "root/etc/shadow",
                 "cwd/x", "ns/user", "fdinfo/3", "io", "cmdline" if GRADE == "full" else "environ"):
        closed("process", look, f"/proc/{pid}/{name}")
    for name in ("fd", "root", "cwd", "task", "map_files"):
        closed("process", os.listdir, f"/proc/{pid}/{name}")

# The names of sockets that others have: none in a network of one's own, no list in floor.
tried += 1
try:
    with open("/proc/net/unix", encoding="utf-8") as f:
        lines = f.read().splitlines()[1:]
    if lines:
        print("REACHED names of sockets", lines[:3])
except OSError:
    pass

# No token, key or path of a parent came along.
for k, v in os.environ.items():
    tried += 1
    if any(w in (k + v).lower() for w in ("token", "secret", "lychgate", "phylactery", "neighbour")):
        print("REACHED environment", k, v)

# A packet of the spawner's protocol to whatever takes one: the end of a job, forged.
packet = struct.pack("<IIQiIQQQQII200s", 7, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, b"forged")
for fd in range(0, 16):
    tried += 1
    try:
        s = socket.socket(fileno=os.dup(fd))
        s.send(packet)
        print("REACHED a socket", fd)
    except OSError:
        pass
print(f"tried {tried} ways in grade {GRADE}, {len(pids)} processes")
