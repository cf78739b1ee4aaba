# SPDX-License-Identifier: Apache-2.0
"""Run by test_tty_run.sh, with a Lychgate up. Each function named t_* is one case of `lych run --tty`; T: those alone.
What the same terminal is by lych-sandbox: tests/escape/own_terminal.py; who may resize: tests/integration/queue/stdin.py."""
import json
import os
import pathlib
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support" / "python"))

from person import ANSWER, QUESTION, Person, modes_of, resize  # noqa: E402 pylint: disable=wrong-import-position

LYCH = os.environ["LYCH_BIN"] + "/lych"
DATA = os.environ["LYCHGATE_DATA"]
SHELL = ("--env", "PS1=in> ", "--", "bash", "--norc", "--noprofile", "-i")


def lych(*args, **more):
    return subprocess.run([LYCH, *args], **{"stdin": subprocess.DEVNULL, "capture_output": True, "text": True,
                                            "check": False, "timeout": 60, **more})


def at_terminal(*args, **more):
    return Person([LYCH, "run", "--tty", "--timeout", "100", *args], **more)


def newest():
    jobs = json.loads(lych("jobs", "--limit", "1", "--json").stdout)["jobs"]
    return jobs[0]["id"] if jobs else 0


def processes():
    return json.loads(lych("status", "--json").stdout)["processes"]


def is_state(job, state):
    end = time.monotonic() + 60
    while (now := json.loads(lych("show", str(job), "--json").stdout)["state"]) != state:
        assert time.monotonic() < end, now
        time.sleep(0.1)


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def is_over(pid):
    try:
        return state_of(pid) == "Z"
    except OSError:  # it may go while it is read
        return True


def is_as_it_was(p):
    """Its modes are, and nothing of what was typed or answered waits for whoever reads next."""
    assert p.is_as_before(), modes_of(p.slave)
    assert (left := p.left()) == b"", left


def t_refused():
    before = newest()
    r = lych("run", "--tty", "--", "true")
    assert r.returncode == 2 and "LYCH-TTY-001" in r.stderr and "stdin" in r.stderr, r
    with Person(["sh", "-c", f"{shlex.quote(LYCH)} run --tty -- true | cat; echo ended"]) as p:
        p.ends()
        assert b"LYCH-TTY-001" in p.seen and b"stdout" in p.seen, p.seen
    for other in (["--json"], ["--json", "--summary"], ["--no-stdin"], ["--request-id", "x"]):
        with at_terminal(*other, "--", "true") as p:
            assert p.ends() == 2 and b"--tty does not go with " + other[0].encode() in p.seen, p.seen
            is_as_it_was(p)
    with at_terminal("--retry", "on_lost", "--", "true") as p:
        assert p.ends() != 0 and b"LYCH-SPEC-004" in p.seen, p.seen
        is_as_it_was(p)
    assert newest() == before, "a job was made"


# said by what the keys are for: bash itself could be hit between an echo and the next command
SLEEP = b"sh -c 'echo slee\"\"ping; exec sleep 1000'\r"


def t_a_shell():
    with at_terminal(*SHELL) as p:
        p.sees(b"in> ")
        assert not p.is_as_before()  # raw
        p.asks(b"tty; stty size; echo $TERM\r", b"/dev/pts/0\r\n24 80\r\nxterm-256color\r\n")
        assert b"no job control" not in p.seen, p.seen
        resize(p.at, 31, 97)
        p.asks(b"until [ \"$(stty size)\" = '31 97' ]; do sleep 0.05; done; echo res''ized\r", b"\rresized\r\n")
        p.asks(SLEEP, b"\rsleeping\r\n")
        p.asks(b"\x03", b"in> ")
        p.asks(b"echo =$?\r", b"=130\r\n")
        p.asks(SLEEP, b"\rsleeping\r\n")
        p.asks(b"\x1a", b"Stopped")
        p.asks(b"jobs\r", b"sleep 1000")
        p.asks(b"kill %1; echo killed\r", b"\rkilled\r\n")
        p.asks(SLEEP, b"\rsleeping\r\n")
        p.asks(b"\x1c", b"in> ")
        p.asks(b"echo =$?\r", b"=131\r\n")
        p.type(b"exit 7\r")
        assert p.ends() == 7, p.seen
        is_as_it_was(p)


def t_the_filter_stands_between():
    with at_terminal("--", "printf", r"a\033]52;c;aGVsbG8=\007b\033]0;title\007c\033P$qm\033\\d\033[21te\n") as p:
        assert p.ends() == 0 and b"abcde" in p.seen, p.seen
        is_as_it_was(p)
    # a question that the filter answers in the terminal's place, and one that the terminal answers
    with at_terminal("--", "bash", "-c", r"stty raw -echo; printf '\033[c'; IFS= read -rd c a; printf '\033[6n'; IFS= read -rd R b; "
                     r"""printf '%q %q\r\n' "$a" "$b" """) as p:
        p.sees(b"\x1b[6n")
        p.type(b"\x1b[3;4R")
        p.sees(b"$'\\E[3;4'")
        assert p.ends() == 0 and b"\x1b[c" not in p.seen, p.seen
        is_as_it_was(p)


def t_all_of_its_output_and_its_exit_code():
    with at_terminal("--", "sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x; exit 3") as p:
        assert p.ends() == 3 and p.seen.count(b"x") == 300000, p.seen.count(b"x")
        is_as_it_was(p)
    with at_terminal("--", "/nonexistent/program") as p:
        assert p.ends() == 127, p.seen
        is_as_it_was(p)


def t_what_it_set_is_undone():
    with at_terminal("--", "sh", "-c", r"stty raw -echo; printf '\033[?1049h\033[?2004h\033[?1003h\033[2;20r\033[6nend'") as p:
        assert p.ends() == 0, p.seen
        for off in (b"\x1b[?2004l", b"\x1b[?1003l", b"\x1b[?1049l", b"\x1b[r"):
            assert off in p.seen, (off, p.seen)
        is_as_it_was(p)
    # what the terminal still has to say when the job is over, in its order
    for _ in range(20):
        with at_terminal("--", "printf", r"\033[6nasked", answers=False) as p:
            p.sees(QUESTION)
            p.type(b"\x1b[12;34R" + ANSWER + b"mine")
            code, left = p.ends(), p.left()
        if left == b"mine":
            break
    assert code == 0 and left == b"mine", (code, left)


RAW = ("--", "sh", "-c", "stty raw -echo; printf '\\033[?1049hre''ady'; sleep 1000")


def t_signals_to_lych():
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        with at_terminal(*RAW) as p:
            p.sees(b"ready")
            assert not p.is_as_before()
            p.process.send_signal(sig)
            assert p.ends() == 130 and b"\x1b[?1049l" in p.seen, (sig, p.process.returncode, p.seen)
            is_as_it_was(p)
    with at_terminal("--timeout", "2", *RAW) as p:
        assert p.ends() == 124 and b"\x1b[?1049l" in p.seen, p.seen
        is_as_it_was(p)


TICKS = ("--", "bash", "-c", "while sleep 0.1; do echo ti''ck; done & while read x; do echo \"<$x>\"; done")


def own_shell():
    return Person(["bash", "--norc", "--noprofile", "-i"], env={**os.environ, "PS1": "mine> ", "HISTFILE": "/dev/null"})


def begin(p, words, text):
    """From a person's own shell; our process, when the text is there."""
    p.sees(b"mine> ")
    words = [LYCH, "run", "--tty", "--timeout", "100", *words]
    p.asks((" ".join(shlex.quote(w) for w in words) + "\r").encode(), text)
    return int(subprocess.run(["pgrep", "-P", str(p.process.pid), "-x", "lych"], capture_output=True, text=True, check=True).stdout)


def t_stopped_and_taken_up_again():
    with own_shell() as p:
        # its prompt is not to be found in the command
        pid = begin(p, ("--", "bash", "-c", "PS1='i''n> ' exec bash --norc --noprofile -i"), b"in> ")
        p.asks(b"x=kept\r", b"in> ")
        os.kill(pid, signal.SIGTSTP)
        p.sees(b"mine> ", p.sees(b"Stopped"))
        p.asks(b"echo he''re\r", b"here\r\n")
        resize(p.at, 33, 99)
        p.type(b"fg\r")
        p.until(lambda: state_of(pid) != "T" and not p.is_as_before())
        p.asks(b"\r", b"in> ")
        p.asks(b"echo =$x; stty size\r", b"=kept\r\n33 99\r\n")
        p.asks(b"exit 5\r", b"mine> ")
        p.asks(b"echo =$?\r", b"=5\r\n")
        p.type(b"exit\r")
        p.ends()
        is_as_it_was(p)


def t_ended_in_the_background():
    for sig in (signal.SIGTSTP, signal.SIGSTOP):
        with own_shell() as p:
            pid = begin(p, TICKS, b"\ntick")
            at = len(p.seen)
            os.kill(pid, sig)
            p.sees(b"mine> ", p.sees(b"Stopped", at))
            modes = modes_of(p.slave)
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGCONT)
            p.until(lambda pid=pid: is_over(pid), 40)
            assert modes_of(p.slave) == modes, sig
            p.asks(b"echo he''re\r", b"Exit 130")


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


def t_a_terminal_that_takes_nothing():
    # the second has a megabyte of output that waits, in pieces
    for words in (TICKS, ("--", "sh", "-c", "echo ti''ck; sleep 2; yes | head -c 1000000; sleep 1000")):
        with at_terminal(*words, answers=False) as p:
            p.sees(b"tick")
            plug(p)
            time.sleep(3)  # in which it has something that is not taken
            p.process.send_signal(signal.SIGTERM)
            time.sleep(8)  # unread
            assert p.is_as_before()
            assert p.ends() == 130 and b"\x1b[?1049l" in p.seen and b"took nothing any more" in p.seen, p.seen[-600:]


def t_programs_of_a_whole_screen():
    with open("long", "w", encoding="utf-8") as f:
        f.writelines(f"line {n}\n" for n in range(200))
    if shutil.which("less"):
        with at_terminal("--file", "long", "--", "less", "long") as p:
            p.sees(b"line 20")
            p.asks(b"G", b"line 199")
            p.type(b"q")
            assert p.ends() == 0, p.seen
            is_as_it_was(p)
    if shutil.which("vim"):
        with at_terminal("--artifact", "new", "--out", "got", "--", "vim", "-u", "NONE", "-N", "new") as p:
            p.sees(b"\x1b[")
            p.asks(b"ihello there\x1b:wq\r", b"written")
            assert p.ends() == 0, p.seen
            with open("got/new", encoding="utf-8") as f:
                assert f.read() == "hello there\n"
            is_as_it_was(p)


def t_what_is_typed_is_stored_nowhere():
    secret = b"wo7rds-that-nobody-keeps"
    with at_terminal("--", "bash", "-c", "stty -echo; echo as''ked; read x; echo ${#x}") as p:
        p.asks(b"", b"asked\r\n")
        p.asks(secret + b"\r", f"{len(secret)}\r\n".encode())
        assert p.ends() == 0 and secret not in p.seen, p.seen
    job = str(newest())
    assert "asked" in lych("logs", job).stdout
    for top in (DATA, os.environ["XDG_RUNTIME_DIR"]):
        found = subprocess.run(["grep", "-rlaF", "--devices=skip", secret.decode(), top], capture_output=True, text=True, check=False)
        assert not found.stdout, found.stdout


def t_another_vessel():
    with at_terminal(*SHELL) as p:
        p.sees(b"in> ")
        was = processes()["vessel"]
        os.kill(was, signal.SIGKILL)
        p.asks(b"echo on''ce\r", b"\ronce\r\n")
        resize(p.at, 30, 90)
        p.asks(b"until [ \"$(stty size)\" = '30 90' ]; do sleep 0.05; done; echo res''ized\r", b"\rresized\r\n")
        assert p.seen.count(b"\ronce\r\n") == 1, p.seen
        p.type(b"exit 6\r")
        assert p.ends() == 6, p.seen
        is_as_it_was(p)
    assert processes()["vessel"] != was


def t_cancelled_beside_a_vessel_that_does_not_hear():
    for delay in (0, 0.1, 0.3, 0.8):
        with at_terminal(*RAW) as p:
            p.sees(b"ready")
            os.kill(processes()["vessel"], signal.SIGKILL)
            time.sleep(delay)
            p.process.send_signal(signal.SIGTERM)
            began = time.monotonic()
            assert p.ends() == 130 and b"\x1b[?1049l" in p.seen, (delay, p.seen)
            took = time.monotonic() - began
            is_as_it_was(p)
            print(f"  {delay} s behind the vessel's death: ended {took:.1f} s after the signal")
        is_state(newest(), "cancelled")
    now = processes()
    with at_terminal(*RAW) as p:
        p.sees(b"ready")
        os.kill(now["supervisor"], signal.SIGSTOP)
        os.kill(now["vessel"], signal.SIGSTOP)
        try:
            p.process.send_signal(signal.SIGTERM)
            p.until(p.is_as_before, 5)
            p.sees(b"cancelling job")  # said behind the answer to the client's own query
            assert p.is_as_before() and p.process.poll() is None, p.seen
        finally:
            os.kill(now["vessel"], signal.SIGCONT)
            os.kill(now["supervisor"], signal.SIGCONT)
        assert p.ends() == 130, p.seen
        is_as_it_was(p)
    is_state(newest(), "cancelled")


def t_a_lost_vessel():
    now = processes()
    with at_terminal(*RAW) as p:
        p.sees(b"ready")
        os.kill(now["supervisor"], signal.SIGSTOP)
        try:
            os.kill(now["vessel"], signal.SIGKILL)
            began = time.monotonic()
            assert p.ends() == 4, p.seen
            print(f"  given back {time.monotonic() - began:.1f} s after the vessel's death")
            is_as_it_was(p)
        finally:
            os.kill(now["supervisor"], signal.SIGCONT)
        assert b"\x1b[?1049l" in p.seen and b"followed no more" in p.seen, p.seen
    end = time.monotonic() + 60
    while lych("status").returncode:
        assert time.monotonic() < end, "no vessel"
        time.sleep(0.2)


def t_a_terminal_that_is_closed():
    # The kernel tells the session's leader alone: lych itself, and one that keeps it to itself and waits for lych.
    for leader in ((), ("bash", "-c", "trap : HUP; \"$@\"; :", "-")):
        p = Person([*leader, LYCH, "run", "--tty", "--timeout", "100", *RAW])
        p.sees(b"ready")
        job = newest()
        os.close(p.slave)
        os.close(p.at)
        p.process.wait(timeout=30)
        is_state(job, "cancelled")


# ---- one that stays ----

LEAVES = b"\x1dd"


def begun(*words):
    r = lych("run", "--tty", "--detach", "--timeout", "200", *words)
    assert r.returncode == 0, r
    return r.stdout.strip()


def attached(job, *options):
    return Person([LYCH, "attach", *options, job])


def is_running(job):
    assert json.loads(lych("show", job, "--json").stdout)["state"] == "running"


def t_left_and_come_back_to():
    job = begun(*SHELL)
    with attached(job) as p:
        p.sees(b"in> ")
        p.asks(b"x=kept; tty; stty size\r", b"/dev/pts/0\r\n24 80\r\n")
        # the keys for leaving, halfway: they are the job's
        p.asks(b"read -rsn1 a; printf '%q' \"$a\"; echo .\r", b"")
        time.sleep(0.5)
        p.asks(b"\x1d\x1d", b"$'\\035'.")
        p.type(LEAVES)
        assert p.ends() == 0 and b"left; job " + job.encode() in p.seen, p.seen
        is_as_it_was(p)
    time.sleep(3)  # longer than a client may be away elsewhere
    is_running(job)
    with attached(job) as p:
        resize(p.at, 31, 97)
        p.sees(b"$'\\035'.")  # its last lines
        p.asks(b"until [ \"$(stty size)\" = '31 97' ]; do sleep 0.05; done; echo =$x res''ized\r", b"=kept resized\r\n")
        p.type(b"exit 7\r")
        assert p.ends() == 7, p.seen
        is_as_it_was(p)
    with attached(job) as p:
        assert p.ends() == 1 and b"LYCH-RUN-006" in p.seen, p.seen
        is_as_it_was(p)


def t_whatever_ends_lych_leaves_it():
    job = begun(*RAW)
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        with attached(job) as p:
            p.sees(b"ready")
            p.process.send_signal(sig)
            assert p.ends() == 128 + sig and b"\x1b[?1049l" in p.seen and b"goes on" in p.seen, (sig, p.process.returncode, p.seen)
            is_as_it_was(p)
    p = attached(job)
    p.sees(b"ready")
    os.close(p.slave)
    os.close(p.at)
    p.process.wait(timeout=30)
    with attached(job) as p:
        p.sees(b"ready")
        p.process.kill()
        p.ends()
    is_running(job)
    now = processes()
    with attached(job) as p:
        p.sees(b"ready")
        os.kill(now["vessel"], signal.SIGKILL)
        time.sleep(1.5)
        assert p.process.poll() is None
        p.type(LEAVES)
        assert p.ends() == 0, p.seen
        is_as_it_was(p)
    is_running(job)
    assert lych("cancel", job).returncode == 0
    is_state(int(job), "cancelled")


def t_one_is_at_it_at_a_time():
    job = begun(*SHELL)
    with attached(job) as first:
        first.sees(b"in> ")
        with attached(job) as p:
            assert p.ends() == 1 and b"LYCH-TTY-007" in p.seen, p.seen
            is_as_it_was(p)
        first.asks(b"echo st''ill\r", b"still\r\n")
        with attached(job, "--take") as p:
            first.ends()
            assert first.process.returncode == 0 and b"somebody else is at its terminal" in first.seen, first.seen
            is_as_it_was(first)
            p.asks(b"echo mi''ne\r", b"mine\r\n")
            p.type(b"exit 3\r")
            assert p.ends() == 3, p.seen
            is_as_it_was(p)
    plain = lych("run", "--detach", "--", "sleep", "100").stdout.strip()
    with attached(plain) as p:
        assert p.ends() == 1 and b"LYCH-TTY-008" in p.seen, p.seen
    lych("cancel", plain)
    r = lych("attach", job)
    assert r.returncode == 2 and "LYCH-TTY-001" in r.stderr, r


def t_how_long_a_key_takes():
    with at_terminal("--", "cat") as p:
        p.until(lambda: not p.is_as_before())
        p.asks(b"begun\r", b"begun\r\nbegun\r\n")
        times = []
        for n in range(200):
            at, began = len(p.seen), time.monotonic()
            p.type(b"k")
            p.sees(b"k", at)
            times.append(time.monotonic() - began)
            if n % 40 == 39:
                p.asks(b"\r", b"k\r\n")
        p.type(b"\r\x04")
        assert p.ends() == 0, p.seen
    times.sort()
    print(f"  a key's echo: {statistics.median(times) * 1000:.1f} ms, the slowest tenth from {times[180] * 1000:.1f} ms (of {len(times)})")
    assert statistics.median(times) < 0.5, times


def floor_refuses():
    with at_terminal("--", "sh", "-c", "echo in''side") as p:
        assert p.ends() == 78 and b"LYCH-TTY-002" in p.seen and b"inside" not in p.seen, p.seen
        is_as_it_was(p)


def main():
    failed = []
    cases = [floor_refuses] if sys.argv[1:] == ["floor"] else [f for n, f in list(globals().items()) if n.startswith("t_")]
    for name, fn in [(f.__name__, f) for f in cases]:
        if os.environ.get("T") and not any(t in name for t in os.environ["T"].split(",")):
            continue
        began = time.monotonic()
        try:
            fn()
            print(f"ok {name} ({time.monotonic() - began:.1f} s)", flush=True)
        except Exception as e:  # pylint: disable=broad-except
            failed.append(name)
            print("FAIL", name, repr(e)[:1500], flush=True)
            traceback.print_exc()
    sys.exit(bool(failed))


main()
