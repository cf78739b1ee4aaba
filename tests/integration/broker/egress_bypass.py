#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""egress_bypass.py FETCH_DRIVE FOLDER: attempts to fetch what may not be fetched, in the lab of lab.py.

A case has its number in docs/EGRESS.md, a request, and the reason expected ("" = it goes through). After a
refusal no packet may have reached an address that was not looked up for it: the wire and loopback are captured."""
import base64
import json
import os
import subprocess
import sys
import time

import lab
from bypass import ALLOWED, CASES, CHANGES, CREDENTIALS, GOOD, GOOD6, KEY, KEYED_RULES, OTHER, RULES, A, change, codex, get, outside, post


class Lab:
    def __init__(self, drive, folder):
        self.outside = lab.Outside(lambda stream: outside(folder, stream))
        self.loopback = lab.Capture("lo")
        self.own = lab.Listener(lab.PORTS, lambda c, a, p: c.recv(100))
        for name, text in (("codex.yaml", codex(f"{folder}/ca.pem", CREDENTIALS, KEYED_RULES + RULES)), ("resolv", f"nameserver {lab.NAME_SERVER}\nsearch allowed.example\n"), ("hosts", "127.0.0.1 localhost\n")):
            with open(f"{folder}/{name}", "w", encoding="ascii") as f:
                f.write(text)
        os.mkdir(f"{folder}/secrets", 0o700)
        for name in ("portal_lab", "host_forge", "host_field", "host_token"):
            with open(os.open(f"{folder}/secrets/{name}", os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
                f.write(f"{KEY}{name}\n")
        for name, at in (("resolv", "/etc/resolv.conf"), ("hosts", "/etc/hosts")):
            subprocess.run(["mount", "--bind", f"{folder}/{name}", at], check=True)
        # Not as the root of this namespace: with a user of its own below it.
        self.drive = subprocess.Popen(["unshare", "-U", "--map-user=1000", "--map-group=1000", drive, f"{folder}/codex.yaml", f"{folder}/secrets"],
                                      env={**os.environ, "SSL_CERT_FILE": "/nonexistent"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.folder = folder
        self.bad = self.n = self.mark = 0

    def begin(self, intent, prefix=""):
        print(prefix + json.dumps({"seq": 1, **intent}), file=self.drive.stdin, flush=True)

    def ask(self, intent, prefix=""):
        self.begin(intent, prefix)
        line = self.drive.stdout.readline()
        if not line:
            raise RuntimeError(f"the driver ended at {intent}")
        return json.loads(line), self.take()

    def take(self):
        """What happened outside until now."""
        self.mark += 1
        lab.send_mark(self.mark)
        return self.outside.ask("take", self.mark)

    def fail(self, number, text):
        self.bad += 1
        print(f"case {number}: {text}")

    def reached(self, out):
        """Who was reached but the name server: (target, port) of each connection that the client began."""
        wire = {(t, p) for proto, s, t, p in map(tuple, out["wire"])
                if s in (lab.CLIENT, lab.CLIENT6) and proto == 6 or (t != lab.NAME_SERVER and s in (lab.CLIENT, lab.CLIENT6))}
        own = {(t, p) for _, _, t, p in self.loopback.take(self.mark)} | set(self.own.count)
        self.own.count.clear()
        return wire | own

    def judge(self, number, intent, want):
        self.n += 1
        got, out = self.ask(intent)
        shown = json.dumps(intent)[:120]
        wants = (want,) if isinstance(want, str) else want
        if got["reason"] not in wants:
            self.fail(number, f"{shown}: {got['reason']!r} instead of {want!r} ({got['status']})")
        if got["unsettled"]:
            self.fail(number, f"{shown}: {got['unsettled']} of its requests were not settled")
        reached = self.reached(out)
        # Whose address was refused, that one was not to be reached; who led there was.
        due = got["requests"] > (got["reason"] in ("dns", "addr_private", "self"))
        may = {(GOOD, 443), (GOOD6, 443), (OTHER, 443)} if due else set()
        if "named.example" in intent["url"]:
            may = {("10.0.0.7", 443)}
        if reached - may:
            self.fail(number, f"{shown}: packets went to {sorted(reached - may)}")
        if "" in wants and not reached:
            self.fail(number, f"{shown}: nothing was sent")
        return got, out


def controls(world):
    """What must be seen is seen: a connection to a victim outside, and one to loopback."""
    for target in (("10.0.0.1", 6379), ("127.0.0.1", 5432), ("::1", 80), ("fd00::1", 443)):
        with lab.socket.create_connection(target, 5):
            lab.wait_for(lambda: target[0] not in ("127.0.0.1", "::1") or (target in world.own.count))
        if target not in world.reached(world.take()):
            world.fail(0, f"a connection to {target} was not seen")


def table(world):
    for number, intent, want in CASES + CHANGES:
        world.judge(number, intent, want)


def rebinding(world):
    """46, 47: public at the check, private from then on."""
    first, out = world.judge(46, get("https://rebind.dns.example/echo"), "")
    second, out2 = world.judge(47, get("https://rebind.dns.example/echo"), "")
    if [q for q in out["asked"] if "rebind" in q] != ["rebind.dns.example"] * 2 or any("rebind" in q for q in out2["asked"]):
        world.fail(46, f"asked {out['asked']} and then {out2['asked']}")
    time.sleep(5.2)  # past the least time that an answer is kept: now the lie is heard, and refused
    world.judge(47, get("https://rebind.dns.example/echo"), "addr_private")


def labels(world):
    """53: data in names."""
    words, odd = [], 0
    for i in range(40):
        got, _ = world.ask(get(f"https://{base64.b32encode(os.urandom(25)).decode().lower().rstrip('=')}.wild.example/"))
        words.append(got["reason"])
        odd += got["odd"]
    world.reached(world.take())
    if words.count("") > 8 or words[-1] != "labels" or odd < words.count(""):
        world.fail(53, f"{words.count('')} of 40 names went out, {odd} were reported")


def headers(world):
    """24, 60 to 66, 59, 74, 77: what arrives, and what comes back."""
    bad = [["Host", "127.0.0.1"], ["Authorization", "Bearer phantom"], ["x-api-key", "k"], ["Cookie", "a=b"], ["X-HTTP-Method-Override", "DELETE"],
           ["Metadata-Flavor", "Google"], ["X-aws-ec2-metadata-token", "t"], ["Expect", "100-continue"], ["Accept", "text/plain"], ["TE", "trailers"],
           ["X-Forwarded-For", "127.0.0.1"], ["Proxy-Authorization", "x"], ["Upgrade", "websocket"], ["Connection", "upgrade"]]
    got, out = world.judge(62, post(f"{A}/echo?x=1", headers=bad), "")
    lines = out["requests"][0]["head"].split("\r\n") if out["requests"] else []
    names = sorted(x.split(":")[0].lower() for x in lines[1:])
    if lines[:1] != ["POST /echo?x=1 HTTP/1.1"] or names != ["accept", "accept-encoding", "content-length", "content-type", "host"]:
        world.fail(62, f"arrived: {lines}")
    if f"Host: {ALLOWED}" not in lines or out["requests"][0]["body"] != "secret body":
        world.fail(60, f"arrived: {out['requests']}")
    if got["type"] != "application/json; charset=utf-8" or got["fields"] != 2:
        world.fail(76, f"came back: {got}")
    got, out = world.judge(24, get(f"{A}?@127.0.0.1/"), "")
    if json.loads(got["body"])["target"] != "/?@127.0.0.1/":
        world.fail(24, got)
    got, out = world.judge(57, get(f"{A}/to-crlf"), "")
    if (got["status"], got["hops"], len(out["requests"])) != (302, 0, 1):
        world.fail(57, f"followed: {got}")
    got, _ = world.judge(59, get(f"{A}/401"), "")
    if (got["status"], got["body"], got["fields"], got["hops"]) != (401, "who", 2, 0):
        world.fail(59, got)
    got, _ = world.judge(74, get(f"{A}/chunks"), "")
    if (got["body"], got["fields"]) != ("abcd", 1):
        world.fail(74, got)
    got, out = world.judge(55, post(f"{A}/307-same"), "")
    if got["hops"] != 1 or [r["body"] for r in out["requests"]] != ["secret body"] * 2:
        world.fail(55, f"{got} {out['requests']}")
    got, out = world.judge(55, post(f"{A}/to-other"), "")
    if [(r["address"], r["body"]) for r in out["requests"]] not in ([(GOOD, "secret body"), (OTHER, "")], [("::", "")],
                                                                  [(GOOD6, "secret body"), (OTHER, "")]):
        world.fail(55, out["requests"])
    got, _ = world.judge(56, get(f"{A}/to-self"), "redirect_limit")
    if got["hops"] != 3:
        world.fail(56, got)


def credential(world):
    """68, 75: the key goes to its portal's own place, by no redirect, and comes back from nowhere."""
    for url, keys in ((f"{A}/to-key", 0), ("https://other.allowed.example/echo", 0), ("https://other.allowed.example/v1x/echo", 0),
                      ("https://other.allowed.example/v1/to-api", 1), ("https://other.allowed.example/v1/echo", 1)):
        got, out = world.judge(68, get(url), "")
        with_key = [r["address"] for r in out["requests"] if KEY in r["head"]]
        if with_key != [OTHER] * keys or (OTHER, "x") in [(a, "x") for a in with_key if a != OTHER]:
            world.fail(68, f"{url}: the key arrived at {with_key}")
        if KEY in json.dumps(got) or keys and url.endswith("v1/echo") and "Bearer " not in got["body"]:
            world.fail(75, f"{url}: {got}")


def keys_of_hosts(world):
    """68, 75, 84: a key of a host goes to its own place only, in its own form, whatever the job writes, and comes back from nowhere."""
    key = {n: f"{KEY}host_{n}" for n in ("forge", "field", "token")}
    basic = base64.b64encode(f"git:{key['forge']}".encode()).decode()
    o = "https://other.allowed.example"
    none = [get(f"{A}/team/repo/echo"), get(f"{A}/to-forge"), get(f"{o}/team"), get(f"{o}/team/other"), get(f"{o}/team/repository"),
            get(f"{o}/TEAM/repo"), get(f"{o}/%74eam/repo"), get(f"{o}/team/repo%2fx"), get(f"{o}/team//repo/x"), get(f"{o}/tokens"),
            get(f"{o}/team/repo/x/..%2f..%2fother"), get(f"{o}/team/repo/%252e%252e/other"), get(f"{o}/keyed/x")]
    for intent in none:
        _, out = world.judge(84, intent, "dot_segment" if "..%2f" in intent["url"] else "")
        if any(word in r["head"] for r in out["requests"] for word in (KEY, basic, "uthorization", "X-Api-Key")):
            world.fail(84, f"{intent['url']}: {out['requests']}")
    own = [["Authorization", "Bearer job"], ["X-Api-Key", "job"], ["Cookie", "job"]]
    for intent, want in ((get(f"{o}/team/repo", headers=own), f"Authorization: Basic {basic}"),
                         (get(f"{o}/team/repo?service=x"), f"Authorization: Basic {basic}"),
                         (change("PUT", f"{o}/team/repo/echo", headers=own), f"Authorization: Basic {basic}"),
                         (change("DELETE", f"{o}/keyed/x", b"", headers=own), f"X-Api-Key: {key['field']}"),
                         (get(f"{o}/token/x"), f"Authorization: Bearer {key['token']}")):
        got, out = world.judge(84, intent, "")
        lines = [x for r in out["requests"] for x in r["head"].split("\r\n") if x.lower().startswith(("authorization", "x-api-key", "cookie"))]
        if lines != [want] or out["requests"][0]["head"].split(" ")[0] != intent["method"] or out["requests"][0]["address"] != OTHER:
            world.fail(84, f"{intent}: arrived {out['requests']}")
        if KEY in got["body"] or basic[:24] in got["body"] or "redacted" not in got["body"]:
            world.fail(75, f"came back: {got['body']}")
    for path, keyed in (("to-api", [True, False]), ("to-beside", [True, False]), ("to-again", [True, True])):
        _, out = world.judge(84, get(f"{o}/team/repo/{path}"), "")
        if [basic in r["head"] for r in out["requests"]] != keyed:
            world.fail(84, f"{path}: {out['requests']}")
    for path in ("/team/repo/307-put", "/team/repo/303-put"):
        got, out = world.judge(55, change("PUT", o + path), "redirect_method")
        if len(out["requests"]) != 1:
            world.fail(55, f"a PUT was sent on: {out['requests']}")


def below(pid, name):
    """Its child of that name."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        for child in f.read().split():
            with open(f"/proc/{child}/comm", encoding="ascii") as comm:
                if comm.read() == name + "\n":
                    return int(child)
    raise AssertionError(f"{pid} has no child {name}")


def broken_off(world):
    """78, 79: whoever stops in the middle, it is settled, and the server is let go."""
    got, _ = world.ask(get(f"{A}/slow"), "cancel ")
    if got["unsettled"] or got["sent"] != 1:
        world.fail(78, got)
    lab.wait_for(lambda: world.take()["slow"] == 0)
    world.begin(get(f"{A}/slow"))
    lab.wait_for(lambda: world.take()["slow"] == 1)
    os.kill(below(below(world.drive.pid, "lych-egress"), "keyless"), 9)
    got = json.loads(world.drive.stdout.readline())
    if got["code"] != "LYCH-EGRESS-002" or got["unsettled"] or got["sent"] != 1:
        world.fail(79, got)
    lab.wait_for(lambda: world.ask(get(f"{A}/echo"))[0]["reason"] == "")
    world.reached(world.take())


def one_answer(world):
    """50: what the job is told does not say what went wrong with a name, nor which address it has."""
    told = set()
    for name in ("refused", "junk", "loop", "nothing", "silent"):
        got, _ = world.ask(get(f"https://{name}.dns.example/"))
        told.add((got["code"], got["status"]))
    if told != {("LYCH-FETCH-003", 0)} and told != {("", 0)}:
        world.fail(50, told)
    world.reached(world.take())


def roams(world):
    """Files of the host change while the workers run: the new ones are in force, of one with an error nothing is."""
    def write(name, text):
        with open(f"{world.folder}/{name}", "w", encoding="ascii") as f:  # in its place: it is mounted
            f.write(text)

    def until(reason, what):
        end = time.monotonic() + 30
        got, _ = world.ask(get(f"{A}/echo"))
        while got["reason"] != reason and time.monotonic() < end:
            time.sleep(0.2)
            got, _ = world.ask(get(f"{A}/echo"))
        if got["reason"] != reason:
            world.fail("roams", f"{what}: {got}")

    with open(f"{world.folder}/ca.pem", encoding="ascii") as f:
        authorities = f.read()
    until("", "as it was")
    write("resolv", "# between two networks\n")
    until("dns", "no name server")
    write("resolv", f"nameserver {lab.NAME_SERVER}\n")
    write("ca.pem", "no authority\n")
    until("tls", "a name server, and authorities with an error")
    write("ca.pem", authorities)
    until("", "both are right")
    write("resolv", f"nameserver {lab.NAME_SERVER}\0\n")
    until("dns", "name servers with an error")
    world.reached(world.take())


def main():
    drive, folder = sys.argv[1:3]
    lab.make_ca(folder, [ALLOWED, "other.allowed.example", "prefix.allowed.example", "*.wild.example", "*.dns.example", "named.example"])
    world = Lab(drive, folder)
    for part in (controls, table, headers, credential, keys_of_hosts, broken_off, rebinding, one_answer, labels, roams):
        part(world)
    world.drive.stdin.close()
    if world.drive.wait(20) != 0:
        world.fail(0, "the driver failed")
    world.outside.end()
    numbers = {c[0] for c in CASES + CHANGES} | {46, 47, 53, 60, 62, 63, 64, 65, 66, 68, 75, 77, 78, 79, 84}
    print(f"{world.n} requests, {len(numbers)} of the cases, {world.loopback.all} packets on loopback: {world.bad} failed")
    if world.bad:
        sys.exit(1)


main()
