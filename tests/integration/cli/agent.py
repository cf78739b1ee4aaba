# SPDX-License-Identifier: Apache-2.0
"""Run by test_agent.sh, with a Lychgate up. Each function named t_* is one case of `lych agent`; T: those alone. What a job's
terminal is: tty_run.py; what may be copied in: test_inputs.sh."""
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support" / "python"))

from person import Person, modes_of, resize  # noqa: E402 pylint: disable=wrong-import-position

LYCH = os.environ["LYCH_BIN"] + "/lych"
HOME = os.environ["HOME"]
LEAVES = b"\x1dd"
MARK = "mark-of-the-persons-home"


def lych(*args):
    return subprocess.run([LYCH, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)


def agent(*args, **more):
    return Person([LYCH, "agent", *args], **more)


def newest():
    return json.loads(lych("jobs", "--limit", "1", "--json").stdout)["jobs"][0]


def is_as_it_was(p):
    assert p.is_as_before(), modes_of(p.slave)
    assert (left := p.left()) == b"", left


def plant(path, text):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def t_a_shell_at_its_prompt():
    with agent("shell") as p:
        p.sees(b"/work$ ")
        assert not p.is_as_before()  # raw
        p.asks(b"tty; stty size; echo $TERM\r", b"/dev/pts/0\r\n24 80\r\nxterm-256color\r\n")
        p.asks(b"echo \"<$PWD $HOME>\"; ls -A\r", b"</work /work/.lych-home>\r\n.lych-home\r\n")
        resize(p.at, 31, 97)
        p.asks(b"until [ \"$(stty size)\" = '31 97' ]; do sleep 0.05; done; echo res''ized\r", b"\rresized\r\n")
        assert b"no job control" not in p.seen, p.seen
        p.type(b"exit 7\r")
        assert p.ends() == 7, p.seen
        is_as_it_was(p)
    job = json.loads(lych("show", str(newest()["id"]), "--json").stdout)["spec"]
    assert job["tty"]["stays"] is True and job["egress"] == "none" and job["limits"]["timeout_ms"] == 4 * 3600 * 1000, job


def t_left_and_come_back_to():
    with agent("shell") as p:
        p.sees(b"/work$ ")
        p.asks(b"x=kept; echo do''ne\r", b"\rdone\r\n")
        p.type(LEAVES)
        assert p.ends() == 0 and b"goes on: 'lych attach" in p.seen, p.seen
        is_as_it_was(p)
    job = newest()
    assert job["state"] == "running", job
    with Person([LYCH, "attach"]) as p:
        p.sees(b"/work$ ")
        p.asks(b"echo \"=$x=\"\r", b"=kept=\r\n")
        p.process.send_signal(signal.SIGHUP)
        assert p.ends() == 128 + signal.SIGHUP, p.seen
        is_as_it_was(p)
    with Person([LYCH, "attach", str(job["id"])]) as p:
        p.sees(b"/work$ ")
        p.asks(b"echo \"=$x=\"\r", b"=kept=\r\n")
        p.type(b"exit 5\r")
        assert p.ends() == 5, p.seen


def t_a_copy_of_the_project():
    tree = pathlib.Path("project").absolute()
    plant(tree / "src/main.c", "int main(void) { return 0; }\n")
    plant(tree / ".env", "TOKEN=x\n")
    plant(tree / "built.o", "x\n")
    plant(tree / ".gitignore", "*.o\n")
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    before = {str(f): f.read_bytes() for f in tree.rglob("*") if f.is_file()}
    with agent("shell", "--dir", str(tree), "--git") as p:
        p.sees(b"/work$ ")
        assert b".env" in p.seen, p.seen  # what is left out is named
        p.asks(b"ls -Am | cat; cat src/main.c\r", b".gitignore, .lych-home, src\r\nint main(void) { return 0; }\r\n")
        p.asks(b"echo changed >src/main.c; rm .gitignore; cat src/main.c\r", b"\rchanged\r\n")
        p.type(b"exit\r")
        assert p.ends() == 0, p.seen
    assert before == {str(f): f.read_bytes() for f in tree.rglob("*") if f.is_file()}
    jobs = newest()["id"]
    r = lych("agent", "shell", "--dir", HOME)
    assert r.returncode == 2 and newest()["id"] == jobs, r  # no terminal: nothing is looked at
    with agent("shell", "--dir", HOME) as p:
        assert p.ends() != 0 and b"LYCH-SPEC-016" in p.seen and newest()["id"] == jobs, p.seen
        is_as_it_was(p)


def t_nothing_of_the_persons_home():
    plant(HOME + "/.bashrc", f"echo {MARK}\n")
    plant(HOME + "/.bash_profile", f"echo {MARK}\n")
    plant(HOME + "/.claude/settings.json", MARK)
    with agent("shell", env={**os.environ, "MARK_OF_MINE": MARK, "BASH_ENV": HOME + "/.bashrc"}) as p:
        p.sees(b"/work$ ")
        p.asks(f"ls -d {HOME} {HOME}/.bashrc 2>&1 | grep -c 'No such'; echo fo''und\r".encode(), b"\r2\r\nfound\r\n")
        p.asks(b"env | grep -c '" + HOME.encode() + b"\\|MARK_OF'; echo coun''ted\r", b"\r0\r\ncounted\r\n")
        p.asks(b"ls -A ~ | wc -l; ls -d ~/.claude; echo li''sted\r", b"No such file or directory\r\nlisted\r\n")
        p.type(b"exit\r")
        p.ends()
        assert MARK.encode() not in p.seen, p.seen


def t_of_the_users_own():
    """A profile of the user's own comes before the one of that name; its files, environment, limits and words reach the job."""
    own = plant(HOME + "/.config/lychgate/agents/shell.yaml", """version: "1"
summary: mine
command:
  - bash
  - --norc
  - -c
  - 'echo "<$(cat ~/.own/rc) $OWN $HOME>"; printf "(%s)" "$@"; ulimit -a >/dev/null; echo'
  - word
env:
  - "OWN=of mine"
home: deep/er
files:
  - path: .own/rc
    text: 'a "text" of mine'
memory: 64MiB
processes: "50"
timeout: 1m
""")
    own.chmod(0o644)
    try:
        with agent("shell", "--memory", "96m", "--", "a b", "--dir", "-x") as p:
            assert p.ends() == 0, p.seen
            assert b'<a "text" of mine of mine /work/deep/er>' in p.seen and b"(a b)(--dir)(-x)" in p.seen, p.seen
            is_as_it_was(p)
        limits = json.loads(lych("show", str(newest()["id"]), "--json").stdout)["spec"]["limits"]
        assert (limits["memory_bytes"], limits["processes"], limits["timeout_ms"]) == (96 << 20, 50, 60000), limits
    finally:
        own.unlink()


def t_how_long_to_the_prompt():
    def took(argv, env):
        began = time.monotonic()
        with Person(argv, env=env) as p:
            p.sees(b"$ ")
            ends = time.monotonic()
            p.type(b"exit\r")
            assert p.ends() == 0, p.seen
        return (ends - began) * 1000
    env = {**os.environ, "PS1": "$ "}
    shell = ["bash", "--norc", "--noprofile", "-i"]
    ways = {"lych agent shell": [LYCH, "agent", "shell"], "lych run --tty": [LYCH, "run", "--tty", "-e", "PS1", "--", *shell], "bare": shell}
    times = zip(*[[took(argv, env) for argv in ways.values()] for _ in range(9)])
    print("  to a shell's prompt, least and median of 9:",
          *(f"{way} {min(t):.0f} and {statistics.median(t):.0f} ms;" for way, t in zip(ways, times)))


def t_a_vessel_that_is_away():
    assert lych("down").returncode == 0
    with agent("shell") as p:
        assert p.ends() == 4 and b"LYCH-HTTP-008" in p.seen, p.seen
        is_as_it_was(p)
    subprocess.run([LYCH, "up", "--detach"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)


def main():
    failed = []
    for name, fn in [(n, f) for n, f in list(globals().items()) if n.startswith("t_")]:
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
