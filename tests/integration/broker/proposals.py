# SPDX-License-Identifier: Apache-2.0
"""Run by test_proposals.sh: DIR VESSEL. Goes into a network of its own first. Each function named t_* is one case."""
import concurrent.futures
import glob
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
import uuid

if "LAB" not in os.environ:
    os.execvpe("unshare", ["unshare", "-Urnm", sys.executable, *sys.argv], {**os.environ, "LAB": "1"})

# pylint: disable=wrong-import-position
import bypass
import factor
import lab
import rig
from rig import API, ARGS, BOOT, D, ENV, WORK, Unix, call, lease_headers, main, psql, submit, want

WAIT = 60  # for what comes soon, on a machine that is busy
WORDS = "correct horse battery"
HOST = "api.allowed.example"
AS_USER = ["unshare", "-U", "--map-user=1000", "--map-group=1000"]  # nobody is root in the vessel, nor in lych
vessel = None  # the one that runs


# ---- the network, and the rules ----

class Outside:
    """The servers, as another namespace's child has them."""

    def __init__(self):
        self.world, self.mark = lab.Outside(lambda stream: bypass.outside(D, stream)), 0
        for name, text in (("resolv", f"nameserver {lab.NAME_SERVER}\n"), ("hosts", "127.0.0.1 localhost\n")):
            with open(f"{D}/{name}", "w", encoding="ascii") as f:
                f.write(text)
        for name, at in (("resolv", "/etc/resolv.conf"), ("hosts", "/etc/hosts")):
            subprocess.run(["mount", "--bind", f"{D}/{name}", at], check=True)

    def asked(self):
        """What the servers were asked since the last time: METHOD PATH each."""
        self.mark += 1
        lab.send_mark(self.mark)
        return [" ".join(r["head"].split(" ")[:2]) for r in self.world.ask("take", self.mark)["requests"]]


lab.make_ca(D, [HOST, "prefix.allowed.example", "*.dns.example"])
outside = Outside()
AMOUNTS = 'requests: 1000000, tokens: 1000000000, money: "1000", bytes: 10GiB, denials: 1000000'
START = ('version: "1"\ntomb: {slots: 4}\nbudgets:\n' + "".join(f"  {s}: {{{AMOUNTS}}}\n" for s in ("job", "identity_day", "day")) +
         f'egress: {{in_flight: 64, retries: 0, authorities: "{D}/ca.pem"}}\nward:\n'
         "  - {host: prefix.allowed.example, path: /open, action: allow}\n"
         "  - {host: prefix.allowed.example, path: /drip, action: allow}\n"
         "  - {host: private.dns.example, path: /allowed, action: allow}\n"
         f"  - {{host: {HOST}, path: /never, action: deny}}\n"
         "  - {host: denied.example, action: deny, reason: no}\n")
with open(D + "/codex.yaml", "w", encoding="utf-8") as conf:
    conf.write(START)
os.chmod(D + "/codex.yaml", 0o600)
ARGS += ["--config", D + "/codex.yaml"]
ARGS[:0] = AS_USER
os.makedirs(D + "/xdg", 0o700)
os.symlink(D + "/run", D + "/xdg/lychgate")


# ---- who asks ----

class Job:
    """Running, by its lease."""

    def __init__(self, egress="brokered"):
        self.id, self.seq = submit(limits={"timeout_ms": 600000}, **({"egress": egress} if egress else {})), 0
        self.lock, end = threading.Lock(), time.monotonic() + WAIT
        while True:
            row = psql(f"SELECT job_id, epoch, token FROM tomb_api.claim('main', 1, 600, '{BOOT}', '{uuid.uuid4()}')")
            if row and int(row.split("|")[0]) == self.id:
                self.lease = row.split("|")
                break
            assert time.monotonic() < end, "the job was not handed out"
            time.sleep(0.05)
        want(rig.work(self.lease, "POST", "/work/v1/phase", {"phase": "running"}), 200)

    def intent(self, url, method):
        with self.lock:
            self.seq += 1
            return json.dumps({"seq": self.seq, "method": method, "url": url, "headers": [], "body": ""})

    def fetch(self, url, method="GET"):
        return call(WORK, "POST", "/work/v1/fetch", self.intent(url, method), lease_headers(self.lease), WAIT)

    def end(self):
        rig.finish_output(self.lease)
        rig.settle(self.lease, "ack", {"v": 1, "exit_code": 0})


def api(method, path, body=None, proof=None):
    return call(API, method, path, body, {"Lychgate-Passphrase": proof} if proof else {})


def proposals(job=None):
    rows = want(api("GET", "/v1/proposals"), 200).json["proposals"]
    return [r for r in rows if job is None or r["job"] == job.id]


def proposal_of(job, url, method="GET"):
    want(job.fetch(url, method), 403, "LYCH-WARD-001")
    return next(r for r in proposals(job) if url == f"https://{r['host']}{r['path']}" and r["method"] == method)


def allow(row, how="once", proof=None, **more):
    return api("POST", f"/v1/proposals/{row['proposal']}/allow", {"how": how, **more}, proof)


def prove(row, words=WORDS):
    said = want(api("GET", "/v1/passphrase"), 200).json
    return factor.proof(factor.key_of(words, said), said["nonce"], f"allow proposal {row['proposal']} to its job {row['job']}")


def reload(text):
    want(api("POST", "/v1/ward/reload", text), 403, "LYCH-PASSPHRASE-002")
    said = want(api("GET", "/v1/passphrase"), 200).json
    act = "reload the ward from " + hashlib.sha256(text.encode()).hexdigest()
    return want(api("POST", "/v1/ward/reload", text, factor.proof(factor.key_of(WORDS, said), said["nonce"], act)), 200).json


def events(name, job=None):
    got = []
    for path in sorted(glob.glob(D + "/data/audit/segment-*.jsonl")):
        with open(path, encoding="utf-8") as f:
            got += [json.loads(line) for line in f.read().split("\n")[:-1] if f'"event":"{name}"' in line]
    return [e for e in got if job is None or e["metadata"].get("correlation_uid") == str(job.id)]


def until(what):
    end = time.monotonic() + WAIT
    while not what():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def command(*args):
    return [*AS_USER, os.environ["LYCH_BUILD"] + "/lych", *args]


CLI_ENV = {**ENV, "XDG_RUNTIME_DIR": D + "/xdg", "LYCHGATE_DATA": D + "/data", "XDG_CONFIG_HOME": D + "/xdg-config"}


def nobody(*args):
    """Without a terminal."""
    r = subprocess.run(command(*args), env=CLI_ENV, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=WAIT,
                       start_new_session=True)
    return r.returncode, r.stdout + r.stderr


def terminal(answers, *args):
    return factor.typed(command(*args), answers, CLI_ENV)


# ---- what never becomes one ----

def t_only_what_lacks_a_rule_becomes_one():
    until(lambda: want(api("GET", "/v1/status"), 200).json["audit"]["ok"])
    job = Job()
    for url in ("https://denied.example/", f"https://{HOST}/never", f"https://{HOST}/never/more", f"http://{HOST}/", "https://203.0.114.9/",
                "https://[2606:4700:aa::9]/", "https://localhost/", "https://single/", f"https://{HOST}:444/", f"https://{HOST}:8443/x",
                "https://*.allowed.example/", "https://user@api.allowed.example/", f"https://{HOST}/a/../b", f"https://{HOST}/a%2e%2e/%2e%2e/b",
                "https://аpi.allowed.example/", f"https://{HOST}/" + "x" * 1100, "https://private.dns.example/allowed",
                "https://no-such.allowed.example:443:80/"):
        a = job.fetch(url)
        assert a.status >= 400, (url, a)
        assert not proposals(), url
    for method in ("TRACE", "OPTIONS", "CONNECT", "get"):
        assert job.fetch(f"https://{HOST}/", method).status >= 400 and not proposals(), method
    none = Job(egress=None)
    assert none.fetch(f"https://{HOST}/").status == 403 and not proposals()
    # the gate and a canary: to a host that a rule allows, and to one that none does, which never reaches the gate
    want(job.fetch("https://prefix.allowed.example/open?k=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"), 403, "LYCH-GATE-001")
    assert not proposals() and not outside.asked() and not events("ward.proposed")


def t_a_flood_is_32_and_no_more():
    job = Job()
    outside.asked()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        got = list(pool.map(lambda i: job.fetch(f"https://{HOST}/flood/{i}").code, range(600)))
    assert set(got) == {"LYCH-WARD-001"}, set(got)
    assert len(proposals(job)) == 32
    until(lambda: len(events("ward.proposed", job)) == 32)
    # what is there is counted, what is not does not come
    row = proposals(job)[0]
    want(job.fetch(f"https://{HOST}{row['path']}"), 403)
    assert next(r for r in proposals(job) if r["proposal"] == row["proposal"])["times"] == 2
    # dropping makes no room, and does not bring it back
    want(api("DELETE", f"/v1/proposals/{row['proposal']}"), 200)
    want(job.fetch(f"https://{HOST}{row['path']}"), 403)
    want(job.fetch(f"https://{HOST}/another"), 403)
    assert len(proposals(job)) == 31 and not outside.asked()


def t_a_name_is_shown_as_it_is():
    job = Job()
    row = proposal_of(job, "https://xn--pi-6kc.allowed.example/")
    assert row["host"] == "xn--pi-6kc.allowed.example", row
    code, shown = nobody("proposals")
    assert code == 0 and "GET https://xn--pi-6kc.allowed.example/" in shown, shown
    # on a terminal of 80 columns too: what is cut is the path
    for host, path in (("xn--pi-6kc.allowed.example.and.so.on.for.whoever.it.is.evil.example", "/" + "p" * 100),
                       ("a." * 60 + "evil.example", "/a/path"), ("b.example", "/" + "p" * 100), ("c.example", "/short")):
        proposal_of(job, f"https://{host}{path}")
        code, shown = terminal([], "proposals")
        lines = shown.replace("\r", "").split("\n")
        line = next(x for x in lines if x.startswith(f"  GET https://{host}"))
        assert code == 0 and line.endswith("/short" if path == "/short" else "…") and (len(host) > 60 or len(line) <= 80), shown


def t_why_names_them():
    job = Job()
    row = proposal_of(job, f"https://{HOST}/why")
    proposal_of(Job(), f"https://{HOST}/another-job")
    code, shown = nobody("why", str(job.id))
    assert code == 0 and f"  {row['proposal']}  GET https://{HOST}/why, 1 time, open\n" in shown and "another-job" not in shown, shown
    assert "'lych proposals allow N' lets the next such request pass" in shown, shown
    code, shown = nobody("why", str(job.id), "--json")
    assert code == 0 and json.loads(shown)["proposals"] == [row], shown
    job.end()
    code, shown = nobody("why", str(job.id))
    assert code == 0 and "'lych proposals allow N --always'" in shown and "lets the next" not in shown, shown


def t_bad_words_are_refused():
    job = Job()
    row = proposal_of(job, f"https://{HOST}/word")
    n = row["proposal"]
    for path, body, status in ((f"/v1/proposals/{n}/allow", {}, 400), (f"/v1/proposals/{n}/allow", {"how": "always"}, 400),
                               (f"/v1/proposals/{n}/allow", {"how": "once", "host": "*"}, 400), (f"/v1/proposals/{n}/allow?x=1", {"how": "once"}, 400),
                               (f"/v1/proposals/{n}/allow", {"how": "once", "reason": "x" * 300}, 400), ("/v1/proposals/0/allow", {"how": "once"}, 400),
                               ("/v1/proposals/99999/allow", {"how": "once"}, 404), ("/v1/proposals/x/allow", {"how": "once"}, 400)):
        assert api("POST", path, body).status == status, (path, body)
    want(api("DELETE", "/v1/proposals/99999"), 404, "LYCH-PROPOSAL-001")
    assert call(WORK, "POST", f"/v1/proposals/{n}/allow", {"how": "once"}, lease_headers(job.lease)).status == 404
    for args in (("allow",), ("allow", "0"), ("allow", "x"), ("drop", "1", "2"), ("drop", "1", "--job"), ("allow", "1", "--job", "--once"), ("list",)):
        assert nobody("proposals", *args)[0] == 2, args
    assert nobody("proposals", "allow", "99999")[0] == 3
    want(job.fetch(f"https://{HOST}/word"), 403, "LYCH-WARD-001")


# ---- the second factor ----

def t_for_a_job_it_asks_for_the_passphrase():
    job = Job()
    outside.asked()
    row = proposal_of(job, f"https://{HOST}/whole")
    want(allow(row, "job"), 403, "LYCH-PASSPHRASE-001")
    code, shown = nobody("proposals", "allow", str(row["proposal"]), "--job")
    assert code == 1 and "lych passphrase set" in shown, shown
    want(api("POST", "/v1/passphrase", factor.verifier(WORDS)), 200)
    want(allow(row, "job"), 403, "LYCH-PASSPHRASE-002")
    want(allow(row, "job", prove(row, "not those words")), 403, "LYCH-PASSPHRASE-003")
    other = proposal_of(job, f"https://{HOST}/other")
    want(allow(row, "job", prove(other)), 403, "LYCH-PASSPHRASE-003")
    code, shown = nobody("proposals", "allow", str(row["proposal"]), "--job")
    assert code == 2 and "LYCH-PASSPHRASE-006" in shown, (code, shown)
    want(job.fetch(f"https://{HOST}/whole"), 403, "LYCH-WARD-001")
    assert not outside.asked() and not events("ward.allowed_job")


# ---- what a word allows ----

def t_once_is_one_request_and_nothing_else():
    job, stranger = Job(), Job()
    outside.asked()
    row, url = proposal_of(job, f"https://{HOST}/echo"), f"https://{HOST}/echo"
    want(allow(row, reason="its schema"), 200)
    told = events("ward.allowed_once", job)
    assert len(told) == 1 and told[0]["unmapped"]["path"] == "/echo" and told[0]["unmapped"]["reason"] == "its schema", told
    for one, other, method in ((job, url + "/more", "GET"), (job, url, "HEAD"), (job, url, "POST"), (job, "https://a.api.allowed.example/echo", "GET"),
                               (job, f"https://{HOST}/ech", "GET"), (job, f"https://{HOST}/ECHO", "GET"), (stranger, url, "GET")):
        want(one.fetch(other, method), 403, "LYCH-WARD-001")
    assert not outside.asked()
    a = want(job.fetch(url), 200)
    assert json.loads(a.body)["target"] == "/echo" and outside.asked() == ["GET /echo"], a
    done = events("fetch.allowed", job)
    assert [e["unmapped"]["proposal"] for e in done] == [row["proposal"]], done
    want(job.fetch(url), 403, "LYCH-WARD-001")
    assert not outside.asked()
    # asked for again it can be allowed again
    want(allow(proposal_of(job, url)), 200)
    want(job.fetch(url), 200)


def t_what_else_judges_it_still_does():
    job = Job()
    row = proposal_of(job, "https://private.dns.example/x")
    want(allow(row, "job", prove(row)), 200)
    outside.asked()
    for _ in range(2):  # a name that leads to a private address
        a = job.fetch("https://private.dns.example/x")
        assert a.status >= 400 and a.code.startswith("LYCH-FETCH"), a
    row = proposal_of(job, f"https://{HOST}/gate")
    want(allow(row, "job", prove(row)), 200)
    want(job.fetch(f"https://{HOST}/gate?k=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"), 403, "LYCH-GATE-001")
    assert not outside.asked()
    want(job.fetch(f"https://{HOST}/gate?k=1"), 200)


def t_for_a_job_is_until_it_ends():
    job, stranger, url = Job(), Job(), f"https://{HOST}/job"
    outside.asked()
    row = proposal_of(job, url)
    code, shown = terminal([WORDS], "proposals", "allow", str(row["proposal"]), "--job", "--reason", "why not")
    assert code == 0 and f"GET {url}" in shown and WORDS not in shown, shown
    for _ in range(3):
        want(job.fetch(url), 200)
    want(stranger.fetch(url), 403, "LYCH-WARD-001")
    assert outside.asked() == ["GET /job"] * 3
    # nothing of a rule that is reloaded, but by one that denies; what is under way is cut by that
    c = Unix(WORK, WAIT)
    slow = proposal_of(job, f"https://{HOST}/slow")
    want(allow(slow), 200)
    c.request("POST", "/work/v1/fetch", job.intent(f"https://{HOST}/slow", "GET"), lease_headers(job.lease))
    r = c.getresponse()
    assert r.status == 200 and r.read(3) == b"xxx"
    assert want(api("POST", "/v1/ward/reload", START + "  - {host: new.example, action: deny}\n"), 200).json["cut"] == 0
    assert r.read(3) == b"xxx"
    want(job.fetch(url), 200)
    reload(START)  # a rule that denies is gone: only with the passphrase
    deny = START + f"  - {{host: {HOST}, action: deny}}\n"
    assert want(api("POST", "/v1/ward/reload", deny), 200).json["cut"] == 1
    want(job.fetch(url), 403, "LYCH-WARD-002")
    c.close()
    reload(START)
    want(job.fetch(url), 200)
    # withdrawn
    code, shown = nobody("proposals", "drop", str(row["proposal"]))
    assert code == 0, shown
    want(job.fetch(url), 403, "LYCH-WARD-001")


def t_a_job_that_has_ended_is_allowed_nothing():
    job, url = Job(), f"https://{HOST}/ended"
    outside.asked()
    row = proposal_of(job, url)
    job.end()
    want(allow(row), 409, "LYCH-PROPOSAL-002")
    want(allow(row, "job", prove(row)), 409, "LYCH-PROPOSAL-002")
    assert job.fetch(url).status in (403, 410)
    assert not outside.asked()


def t_a_job_that_waits_gets_its_answer():
    job, url, got = Job(), f"https://{HOST}/waits", []
    stop = threading.Event()

    def wait():
        while not stop.is_set():
            a = job.fetch(url)
            got.append((time.monotonic(), a.status))
            if a.status == 200:
                return

    def beside():  # who is allowed notices nothing of it
        while not stop.is_set():
            seen.append(other.fetch("https://prefix.allowed.example/open").status)

    other, seen = Job(), []
    threads = [threading.Thread(target=f) for f in (wait, beside)]
    for t in threads:
        t.start()
    until(lambda: proposals(job) and len(seen) > 3)
    began = time.monotonic()
    want(allow(proposals(job)[0]), 200)
    threads[0].join(WAIT)
    stop.set()
    threads[1].join(WAIT)
    assert got[-1][1] == 200 and set(seen) == {200}, (got[-1], set(seen))
    print(f"   (allowed and answered in {1000 * (got[-1][0] - began):.0f} ms)")


# ---- always ----

CODEX = D + "/xdg-config/lychgate/codex.yaml"


def put_codex(text):
    os.makedirs(os.path.dirname(CODEX), 0o700, exist_ok=True)
    with open(os.open(CODEX, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as f:
        f.write(text)


def codex():
    with open(CODEX, encoding="utf-8") as f:
        return f.read()


def t_always_is_refused_and_the_file_is_as_it_was():
    job, generation = Job(), want(api("GET", "/v1/ward"), 200).json["generation"]
    row = proposal_of(job, f"https://{HOST}/always")
    n = str(row["proposal"])
    outside.asked()
    put_codex(START + "# the end\n")
    code, shown = nobody("proposals", "allow", n, "--always")
    assert code == 2 and "LYCH-PASSPHRASE-006" in shown, (code, shown)
    code, shown = terminal(["not those words"], "proposals", "allow", n, "--always")
    assert code == 1 and "LYCH-PASSPHRASE-003" in shown and "as it was" in shown, shown
    assert codex() == START + "# the end\n"
    # what differs elsewhere needs a restart
    other = START.replace("slots: 4", "slots: 3")
    put_codex(other)
    code, shown = terminal([WORDS], "proposals", "allow", n, "--always")
    assert code == 1 and "LYCH-WARD-010" in shown and codex() == other, shown
    # what somebody else has written there meanwhile goes into force with no rule that a person was shown
    for slipped in (START + "  - {host: other.allowed.example, action: allow}\n", START.replace("/never", "/nowhere"),
                    START.replace("action: deny", "action: allow")):
        assert slipped != START
        put_codex(slipped)
        code, shown = terminal([WORDS], "proposals", "allow", n, "--always")
        assert code == 1 and "LYCH-WARD-012" in shown and "ward." in shown and codex() == slipped, shown
    # what no rule can say, before anybody is asked
    put_codex(START)
    for path in ("/repo/..+/echo", "/repo/.../echo", "/x*y", "/%22q"):
        never = job.fetch(f"https://{HOST}{path}")
        row = [r for r in proposals(job) if r["path"] == path]
        assert never.status == 403 and row, (path, never)
        code, shown = nobody("proposals", "allow", str(row[0]["proposal"]), "--always")
        assert code == 1 and "LYCH-PROPOSAL-003" in shown and codex() == START, (path, code, shown)
    # a layout that only a person changes
    flow = START[:START.index("ward:")] + "ward: []\n"
    put_codex(flow)
    code, shown = terminal([WORDS], "proposals", "allow", n, "--always")
    assert code != 0 and codex() == flow, shown
    # by its own words on the socket, or by lych ward reload
    wide = START + "  - {host: other.example, action: allow}\n"
    want(api("POST", "/v1/ward/reload", wide), 403, "LYCH-PASSPHRASE-002")
    want(api("POST", "/v1/ward/reload", START.replace("/never", "/nowhere")), 403, "LYCH-PASSPHRASE-002")
    put_codex(wide)
    code, shown = nobody("ward", "reload")
    assert code == 2 and "LYCH-PASSPHRASE-006" in shown, (code, shown)
    assert want(api("GET", "/v1/ward"), 200).json["generation"] == generation
    want(job.fetch(f"https://{HOST}/always"), 403, "LYCH-WARD-001")
    assert not outside.asked()


def t_always_is_a_rule():
    job, stranger = Job(), Job()
    row = proposal_of(job, f"https://{HOST}/always")
    put_codex(START + "# the end\n")
    code, shown = terminal([WORDS], "proposals", "allow", str(row["proposal"]), "--always", "--reason", "its 'docs'")
    rule = f'  - {{host: {HOST}, method: GET, path: "/always", reason: "its \'docs\'", action: allow}}\n'
    assert code == 0 and codex() == START + rule + "# the end\n" and rule.strip() in shown, (shown, codex())
    for one in (job, stranger):
        want(one.fetch(f"https://{HOST}/always"), 200)
        want(one.fetch(f"https://{HOST}/always/more"), 200)
        want(one.fetch(f"https://{HOST}/always2"), 403, "LYCH-WARD-001")
    assert row["proposal"] not in [r["proposal"] for r in proposals(job)]
    # tighter again, by who knows no passphrase
    want(api("POST", "/v1/ward/reload", START), 200)
    want(job.fetch(f"https://{HOST}/always"), 403, "LYCH-WARD-001")


def t_another_vessel_knows_nothing_of_it():
    global vessel
    job, url = Job(), f"https://{HOST}/again"
    row = proposal_of(job, url)
    want(allow(row, "job", prove(row)), 200)
    want(job.fetch(url), 200)
    assert vessel.stop() == 0
    vessel = rig.Vessel()
    assert not proposals()
    want(job.fetch(url), 403, "LYCH-WARD-001")


if __name__ == "__main__":
    main(globals())
