# SPDX-License-Identifier: Apache-2.0
"""Run by test_credentials.sh: DIR VESSEL. The network, the jobs and the words are those of proposals.py. LOAD: so many keys, one
after the other, while jobs ask with them. Each function named t_* is one case, and begins with what the one before left."""
import hashlib
import http.client
import os
import re
import threading

import factor
import lab
from proposals import CLI_ENV, HOST, START, WAIT, WORDS, Job, api, events, nobody, outside, reload, until
from rig import API, D, WORK, Unix, call, lease_headers, main, want

LOAD = int(os.environ.get("LOAD", "12"))
vessel = None  # the one that runs
RESTART = "systemctl --user restart lychgate-vessel.service"
KEY = "tok-zQ7r{}-xV2m9LbT0cHs51"
ECHO, SLOW = f"https://{HOST}/echo", f"https://{HOST}/slower"
RULE = f"  - {{host: {HOST}, path: /, credential: forge, action: allow}}\n"


def credential(name="forge", path="/", host=HOST, header="bearer"):
    return f"  - {{name: {name}, host: {host}, path: {path}, header: {header}, secret: host_{name}}}\n"


def codex(*credentials, rules=RULE):
    return START + rules + ("credentials:\n" + "".join(credentials) if credentials else "")


HELD = codex(credential())


def put_secret(name, value):
    """As lych secret set does: complete or not at all."""
    path = f"{D}/pg/secrets/{name}"
    with open(path + ".new", "w", encoding="ascii") as f:
        f.write(value + "\n")
    os.chmod(path + ".new", 0o600)
    os.rename(path + ".new", path)


def send(text):
    return call(API, "POST", "/v1/ward/reload", text, timeout=WAIT)


def send_proved(text):
    said = want(api("GET", "/v1/passphrase"), 200).json
    act = "reload the ward from " + hashlib.sha256(text.encode()).hexdigest()
    return api("POST", "/v1/ward/reload", text, factor.proof(factor.key_of(WORDS, said), said["nonce"], act))


def ward():
    return want(api("GET", "/v1/ward"), 200).json


def workers():
    return {w["name"]: w for w in want(api("GET", "/v1/status"), 200).json["egress_workers"]}


def keys_seen():
    """Of each request that the servers saw since the last time: its key, or None."""
    outside.mark += 1
    lab.send_mark(outside.mark)
    heads = [r["head"] for r in outside.world.ask("take", outside.mark)["requests"]]
    return [m.group(1) if m else None for m in (re.search(r"(?im)^authorization: bearer (\S+)\r?$", h) for h in heads)]


class Stream:
    """An answer that comes slowly, begun."""

    def __init__(self, job):
        self.c = Unix(WORK, WAIT)
        self.c.request("POST", "/work/v1/fetch", job.intent(SLOW, "GET"), lease_headers(job.lease))
        self.r = self.c.getresponse()
        assert self.r.status == 200 and self.r.read(1) == b"x", self.r.status

    def goes_on(self):
        return self.r.read(2) == b"xx"

    def is_cut(self):
        try:
            self.r.read()
        except http.client.IncompleteRead:
            return True
        finally:
            self.c.close()
        return False


# ---- what is refused leaves all as it was ----

def t_what_cannot_be_had_changes_nothing():
    until(lambda: want(api("GET", "/v1/status"), 200).json["audit"]["ok"])
    before, job = ward(), Job()
    put_secret("host_forge", KEY.format(0))
    put_secret("host_short", "short")
    os.symlink("host_forge", D + "/pg/secrets/host_link")
    for more, word in ((credential("absent"), "host_absent"), (credential("short"), "host_short"), (credential("link"), "host_link")):
        a = want(send(codex(credential(), more)), 409, "LYCH-CREDENTIAL-001")
        assert word in a.json["detail"] and RESTART in a.json["hint"], a
        assert ward() == before and not any(n.startswith("host:") for n in workers()), workers()
    want(send(codex(credential(), credential())), 400, "LYCH-STARTUP-002")
    want(send(codex(rules=RULE)), 400, "LYCH-STARTUP-002")
    want(send(HELD.replace("slots: 4", "slots: 5")), 409, "LYCH-WARD-010")
    want(call(API, "POST", "/v1/ward/reload?adds=1", HELD), 409, "LYCH-WARD-012")
    assert call(WORK, "POST", "/v1/ward/reload", HELD, lease_headers(job.lease)).status == 404
    want(job.fetch(ECHO), 403, "LYCH-WARD-001")
    assert ward() == before and not events("ward.reloaded") and not keys_seen()


def t_another_key_asks_for_the_passphrase():
    want(api("POST", "/v1/passphrase", factor.verifier(WORDS)), 200)
    before = ward()
    want(send(HELD), 403, "LYCH-PASSPHRASE-002")
    want(send(codex(credential(), rules="")), 403, "LYCH-PASSPHRASE-002")
    assert ward() == before and not any(n.startswith("host:") for n in workers())


# ---- what counts afterwards, for a job that runs ----

def t_a_running_job_gets_a_key_that_it_never_sees():
    job = Job()
    want(job.fetch(ECHO), 403, "LYCH-WARD-001")
    told = reload(HELD)
    assert (told["credentials"], told["new_keys"], told["cut"]) == (1, 1, 0), told
    a = want(job.fetch(ECHO), 200)
    assert KEY.format(0) not in a.body.decode() and "[redacted]" in a.body.decode(), a
    assert keys_seen() == [KEY.format(0)]
    event = events("ward.reloaded")[-1]["unmapped"]
    assert (event["credentials"], event["old_credentials"], event["new_keys"], event["gone_keys"]) == (1, 0, ["forge"], []), event
    assert events("fetch.allowed", job)[-1]["unmapped"]["credential"] == "forge"


def t_a_key_that_was_replaced_is_the_next_requests():
    job = Job()
    stream, pid_of = Stream(job), workers()["host:forge"]
    assert keys_seen() == [KEY.format(0)]
    told = want(send(HELD), 200).json  # nothing is another, so no worker either
    assert told["new_keys"] == 0 and workers()["host:forge"] == {**pid_of, "calls": 1}, (told, workers())
    put_secret("host_forge", KEY.format(1))
    want(job.fetch(ECHO), 200)
    assert keys_seen() == [KEY.format(0)]  # not before it is said
    told = want(send(HELD), 200).json
    assert (told["new_keys"], told["cut"]) == (1, 0), told
    assert stream.goes_on()
    want(job.fetch(ECHO), 200)
    assert keys_seen() == [KEY.format(1)] and stream.goes_on()
    # half of it is nothing: the next value is not taken when another key is missing
    put_secret("host_forge", KEY.format(2))
    want(send_proved(codex(credential(), credential("absent"))), 409, "LYCH-CREDENTIAL-001")
    want(job.fetch(ECHO), 200)
    assert keys_seen() == [KEY.format(1)] and stream.goes_on()
    os.remove(D + "/pg/secrets/host_forge")
    want(send(HELD), 409, "LYCH-CREDENTIAL-001")
    want(job.fetch(ECHO), 200)
    put_secret("host_forge", KEY.format(1))
    keys_seen()
    stream.c.close()


def t_a_key_goes_to_no_second_place():
    job, before = Job(), ward()
    for moved in (credential(host="other.allowed.example"), credential(header="X-Api-Key"),
                  f"  - {{name: again, host: prefix.allowed.example, path: /, header: bearer, secret: host_forge}}\n"):
        a = want(send_proved(codex(moved, rules="")), 409, "LYCH-CREDENTIAL-002")
        assert HOST in a.json["detail"] and "host_forge" in a.json["detail"], a
    assert ward() == before
    want(job.fetch(ECHO), 200)
    assert keys_seen() == [KEY.format(1)]


def t_the_command_says_what_it_did():
    os.makedirs(D + "/xdg-config/lychgate", 0o700, exist_ok=True)
    with open(D + "/xdg-config/lychgate/codex.yaml", "w", encoding="utf-8") as f:
        f.write(HELD)
    os.chmod(f.name, 0o600)
    assert CLI_ENV["XDG_CONFIG_HOME"] == D + "/xdg-config"
    put_secret("host_forge", KEY.format(2))
    code, shown = nobody("ward", "reload")
    assert code == 0 and "credentials: 1, 1 of them with a key that was read now\n" in shown, (code, shown)


def t_what_it_may_no_more_is_cut():
    job = Job()
    stream = Stream(job)
    # its place is narrower: beside it the rule permits without a key, but not what began with one
    told = want(send_proved(codex(credential(path="/team"))), 200).json
    assert told["cut"] == 1 and stream.is_cut(), told
    keys_seen()
    want(job.fetch(ECHO), 200)
    want(job.fetch(f"https://{HOST}/team/x"), 200)
    assert keys_seen() == [None, KEY.format(2)]
    reload(HELD)
    stream = Stream(job)
    told = want(send(START), 200).json  # taken away: by nobody's leave
    assert told["cut"] == 1 and stream.is_cut() and told["credentials"] == 0, told
    assert not any(n.startswith("host:") for n in workers())
    assert events("ward.reloaded")[-1]["unmapped"]["gone_keys"] == ["forge"]
    want(job.fetch(ECHO), 403, "LYCH-WARD-001")


# ---- many ----

class Beside(threading.Thread):
    """Asks all the time; .bad: what came of it but a 200."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.job, self.url, self.n, self.bad, self.stop = Job(), url, 0, [], threading.Event()
        self.start()

    def run(self):
        while not self.stop.is_set():
            a = self.job.fetch(self.url)
            if a.status != 200:
                self.bad.append(a)
            self.n += 1


def t_many_keys_while_jobs_ask():
    put_secret("host_forge", KEY.format(2))
    reload(HELD)
    before, last = ward()["generation"], Job()
    keys_seen()
    beside, seen = [Beside(ECHO), Beside(ECHO), Beside("https://prefix.allowed.example/open")], []
    for i in range(LOAD):
        put_secret("host_forge", KEY.format(10 + i))
        assert want(send(HELD), 200).json["new_keys"] == 1
        seen += keys_seen()
        if i % 4 == 0:
            want(send_proved(codex(credential(), credential("absent"))), 409, "LYCH-CREDENTIAL-001")
        want(last.fetch(ECHO), 200)
        now = keys_seen()
        assert KEY.format(10 + i) in now, now
        seen += now
    n = [b.n for b in beside]
    until(lambda: all(b.n > was + 1 for b, was in zip(beside, n)))
    for b in beside:
        b.stop.set()
    for b in beside:
        b.join(WAIT)
    print(f"   ({LOAD} keys; {sum(b.n for b in beside)} fetches beside them)")
    assert not any(b.bad for b in beside), [b.bad[:3] for b in beside]
    assert ward()["generation"] == before + LOAD
    assert set(seen) <= {None, KEY.format(2), *(KEY.format(10 + i) for i in range(LOAD))}, set(seen)
    assert workers()["host:forge"]["restarts"] == 0
    text = open(D + "/vessel.log", encoding="utf-8").read()
    assert "tok-zQ7r" not in text


main(globals())
