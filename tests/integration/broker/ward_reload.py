# SPDX-License-Identifier: Apache-2.0
"""Run by test_ward_reload.sh: DIR VESSEL. Each function named t_* is one case, and begins with the rules of START."""
import glob
import hashlib
import http.client
import http.server
import json
import os
import threading
import time
import uuid

from rig import API, ARGS, BOOT, D, WORK, Unix, api, call, lease_headers, main, psql, submit, want

RELOADS = int(os.environ.get("RELOADS", "200"))
WAIT = 30  # for what comes soon, on a machine that is busy


# ---- who is asked ----

class Provider(http.server.BaseHTTPRequestHandler):
    """Answers "yes"; with "for ever" in its text by a stream without an end, with "hold" not before it is let go."""
    protocol_version = "HTTP/1.1"
    seen = []  # (path, text)
    gone = threading.Semaphore(0)  # released for each endless one whose reader left
    held, let_go = threading.Semaphore(0), threading.Event()

    def log_message(self, *args):
        pass

    def endless(self, kind, piece):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            while True:
                self.wfile.write(piece)
                time.sleep(0.02)
        except OSError:
            Provider.gone.release()

    def whole(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        Provider.seen.append((self.path, ""))
        if self.path.endswith("/endless"):
            self.endless("text/plain", b"on and on\n")
        else:
            self.whole("text/plain", b"here you are")

    def do_POST(self):
        rq = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = rq["messages"][-1]["content"]
        Provider.seen.append((self.path, text))
        if "for ever" in text:
            self.endless("text/event-stream", b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n')
            return
        if "hold" in text:
            Provider.held.release()
            Provider.let_go.wait(WAIT)
        try:
            self.whole("application/json", b'{"choices":[{"index":0,"message":{"content":"yes"}}],'
                                           b'"usage":{"prompt_tokens":1,"completion_tokens":1}}')
        except OSError:
            pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a worker that hangs up is what is tried here


server = Server(("127.0.0.1", 0), Provider)
threading.Thread(target=server.serve_forever, daemon=True).start()
PORT = server.server_address[1]


# ---- codex.yaml ----

def portal(name, model):
    return (f'  - name: {name}\n    kind: openai\n    url: "http://127.0.0.1:{PORT}/{name}"\n    addresses:\n      - 127.0.0.1\n'
            f'    models:\n      - {{name: {model}, input: "0", output: "0"}}\n')


AMOUNTS = 'requests: 1000000, tokens: 1000000000, money: "1000", bytes: 10GiB, denials: 1000000'
REST = ('version: "1"\ntomb: {slots: 4}\nportals:\n' + portal("main", "m") + portal("other", "o") +
        "budgets:\n" + "".join(f"  {s}: {{{AMOUNTS}}}\n" for s in ("job", "identity_day", "day")) +
        "egress: {in_flight: 64, retries: 0}\n")
MAIN, OTHER = "{portal: main, action: allow}", "{portal: other, action: allow}"


def page(path, addresses=True, action="allow"):
    text = f"host: 127.0.0.1\n    scheme: http\n    port: {PORT}\n    path: {path}\n    action: {action}"
    return text + ("\n    addresses:\n      - 127.0.0.1" if addresses else "")


def codex(*rules):
    return REST + ("ward:\n" + "".join(f"  - {r}\n" for r in rules) if rules else "")


START = codex(page("/open"), MAIN)
with open(D + "/codex.yaml", "w", encoding="utf-8") as conf:
    conf.write(START)
os.chmod(D + "/codex.yaml", 0o600)
ARGS += ["--config", D + "/codex.yaml"]


def ward():
    return want(api("GET", "/v1/ward"), 200).json


def send(text):
    return call(API, "POST", "/v1/ward/reload", text)


def reload(text):
    before = ward()["generation"]
    a = want(send(text), 200).json
    assert a["generation"] == before + 1 == ward()["generation"], a
    assert a["sha256"] == hashlib.sha256(text.encode()).hexdigest() == ward()["sha256"], a
    return a


# ---- who asks ----

def new_job():
    """Running, by its lease; jobs that an earlier case left are passed over."""
    job = submit(egress="brokered", limits={"timeout_ms": 600000})
    end = time.monotonic() + WAIT
    while True:
        row = psql(f"SELECT job_id, epoch, token FROM tomb_api.claim('main', 1, 600, '{BOOT}', '{uuid.uuid4()}')")
        if row and int(row.split("|")[0]) == job:
            return row.split("|")
        assert time.monotonic() < end, "the job was not handed out"
        time.sleep(0.05)


def intent(seq, text, model, stream):
    rq = {"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": 10}
    return json.dumps({"seq": seq, "dialect": "openai", "stream": stream, "request": {**rq, **({"stream": True} if stream else {})}})


def ask(lease, seq, text="hi", model="m"):
    return call(WORK, "POST", "/work/v1/ask", intent(seq, text, model, False), lease_headers(lease), WAIT)


def fetch_body(seq, path):
    return json.dumps({"seq": seq, "method": "GET", "url": f"http://127.0.0.1:{PORT}{path}", "headers": [], "body": ""})


def fetch(lease, seq, path):
    return call(WORK, "POST", "/work/v1/fetch", fetch_body(seq, path), lease_headers(lease), WAIT)


class Open:
    """An answer that comes and comes, begun."""

    def __init__(self, lease, path, body):
        self.c = Unix(WORK, WAIT)
        self.c.request("POST", path, body, lease_headers(lease))
        self.r = self.c.getresponse()
        assert self.r.status == 200 and self.r.read(20), self.r.status

    def goes_on(self):
        return len(self.r.read(500)) == 500

    def is_cut(self):
        """Waits for its end, which must not look like one."""
        try:
            while self.r.read(1000):
                pass
        except http.client.IncompleteRead:
            return True
        finally:
            self.c.close()
        return False


def events(name, job=None):
    got = []
    for path in sorted(glob.glob(D + "/data/audit/segment-*.jsonl")):
        with open(path, encoding="utf-8") as f:
            got += [json.loads(line) for line in f.read().split("\n")[:-1] if f'"event":"{name}"' in line]
    return [e for e in got if job is None or e["metadata"].get("correlation_uid") == str(job)]


def until(what):
    end = time.monotonic() + WAIT
    while not what():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def books(lease):
    rows = want(api("GET", f"/v1/budget?job={lease[0]}"), 200).json["books"]
    return next((r for r in rows if r["scope"] == "job"), None)


# ---- what is refused ----

def t_what_is_refused_leaves_the_old_ward_whole():
    until(lambda: want(api("GET", "/v1/status"), 200).json["audit"]["ok"])
    before, lease = ward(), new_job()
    assert before["generation"] == 1 and before["reloaded"] is None, before
    shut = START.replace("portal: main, action: allow", "portal: main, action: deny")
    cases = [
        ("", 400, "LYCH-STARTUP-002", "empty"),
        ("\0" * 100, 400, "LYCH-STARTUP-002", ""),
        (b"\xff\xfe" + shut.encode(), 400, "LYCH-STARTUP-002", "UTF-8"),
        (shut + "# " + "x" * 65536, 413, None, ""),
        ("a: " + "{a: " * 5000 + "1" + "}" * 5000, 400, "LYCH-STARTUP-002", ""),
        ('{"version":"1"}', 400, "LYCH-STARTUP-002", ""),
        (shut + "---\n" + shut, 400, "LYCH-STARTUP-002", "marker"),
        (shut + "wards: 1\n", 400, "LYCH-STARTUP-002", "wards"),
        (shut + "ward:\n  - {portal: main, action: allow}\n", 400, "LYCH-STARTUP-002", "ward"),
        (codex("{portal: nobody, action: allow}"), 400, "LYCH-STARTUP-002", "ward, entry 1: portal"),
        (codex("{portal: main}"), 400, "LYCH-STARTUP-002", "action"),
        (codex('{host: "*.com", action: allow}'), 400, "LYCH-STARTUP-002", "host"),
        (codex(*[MAIN] * 257), 400, "LYCH-STARTUP-002", ""),
        (codex(*[page("/" + "x" * 3000)] * 30), 413, None, ""),
        (shut.replace("slots: 4", "slots: 5"), 409, "LYCH-WARD-010", "needs a restart: tomb.slots"),
        (shut.replace("tomb: {slots: 4}\n", ""), 409, "LYCH-WARD-010", "needs a restart: tomb.slots"),
        (shut + "retention: 7d\n", 409, "LYCH-WARD-010", "needs a restart: retention"),
        (shut.replace(f":{PORT}/main", f":{PORT}/mine"), 409, "LYCH-WARD-010", "needs a restart: portals.0.url"),
        (shut.replace("money: \"1000\"", "money: \"1001\""), 409, "LYCH-WARD-010", "needs a restart: budgets.job.money"),
        (shut.replace(portal("other", "o"), ""), 409, "LYCH-WARD-010", "needs a restart: portals.1.name"),
    ]
    for text, status, code, word in cases:
        a = send(text)
        assert a.status == status, (status, text[:200], a)
        assert code is None or (a.code == code and word in a.json["detail"]), (code, word, a)
        assert ward() == before, text[:200]
    want(call(API, "POST", "/v1/ward/reload?x=1", shut), 400, "LYCH-HTTP-007")
    # nobody has it but the owner, by the owner's socket
    assert call(WORK, "POST", "/v1/ward/reload", shut, lease_headers(lease)).status == 404
    assert ward() == before and not events("ward.reloaded")
    # each is in the log, alone or counted: that with ?x=1, and one more
    time.sleep(1.1)
    want(call(API, "POST", "/v1/ward/reload", "slots"), 400, "LYCH-STARTUP-002")
    refused = sum(status != 413 for _, status, _, _ in cases) + 2  # what is too long is no reload yet
    until(lambda: sum(e["unmapped"]["count"] for e in events("ward.reload_refused")) == refused)
    last = events("ward.reload_refused")[-1]
    assert last["unmapped"]["error_code"] == "LYCH-STARTUP-002" and last["unmapped"]["generation"] == before["generation"], last
    assert last["unmapped"]["sha256"] == hashlib.sha256(b"slots").hexdigest() and last["actor"]["user"]["name"] == "owner", last
    want(ask(lease, 1), 200)


# ---- what counts afterwards ----

def t_a_running_job_may_what_a_reload_permits():
    reload(codex(page("/open")))
    lease, n = new_job(), len(Provider.seen)
    want(ask(lease, 1), 403, "LYCH-WARD-001")
    want(fetch(lease, 2, "/more"), 403, "LYCH-WARD-001")
    assert len(Provider.seen) == n
    old = ward()
    now = reload(codex(page("/open"), MAIN, page("/more"), "{portal: other, action: deny}"))
    assert now["rules"] == 4 and now["denying"] == 1 and now["cut"] == 0, now
    told = [e for e in events("ward.reloaded") if e["unmapped"]["generation"] == now["generation"]]
    assert len(told) == 1 and told[0]["actor"]["user"]["name"] == "owner", told
    told = told[0]["unmapped"]
    assert (told["sha256"], told["old_sha256"]) == (now["sha256"], old["sha256"]), told
    assert (told["rules"], told["denying"], told["old_rules"], told["old_denying"]) == (4, 1, 1, 0), told
    want(ask(lease, 3), 200)
    assert fetch(lease, 4, "/more").body == b"here you are"
    want(ask(lease, 5, model="o"), 403, "LYCH-WARD-002")
    assert [p for p, _ in Provider.seen[n:]] == ["/main/chat/completions", "/more"], Provider.seen[n:]
    rules = ward()["rules"]
    assert [r["number"] for r in rules] == [1, 2, 3, 4] and rules[1]["portal"] == "main", rules
    reload(codex())  # and none at all
    want(ask(lease, 6), 403, "LYCH-WARD-001")
    reload(START)


def t_what_was_taken_of_a_limit_stays_taken():
    def limit(n):
        return f"{{portal: main, action: limit, limit: {n}/hour}}"
    reload(codex(limit(3)))
    lease = new_job()
    for seq in (1, 2, 3):
        want(ask(lease, seq), 200)
    want(ask(lease, 4), 429, "LYCH-WARD-004")
    reload(codex("{portal: other, action: limit, limit: 3/hour}", page("/open"), limit(3)))
    want(ask(lease, 5), 429, "LYCH-WARD-004")
    reload(codex(limit(5)))
    want(ask(lease, 6), 200)
    want(ask(lease, 7), 200)
    want(ask(lease, 8), 429, "LYCH-WARD-004")
    reload(START)


# ---- what runs ----

def t_a_tightening_cuts_what_it_does_not_permit_and_nothing_else():
    reload(codex(MAIN, OTHER, page("/open")))
    lease, answers = new_job(), []
    Provider.let_go.clear()
    stream = Open(lease, "/work/v1/ask", intent(1, "for ever", "m", True))
    page_ = Open(lease, "/work/v1/fetch", fetch_body(2, "/open/endless"))
    stays = Open(lease, "/work/v1/ask", intent(3, "for ever", "o", True))
    waits = threading.Thread(target=lambda: answers.append(ask(lease, 4, "hold")))
    waits.start()
    assert Provider.held.acquire(timeout=WAIT)
    # rules that permit the same cut nothing, wherever they stand
    assert reload(codex(page("/open"), page("/more"), OTHER, MAIN))["cut"] == 0
    assert stream.goes_on() and page_.goes_on() and stays.goes_on()
    began = time.monotonic()
    # one is denied, the other may go there no longer though its host is allowed
    assert reload(codex("{portal: main, action: deny}", OTHER, page("/open", addresses=False)))["cut"] == 3
    assert stream.is_cut() and page_.is_cut()
    waits.join(WAIT)
    print(f"three were cut after {time.monotonic() - began:.3f} s")
    want(answers[0], 410, "LYCH-WARD-009")
    for _ in range(2):
        assert Provider.gone.acquire(timeout=WAIT), "the provider still sends"
    assert stays.goes_on()
    until(lambda: books(lease)["reserved"]["requests"] == 1)
    spent = books(lease)["spent"]
    assert spent["requests"] == 3 and spent["denials"] == 0, spent
    until(lambda: len(events("ask.failed", lease[0])) == 2 and events("fetch.failed", lease[0]))
    for e in events("ask.failed", lease[0]) + events("fetch.failed", lease[0]):
        assert e["unmapped"]["error_code"] == "LYCH-WARD-009", e
    # another text than an ask's: the rest is cut too
    assert reload(codex(page("/open")))["cut"] == 1 and stays.is_cut()
    Provider.let_go.set()
    reload(START)


# ---- many ----

class Asker(threading.Thread):
    """Asks one model again and again until it is told to stop; .got: what came, by kind."""

    def __init__(self, model):
        super().__init__(daemon=True)
        self.model, self.lease, self.got, self.stop = model, new_job(), [], threading.Event()

    def run(self):
        while not self.stop.is_set():
            try:
                a = ask(self.lease, len(self.got) + 1, "again", self.model)
                self.got.append(a.status if a.status == 200 else a.code)
            except http.client.IncompleteRead:
                self.got.append("cut")


def t_many_reloads_while_jobs_ask():
    reload(codex(OTHER, MAIN))
    askers = [Asker("m"), Asker("m"), Asker("o"), Asker("o")]
    n, before = len(Provider.seen), ward()["generation"]
    for a in askers:
        a.start()
    for i in range(RELOADS):
        other = OTHER if i % 2 else "{portal: other, action: deny}"
        reload(codex(*[page(f"/{i}/{k}") for k in range(i % 7)], other, MAIN))
        if i % 20 == 0:  # and some that fail between them
            want(send(codex("{portal: nobody, action: allow}")), 400)
    # however slow the machine is: the last rules permit it, and these don't
    until(lambda: all(a.got[-1:] == [200] for a in askers))
    reload(codex("{portal: other, action: deny}", MAIN))
    until(lambda: all(a.got[-1:] == ["LYCH-WARD-002"] for a in askers[2:]))
    for a in askers:
        a.stop.set()
    for a in askers:
        a.join(WAIT)
        assert not a.is_alive()
    assert ward()["generation"] == before + RELOADS + 1
    always, sometimes = askers[0].got + askers[1].got, askers[2].got + askers[3].got
    print(f"{len(always)} asks that are always permitted, {len(sometimes)} of which {sometimes.count(200)} were, "
          f"{sometimes.count('LYCH-WARD-009') + sometimes.count('cut')} were cut")
    assert always and set(always) == {200}, set(always)
    assert set(sometimes) <= {200, "cut", "LYCH-WARD-002", "LYCH-WARD-009"}, set(sometimes)
    assert 200 in sometimes and "LYCH-WARD-002" in sometimes, set(sometimes)
    # it saw each that was answered, and of the others none but such as were cut
    seen = [p for p, text in Provider.seen[n:] if text == "again"]
    assert seen.count("/main/chat/completions") == len(always)
    cut = sum(g in ("cut", "LYCH-WARD-009") for g in sometimes)
    assert sometimes.count(200) <= seen.count("/other/chat/completions") <= sometimes.count(200) + cut
    for a in askers:
        until(lambda a=a: not any(books(a.lease)["reserved"].values()))
    reload(START)


main(globals())
