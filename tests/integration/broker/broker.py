# SPDX-License-Identifier: Apache-2.0
"""Run by test_broker.sh: broker.py DIR BUILD. Each function named t_* is one test."""
import atexit
import base64
import glob
import hashlib
import http.client
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import uuid

from pgwire import Logins

D, BUILD = sys.argv[1:3]
API, WORK = D + "/run/api/vessel.sock", D + "/run/work/vessel.sock"
SECRET = open(D + "/pg/secrets/lychgate_work_of_tomb_1").read().strip()
BOOT = str(uuid.uuid4())
database = Logins(D + "/pg")
KEY = "sk-stand-in-0123456789abcdefghij"
ENV = {"HOME": D + "/home", "PATH": os.environ["PATH"],
       **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}}


# ---- the provider ----

class Provider(http.server.BaseHTTPRequestHandler):
    seen = []  # (path, headers, body, what the audit log held when it came)
    hung_up = threading.Event()
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, status, kind, body, **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for k, v in headers.items():
            self.send_header(k.replace("_", "-"), v)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        Provider.seen.append((self.path, dict(self.headers), b"", log_lines()))
        if self.path == "/open/away":
            self.reply(302, "text/plain", b"", Location="/closed")
        elif self.path == "/open/on":
            self.reply(302, "text/plain", b"", Location="/open/here")
        elif "/bytes" in self.path:
            self.reply(200, "application/x-bytes", EVERY_BYTE, ETag='"of-bytes"', X_Own="theirs")
        elif "/liar" in self.path:
            self.reply(200, "text/plain", EVERY_BYTE)
        elif "/packed" in self.path:
            self.reply(200, "application/x-bytes", EVERY_BYTE, Content_Encoding="gzip")
        elif "/huge" in self.path:
            self.reply(200, "application/x-bytes", b"0" * int(self.path.split("/")[-1]))
        elif self.path == "/files/over":
            self.reply(302, "text/plain", b"", Location="/open/bytes")
        else:
            self.reply(200, "text/plain", b"here you are")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Provider.seen.append((self.path, dict(self.headers), body, log_lines()))
        if self.path.startswith(("/open", "/files")):
            self.reply(200, self.headers["Content-Type"], b"you sent " + body)
            return
        rq = json.loads(body)
        text = json.dumps(rq["messages"])
        if rq.get("stream"):
            self.stream(text)
        elif "give 429" in text:
            self.reply(429, "application/json", b'{"error":{"message":"slow down"}}', Retry_After="7")
        elif "give headers" in text:
            self.reply(200, "application/json", b"{}", **{f"X_RateLimit_{i}": "v" * 1000 for i in range(30)})
        elif "give html" in text:
            self.reply(500, "text/html", b"<html>trace of 10.0.0.1</html>")
        elif "give key" in text:
            self.reply(200, "application/json", json.dumps({"key": KEY}).encode())
        elif "echo" in text:
            self.reply(200, "application/json", json.dumps(
                {"choices": [{"index": 0, "message": {"content": rq["messages"][-1]["content"]}}],
                 "usage": {"prompt_tokens": 5, "completion_tokens": 6}}).encode())
        else:
            self.reply(200, "application/json", json.dumps(
                {"choices": [{"index": 0, "message": {"content": "yes"}}],
                 "usage": {"prompt_tokens": 11, "completion_tokens": 7}}).encode())

    def stream(self, text):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            n = 0
            while n < 3 or "for ever" in text:
                self.wfile.write(b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n')
                self.wfile.flush()
                n += 1
                if "for ever" in text:
                    time.sleep(0.02)
            self.wfile.write(b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}'
                             b'\n\ndata: [DONE]\n\n')
        except OSError:
            Provider.hung_up.set()


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


EVERY_BYTE = bytes(range(256)) * 300  # more than one piece on each of its ways
server = Server(("127.0.0.1", 0), Provider)
threading.Thread(target=server.serve_forever, daemon=True).start()
PORT = server.server_address[1]

CODEX = f"""
version: 1
portals:
  - name: main
    kind: openai
    url: "http://127.0.0.1:{PORT}/v1"
    secret: portal_main
    addresses:
      - 127.0.0.1
    models:
      - {{name: m, input: "1", output: "10"}}
  - name: closed
    kind: openai
    url: "http://127.0.0.1:{PORT}/v1"
    addresses:
      - 127.0.0.1
    models:
      - {{name: forbidden, input: "0", output: "0"}}
ward:
  - {{portal: main, action: allow}}
  - {{host: "*.wild.example", method: POST, action: allow}}
  - host: 127.0.0.1
    scheme: http
    port: {PORT}
    path: /open
    action: allow
    addresses:
      - 127.0.0.1
  - host: 127.0.0.1
    scheme: http
    port: {PORT}
    path: /files
    action: allow
    replies: binary
    addresses:
      - 127.0.0.1
  - host: 127.0.0.1
    scheme: http
    port: {PORT}
    method: POST
    path: /files
    action: allow
    replies: binary
    addresses:
      - 127.0.0.1
  - host: 127.0.0.1
    scheme: http
    port: {PORT}
    method: POST
    path: /open
    action: allow
    addresses:
      - 127.0.0.1
budgets:
  job: {{requests: 10, tokens: 100000, money: "100", bytes: 64MiB, denials: 25}}
  identity_day: {{requests: 1000, tokens: 10000000, money: "1000", bytes: 1GiB, denials: 10000}}
  day: {{requests: 1000, tokens: 10000000, money: "1000", bytes: 1GiB, denials: 10000}}
egress: {{in_flight: 64, retries: 0, response_max: 1MiB, package_max: 2MiB}}
"""


# ---- the house ----

def log_lines():
    out = []
    for f in sorted(glob.glob(D + "/data/audit/segment-*.jsonl")):
        with open(f, encoding="utf-8") as fd:
            out += [line for line in fd.read().split("\n") if line]
    return out


def events(name, job=None):
    got = [json.loads(line) for line in log_lines() if f'"event":"{name}"' in line]
    return [e for e in got if job is None or e["metadata"].get("correlation_uid") == str(job)]


def until(what, seconds=10):
    end = time.monotonic() + seconds
    while True:
        got = what()
        if got:
            return got
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


class Scribe:
    def __init__(self):
        self.p = subprocess.Popen([BUILD + "/lych-scribe", "--dir", D + "/data/audit", "--socket-dir",
                                   D + "/run/audit"], stderr=open(D + "/scribe.log", "ab"), env=ENV)

    def stop(self, signo=signal.SIGTERM):
        self.p.send_signal(signo)
        self.p.wait(10)


class Vessel:
    def __init__(self):
        r, w = os.pipe()
        self.p = subprocess.Popen(
            [BUILD + "/lych-vessel", "serve", "--data", D + "/data/vessel", "--api-dir", D + "/run/api",
             "--work-dir", D + "/run/work", "--pg-dir", D + "/pg/sock", "--audit-dir", D + "/run/audit",
             "--secrets", D + "/pg/secrets", "--config", D + "/codex.yaml", "--ready-fd", str(w)],
            env=ENV, stderr=open(D + "/vessel.log", "ab"), pass_fds=[w])
        os.close(w)
        with os.fdopen(r, "rb") as f:
            is_ready = b"READY=1\n" in f
        assert is_ready, open(D + "/vessel.log").read()[-3000:]
        until(lambda: status()["audit"]["ok"])

    def stop(self, signo=signal.SIGTERM):
        self.p.send_signal(signo)
        return self.p.wait(20)


class Unix(http.client.HTTPConnection):
    def __init__(self, path, timeout=30):
        super().__init__("lychgate", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def call(sock, method, path, body=None, headers=None):
    c = Unix(sock)
    c.request(method, path, json.dumps(body) if body is not None else None, headers or {})
    r = c.getresponse()
    r.data = r.read()
    c.close()
    return r


def status():
    return json.loads(call(API, "GET", "/v1/status").data)


def psql(sql, role):
    return database.ask(sql, role)


def job(egress="brokered"):
    """A running job and its lease."""
    spec = json.dumps({"argv": ["true"], "egress": egress})
    n = psql(f"SELECT job_id FROM vessel_api.enqueue('main', '{uuid.uuid4()}', "
             f"convert_to('{spec}', 'UTF8'), 50, true, 600, 1000)", "lych_vessel")
    lease = [None]
    while lease[0] != n:  # where this takes long, an earlier one's lease ran out: it comes again
        row = until(lambda: psql(f"SELECT job_id, epoch, token FROM tomb_api.claim('main', 1, 60, '{BOOT}', "
                                 f"'{uuid.uuid4()}')", "tomb_1"))
        lease = row.split("|")
    return lease


def headers(lease):
    return {"Authorization": "Bearer " + SECRET, "Lychgate-Tomb": "tomb_1", "Lychgate-Version": "1", "Lychgate-Job": lease[0],
            "Lychgate-Epoch": lease[1], "Lychgate-Token": lease[2]}


def intent(seq, text="hi", model="m", stream=False, **more):
    rq = {"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": 100, **more}
    if stream:
        rq["stream"] = True
    return {"seq": seq, "dialect": "openai", "stream": stream, "request": rq}


def ask(lease, seq, **more):
    return call(WORK, "POST", "/work/v1/ask", intent(seq, **more), headers(lease))


def refused(answer, http_status, code):
    assert answer.status == http_status, (answer.status, answer.data)
    assert json.loads(answer.data)["error_code"] == code, answer.data
    return answer


def books(lease, scope="job"):
    rows = json.loads(call(API, "GET", "/v1/budget?job=" + lease[0]).data)["books"]
    return next((r for r in rows if r["scope"] == scope), None)


def balanced(lease):
    """What the job has spent, once nothing of it is reserved any more."""
    def look():
        b = books(lease)
        return b if b and not any(b["reserved"].values()) else None
    return until(look)["spent"]


def metric(name):
    text = call(API, "GET", "/metrics").data.decode()
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


# ---- refusals first ----

def t_a_wrong_lease_is_refused():
    lease = job()
    before = len(Provider.seen)
    refused(ask([lease[0], lease[1], str(uuid.uuid4())], 1), 403, "LYCH-RUN-005")
    refused(ask([lease[0], "7", lease[2]], 1), 403, "LYCH-RUN-005")
    psql(f"SELECT vessel_api.cancel({lease[0]})", "lych_vessel")
    refused(ask(lease, 1), 410, "LYCH-RUN-003")
    assert len(Provider.seen) == before


def t_a_lease_that_ends_between_two_asks_is_refused_before_all_else():
    lease = job()
    assert ask(lease, 1).status == 200
    before = len(Provider.seen)
    psql(f"SELECT vessel_api.cancel({lease[0]})", "lych_vessel")
    refused(ask(lease, 2), 410, "LYCH-RUN-003")
    # and learns nothing of what the ward, the list or the reader would have said
    refused(ask(lease, 3, model="forbidden"), 410, "LYCH-RUN-003")
    refused(ask(lease, 4, model="nobody"), 410, "LYCH-RUN-003")
    refused(ask(lease, 5, no_such_key=1), 410, "LYCH-RUN-003")
    refused(ask([lease[0], lease[1], str(uuid.uuid4())], 6), 403, "LYCH-RUN-005")
    assert len(Provider.seen) == before
    assert balanced(lease)["requests"] == 1
    assert books(lease)["spent"]["denials"] == 0


def processes():
    """The vessel, the parent of its workers and the workers."""
    out = [vessel.p.pid]
    for pid in out:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            out += map(int, f.read().split())
    return out


def t_a_value_of_a_kind_that_is_not_its_places_own_ends_nobody():
    before = processes()
    text = {"role": "user", "content": "hi"}
    for dialect in ("openai", "anthropic"):
        lease = job()
        for seq, rq in enumerate((
                {"messages": ["x"]}, {"messages": [1]}, {"messages": [None]}, {"messages": [[]]},
                {"messages": [{"role": "user", "content": ["x"]}]}, {"messages": [{"role": "user", "content": [None]}]},
                {"messages": [text], "system": ["x"]}, {"messages": [text], "tools": ["x"]}), 1):
            body = {"seq": seq, "dialect": dialect, "stream": False, "request": {"model": "m", "max_tokens": 9, **rq}}
            refused(call(WORK, "POST", "/work/v1/ask", body, headers(lease)), 400, "LYCH-BROKER-002")
    assert processes() == before
    assert ask(job(), 1).status == 200


def t_a_provider_that_floods_its_header_fields_ends_nobody():
    before, lease = processes(), job()
    a = ask(lease, 1, text="give headers")
    assert a.status == 200 and a.data == b"{}", a.data
    kept = [k for k, v in a.getheaders() if k.lower().startswith("x-ratelimit-")]
    assert 1 <= len(kept) < 5, a.getheaders()
    assert processes() == before and ask(lease, 2).status == 200


def t_a_job_without_egress_is_refused():
    lease = job("none")
    refused(ask(lease, 1), 403, "LYCH-BROKER-005")
    a = call(WORK, "GET", "/work/v1/models?dialect=openai", None, headers(lease))
    refused(a, 403, "LYCH-BROKER-005")
    until(lambda: events("ask.denied", lease[0]))


def t_what_the_ward_the_list_and_the_replay_check_refuse():
    lease = job()
    before = len(Provider.seen)
    a = ask(lease, 1, model="forbidden")
    assert a.status == 403 and b"LYCH-WARD-" in a.data, a.data
    refused(ask(lease, 2, model="nobody"), 404, "LYCH-BROKER-004")
    refused(ask(lease, 3, no_such_key=1), 400, "LYCH-BROKER-002")
    refused(ask(lease, 4, web_search_options={}), 403, "LYCH-BROKER-003")
    refused(call(WORK, "POST", "/work/v1/ask", {"seq": 0}, headers(lease)), 400, "LYCH-SPEC-004")
    refused(call(WORK, "POST", "/work/v1/ask?x=1", intent(5), headers(lease)), 400, "LYCH-HTTP-007")
    assert len(Provider.seen) == before
    assert ask(lease, 6).status == 200
    refused(ask(lease, 6), 409, "LYCH-BROKER-001")
    assert len(Provider.seen) == before + 1
    assert balanced(lease)["requests"] == 1
    until(lambda: books(lease)["spent"]["denials"] == 3)
    assert b"127.0.0.1" not in a.data


def t_what_is_too_private_is_refused():
    lease = job()
    before = len(Provider.seen)
    pem = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA7x9Zq1" * 12 + "\n-----END RSA PRIVATE KEY-----"
    a = ask(lease, 1, text=pem)
    assert a.status == 403 and b"LYCH-GATE-" in a.data, a.data
    assert len(Provider.seen) == before
    assert balanced(lease)["requests"] == 0
    told = until(lambda: events("ask.denied", lease[0]))[0]["unmapped"]
    place = next(f for f in told["found"] if f["family"] == "private_key")
    assert place["in"] == "text" and place["nth"] >= 1 and place["offset"] == 0, told
    assert 64 < place["length"] <= len(pem) and told["found_total"] >= 1, told
    assert "MIIE" not in json.dumps(told), told
    assert told["rule"] == 1 and CODEX.split("\n")[told["line"] - 1].startswith("  - {portal: main"), told


def t_a_host_that_no_rule_names_is_refused():
    lease = job()

    def fetch(seq, url):
        return call(WORK, "POST", "/work/v1/fetch", {"seq": seq, "method": "GET", "url": url, "headers": [],
                                                     "body": ""}, headers(lease))
    a = fetch(1, "https://api.example.com/")
    assert a.status == 403 and b"LYCH-WARD-" in a.data, a.data
    a = fetch(2, f"http://127.0.0.1:{PORT}/")
    assert a.status == 403 and b"LYCH-WARD-001" in a.data and b"scheme" in a.data, a.data
    until(lambda: books(lease)["spent"]["denials"] == 2)
    a = fetch(3, "gopher://x")
    assert a.status in (400, 403) and b"LYCH-FETCH-" in a.data, a.data


def fetch(lease, seq, url, **more):
    return call(WORK, "POST", "/work/v1/fetch",
                {"seq": seq, "method": "GET", "url": url, "headers": [], "body": "", **more}, headers(lease))


def t_names_that_carry_data_are_told_and_then_refused():
    # the gate stops each of them, so that no name is looked up
    lease = job()
    pem = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA7x9Zq1" * 12 + "\n-----END RSA PRIVATE KEY-----"
    more = {"method": "POST", "headers": [["content-type", "text/plain"]], "body": base64.b64encode(pem.encode()).decode()}

    def name():
        return f"https://{base64.b32encode(os.urandom(25)).decode().lower().rstrip('=')}.wild.example/"
    for seq in range(1, 9):
        a = fetch(lease, seq, name(), **more)
        assert a.status == 403 and b"LYCH-GATE-" in a.data, a.data
    until(lambda: len(events("detection.odd_name", lease[0])) == 8)
    a = fetch(lease, 9, name(), **more)
    assert a.status == 429 and b"LYCH-FETCH-007" in a.data and b"labels" in a.data, a.data
    until(lambda: any("labels" in json.dumps(e) for e in events("fetch.denied", lease[0])))
    until(lambda: books(lease)["spent"]["denials"] == 9)
    assert len(events("detection.odd_name", lease[0])) == 8
    # another job is not held responsible
    a = fetch(job(), 1, name(), **more)
    assert a.status == 403 and b"LYCH-GATE-" in a.data, a.data


def t_a_fetch_goes_where_a_rule_lets_it_and_a_redirect_no_further():
    lease, base = job(), f"http://127.0.0.1:{PORT}"
    a = fetch(lease, 1, base + "/open")
    assert a.status == 200 and a.data == b"here you are", a.data
    a = fetch(lease, 2, base + "/open/on")
    assert a.status == 200 and a.data == b"here you are", a.data
    assert all("Authorization" not in h for p, h, _, _ in Provider.seen if p.startswith("/open"))
    before = len(Provider.seen)
    a = fetch(lease, 3, base + "/open/away")
    assert a.status == 403 and b"; a redirect leads to http://" in a.data, a.data
    assert [p for p, _, _, _ in Provider.seen[before:]] == ["/open/away"]
    a = fetch(lease, 4, base + "/closed")
    assert a.status == 403, a.data
    assert len(Provider.seen) == before + 1


def t_what_a_fetch_sends_is_replaced_and_comes_back():
    lease, url = job(), f"http://127.0.0.1:{PORT}/open"
    for seq, (kind, text) in enumerate([
            ("text/plain", "mail to erika.mustermann@firma-beispiel.de today"),
            ("application/json", '{"to":"erika.mustermann@firma-beispiel.de"}')], 1):
        a = fetch(lease, seq, url, method="POST", headers=[["content-type", kind]],
                  body=base64.b64encode(text.encode()).decode())
        assert a.status == 200, a.data
        sent = Provider.seen[-1][2].decode()
        assert "erika.mustermann" not in sent and "<EMAIL_1>" in sent, sent
        assert a.data.decode() == "you sent " + text, a.data
    # in a URL nothing can stand for it
    a = fetch(lease, 3, url + "?to=erika.mustermann@firma-beispiel.de")
    assert a.status == 403 and b"LYCH-GATE-004" in a.data, a.data


def t_bytes_come_back_only_by_a_rule_that_says_so():
    lease, base = job(), f"http://127.0.0.1:{PORT}"
    for seq, path in enumerate(("/open/bytes", "/files/over"), 1):  # and not behind a redirect to where the rule is another
        a = refused(fetch(lease, seq, base + path), 502, "LYCH-FETCH-006")
        assert b"reply_type" in a.data and b"replies: binary" in a.data, a.data
        assert EVERY_BYTE[:64] not in a.data
    try:
        raise SystemExit(f"FAIL: bytes that are no text came back: {fetch(lease, 3, base + '/open/liar').status}")
    except http.client.IncompleteRead as e:  # it had begun
        assert EVERY_BYTE[:64] not in e.partial
    refused(fetch(lease, 4, base + "/files/packed"), 502, "LYCH-EGRESS-009")
    refused(fetch(lease, 5, base + "/filesystem/bytes"), 403, "LYCH-WARD-001")
    until(lambda: any("reply_type" in json.dumps(e) for e in events("fetch.failed", lease[0])))
    until(lambda: not books(lease) or not any(books(lease)["reserved"].values()))

    lease = job()
    a = fetch(lease, 1, base + "/files/bytes")
    assert a.status == 200 and a.data == EVERY_BYTE, (a.status, len(a.data))
    assert a.getheader("Content-Type") == "application/x-bytes" and a.getheader("ETag") == '"of-bytes"', a.headers.items()
    assert a.getheader("X-Own") is None and a.getheader("Lychgate-Upstream-Status") == "200"
    # text by its type is no exception: what a client compares with a checksum comes as it is
    a = fetch(lease, 2, base + "/files/liar")
    assert a.data == EVERY_BYTE and a.getheader("Content-Type") == "text/plain", a.headers.items()
    # the size that files may have, and no more
    a = fetch(lease, 3, base + f"/files/huge/{(2 << 20) - 4096}")
    assert a.status == 200 and a.data == b"0" * ((2 << 20) - 4096), (a.status, len(a.data))
    a = fetch(lease, 4, base + f"/files/huge/{(2 << 20) + 1}")
    refused(a, 413, "LYCH-EGRESS-008")
    spent = balanced(lease)
    assert spent["requests"] == 4 and 2 * len(EVERY_BYTE) + (2 << 20) - 4096 < spent["bytes"] < (4 << 20), spent
    assert all(e["unmapped"].get("replies") == "binary" for e in events("fetch.allowed", lease[0])), events("fetch.allowed", lease[0])
    # what goes out is judged as ever, and what was replaced in it stays so
    text = "mail to erika.mustermann@firma-beispiel.de today"
    a = fetch(lease, 5, base + "/files", method="POST", headers=[["content-type", "text/plain"]],
              body=base64.b64encode(text.encode()).decode())
    assert a.status == 200 and a.data == b"you sent " + Provider.seen[-1][2] and b"<EMAIL_1>" in a.data, a.data


def t_many_denials_are_a_signal_and_then_the_end():
    lease = job()
    for seq in range(1, 21):
        assert ask(lease, seq, model="forbidden").status == 403
    until(lambda: events("detection.denials", lease[0]))
    assert events("detection.denials", lease[0])[0]["class_uid"] == 2004
    for seq in range(21, 26):
        ask(lease, seq, model="forbidden")
    until(lambda: books(lease)["spent"]["denials"] == 25)
    refused(ask(lease, 30), 429, "LYCH-BUDGET-005")


# ---- what is allowed ----

def t_an_ask_passes_and_is_in_the_log_before_the_provider_sees_it():
    lease = job()
    a = ask(lease, 1)
    assert a.status == 200, a.data
    assert a.headers["Lychgate-Upstream-Status"] == "200"
    assert json.loads(a.data)["choices"][0]["message"]["content"] == "yes"
    path, head, body, log = Provider.seen[-1]
    assert path == "/v1/chat/completions" and head["Authorization"] == "Bearer " + KEY
    assert json.loads(body)["model"] == "m"
    allowed = [x for x in log if '"event":"ask.allowed"' in x and f'"correlation_uid":"{lease[0]}"' in x]
    assert len(allowed) == 1, allowed
    assert "hi" not in json.loads(allowed[0])["unmapped"].values()
    spent = balanced(lease)
    assert spent["requests"] == 1 and spent["tokens"] == 18, spent
    # 11 at 1 and 7 at 10 for a million, in millionths, rounded up
    assert spent["money"] == 81, spent
    assert json.loads(call(API, "GET", "/v1/jobs/" + lease[0]).data)["spent"] == spent
    until(lambda: events("ask.done", lease[0]))
    assert metric('lychgate_broker_requests_total{target="portal:main",verdict="done"}') >= 1
    assert metric("lychgate_broker_reservations_open") == 0


def t_a_stream_passes_without_the_usage_that_only_we_wanted():
    lease = job()
    a = ask(lease, 1, stream=True)
    assert a.headers["Content-Type"].startswith("text/event-stream"), a.headers
    assert a.data.count(b'"content":"a"') == 3 and a.data.endswith(b"data: [DONE]\n\n"), a.data
    assert b"usage" not in a.data
    assert json.loads(Provider.seen[-1][2])["stream_options"] == {"include_usage": True}
    assert balanced(lease)["tokens"] == 7
    a = ask(lease, 2, stream=True, stream_options={"include_usage": True})
    assert b"usage" in a.data


def t_models_that_a_job_may_ask():
    a = call(WORK, "GET", "/work/v1/models?dialect=openai", None, headers(job()))
    assert [m["id"] for m in json.loads(a.data)["data"]] == ["m"], a.data


def t_an_error_of_the_provider_is_its_own_and_costs_no_tokens():
    lease = job()
    a = ask(lease, 1, text="give 429")
    assert a.status == 200 and a.headers["Lychgate-Upstream-Status"] == "429", a.data
    assert a.headers["Retry-After"] == "7" and b"slow down" in a.data
    a = ask(lease, 2, text="give html")
    assert a.status == 502 and b"10.0.0.1" not in a.data, a.data
    spent = balanced(lease)
    assert spent["requests"] == 2 and spent["tokens"] == 0, spent


def t_an_echoed_credential_is_taken_out():
    lease = job()
    a = ask(lease, 1, text="give key")
    assert a.status == 200 and KEY.encode() not in a.data, a.data
    until(lambda: events("detection.credential_echoed"))


def t_what_is_private_is_replaced_and_comes_back():
    lease = job()
    secret = "mail to erika.mustermann@firma-beispiel.de and call +49 30 901820 please echo"
    a = ask(lease, 1, text=secret)
    assert a.status == 200, a.data
    sent = json.loads(Provider.seen[-1][2])["messages"][0]["content"]
    assert "erika.mustermann" not in sent and "<EMAIL_1>" in sent, sent
    assert json.loads(a.data)["choices"][0]["message"]["content"] == secret, a.data


def t_a_canary_in_lines_within_a_string_of_json():
    lease = job()
    digest = hashlib.sha256(f"lychgate broker key:{lease[0]}:{lease[1]}:{lease[2]}".encode()).digest()
    coded = base64.b64encode(b"lych-" + base64.urlsafe_b64encode(digest).rstrip(b"=")).decode()
    for width, behind in ((12, "</li>"), (16, ";"), (20, "")):
        text = "".join(f"{coded[i:i + width]}{behind}\n" for i in range(0, len(coded), width))
        body = json.dumps({"messages": [{"role": "user", "content": text}]})
        for seq, (kind, it) in enumerate((("text/plain", text), ("application/json", body), ("application/x-ndjson", body + "\n" + body)), width * 10):
            a = fetch(lease, seq, "https://a.wild.example/", method="POST", headers=[["content-type", kind]], body=base64.b64encode(it.encode()).decode())
            assert b"canary" in refused(a, 403, "LYCH-GATE-001").data, (width, kind)


def t_the_key_of_its_own_broker_is_a_canary():
    lease, before = job(), (metric("lychgate_broker_canaries_total"), metric("lychgate_broker_signals_total"))
    digest = hashlib.sha256(f"lychgate broker key:{lease[0]}:{lease[1]}:{lease[2]}".encode()).digest()
    key = "lych-" + base64.urlsafe_b64encode(digest).decode().rstrip("=")
    sent = len(Provider.seen)
    # an agent that printed its environment: the portal gets a placeholder, the agent goes on
    said = ask(lease, 1, text=f"OPENAI_API_KEY={key} please echo")
    assert said.status == 200 and key in said.data.decode(), said.data
    assert json.loads(Provider.seen[-1][2])["messages"][0]["content"] == "OPENAI_API_KEY=<CANARY_1> please echo"
    assert len(Provider.seen) == sent + 1
    for seq, text in enumerate([base64.b64encode(f"it is {key}".encode()).decode(), key[::-1]], 2):
        assert b"canary" in refused(ask(lease, seq, text=text), 403, "LYCH-GATE-001").data
    assert len(Provider.seen) == sent + 1
    until(lambda: len(events("detection.canary", lease[0])) == 3)
    assert [e["unmapped"]["replaced"] for e in events("detection.canary", lease[0])] == [True, False, False]
    assert key not in "".join(log_lines())
    assert metric("lychgate_broker_canaries_total") == before[0] + 3
    assert metric("lychgate_broker_signals_total") == before[1] + 1
    # another job may say it: it is nothing there but a key
    assert b"canary" not in ask(job(), 1, text=key).data


def t_fifty_at_once_against_ten():
    lease = job()
    got = []

    def one(seq):
        got.append(ask(lease, seq).status)
    threads = [threading.Thread(target=one, args=(i + 1,)) for i in range(50)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(got).count(200) == 10 and got.count(429) == 40, sorted(got)
    assert balanced(lease)["requests"] == 10


# ---- what breaks ----

def open_stream(lease, seq, text="for ever"):
    Provider.hung_up.clear()
    c = Unix(WORK)
    c.request("POST", "/work/v1/ask", json.dumps(intent(seq, text=text, stream=True)), headers(lease))
    r = c.getresponse()
    assert r.status == 200 and r.read(20)
    return c, r


def t_a_tomb_that_hangs_up_cancels_the_provider():
    lease = job()
    c, r = open_stream(lease, 1)
    r.close()
    c.close()
    assert Provider.hung_up.wait(1.5), "the provider was not cancelled"
    spent = balanced(lease)
    assert spent["requests"] == 1 and spent["tokens"] > 100, spent  # its estimate
    until(lambda: events("ask.failed", lease[0]))


def t_a_revoked_lease_cuts_the_stream():
    lease = job()
    c, r = open_stream(lease, 1)
    psql(f"SELECT vessel_api.contain({lease[0]}, 'test')", "lych_vessel")
    try:
        while r.read(1000):
            pass
        raise AssertionError("the stream came to its end")
    except http.client.IncompleteRead:
        pass
    assert Provider.hung_up.wait(2)
    c.close()
    balanced(lease)


def t_without_the_log_nothing_leaves():
    global scribe
    lease = job()
    before = len(Provider.seen)
    scribe.stop(signal.SIGKILL)
    until(lambda: not status()["audit"]["ok"])
    a = ask(lease, 1)
    assert a.status == 503 and b"LYCH-AUDIT-" in a.data, a.data
    assert len(Provider.seen) == before
    assert balanced(lease)["requests"] == 0
    # and no other rules take effect
    c, was = Unix(API), call(API, "GET", "/v1/ward").data
    c.request("POST", "/v1/ward/reload", CODEX.replace("portal: main, action: allow", "portal: main, action: deny"))
    r = c.getresponse()
    assert r.status == 503 and b"LYCH-AUDIT-" in r.read() and call(API, "GET", "/v1/ward").data == was
    c.close()
    scribe = Scribe()
    until(lambda: status()["audit"]["ok"])
    assert ask(lease, 2).status == 200


def t_a_killed_vessel_leaves_books_that_balance():
    global vessel
    lease = job()
    c, _ = open_stream(lease, 1)
    reserved = books(lease)["reserved"]
    assert reserved["requests"] == 1, reserved
    vessel.stop(signal.SIGKILL)
    c.close()
    assert Provider.hung_up.wait(5), "the workers outlived their vessel"
    vessel = Vessel()
    assert balanced(lease) == reserved
    assert metric("lychgate_broker_recovered_total") == 1
    assert psql("SELECT sum(bad) FROM lych.invariants()", "lych_migrate") == "0"
    refused(ask(lease, 1), 409, "LYCH-BROKER-001")


def main():
    global vessel, scribe
    with open(D + "/codex.yaml", "w", encoding="utf-8") as f:
        f.write(CODEX)
    os.chmod(D + "/codex.yaml", 0o600)
    with open(D + "/pg/secrets/portal_main", "w", encoding="utf-8") as f:
        f.write(KEY)
    os.chmod(D + "/pg/secrets/portal_main", 0o600)
    scribe = Scribe()
    atexit.register(lambda: scribe.p.kill())
    vessel = Vessel()
    atexit.register(lambda: vessel.p.kill())
    bad = 0
    only = os.environ.get("ONLY_CASE", "")
    for name, fn in [(n, f) for n, f in globals().items() if n.startswith("t_") and only in n]:
        try:
            fn()
            print("ok  ", name, flush=True)
        except Exception as e:  # pylint: disable=broad-except
            bad += 1
            print("FAIL", name, type(e).__name__, e, "line", traceback.extract_tb(e.__traceback__)[1].lineno, flush=True)
    assert psql("SELECT sum(bad) FROM lych.invariants()", "lych_migrate") == "0"
    code = vessel.stop()
    scribe.stop()
    assert code == 0, f"the vessel ended with {code}"
    if bad:
        print(open(D + "/vessel.log").read()[-4000:])
    sys.exit(bad != 0)


main()
