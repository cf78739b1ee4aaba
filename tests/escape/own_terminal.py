#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job with a terminal of its own, judged from outside.

	own_terminal.py SANDBOX			a line a check; exit 1: one failed. Run by tty.sh
	own_terminal.py SANDBOX at COMMAND...	the command at a terminal; what that shows, and its exit code"""
import array
import contextlib
import errno
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time

sys.dont_write_bytecode = True
HERE = os.path.abspath(__file__)
sys.path.insert(0, str(pathlib.Path(HERE).parents[1] / "support" / "python"))

SANDBOX = os.path.abspath(sys.argv[1])
failed = 0


def judge(what, good, said=""):
    global failed
    failed += not good
    print(("ok   " if good else "FAIL ") + what + ("" if good else f": {said!r}"), flush=True)


# ---- inside -------------------------------------------------------------------------------

TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD, TIOCGPTPEER, TIOCVHANGUP, TIOCSCTTY, TIOCGPTN = 0x5412, 0x541C, 0x541D, 0x5423, 0x5441, 0x5437, 0x540E, 0x80045430


def answer(call, *args):
    try:
        call(*args)
        return "allowed"
    except OSError as e:
        return errno.errorcode[e.errno]


def steal():
    """Another session of the job, and then nobody's: whose terminal may it have by force?"""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os._exit(0 if answer(fcntl.ioctl, 0, TIOCSCTTY, 1) == "EPERM" else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def inside(host_dev):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    own = os.stat("/dev/pts").st_dev
    said = {
        "descriptors": sorted(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")),
        "pts": sorted(os.listdir("/dev/pts")),
        "stdio": [os.ttyname(i) for i in range(3)],
        "own": all(os.fstat(i).st_dev == own for i in range(3)) and own != int(host_dev),
        "session": os.tcgetpgrp(0) == os.getpgrp(),
        "tty": answer(lambda: os.close(os.open("/dev/tty", os.O_RDWR))),
        "requests": [answer(fcntl.ioctl, 0, r, b"\1\0\0\0") for r in (TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD, TIOCVHANGUP)],
        "master": [answer(fcntl.ioctl, i, r, b"\0\0\0\0") for i in range(3) for r in (TIOCGPTPEER, TIOCGPTN)],
        "vhangup": "allowed" if libc.vhangup() == 0 else errno.errorcode[ctypes.get_errno()],
        "steal": steal(),
    }
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) != os.getpid() and answer(os.listdir, f"/proc/{pid}/fd") == "allowed":
            said["foreign"] = pid
    print("SAID " + json.dumps(said) + " SAID", flush=True)


# ---- outside ------------------------------------------------------------------------------

def job(*command, options=()):
    return [SANDBOX, "--tty", "--timeout", "100", *options, "--", *command]


SHELL = ("bash", "--norc", "--noprofile", "-i")
PROMPT = ("--env", "PS1=in> ")


def run(argv, **more):
    return subprocess.run(argv, capture_output=True, text=True, timeout=90, check=False, **more)


# The command in a process group of its own, whose parent is gone when it starts; the session waits for its end.
IN_BACKGROUND = """
import os, sys, time
r, w = os.pipe()
first = os.fork()
if first == 0:
    os.setpgid(0, 0)
    me = os.getpid()
    if os.fork() == 0:
        while os.getppid() == me:
            time.sleep(0.01)
        os.set_inheritable(w, True)
        os.execv(sys.argv[1], sys.argv[1:])
    os._exit(0)
os.close(w)
os.waitpid(first, 0)
os.read(r, 1)
"""


def check_refused():
    r = run([SANDBOX, "--tty", "--", "true"], stdin=subprocess.DEVNULL)
    judge("without a terminal: refused, with the reason", r.returncode == 2 and "LYCH-TTY-001" in r.stderr and "stdin" in r.stderr, r.stderr)
    r = run([SANDBOX, "--tty", "--json", "--", "true"], stdin=subprocess.DEVNULL)
    judge("for a program to read", json.loads(r.stderr)["error_code"] == "LYCH-TTY-001", r.stderr)
    master, slave = os.openpty()
    r = subprocess.run([SANDBOX, "--tty", "--", "true"], stdin=slave, stdout=slave, stderr=subprocess.PIPE, text=True, timeout=90, check=False, start_new_session=True)
    judge("at a terminal that is not the caller's own: refused", r.returncode == 2 and "LYCH-TTY-001" in r.stderr, r.stderr)
    os.close(master)
    os.close(slave)
    with Person([SANDBOX, "--tty", "--grade", "floor", "--", "true"]) as p:
        judge("grade floor: refused, with the reason", p.ends() == 2 and b"LYCH-TTY-002" in p.seen and b"--grade full" in p.seen, p.seen)
        judge("and the terminal is as it was", p.is_as_before())
    with Person([sys.executable, "-c", IN_BACKGROUND, SANDBOX, "--tty", "--", "true"]) as p:
        p.ends()
        judge("in the background, where nobody could take it up again: refused", b"LYCH-TTY-003" in p.seen, p.seen)
        judge("and the terminal is as it was", p.is_as_before())
    with Person(job("true", options=("--ro", "/nonexistent/x"))) as p:
        judge("a set-up that is refused leaves the terminal alone", p.ends() == 2 and p.is_as_before(), p.seen)
    with Person(job("/nonexistent/program")) as p:
        judge("a program that is not there: 127, and the terminal is as it was", p.ends() == 127 and p.is_as_before(), p.seen)


def check_walls():
    with Person(job("python3", HERE, SANDBOX, "inside", str(os.stat("/dev/pts").st_dev), options=("--ro", HERE))) as p:
        code = p.ends()
        text = p.seen.decode(errors="replace")
        w = json.loads(text.split("SAID ")[1].split(" SAID")[0]) if code == 0 and "SAID " in text else {}
        judge("it says so", bool(w), text[-500:])
        judge("it has three descriptors and no other", w.get("descriptors") == [0, 1, 2], w.get("descriptors"))
        judge("its stdio is a terminal of its own devpts, the only one there", w.get("own") is True and w.get("pts") == ["0", "ptmx"] and w.get("stdio") == ["/dev/pts/0"] * 3, w)
        judge("which is its controlling terminal", w.get("session") is True and w.get("tty") == "allowed", w)
        judge("TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD, TIOCVHANGUP: refused at its own too", w.get("requests") == ["EPERM"] * 5, w.get("requests"))
        judge("the other side of it is nowhere", all(a in ("EIO", "ENOTTY") for a in w.get("master", ["none"])), w.get("master"))
        judge("vhangup: refused", w.get("vhangup") == "EPERM", w.get("vhangup"))
        judge("it takes no terminal by force", w.get("steal") == 0, w.get("steal"))
        judge("it looks into no process of its supervision", "foreign" not in w, w)
        judge("the terminal is as it was, and nothing was typed there", p.is_as_before() and p.left() == b"", p.left())


def check_shell():
    with Person(job(*SHELL, options=PROMPT)) as p:
        p.sees(b"in> ")
        p.asks(b"tty; stty size; echo $TERM\r", b"/dev/pts/0\r\n24 80\r\nxterm-256color\r\n")
        judge("bash has a terminal, its size, and job control", b"no job control" not in p.seen, p.seen)
        resize(p.at, 31, 97)
        p.asks(b"until [ \"$(stty size)\" = '31 97' ]; do sleep 0.05; done; echo res''ized\r", b"\rresized\r\n")
        judge("a new size arrives", True)
        p.type(b"sleep 1000\r")
        p.until(lambda: is_running(p, "sleep"))
        p.asks(b"\x03", b"in> ")
        p.asks(b"echo =$?\r", b"=130\r\n")
        judge("^C ends what runs in it, and nothing else", p.process.poll() is None)
        p.type(b"sleep 1000\r")
        p.until(lambda: is_running(p, "sleep"))
        p.asks(b"\x1a", b"Stopped")
        p.asks(b"jobs\r", b"sleep 1000")
        p.type(b"fg\r")
        p.until(lambda: is_running(p, "sleep"))
        p.asks(b"\x03", b"in> ")
        p.asks(b"echo =$?\r", b"=130\r\n")
        judge("^Z stops it, fg lets it go on", True)
        p.asks(b"stty -echo; echo as''ked; read x; stty echo; echo \"<$x>\"\r", b"\rasked\r\n")
        p.asks(b"secret words\r", b"<secret words>")
        judge("what it turns off is not shown", p.seen.count(b"secret words") == 1, p.seen)
        p.type(b"exit 7\r")
        judge("the exit code is the shell's", p.ends() == 7, p.process.returncode)
        judge("the terminal is as it was", p.is_as_before())
        judge("nothing is left of what was typed or answered", p.left() == b"", p.left())


def children(pid):
    """All processes below one, by /proc."""
    below, found = {pid}, set()
    stats = {}
    for n in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{n}/stat", encoding="utf-8", errors="replace") as f:
                name, rest = f.read().split("(", 1)[1].rsplit(")", 1)
            stats[int(n)] = (name, rest.split()[0], int(rest.split()[1]))
        except OSError:
            continue
    more = True
    while more:
        more = {n for n, (_, _, up) in stats.items() if up in below} - found
        found |= more
        below |= more
    return {n: stats[n] for n in found}


def is_running(p, name):
    return any(n == name and state in "SRD" for n, state, _ in children(p.process.pid).values())


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return dict(line.rstrip().split(":\t", 1) for line in f if ":\t" in line)


def relay_of(pid):
    """Of its children the one with a filter more than it; None: not yet."""
    own = int(status_of(pid)["Seccomp_filters"])
    return next((n for n, (_, _, up) in children(pid).items() if up == pid and int(status_of(n)["Seccomp_filters"]) > own), None)


def keeper_of(pid):
    return next(n for n, (_, _, up) in children(pid).items() if up == pid and n != relay_of(pid))


def check_relay():
    with Person(job("sh", "-c", "echo re''ady; read x", options=()), env={**os.environ, "SECRET_OF_MINE": "not-for-it"}) as p:
        p.sees(b"ready")
        relay = relay_of(p.process.pid)
        judge("who reads what a job writes is a process apart, behind a filter", relay and status_of(relay)["Seccomp"] == "2" and status_of(relay)["NoNewPrivs"] == "1", relay)
        judge("which nobody may look into", answer(os.listdir, f"/proc/{relay}/fd") == "EACCES")
        with open(f"/proc/{p.process.pid}/environ", "rb") as f:
            judge("nor does it have the caller's environment", b"not-for-it" not in f.read())
        p.type(b"\r")
        p.ends()
    with Person(job("sh", "-c", "echo re''ady; sleep 1000")) as p:
        p.sees(b"ready")
        os.kill(relay_of(p.process.pid), signal.SIGKILL)
        judge("killed, it ends the job, and the terminal is as it was", p.ends() == 129 and p.is_as_before(), (p.process.returncode, p.seen))


def check_output():
    with Person(job("sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x; exit 3")) as p:
        code = p.ends()
        judge("all that was written is shown before the exit code is told", code == 3 and p.seen.count(b"x") == 300000, (code, p.seen.count(b"x")))
    with Person(job("printf", r"a\033]52;c;aGVsbG8=\007b\033]0;title\007c\033P$qm\033\\d\033[21te")) as p:
        p.ends()
        judge("clipboard, title and reports do not arrive", b"abcde" in p.seen, p.seen)
    with Person(job("sh", "-c", r"printf '\033[?1049h\033[?2004h\033[?1003h\033[2;20r'; exit 0")) as p:
        p.ends()
        judge("modes that it set are set back", b"\x1b[?2004l" in p.seen and b"\x1b[?1003l" in p.seen and b"\x1b[?1049l" in p.seen and b"\x1b[r" in p.seen, p.seen)
    # what the terminal still has to say when the job is over, in its order; an answer that comes too late is not waited for
    for _ in range(20):
        with Person(job("printf", r"\033[6nasked"), answers=False) as p:
            p.sees(QUESTION)
            p.type(b"\x1b[12;34R" + ANSWER + b"mine")
            code, left = p.ends(), p.left()
        if left == b"mine":
            break
    judge("what it made the terminal say is thrown away, what is typed afterwards is not", code == 0 and left == b"mine", left)
    with Person(job("printf", r"\033[6nasked"), answers=False) as p:
        judge("a terminal that never answers is given back too", p.ends() == 0 and p.is_as_before(), p.seen)


def check_ends():
    inside_raw = ("sh", "-c", "stty raw -echo; printf '\\033[?1049hre''ady'; sleep 1000")
    for name, act, code in (
            ("SIGTERM", lambda p: p.process.send_signal(signal.SIGTERM), 143),
            ("SIGINT", lambda p: p.process.send_signal(signal.SIGINT), 130),
            ("SIGHUP", lambda p: p.process.send_signal(signal.SIGHUP), 129),
            ("SIGUSR1", lambda p: p.process.send_signal(signal.SIGUSR1), 138),
            ("SIGALRM", lambda p: p.process.send_signal(signal.SIGALRM), 142),
            ("a signal of its own number", lambda p: p.process.send_signal(signal.SIGRTMIN + 3), 128 + signal.SIGRTMIN + 3),
            ("its keeper killed", kill_keeper, 125)):
        with Person(job(*inside_raw)) as p:
            p.sees(b"ready")
            judge(f"{name}: the terminal is raw until then", not p.is_as_before())
            act(p)
            got = p.ends()
            judge(f"{name}: it ends, and the terminal is as it was", got == code and p.is_as_before() and b"\x1b[?1049l" in p.seen, (got, p.seen[-300:]))
    with Person([SANDBOX, "--tty", "--timeout", "2", "--", *inside_raw]) as p:
        got = p.ends()
        judge("out of time: it ends, and the terminal is as it was", got == 124 and p.is_as_before(), (got, p.seen[-300:]))
    p = Person(job(*inside_raw))
    p.sees(b"ready")
    tree = set(children(p.process.pid))
    os.close(p.slave)
    os.close(p.at)
    code = p.process.wait(timeout=90)
    judge("the terminal is closed: the job is ended as by SIGHUP, and nothing of it is left", code == 129 and not any(os.path.exists(f"/proc/{n}") for n in tree), (code, tree))


def kill_keeper(p):
    os.kill(keeper_of(p.process.pid), signal.SIGKILL)


def own_shell():
    return Person(["bash", "--norc", "--noprofile", "-i"], env={**os.environ, "PS1": "mine> ", "HISTFILE": "/dev/null"})


def check_stopped():
    """A person's own shell, from which the sandbox is started, stopped and taken up again."""
    with own_shell() as p:
        p.sees(b"mine> ")
        own = p.before
        # its prompt is not to be found in the command
        p.asks(" ".join(f"'{w}'" for w in job(*SHELL, options=PROMPT)).replace("in> ", "i''n> ").encode() + b"\r", b"in> ")
        p.asks(b"x=kept\r", b"in> ")
        pid = min(n for n, (name, _, _) in children(p.process.pid).items() if name == "lych-sandbox")
        os.kill(pid, signal.SIGTSTP)
        p.sees(b"mine> ", p.sees(b"Stopped"))
        p.asks(b"stty -a >/dev/null; echo he''re\r", b"here\r\n")
        judge("stopped: the shell has its terminal, and the job goes on", is_running(p, "bash") and len(children(pid)) > 2)
        p.sees(b"mine> ")
        p.type(b"fg\r")
        p.until(lambda: process_state(pid) != "T" and not p.is_as_before())
        p.asks(b"\r", b"in> ")
        p.asks(b"echo =$x\r", b"=kept\r\n")
        judge("fg: it goes on where it was", True)
        p.asks(b"exit 5\r", b"mine> ")
        p.asks(b"echo =$?\r", b"=5\r\n")
        p.type(b"exit\r")
        p.ends()
        judge("and ends there; the terminal is as it was", modes_of(p.slave) == own)


TICKS = ("bash", "-c", "while sleep 0.1; do echo ti''ck; done & while read x; do echo \"<$x>\"; done")


def begin_ticks(p):
    """From a person's own shell; our process."""
    p.sees(b"mine> ")
    p.asks(" ".join("'" + w.replace("'", "'\\''") + "'" for w in job(*TICKS)).encode() + b"\r", b"\ntick")
    return min(n for n, (name, _, _) in children(p.process.pid).items() if name == "lych-sandbox")


def stop_ticks(p, pid, sig):
    """Where in what was seen the shell has its terminal again."""
    at = len(p.seen)
    os.kill(pid, sig)
    return p.sees(b"mine> ", p.sees(b"Stopped", at))


def check_stopped_unseen():
    """By a signal that nobody can catch, or does: the shell has the terminal, and nobody else reads or writes there."""
    for sig in (signal.SIGSTOP, signal.SIGTTIN):
        with own_shell() as p:
            pid = begin_ticks(p)
            stop_ticks(p, pid, sig)
            p.until(lambda end=time.monotonic() + 0.5: time.monotonic() > end)  # what was on its way
            at = len(p.seen)
            p.until(lambda end=time.monotonic() + 2: time.monotonic() > end)
            judge(f"{sig.name}: nothing of the job's is shown when the shell has its terminal", p.seen[at:] == b"", p.seen[at:])
            p.asks(b"echo he''re\r", b"here\r\n")
            at = len(p.seen)
            p.type(b"fg\r")
            p.sees(b"\ntick", at)
            p.asks(b"for it\r", b"<for it>")
            judge(f"{sig.name}: fg: it goes on, and of the keys it has those that were for it", b"<echo" not in p.seen and b"<fg" not in p.seen, p.seen[-500:])
            p.asks(b"\x03", b"mine> ")
            p.asks(b"echo =$?\r", b"=130\r\n")
            p.type(b"exit\r")
            p.ends()
            judge(f"{sig.name}: at the end the terminal is as it was", p.is_as_before())


def check_ended_in_background():
    for sig in (signal.SIGTSTP, signal.SIGSTOP, signal.SIGTTIN):
        with own_shell() as p:
            pid = begin_ticks(p)
            stop_ticks(p, pid, sig)
            modes, tree = modes_of(p.slave), set(children(pid)) | {pid}
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGCONT)
            try:
                p.until(lambda tree=tree: not any(process_state(n) not in ("", "Z") for n in tree), 40)
                judge(f"stopped by {sig.name}, then SIGTERM and SIGCONT: it ends, with all that is its", True)
            except AssertionError:
                judge(f"stopped by {sig.name}, then SIGTERM and SIGCONT: it ends, with all that is its", False, process_state(pid))
                os.kill(pid, signal.SIGKILL)
                continue
            judge("and leaves the shell's terminal alone", modes_of(p.slave) == modes)
            p.asks(b"echo he''re\r", b"Exit 143")
            judge("and has the signal's exit code", True)


def plug(p):
    """Nothing more goes into its terminal, and nobody reads what is there."""
    fd = os.open(os.ttyname(p.slave), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    refused = 0
    while refused < 10:  # the kernel moves some of it on, and has room again
        try:
            os.write(fd, b"#" * 512)
            refused = 0
        except BlockingIOError:
            refused += 1
            time.sleep(0.1)
    os.close(fd)


def wait_unread(p, end):
    """Its exit code, while nobody reads; None: it does not end by then."""
    try:
        return p.process.wait(timeout=max(0.1, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None


LOST = b"took nothing any more"


def check_stall():
    """A terminal that takes nothing any more, whatever the end is."""
    asks_for_it = ("bash", "-c", "echo ti''ck; read -n1; echo last; exit 3")
    cases = (("its own end", plug, asks_for_it, lambda p: p.type(b"x"), 3),
             ("SIGTERM", plug, TICKS, lambda p: p.process.send_signal(signal.SIGTERM), 143),
             ("SIGINT", plug, TICKS, lambda p: p.process.send_signal(signal.SIGINT), 130),
             ("XOFF, SIGTERM", lambda p: termios.tcflow(p.slave, termios.TCOOFF), TICKS, lambda p: p.process.send_signal(signal.SIGTERM), 143))
    with contextlib.ExitStack() as stack:
        people = [stack.enter_context(Person(job(*command), answers=False)) for _, _, command, _, _ in cases]
        for (_, stall, _, _, _), p in zip(cases, people):
            p.sees(b"tick")
            stall(p)
        time.sleep(1)  # in which it has something that is not taken
        for (_, _, _, act, _), p in zip(cases, people):
            act(p)
        end = time.monotonic() + 30  # docs/THREAT_MODEL.md: half a minute; in truth twelve seconds
        for (name, _, _, _, code), p in zip(cases, people):
            got = wait_unread(p, end)
            judge(f"a terminal that takes nothing, {name}: it ends, and the terminal is as it was", got == code and p.is_as_before(), (got, p.is_as_before()))
            if name.startswith("XOFF"):
                continue
            p.until(lambda end=time.monotonic() + 0.5: time.monotonic() > end)
            judge(f"{name}: then it is told to forget what the job set, and the person what is lost", b"\x1b[?1049l" in p.seen and LOST in p.seen, p.seen[-300:])


def process_state(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def most_memory(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            return max(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
    except (OSError, ValueError):
        return 0


def check_flood():
    with Person([SANDBOX, "--tty", "--timeout", "3", "--", "sh", "-c", "yes | head -c 50000000; sleep 1000"], answers=False) as p:
        while not (relay := relay_of(p.process.pid)):
            time.sleep(0.01)
        most, end, began = 0, time.monotonic() + 90, False
        while time.monotonic() < end:
            tree = children(p.process.pid)
            began = began or any(name == "yes" for name, _, _ in tree.values())
            most = max(most, most_memory(p.process.pid), most_memory(relay))
            if began and not [n for n, (_, state, _) in tree.items() if state != "Z" and n != relay]:
                break
            time.sleep(0.05)
        judge("a terminal that takes nothing: the time limit holds", began and time.monotonic() < end)
        p.answers = True
        code = p.ends()
        judge("then what was shown is little of it, and the end is told", code == 124 and len(p.seen) < 4 << 20, (code, len(p.seen)))
        judge("and nothing grew", 0 < most < 32 << 10, most)
        judge("and it is as it was", p.is_as_before())
    with Person([SANDBOX, "--tty", "--timeout", "3", "--", "sh", "-c", "stty raw -echo; echo re''ady; sleep 1000"]) as p:
        p.sees(b"ready")
        typed = 0
        while p.process.poll() is None and typed < 8 << 20:
            try:
                typed += os.write(p.at, b"k" * 4096)
            except BlockingIOError:
                p.read(0.2)
        judge("a job that reads nothing: the typing stops, and the time limit holds", p.ends() == 124 and typed < 4 << 20, (p.process.returncode, typed))


def under_way(n):
    """So many descriptors of this user's, which nobody has received yet: their sockets."""
    held = []
    with open(os.devnull, "rb") as f:
        while n > 0:
            pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
            pair[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [f.fileno()] * 100))])
            held.append(pair)
            n -= 100
    return held


def drain(held):
    for pair in held:
        for s in pair:
            s.close()


def check_descriptors_under_way():
    """Of the user's other programs, more than this one may have open (ETOOMANYREFS): for a while, and for ever."""
    command = ["bash", "-c", 'ulimit -Sn 150; exec "$@"', "-", *job("sh", "-c", "echo in''side")]
    for for_ever in (False, True):
        held = under_way(300)
        try:
            with Person(command) as p:
                p.until(lambda end=time.monotonic() + 1.5: time.monotonic() > end)
                judge("more descriptors under way than it may have open: it does not run yet", b"inside" not in p.seen, p.seen)
                if for_ever:
                    judge("it does not run, and is told why", p.ends() == 78 and b"inside" not in p.seen and
                          re.search(rb"LYCH-TTY-00[45] ", p.seen) and b"Too many references" in p.seen, (p.process.returncode, p.seen[-600:]))
                else:
                    drain(held)
                    judge("then it runs", p.ends() == 0 and b"inside" in p.seen, (p.process.returncode, p.seen[-600:]))
                judge("and the terminal is as it was", p.is_as_before())
        finally:
            drain(held)


def check_programs():
    work = tempfile.mkdtemp()
    pathlib.Path(work, "long").write_text("".join(f"line {n}\n" for n in range(200)), encoding="utf-8")
    try:
        if shutil.which("vim"):
            with Person(job("vim", "-u", "NONE", "-N", "new", options=("--workspace", work))) as p:
                p.sees(b"\x1b[")
                p.asks(b"ihello there\x1b:wq\r", b"written")
                judge("vim writes a file", p.ends() == 0 and pathlib.Path(work, "new").read_text(encoding="utf-8") == "hello there\n", p.seen[-300:])
        if shutil.which("less"):
            with Person(job("less", "long", options=("--workspace", work))) as p:
                p.sees(b"line 20")
                p.asks(b"G", b"line 199")
                p.type(b"q")
                judge("less shows a file to its end", p.ends() == 0 and p.is_as_before(), p.seen[-300:])
        with Person(job("python3", "-c", "import pty, sys; sys.exit(pty.spawn(['sh', '-c', 'tty; exit 0']) != 0)")) as p:
            judge("it makes others within it", p.ends() == 0 and b"/dev/pts/1" in p.seen, p.seen)
    finally:
        shutil.rmtree(work)


def at(command):
    with Person(command, close_fds=False) as p:
        code = p.ends()
        sys.stdout.buffer.write(p.seen)
    return code


if len(sys.argv) > 2 and sys.argv[2] == "inside":
    inside(sys.argv[3])
    sys.exit(0)

from person import ANSWER, QUESTION, Person, modes_of, resize  # noqa: E402 pylint: disable=wrong-import-position

if len(sys.argv) > 3 and sys.argv[2] == "at":
    sys.exit(at(sys.argv[3:]))
for check in (check_refused, check_walls, check_relay, check_shell, check_output, check_ends, check_stopped, check_stopped_unseen, check_ended_in_background, check_stall, check_flood, check_descriptors_under_way, check_programs):
    try:
        check()
    except (AssertionError, OSError, subprocess.TimeoutExpired) as e:
        judge(check.__name__, False, str(e))
print(f"{failed} checks failed")
sys.exit(failed != 0)
