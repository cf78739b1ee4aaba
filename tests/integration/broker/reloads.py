# SPDX-License-Identifier: Apache-2.0
"""Run by test_reloads.sh: DIR VESSEL. The network, the jobs and the words are those of proposals.py. RELOADS and FLOOD say how much;
IN_TIME=1: how long it takes and what the vessel keeps counts too. Each function named t_* is one case."""
import concurrent.futures
import hashlib
import http.client
import itertools
import os
import threading
import time

import factor
from proposals import HOST, START, WAIT, WORDS, Job, allow, api, events, outside, proposal_of, proposals, prove, reload, until
from rig import API, WORK, Unix, call, lease_headers, main, want

RELOADS = int(os.environ.get("RELOADS", "50"))
FLOOD = int(os.environ.get("FLOOD", "400"))
IN_TIME = os.environ.get("IN_TIME") == "1"
GROWTH_MAX = 8 << 20  # of the vessel's private memory
vessel = None  # the one that runs

ROUND = f"https://{HOST}/round"
WIDE = START + "".join(f"  - {{host: {HOST}, method: GET, path: /{path}, action: allow}}\n" for path in ("round", "slow"))
# what fails leaves the generation that there is: text, status, error
FAILING = [("", 400, "LYCH-STARTUP-002"), (WIDE + "  - {portal: nobody, action: allow}\n", 400, "LYCH-STARTUP-002"), (WIDE, 403, "LYCH-PASSPHRASE-002"),
           (START + '  - {host: "*.com", action: allow}\n', 400, "LYCH-STARTUP-002"), (START.replace("slots: 4", "slots: 5"), 409, "LYCH-WARD-010")]


def generation():
    return want(api("GET", "/v1/ward"), 200).json["generation"]


def held():
    """The vessel's private memory."""
    with open(f"/proc/{vessel.p.pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("RssAnon:"))


# ---- who asks ----

class Beside(threading.Thread):
    """Fetches what is permitted all the time, again and again; .bad: what came of it but a whole 200."""

    def __init__(self, job, url, length=0):
        super().__init__(daemon=True)
        self.job, self.url, self.length, self.n, self.bad, self.stop = job, url, length, 0, [], threading.Event()
        self.start()

    def run(self):
        while not self.stop.is_set():
            try:
                a = self.job.fetch(self.url)
                if a.status != 200 or len(a.body) < self.length:
                    self.bad.append(a)
            except (OSError, http.client.HTTPException) as e:
                self.bad.append(e)
            self.n += 1


def proposed(i):
    """What a hostile job asks for, the i-th: URL, method."""
    return ((f"https://{HOST}/flood/{i}", "GET"), (f"https://xn--pi-6kc.allowed.example/{i}", "GET"), (f"https://*.allowed.example/{i}", "GET"),
            (f"https://аpi.allowed.example/{i}", "GET"), (f"https://denied.example/{i}", "GET"), (f"https://{HOST}/never/{i}", "GET"),
            (f"https://n{i}.allowed.example/", "GET"), (f"https://203.0.114.9/{i}", "GET"), (f"https://[2606:4700:aa::9]/{i}", "GET"),
            (f"https://{HOST}:8443/{i}", "GET"), (f"http://{HOST}/{i}", "GET"), (f"https://{HOST}@evil.example/{i}", "GET"),
            (f"https://169.254.169.254/{i}", "GET"), (f"https://localhost/{i}", "GET"), (f"https://{HOST}/round/../flood/{i}", "GET"),
            (f"https://{HOST}/round", "POST"), (f"https://prefix.allowed.example/open{i}", "GET"), (f"https://{HOST}./{i}", "GET"))[i % 18]


class Flood(threading.Thread):
    """Asks for all of these; .passed: what was not refused."""

    def __init__(self, job, numbers):
        super().__init__(daemon=True)
        self.job, self.numbers, self.passed, self.n = job, numbers, [], 0
        self.start()

    def run(self):
        for i in self.numbers:
            url, method = proposed(i)
            a = self.job.fetch(url, method)
            if a.status < 400 or not a.code.startswith("LYCH-"):
                self.passed.append((url, a))
            self.n += 1


class Waiter(threading.Thread):
    """Asks for one thing until it gets it; .at: when it did."""

    def __init__(self, job, url):
        super().__init__(daemon=True)
        self.job, self.url, self.refused, self.at, self.odd = job, url, 0, None, None
        self.start()

    def run(self):
        while self.at is None and self.odd is None:
            a = self.job.fetch(self.url)
            if a.status == 200:
                self.at = time.monotonic()
            elif a.code == "LYCH-WARD-001":
                self.refused += 1
            else:
                self.odd = a


def until_it_has(job, url, permit):
    """The seconds from a person's word to a running job's first success."""
    w = Waiter(job, url)
    until(lambda: w.refused or w.odd)
    began = time.monotonic()
    permit()
    w.join(WAIT)
    assert w.at is not None, (url, w.odd)
    return w.at - began


def cut_after(job):
    """Of an answer that is coming when the rules are tightened: the seconds until it is cut."""
    c = Unix(WORK, WAIT)
    c.request("POST", "/work/v1/fetch", job.intent(f"https://{HOST}/slow", "GET"), lease_headers(job.lease))
    r = c.getresponse()
    assert r.status == 200 and r.read(2) == b"xx", r.status
    began = time.monotonic()
    assert want(call(API, "POST", "/v1/ward/reload", START), 200).json["cut"] == 1
    try:
        r.read()
        raise AssertionError("it ended as if it were whole")
    except http.client.IncompleteRead:
        pass
    finally:
        c.close()
    return time.monotonic() - began


def row_of(job, url):
    return next(r for r in proposals(job) if url == f"https://{r['host']}{r['path']}" and r["method"] == "GET")


# ---- the cases ----

def t_a_look_alike_allows_only_itself():
    until(lambda: want(api("GET", "/v1/status"), 200).json["audit"]["ok"])
    want(api("POST", "/v1/passphrase", factor.verifier(WORDS)), 200)
    job = Job()
    outside.asked()
    row = proposal_of(job, "https://xn--pi-6kc.allowed.example/same")
    want(allow(row, "job", prove(row)), 200)
    for url in (f"https://{HOST}/same", "https://аpi.allowed.example/same", "https://XN--PI-6KC.allowed.example./same", "https://allowed.example/same",
                "https://xn--pi-6kc.allowed.example/same/more", "https://xn--pi-6kc.allowed.example:8443/same", "http://xn--pi-6kc.allowed.example/same"):
        assert job.fetch(url).status >= 400, url
    assert not outside.asked()


def t_of_several_at_once_each_counts_whole_or_not_at_all():
    before, texts = generation(), [START + f"# {i}\n" for i in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda text: call(API, "POST", "/v1/ward/reload", text), texts))
    passed = {hashlib.sha256(text.encode()).hexdigest() for text, a in zip(texts, got) if a.status == 200}
    assert passed and all(a.status == 200 or (a.status, a.code) == (409, "LYCH-WARD-011") for a in got), got
    now = want(api("GET", "/v1/ward"), 200).json
    assert now["generation"] == before + len(passed) and now["sha256"] in passed, (now, got)


def one_round(i, job, figures):
    before = generation()
    if i % 5 == 3:
        text, status, code = FAILING[i // 5 % len(FAILING)]
        want(call(API, "POST", "/v1/ward/reload", text), status, code)
        assert generation() == before, code
        figures["once"].append(until_it_has(job, f"https://{HOST}/once", lambda: want(allow(row_of(job, f"https://{HOST}/once")), 200)))
    if i % 25 == 4:
        url = f"https://{HOST}/job/{i}"

        def permit():
            row = row_of(job, url)
            want(allow(row, "job", prove(row)), 200)
        figures["job"].append(until_it_has(job, url, permit))
    figures["reload"].append(until_it_has(job, ROUND, lambda: reload(WIDE)))
    if i % 5 == 1:
        figures["cut"].append(cut_after(job))
    else:
        want(call(API, "POST", "/v1/ward/reload", START), 200)
    want(job.fetch(ROUND), 403, "LYCH-WARD-001")
    assert generation() == before + 2


def t_reloads_and_words_under_load():
    sure, granted, hostile, job = Job(), Job(), Job(), Job()
    row = proposal_of(granted, f"https://{HOST}/granted")
    want(allow(row, "job", prove(row)), 200)
    outside.asked()
    figures, numbers = {"once": [], "job": [], "reload": [], "cut": []}, itertools.count()
    beside = [Beside(sure, "https://prefix.allowed.example/open"), Beside(sure, "https://prefix.allowed.example/open"),
              Beside(sure, "https://prefix.allowed.example/drip", 20), Beside(granted, f"https://{HOST}/granted")]
    flood = [Flood(hostile, itertools.takewhile(lambda i: i < FLOOD, numbers)) for _ in range(2)]
    had, began = 0, time.monotonic()
    for i in range(RELOADS // 2):
        one_round(i, job, figures)
        if i == RELOADS // 20:
            had = held()
    took = time.monotonic() - began
    for f in flood:
        f.join(FLOOD)
        assert not f.is_alive()
    grew = held() - had
    for b in beside:
        b.stop.set()
    for b in beside:
        b.join(WAIT)
    print(f"   ({RELOADS} reloads in {took:.0f} s; {sum(b.n for b in beside)} fetches beside them, {sum(len(b.bad) for b in beside)} failed; "
          f"{sum(f.n for f in flood)} hostile ones; the vessel grew by {grew >> 10} KiB; longest, in ms: "
          + ", ".join(f"{k} {1000 * max(v, default=0):.0f}" for k, v in figures.items()) + ")")
    assert not any(b.bad for b in beside), [b.bad[:3] for b in beside]
    assert all(b.n > 1 for b in beside) and all(figures.values()), figures
    # what was asked for without end is as far as it was
    assert not any(f.passed for f in flood) and sum(f.n for f in flood) == FLOOD, [f.passed[:3] for f in flood]
    mine = proposals(hostile)
    assert len(mine) == len(events("ward.proposed", hostile)) == 32, len(mine)
    for r in mine:
        assert r["host"].isascii() and "*" not in r["host"] and r["host"] != "denied.example" and not r["path"].startswith("/never"), r
        assert r["host"].endswith(".allowed.example") and r["state"] == "open", r
    # and each that the servers saw was permitted
    asked = outside.asked()
    may = {"GET /open", "GET /drip", "GET /granted", "GET /round", "GET /slow", "GET /once"} | {f"GET /job/{i}" for i in range(RELOADS)}
    assert set(asked) <= may, sorted(set(asked) - may)[:5]
    for name in ("once", "round", "slow"):
        assert asked.count("GET /" + name) == len(figures[{"round": "reload", "slow": "cut"}.get(name, name)]), name
    if IN_TIME:
        assert max(figures["once"] + figures["job"] + figures["reload"]) < 2 and max(figures["cut"]) < 1, figures
        assert grew < GROWTH_MAX, grew


main(globals())
