# SPDX-License-Identifier: Apache-2.0
"""Run by test_budget_hard.sh: DIR VESSEL. ROUNDS=N: so many storms, the vessel killed in all but the first."""
import atexit
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import threading
import time
import uuid

from rig import ARGS, BOOT, D, WORK, Unix, Vessel, api, call, lease_headers, main, psql, settle, submit, want

KEY = "sk-stand-in-0123456789abcdefghij"
ROUNDS = int(os.environ.get("ROUNDS", "1"))
SEED = int(os.environ.get("SEED") or random.randrange(1 << 30))
LIMITS = {"tokens": 400000, "money": 1500000, "bytes": 6 << 20}


class Provider:
    """The stand-in; IN and OUT: what a million tokens cost, in millionths."""

    def __init__(self, name, *args):
        self.log = f"{D}/{name}.log"
        open(self.log, "w").close()
        self.p = subprocess.Popen(["python3", "-B", "tests/support/python/provider.py", "--key", KEY, "--log", self.log,
                                   "--prices", "3000000,15000000", *args], stdout=subprocess.PIPE, text=True)
        atexit.register(self.p.kill)
        self.port = int(self.p.stdout.readline().split()[1])

    def ledger(self):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        c.request("GET", "/ledger", headers={"Authorization": "Bearer " + KEY})
        got = json.loads(c.getresponse().read())
        c.close()
        return got


PROVIDERS = {"main": Provider("main"), "old": Provider("old", "--cap", "max_tokens"),
             "new": Provider("new", "--cap", "max_completion_tokens"), "anthro": Provider("anthro")}
MODELS = {"main": "m", "old": "o", "new": "n", "anthro": "a"}
KIND = {"anthro": "anthropic"}
LONGEST = {"main": 50000, "old": 3000, "new": 3000, "anthro": 3000}


def portal(name):
    base = "" if name in KIND else "/v1"
    cap = "    output_cap: max_completion_tokens\n" if name == "new" else ""
    return f"""  - name: {name}
    kind: {KIND.get(name, "openai")}
    url: "http://127.0.0.1:{PROVIDERS[name].port}{base}"
    secret: portal_{name}
{cap}    addresses:
      - 127.0.0.1
    models:
      - {{name: {MODELS[name]}, input: "3", output: "15", picture: 1600, max_output: {LONGEST[name]}}}
"""


def codex(limits):
    """limits: of the day; a job and an identity have no fewer."""
    amounts = f"tokens: {limits['tokens']}, money: \"{limits['money'] / 1e6}\", bytes: {limits['bytes']}"
    text = ('version: "1"\nportals:\n' + "".join(portal(n) for n in PROVIDERS) + "ward:\n" +
            "".join(f"  - {{portal: {n}, action: allow}}\n" for n in PROVIDERS) + "budgets:\n" +
            "".join(f"  {s}: {{requests: 1000000, {amounts}, denials: 1000000}}\n" for s in ("job", "identity_day", "day")) +
            "egress: {in_flight: 64}\n")
    with open(D + "/codex.yaml", "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(D + "/codex.yaml", 0o600)


def claim(job):
    row = ""
    while not row:
        row = psql(f"SELECT job_id, epoch, token FROM tomb_api.claim('main', 1, 300, '{BOOT}', '{uuid.uuid4()}')")
    lease = row.split("|")
    assert int(lease[0]) == job, lease
    return lease


def new_job():
    return claim(submit(egress="brokered", limits={"timeout_ms": 600000}))


def books(scope, lease):
    rows = want(api("GET", f"/v1/budget?job={lease[0]}"), 200).json["books"]
    none = {k: 0 for k in ("requests", "tokens", "money", "bytes")}
    return next((r for r in rows if r["scope"] == scope), {"spent": none, "reserved": none})


def settled(lease, scope="day"):
    """What was spent, once nothing is reserved and no provider works on anything."""
    end = time.monotonic() + 30
    while any(p.ledger()["open"] for p in PROVIDERS.values()) or any(books(scope, lease)["reserved"].values()):
        assert time.monotonic() < end, (books(scope, lease), [p.ledger() for p in PROVIDERS.values()])
        time.sleep(0.05)
    return books(scope, lease)["spent"]


def billed():
    total = {}
    for p in PROVIDERS.values():
        for k, v in p.ledger().items():
            total[k] = total.get(k, 0) + v
    return total


class Books:
    """What was spent and billed since it was made: the books of a day go on from case to case."""

    def __init__(self, lease, scope="day"):
        self.lease, self.scope = lease, scope
        self.spent = settled(lease, scope)
        self.billed = billed()

    def compare(self):
        """Nothing is billed that was not booked."""
        spent = {k: v - self.spent.get(k, 0) for k, v in settled(self.lease, self.scope).items()}
        bill = {k: v - self.billed[k] for k, v in billed().items()}
        assert bill["micro"] <= spent["money"], (bill, spent)
        assert bill["input"] + bill["output"] <= spent["tokens"], (bill, spent)
        return bill, spent


def request(portal_name, text, stream=False, **more):
    rq = {"model": MODELS[portal_name], "messages": [{"role": "user", "content": text}], **more}
    if stream:
        rq["stream"] = True
    return {"dialect": KIND.get(portal_name, "openai"), "stream": stream, "request": rq}


seqs = {}
seq_lock = threading.Lock()


def next_seq(lease):
    with seq_lock:
        seqs[lease[0]] = seqs.get(lease[0], 0) + 1
        return seqs[lease[0]]


def ask(lease, *args, **more):
    return call(WORK, "POST", "/work/v1/ask", {"seq": next_seq(lease), **request(*args, **more)}, lease_headers(lease))


def begin(lease, *args, **more):
    """A request whose answer has begun: its connection and the answer."""
    c = Unix(WORK)
    c.request("POST", "/work/v1/ask", json.dumps({"seq": next_seq(lease), **request(*args, **more)}), lease_headers(lease))
    r = c.getresponse()
    assert r.status == 200 and r.read(20), r.status
    return c, r


def restart(limits):
    global vessel
    assert vessel.stop() == 0
    codex(limits)
    vessel = Vessel()


def last_request(name):
    while PROVIDERS[name].ledger()["open"]:
        time.sleep(0.01)
    with open(PROVIDERS[name].log, encoding="utf-8") as f:
        return json.loads(json.loads([line for line in f if '"POST"' in line][-1])["body"])


# ---- one at a time ----

def t_a_request_without_a_cap_gets_one_that_the_budget_covers():
    lease = new_job()
    b = Books(lease)
    for name, field in (("main", "max_tokens"), ("old", "max_tokens"), ("new", "max_completion_tokens"),
                        ("anthro", "max_tokens")):
        want(ask(lease, name, "hello"), 200)
        assert 16 <= last_request(name)[field] <= LONGEST[name], last_request(name)
        # whatever the job calls it, and however often, the portal's own stands there
        if name != "anthro":
            want(ask(lease, name, "hello", max_tokens=900, max_completion_tokens=70), 200)
            rq = last_request(name)
            assert rq[field] == 70 and not {"max_tokens", "max_completion_tokens"} - {field} & set(rq), rq
    b.compare()


def t_a_huge_reply_is_as_long_as_what_is_left():
    lease = new_job()
    b = Books(lease)
    before = b.spent
    a = want(ask(lease, "main", "huge"), 200)
    cap = last_request("main")["max_tokens"]
    assert a.json["choices"][0]["finish_reason"] == "length" and a.json["usage"]["completion_tokens"] == cap
    for _ in range(30):
        a = ask(lease, "main", "huge", max_tokens=1000000, n=2)
        if a.status == 429:
            break
    want(a, 429)
    assert a.code in ("LYCH-BUDGET-002", "LYCH-BUDGET-003"), a
    bill, spent = b.compare()
    print("   of", {k: LIMITS[k] - before.get(k, 0) for k in ("tokens", "money")}, "left, billed", bill["micro"], "booked", spent["money"])
    day = books("day", lease)["spent"]
    assert day["tokens"] <= LIMITS["tokens"] and day["money"] <= LIMITS["money"], day
    assert day["money"] > LIMITS["money"] * 0.9, "and most of it could be used"


def t_a_stream_that_is_left_costs_all_that_was_reserved():
    restart({k: v * 100 for k, v in LIMITS.items()})
    lease = new_job()
    for name in PROVIDERS:
        b = Books(lease, "job")
        c, r = begin(lease, name, "huge 0.01", True, max_tokens=3000)
        reserved = books("job", lease)["reserved"]
        r.close()
        c.close()
        bill, spent = b.compare()
        assert spent["tokens"] == reserved["tokens"] and spent["money"] == reserved["money"], (spent, reserved)
        assert spent["tokens"] >= 3000 and bill["output"] > 0


def t_an_answer_that_nobody_waits_for_is_billed_and_booked():
    lease = new_job()
    b = Books(lease, "job")
    s = socket.socket(socket.AF_UNIX)
    s.connect(WORK)
    body = json.dumps({"seq": next_seq(lease), **request("main", "slow 0.4", max_tokens=500)})
    head = "".join(f"{k}: {v}\r\n" for k, v in lease_headers(lease).items())
    s.sendall(f"POST /work/v1/ask HTTP/1.1\r\nHost: lychgate\r\n{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    while not PROVIDERS["main"].ledger()["open"]:
        time.sleep(0.02)
    s.close()
    bill, spent = b.compare()
    assert bill["requests"] == 1 and spent["requests"] == 1 and spent["tokens"] >= 500, (bill, spent)


def t_a_usage_that_says_less_than_came_is_not_believed():
    lease = new_job()
    for stream in (False, True):
        b = Books(lease, "job")
        want(ask(lease, "main", "deny", stream, max_tokens=2000), 200)
        bill, spent = b.compare()
        assert bill["output"] == 2000 and spent["tokens"] > 2000, (bill, spent)
    b = Books(lease, "job")
    want(ask(lease, "main", "quiet and more", True, max_tokens=2000), 200)
    _, spent = b.compare()
    assert spent["tokens"] > 2000, spent


def t_what_costs_more_is_refused_and_so_is_not_billed():
    lease = new_job()
    b = Books(lease, "job")
    for name, more in (("main", {"service_tier": "priority"}), ("anthro", {"service_tier": "priority"}),
                       ("anthro", {"speed": "fast"}), ("anthro", {"inference_geo": "us"}),
                       ("main", {"prediction": {"type": "content", "content": "x"}}),
                       ("main", {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}}),
                       ("anthro", {"context_management": {"edits": [{"type": "compact_20260112"}]}})):
        want(ask(lease, name, "hello", max_tokens=100, **more), 400, "LYCH-BROKER-008")
    for beta in ("context-1m-2025-08-07", "fast-mode-2026-02-01", "effort-2025-11-24,context-1m-2025-08-07", "new-2030-01-01"):
        body = {"seq": next_seq(lease), **request("anthro", "hello", max_tokens=100), "beta": beta}
        want(call(WORK, "POST", "/work/v1/ask", body, lease_headers(lease)), 400, "LYCH-BROKER-008")
    bill, spent = b.compare()
    assert bill["requests"] == 0 and spent["requests"] == 0, (bill, spent)


def t_what_is_written_to_a_cache_is_reserved_at_its_price():
    lease = new_job()
    for ttl in ({}, {"ttl": "1h"}):
        b = Books(lease, "job")
        block = {"type": "text", "text": "slow 0.3 " + "\u2014" * 3000, "cache_control": {"type": "ephemeral", **ttl}}
        t = threading.Thread(target=ask, args=(lease, "anthro", [block]), kwargs={"max_tokens": 20})
        t.start()
        while not books("job", lease)["reserved"]["requests"]:
            time.sleep(0.01)
        reserved = books("job", lease)["reserved"]
        t.join()
        bill, _ = b.compare()
        assert bill["micro"] <= reserved["money"], (bill, reserved)


def t_bytes_of_a_reply_end_where_the_budget_does():
    restart({**{k: v * 1000 for k, v in LIMITS.items()}, "bytes": 20 << 20})
    lease = new_job()
    before = books("day", lease)["spent"]["bytes"]
    threads, got = [], []

    def one():
        c = Unix(WORK)
        c.request("POST", "/work/v1/ask", json.dumps({"seq": next_seq(lease), **request("main", "large 250000", n=16)}),
                  lease_headers(lease))
        try:
            r = c.getresponse()
            n = len(r.read())
            got.append((r.status, n))
        except http.client.IncompleteRead as e:
            got.append((0, len(e.partial)))
        c.close()
    for _ in range(8):
        threads.append(threading.Thread(target=one))
        threads[-1].start()
    for t in threads:
        t.join()
    day = settled(lease)
    print("   ", got, "booked", day["bytes"] - before)
    assert day["bytes"] <= 20 << 20, day
    assert sum(n for _, n in got) <= (20 << 20) - before
    assert any(s == 0 for s, _ in got) and any(s == 200 and n > 4000000 for s, n in got), got


# ---- all at once ----

def rude(rng, lease, got):
    """One who asks: without a cap, with an absurd one, for several answers, and leaves when it likes."""
    for _ in range(rng.randrange(2, 6)):
        name = rng.choice(list(PROVIDERS))
        stream = rng.random() < 0.6
        text = rng.choice(["hello", "huge", "huge 0.002", "deny", "quiet", "once " + uuid.uuid4().hex, "broken", "cut",
                           "large 20000", "slow 0.2", "hello " + "\u00e9" * rng.randrange(3000)])
        more = rng.choice([{}, {"max_tokens": 50}, {"max_tokens": 999999}])
        if name != "anthro":
            more = {**more, **rng.choice([{}, {"n": 3}, {"max_completion_tokens": 500000}])}
        else:
            more = {**more, **rng.choice([{}, {"cache_control": {"type": "ephemeral"}}, {"service_tier": "priority"}])}
        c = Unix(WORK, timeout=60)
        try:
            c.request("POST", "/work/v1/ask", json.dumps({"seq": next_seq(lease), **request(name, text, stream, **more)}),
                      lease_headers(lease))
            if rng.random() < 0.3:
                time.sleep(rng.random() * 0.2)
                continue
            r = c.getresponse()
            if rng.random() < 0.4:
                r.read(rng.randrange(1, 3000))
                continue
            r.read()
            got.append(r.status)
        except (OSError, http.client.HTTPException):
            got.append(0)
        finally:
            c.close()


def storm(seed, kill):
    global vessel
    leases = [new_job() for _ in range(5)]
    got, threads = [], []
    for i in range(50):
        threads.append(threading.Thread(target=rude, args=(random.Random(seed * 1000 + i), leases[i % 5], got)))
        threads[-1].start()
    if kill:
        time.sleep(random.Random(seed).random())
        vessel.stop(signal.SIGKILL)
        vessel = Vessel()
    for t in threads:
        t.join()
    day = settled(leases[0])
    for lease in leases:  # a tomb has no more than 64, and one that ends is handed out again
        settle(lease, "ack", {"v": 1, "exit_code": 0})
    return got, day


def t_fifty_at_once_never_cost_more_than_the_limit():
    print("   seed", SEED)
    lease = new_job()
    settle(lease, "ack", {"v": 1, "exit_code": 0})
    b = Books(lease)
    limits = {"tokens": b.spent["tokens"] + LIMITS["tokens"], "money": b.spent["money"] + LIMITS["money"],
              "bytes": b.spent["bytes"] + (64 << 20)}
    met = 0
    for n in range(ROUNDS):
        # each round has some more to spend than was spent, so that it is used up again and again
        restart(limits)
        got, day = storm(SEED + n, n > 0)
        bill, spent = b.compare()
        print(f"   round {n}: {len(got)} answers, {got.count(200)} whole; billed {bill['micro']} of {spent['money']} booked, of "
              f"{limits['money'] - b.spent['money']}; tokens {bill['input'] + bill['output']} of {spent['tokens']}")
        assert day["money"] <= limits["money"] and day["tokens"] <= limits["tokens"], (day, limits)
        assert bill["micro"] <= limits["money"] - b.spent["money"]
        met += got.count(429) > 0
        assert psql("SELECT sum(bad) FROM lych.invariants()", "lych_migrate") == "0"
        limits = {"tokens": day["tokens"] + LIMITS["tokens"], "money": day["money"] + LIMITS["money"],
                  "bytes": day["bytes"] + (64 << 20)}
    # who asks while the vessel is killed has no answer, so not every round uses all of it up
    assert met * 2 >= ROUNDS, f"the limit was met in {met} of {ROUNDS} rounds"


codex(LIMITS)
for each in PROVIDERS:
    with open(D + "/pg/secrets/portal_" + each, "w", encoding="utf-8") as secret:
        secret.write(KEY)
    os.chmod(D + "/pg/secrets/portal_" + each, 0o600)
ARGS += ["--config", D + "/codex.yaml"]
vessel = None
main(globals())
