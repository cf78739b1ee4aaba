# SPDX-License-Identifier: Apache-2.0
"""Run by test_contain_live.sh: LYCH PORT TOMB; triggers.py judges by it, too. The provider of the portal is here, and hears when its stream ends; the processes are
counted in /proc by a word in their command lines, as a stranger would."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid

LYCH, PORT, TOMB = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
OTHERS = 8
LAST_BYTE_SEC, DEAD_SEC = 1.0, 2.0

ATTACK = """
import os, signal, subprocess, sys, time, urllib.request
word = sys.argv[1]
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(s, signal.SIG_IGN)
many = [subprocess.Popen([word, "600"], executable="/bin/sleep", start_new_session=i % 2 == 0) for i in range(60)]
rq = urllib.request.Request(os.environ["LYCHGATE_BROKER"] + "/v1/chat/completions", data=(
    '{"model":"m","max_tokens":20000,"stream":true,"messages":[{"role":"user","content":"%s"}]}' % word).encode(),
    headers={"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"})
print("begun", flush=True)
while True:
    try:
        with urllib.request.urlopen(rq) as r:
            while r.read1(65536):
                print("streaming", flush=True)
    except OSError as e:
        print(e, flush=True)
    time.sleep(0.05)
"""


class Stream(threading.Thread):
    """One accepted connection: a reply without an end. When it last took a byte, and when it was closed."""

    def __init__(self, s):
        super().__init__(daemon=True)
        self.s, self.text, self.last, self.closed = s, b"", 0, 0
        self.start()

    def is_whole(self):
        head, _, body = self.text.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: *([0-9]+)", head)
        return length is not None and len(body) >= int(length[1])

    def run(self):
        try:
            while not self.is_whole():
                got = self.s.recv(65536)
                if not got:
                    return
                self.text += got
            self.s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
            self.s.setblocking(False)
            while True:
                try:
                    self.s.send(b'data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":'
                                b'[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}\n\n')
                    self.last = time.monotonic()
                    if self.s.recv(1) == b"":
                        break
                except BlockingIOError:
                    pass
                time.sleep(0.01)
        except OSError:
            pass
        self.closed = time.monotonic()


class Provider:
    def __init__(self):
        self.streams = []
        self.s = socket.create_server(("127.0.0.1", PORT))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            self.streams.append(Stream(self.s.accept()[0]))

    def of(self, word):
        return [x for x in self.streams if word.encode() in x.text]


provider = Provider()


def lych(*args, code=0):
    p = subprocess.run([LYCH, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    assert p.returncode == code, (args, p.returncode, p.stdout, p.stderr)
    return p.stdout + (p.stderr if code else "")


def until(what, seconds=60):
    end = time.monotonic() + seconds
    while not (got := what()):
        assert time.monotonic() < end, "not in time"
        time.sleep(0.05)
    return got


def alive(word):
    """Processes with this word in their command line, but for our own."""
    n = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                n += word.encode() in f.read() and int(pid) != os.getpid()
        except OSError:
            pass
    return n


def state(job):
    return json.loads(lych("show", str(job), "--json"))["state"]


def run(*args):
    return int(lych("run", "--detach", "-n", *args).split()[-1])


def attack():
    word = "attack" + uuid.uuid4().hex
    with open("attack.py", "w", encoding="ascii") as f:
        f.write(ATTACK)
    job = run("--timeout", "10m", "--processes", "200", "--egress", "brokered", "--file", "attack.py", "--", "python3", "attack.py", word)
    until(lambda: alive(word) > 60 and any(x.last for x in provider.of(word)))
    return job, word


def contain(job, word):
    """What outside saw, in seconds since it was begun; and what lych says."""
    seen = {}

    def watch():
        while alive(word):
            time.sleep(0.01)
        seen["dead"] = time.monotonic() - began

    began = time.monotonic()
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    said = json.loads(lych("contain", "--reason", "it attacks", "--json", str(job)))
    watcher.join(60)
    took = time.monotonic() - began
    time.sleep(0.5)
    last = max(x.last for x in provider.of(word)) - began
    assert all(x.closed for x in provider.of(word)), "a stream is still open"
    assert said["done"] and [s["ms"] for s in said["steps"]].count(None) == 0, said
    return seen["dead"], last, took, said


def others_run_on(others):
    before = [lych("logs", str(j)).count("\n") for j in others]
    until(lambda: all(lych("logs", str(j)).count("\n") > n for j, n in zip(others, before)), 30)
    assert [state(j) for j in others] == ["running"] * OTHERS


def main():
    others = [run("--timeout", "10m", "--", "sh", "-c", "while :; do echo on; sleep 0.2; done") for _ in range(OTHERS)]
    until(lambda: all(state(j) == "running" for j in others))
    job, word = attack()
    assert state(job) == "running"
    dead, last, took, said = contain(job, word)
    print(f"last byte {last * 1000:.0f} ms, last process {dead * 1000:.0f} ms, all done {took * 1000:.0f} ms after lych began:",
          *(f"{s['step']} {s['ms']}" for s in said["steps"]), flush=True)
    assert last <= LAST_BYTE_SEC and dead <= DEAD_SEC, (last, dead)
    assert said["tree_dead_by"] == "worker" and said["state"] == "quarantined", said
    assert json.loads(said["evidence"])["output"]["stdout"]["bytes"] > 0, said
    asked = len(provider.of(word))
    for command in ("retry", "rm", "logs"):
        assert "LYCH-RUN-012" in lych(command, str(job), code=1)
    assert "streaming" in lych("logs", "--tainted", str(job))
    others_run_on(others)
    assert len(provider.of(word)) == asked and alive(word) == 0 and state(job) == "quarantined"

    # the worker itself is killed at that moment: its successor has the proof
    job, word = attack()
    os.kill(TOMB, signal.SIGKILL)
    dead, last, took, said = contain(job, word)
    print(f"with its worker killed: last process {dead * 1000:.0f} ms, all done {took * 1000:.0f} ms,", said["tree_dead_by"], flush=True)
    assert dead <= DEAD_SEC and said["tree_dead_by"] in ("worker", "lease"), (dead, said)
    for j in others:
        subprocess.run([LYCH, "cancel", "--no-wait", str(j)], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)


if __name__ == "__main__":
    main()
