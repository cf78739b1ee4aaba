# SPDX-License-Identifier: Apache-2.0
"""broker.py SANDBOX LIE SCRATCH: see broker.sh."""
import array, errno, os, select, socket, struct, sys, time
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support", "python"))
from spawner import BROKER, CHANNEL, LISTENER, Spawner, descendants

sandbox, lie, scratch = sys.argv[1:]
count = failed = 0


def check(what, ok, detail=""):
    global count, failed
    count += 1
    if not ok:
        failed += 1
        print("FAIL", what, detail, flush=True)


def spawner(grade, *options, under=()):
    jobs = os.path.join(scratch, f"{grade}.{count}.{len(os.listdir(scratch))}")
    os.mkdir(jobs, 0o700)
    return Spawner(sandbox, jobs, grade, *options, under=under)


# Inside: says what it finds, one word a line.
OPEN = """
import os
for fd in range(3, 1024):
    try: os.fstat(fd)
    except OSError: continue
    print("fd", fd)
"""
LISTENERS = """
import socket
for port in range(1, 65536):
    s = socket.socket()
    s.settimeout(5)
    s.bind(("127.0.0.2", 0))  # else it could meet itself on the port that it asks for
    if s.connect_ex(("127.0.0.1", port)) == 0: print("port", port)
    s.close()
for line in open("/proc/net/unix").readlines()[1:] if __import__("os").path.exists("/proc/net/unix") else []:
    print("unix", *line.split()[7:])
"""
TAKE_OVER = """
import errno, itertools, socket
REUSE = [(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1), (socket.SOL_SOCKET, socket.SO_REUSEPORT, 1),
         (socket.SOL_SOCKET, 25, b"lo\\0"), (socket.IPPROTO_IP, 15, 1), (socket.IPPROTO_IP, 19, 1)]
held = []
for protocol in (0, 262):
    for n in range(len(REUSE) + 1):
        for options in itertools.combinations(REUSE, n):
            for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0"),
                                    (socket.AF_INET6, "::"), (socket.AF_INET6, "::ffff:127.0.0.1")):
                try: s = socket.socket(family, socket.SOCK_STREAM, protocol)
                except OSError as e: continue
                for o in options:
                    try: s.setsockopt(*o)
                    except OSError: pass
                try:
                    if family == socket.AF_INET6: s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
                    s.bind((address, 8787))
                    s.listen()
                    print("took", address, options, flush=True)
                    held.append(s)
                except OSError as e:
                    if e.errno != errno.EADDRINUSE: print("other", address, options, e)
for i in range(20):
    s = socket.create_connection(("127.0.0.1", 8787), timeout=20)
    print("got", s.recv(100).decode(), flush=True)
"""
TELL = """
import socket, sys
s = socket.create_connection(("127.0.0.1", 8787), timeout=20)
s.sendall(sys.argv[1].encode())
print("got", s.recv(100).decode())
"""


def serve(s, job, listener, answer):
    """The tomb's side, until the job is over: every connection gets the answer."""
    seen = []
    while not job.exited:
        ready = select.select([s.sock, listener], [], [], 60)[0]
        assert ready, "nothing happens"
        if listener in ready:
            c, peer = listener.accept()
            c.settimeout(20)
            seen.append(peer[0])
            c.sendall(answer)
            c.close()
        if s.sock in ready:
            s.turn()
    return seen


def python(code, *args):
    return ("python3", "-c", code, *args)


def is_warm(s, job_comm="sleep"):
    """Was the process of the running job there before it was asked for?"""
    return any(open(f"/proc/{p}/comm").read().strip() == job_comm for p in s.before
               if os.path.exists(f"/proc/{p}"))


def wait_warm(s):
    # outer and inner in full; a keeper and its job
    want = 3 if s.grade == "full" else 2
    end = time.monotonic() + 20
    while len(descendants(s.process.pid)) < want:
        assert time.monotonic() < end, "no warm sandbox"
        time.sleep(0.02)
    time.sleep(0.3)  # it says so when its walls stand; too early is only a cold start
    s.before = descendants(s.process.pid)


# ---- the refusals --------------------------------------------------------------------

s = spawner("full", "--pool", "0")
j = s.wait(s.run(*python(LISTENERS)))
check("full, not asked for: nothing listens", j.text() == "" and j.exited == (0, 0), j.text())
check("full, not asked for: no descriptor comes", j.broker is None)
j = s.wait(s.run(*python(OPEN)))
check("full, not asked for: no descriptor inside", j.text() == "", j.text())
j = s.wait(s.run("touch", "ran", flags=BROKER, options=("--network", "none")))
check("full without a network: refused", j.refused and j.refused[:2] == ("LYCH-SPEC-004", "spec"), j.refused)
check("full without a network: nothing ran", not os.path.exists(f"{s.jobs_dir}/{j.handle}/ran"))
j = s.wait(s.run("no-such-program", flags=BROKER))
check("an exec that fails brings no descriptor", j.exited == (11, errno.ENOENT) and not j.broker, j.exited)
check("the spawner ends in order", s.close() == 0)

s = spawner("floor", "--pool", "0")
j = s.wait(s.run(*python(OPEN)))
check("floor, not asked for: no descriptor inside", j.text() == "", j.text())
check("floor, not asked for: no descriptor comes", j.broker is None)
s.close()

for pool in ("0", "2"):
    s = spawner("full", "--pool", pool, under=(lie, "--no-listen", "--"))
    if pool != "0":
        wait_warm(s)
    j = s.wait(s.run("touch", "ran", flags=BROKER))
    check(f"pool {pool}: no listener, no job", j.refused and j.refused[:2] == ("LYCH-SANDBOX-015", "broker"),
          (j.refused, j.exited))
    check(f"pool {pool}: no listener, nothing ran", not os.path.exists(f"{s.jobs_dir}/{j.handle}/ran"))
    j = s.wait(s.run("true"))
    check(f"pool {pool}: without a broker it runs", j.exited == (0, 0), j.refused)
    s.close()

# A flag that nobody knows is a bug of the tomb: the end of both.
s = spawner("full", "--pool", "0")
s.run("true", flags=6)
check("an unknown flag ends the spawner", s.sock.recv(100) == b"" and s.process.wait(20) != 0)

# ---- grade full ----------------------------------------------------------------------

for pool in ("0", "2"):
    s = spawner("full", "--pool", pool)
    if pool != "0":
        wait_warm(s)
    j = s.wait_started(s.run("sleep", "60", flags=BROKER))
    kind, listener = j.broker
    check(f"pool {pool}: a listener comes", kind == LISTENER and listener.family == socket.AF_INET)
    check(f"pool {pool}: at its address", listener.getsockname() == ("127.0.0.1", 8787))
    check(f"pool {pool}: it listens", listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1)
    check(f"pool {pool}: it shares its address with nobody",
          not listener.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT) and
          not listener.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR))
    if pool != "0":
        check("it was a warm sandbox", is_warm(s))
    s.kill(j)
    s.wait(j)
    # The namespace lives on in the listener, and nobody is there any more.
    listener.close()

    j = s.wait_started(s.run(*python(OPEN), flags=BROKER))
    j.broker[1].close()
    check(f"pool {pool}: the job has no descriptor of it", s.wait(j).text() == "", j.text())

    j = s.wait_started(s.run(*python(LISTENERS), flags=BROKER))
    seen = serve(s, j, j.broker[1], b"hello")
    check(f"pool {pool}: nothing else listens, on any port", j.text() == "port 8787\n", j.text())
    check(f"pool {pool}: only its own loopback comes", seen == ["127.0.0.2"], seen)

    j = s.wait_started(s.run(*python(TAKE_OVER), flags=BROKER))
    seen = serve(s, j, j.broker[1], b"the tomb")
    check(f"pool {pool}: nobody takes the address over", j.text() == "got the tomb\n" * 20, j.text())

    # Two jobs at once: each reaches its own, with the other's name on nothing.
    pair = [s.run(*python(TELL, f"I am {i}"), flags=BROKER) for i in "AB"]
    for j in pair:
        s.wait_started(j)
    for j, name in zip(pair, "AB"):
        j.broker[1].settimeout(20)
        c, _ = j.broker[1].accept()
        c.settimeout(20)
        check(f"pool {pool}: who speaks is the one job", c.recv(100) == f"I am {name}".encode())
        c.sendall(b"yes " + name.encode())
        c.close()
    for j, name in zip(pair, "AB"):
        s.wait(j)
        check(f"pool {pool}: answered by its own", j.text() == f"got yes {name}\n", j.text())
        try:
            j.broker[1].setblocking(False)
            j.broker[1].accept()
            check(f"pool {pool}: nobody else came", False)
        except BlockingIOError:
            check(f"pool {pool}: nobody else came", True)

    # Nobody accepts: the kernel's queue is bounded, the job waits or gives up, all by itself.
    j = s.wait_started(s.run(*python("""
import socket
held = []
for i in range(1000):
    s = socket.socket(); s.settimeout(0.05)
    if s.connect_ex(("127.0.0.1", 8787)): break
    held.append(s)
print(len(held))
"""), flags=BROKER))
    n = int(s.wait(j).text())
    check(f"pool {pool}: the queue of connections is bounded", 1 <= n <= 130, n)
    check("the spawner ends in order", s.close() == 0)

# ---- grade floor ----------------------------------------------------------------------

ECHO = """
import socket
s = socket.socket(fileno=3)
s.send(b"Hfrom inside")
print(s.recv(100).decode(), flush=True)
"""
for pool in ("0", "2"):
    s = spawner("floor", "--pool", pool)
    if pool != "0":
        wait_warm(s)
    j = s.wait_started(s.run("sleep", "60", flags=BROKER))
    kind, channel = j.broker
    check(f"pool {pool}: a channel comes", kind == CHANNEL and channel.family == socket.AF_UNIX and
          channel.type == socket.SOCK_SEQPACKET)
    if pool != "0":
        check("it was a warm sandbox", is_warm(s))
    s.kill(j)
    s.wait(j)
    check(f"pool {pool}: its end is the channel's end", channel.recv(10) == b"")

    j = s.wait_started(s.run(*python(OPEN), flags=BROKER))
    check(f"pool {pool}: the job has descriptor 3 and no other", s.wait(j).text() == "fd 3\n", j.text())

    j = s.wait_started(s.run(*python(ECHO), flags=BROKER))
    channel = j.broker[1]
    channel.settimeout(20)
    check(f"pool {pool}: packets come", channel.recv(100) == b"Hfrom inside")
    channel.send(b"Hfrom outside")
    check(f"pool {pool}: and go", s.wait(j).text() == "Hfrom outside\n", j.text())

    j = s.wait_started(s.run("sh", "-c", "sh -c 'exec python3 -c \"import os; print(os.fstat(3).st_mode >> 12)\"'",
                             flags=BROKER))
    check(f"pool {pool}: its children have it too", s.wait(j).text() == "12\n", j.text())

    j = s.wait_started(s.run(*python("import socket\ntry: socket.socket()\nexcept OSError as e: print(e.errno)"),
                             flags=BROKER))
    check(f"pool {pool}: no other socket is to be had", s.wait(j).text() == f"{errno.EPERM}\n", j.text())
    check("the spawner ends in order", s.close() == 0)

print(f"{count} checks, {failed} failed")
sys.exit(failed > 0)
