# SPDX-License-Identifier: Apache-2.0
"""Run by test_stdin_run.sh, with a Lychgate up. Each function named t_* is one case: what `lych run` does with a stdin
that does not end at once. Who else may feed a job is in tests/integration/queue/stdin.py."""
import hashlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
import traceback

LYCH = os.environ["LYCH_BIN"] + "/lych"
HERE = os.path.dirname(os.path.abspath(__file__))
PIPE = subprocess.PIPE


def lych(*args, **more):
    return subprocess.run([LYCH, *args], **{"stdin": subprocess.DEVNULL, "capture_output": True, "text": True,
                                            "check": False, "timeout": 60, **more})


def run(*args, **more):
    """`lych run`, whose stdin we hold."""
    return subprocess.Popen([LYCH, "run", *args], **{"stdin": PIPE, "stdout": PIPE, "stderr": PIPE, "bufsize": 0, **more})


def newest():
    return json.loads(lych("jobs", "--limit", "1", "--json").stdout)["jobs"][0]["id"]


def show(job):
    return json.loads(lych("show", str(job), "--json").stdout)


def pid_of(name):
    return json.loads(lych("status", "--json").stdout)["processes"][name]


def until(what, limit=30):
    end = time.monotonic() + limit
    while not what():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.05)


def rss(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1]) >> 10


def up():
    until(lambda: lych("status").returncode == 0 and pid_of("tomb") and pid_of("vessel"), 60)


def t_one_that_never_ends_is_not_waited_for():
    began = time.monotonic()
    p = run("--", "echo", "hi")
    assert p.stdout.read() == b"hi\n" and p.wait(30) == 0, p.stderr.read()
    print(f"  {time.monotonic() - began:.2f} s")
    assert show(newest())["spec"]["retry"] == "never"


def t_a_short_one_is_kept():
    p = run("--", "cat")
    assert p.communicate(b"x\n", 30)[0] == b"x\n" and p.returncode == 0
    spec = show(newest())["spec"]
    assert (spec["stdin"], spec["retry"]) == ("x\n", "on_lost"), spec


def t_a_file_is_kept_whatever_its_size():
    data = os.urandom(700000)
    with open("input", "wb") as f:
        f.write(data)
    with open("input", "rb") as f:
        r = lych("run", "--", "sha256sum", stdin=f)
    assert r.stdout.split()[0] == hashlib.sha256(data).hexdigest()
    assert "stdin_blob" in show(newest())["spec"]


def t_who_needs_all_of_it_waits_for_it():
    for option in (["--detach"], ["--retry", "on_lost"], ["--request-id", f"whole-{os.getpid()}"]):
        p = run(*option, "--", "cat")
        time.sleep(0.3)
        assert p.poll() is None
        out = p.communicate(b"late\n", 30)[0]
        assert p.returncode == 0 and out == (b"%d\n" % newest() if option == ["--detach"] else b"late\n"), out
        spec = show(newest())["spec"]
        assert (spec["stdin"], spec["retry"]) == ("late\n", "on_lost"), spec


def t_bytes_in_pieces():
    data = os.urandom(4 << 20)
    p = run("--", "sha256sum")
    time.sleep(0.2)
    for at in range(0, len(data), 999983):
        p.stdin.write(data[at:at + 999983])
    assert p.communicate(timeout=60)[0].split()[0].decode() == hashlib.sha256(data).hexdigest()
    assert p.returncode == 0


class Server:
    """A client of an MCP server over stdio: one JSON-RPC object a line."""

    def __init__(self):
        self.p = run("--file", HERE + "/mcp_server.py", "--", "python3", "mcp_server.py")
        self.id = 0
        self.times = []

    def send(self, method, params, **more):
        self.p.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode() + b"\n")

    def ask(self, method, **params):
        self.id += 1
        began = time.monotonic()
        self.send(method, params, id=self.id)
        line = self.p.stdout.readline()
        self.times.append(time.monotonic() - began)
        assert line, self.p.stderr.read()
        answer = json.loads(line)
        assert answer["jsonrpc"] == "2.0" and answer["id"] == self.id, answer
        return answer


def t_an_mcp_server_answers_line_by_line():
    s = Server()
    hello = s.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "1"})
    assert hello["result"]["protocolVersion"] == "2025-06-18" and "tools" in hello["result"]["capabilities"], hello
    first = s.times.pop()
    s.send("notifications/initialized", {})
    tools = s.ask("tools/list")["result"]["tools"]
    assert [t["name"] for t in tools] == ["add"] and tools[0]["inputSchema"]["required"] == ["a", "b"], tools
    for n in range(100):
        r = s.ask("tools/call", name="add", arguments={"a": n, "b": 1})["result"]
        assert r == {"content": [{"type": "text", "text": str(n + 1)}], "isError": False}, r
    assert s.ask("tools/call", name="other", arguments={})["error"]["code"] == -32602
    assert s.ask("no/such/method")["error"]["code"] == -32601
    s.p.stdin.close()
    assert s.p.wait(30) == 0 and s.p.stderr.read() == b"server: end of input\n"
    print(f"  first answer {first:.2f} s after its start; then {statistics.median(s.times) * 1000:.1f} ms (median), "
          f"{max(s.times) * 1000:.1f} ms at most, there and back")


def t_a_job_that_ends_early():
    p = run("--", "sh", "-c", "head -c 3; exit 7")
    broken = []

    def write():
        try:
            while True:
                p.stdin.write(b"yes\n" * 1000)
        except BrokenPipeError:
            broken.append(True)

    t = threading.Thread(target=write)
    t.start()
    assert p.wait(30) == 7
    t.join(10)
    assert p.stdout.read() == b"yes" and broken


def t_a_job_that_closes_it():
    p = run("--", "sh", "-c", "exec 0<&-; sleep 2; exit 3")
    try:
        while p.poll() is None:
            p.stdin.write(b"yes\n" * 1000)
    except BrokenPipeError:
        pass
    assert p.poll() is None, "its writer was let go only at its end"
    assert p.wait(30) == 3


def t_a_job_that_does_not_read():
    vessel, tomb = pid_of("vessel"), pid_of("tomb")
    before = {"vessel": rss(vessel), "tomb": rss(tomb)}
    p = run("--", "sleep", "4")
    written = [0, None]

    def write():  # a gibibyte, if it can be got rid of
        zeros = bytes(64 << 10)
        try:
            while written[0] < 1 << 30:
                written[0] += p.stdin.write(zeros)
        except BrokenPipeError as e:
            written[1] = e

    t = threading.Thread(target=write)
    t.start()
    most = dict(before, lych=0)
    while p.poll() is None:
        for name, pid in (("vessel", vessel), ("tomb", tomb), ("lych", p.pid)):
            try:
                most[name] = max(most[name], rss(pid))
            except (FileNotFoundError, TypeError):
                pass
        time.sleep(0.1)
    t.join(10)
    assert p.returncode == 0 and written[1], (p.returncode, written)
    print(f"  MiB before {before}, at most {most}; of 1 GiB {written[0] >> 10} KiB were read")
    assert most["vessel"] - before["vessel"] < 8 and most["tomb"] - before["tomb"] < 8 and most["lych"] < 32, most
    assert written[0] < 4 << 20
    with open("/dev/zero", "rb") as zero:
        assert lych("run", "--", "sleep", "0.5", stdin=zero).returncode == 0


def t_a_reader_that_is_late():
    data = os.urandom(4 << 20)
    p = run("--", "cat")
    time.sleep(0.2)
    p.stdin.write(data)  # a program in a pipe would wait for its reader
    p.stdin.close()
    assert p.stdout.read() == data and p.wait(30) == 0


def t_a_client_that_is_killed():
    p = run("--", "sh", "-c", "while read -r x; do echo got $x; done; echo the end")
    p.stdin.write(b"one\n")
    assert p.stdout.readline() == b"got one\n"
    job = newest()
    p.kill()
    p.wait()
    until(lambda: show(job)["state"] == "succeeded", 9)
    assert lych("logs", str(job)).stdout == "got one\nthe end\n"


def t_an_interrupt():
    p = run("--", "cat")
    p.stdin.write(b"x\n")
    assert p.stdout.readline() == b"x\n"
    p.send_signal(signal.SIGINT)
    assert p.wait(30) == 130
    assert show(newest())["state"] == "cancelled"


def numbered(p, n, got):
    for i in range(n):
        p.stdin.write(b"line %d\n" % i)
        time.sleep(0.002)
    p.stdin.close()
    got.append(True)


def t_the_vessel_is_killed():
    n, got = 1500, []
    p = run("--", "cat")
    t = threading.Thread(target=numbered, args=(p, n, got))
    t.start()
    assert p.stdout.readline() == b"line 0\n"
    time.sleep(1)
    os.kill(pid_of("vessel"), signal.SIGKILL)
    out = p.stdout.read()
    t.join(30)
    assert p.wait(60) == 0 and got, p.stderr.read()
    assert out == b"".join(b"line %d\n" % i for i in range(1, n)), "a line was lost, doubled or moved"
    up()


def t_the_tomb_is_killed():
    p = run("--", "sh", "-c", "echo begins; cat")
    p.stdin.write(b"once\n")
    assert p.stdout.readline() + p.stdout.readline() == b"begins\nonce\n"
    job = newest()
    os.kill(pid_of("tomb"), signal.SIGKILL)
    said = p.communicate(timeout=90)[1].decode()
    assert p.returncode == 4, (p.returncode, said)
    assert "LYCH-EXEC-009" in said and "LYCH-RUN-015" in said, said
    j = show(job)
    assert (j["state"], j["class"], j["attempts"], j["lost"]) == ("lost", "transport_loss", 1, 1), j
    print("  " + said.strip().replace("\n", "\n  "))
    r = lych("retry", str(job))
    assert r.returncode != 0 and "LYCH-RUN-015" in r.stderr, r
    why = lych("why", str(job)).stdout
    assert "LYCH-RUN-015" in why and "lych retry" not in why, why
    # one whose stdin was kept runs again
    up()
    tomb = pid_of("tomb")
    p = run("--", "sh", "-c", "echo begins; read -r x; sleep 1; echo $x")
    p.stdin.write(b"kept\n")
    p.stdin.close()
    p.stdin = None
    assert p.stdout.readline() == b"begins\n"
    os.kill(tomb, signal.SIGKILL)
    assert p.communicate(timeout=90)[0] == b"begins\nkept\n" and p.returncode == 0
    assert show(newest())["lost"] == 1
    up()


def main():
    failed = []
    for name, fn in [(n, f) for n, f in list(globals().items()) if n.startswith("t_")]:
        if os.environ.get("T") and not any(t in name for t in os.environ["T"].split(",")):
            continue
        began = time.monotonic()
        try:
            fn()
            print(f"ok {name[2:]} ({time.monotonic() - began:.1f} s)", flush=True)
        except Exception as e:  # pylint: disable=broad-except
            failed.append(name)
            print("FAIL", name[2:], repr(e)[:1500], flush=True)
            traceback.print_exc()
    sys.exit(bool(failed))


main()
