# SPDX-License-Identifier: Apache-2.0
"""tunnel_house.py BUILD FOLDER: run by tunnel_house.sh as the root of a network of its own. The house and the outside are those of
bypass_job.py, the cases tunnel_cases.py."""
import glob
import json
import re
import sys
import time
import traceback

import bypass
import bypass_job as house_of
import lab
import tunnel_cases
from bypass_job import ALLOWED, D, House, api

NEIGHBOUR = r"""
import os, time, urllib.request
print("authority", open(os.environ["SSL_CERT_FILE"]).read().encode().hex(), flush=True)
n = 0
while True:
    n += 1
    urllib.request.urlopen("https://HOST/neighbour/%d" % n, timeout=120).read()
    time.sleep(0.05)
""".replace("HOST", ALLOWED)


def config():
    house_of_config()
    with open(f"{D}/home/.config/lychgate/codex.yaml", "r+", encoding="ascii") as f:
        text = f.read().replace("slots: 1", "slots: 3").replace("requests: 10000,", "requests: 1000000,")
        f.seek(0)
        f.write(text)


# By a tunnel it is as by /fetch: where it is asked to lead, what is asked inside, and what is told.
ELSEWHERE = [
    (f"{ALLOWED}:443", "GET /here", "200"),
    ("evilapi.allowed.example:443", "GET /", "403 LYCH-WARD-001"),
    ("allowed.example:443", "GET /", "403 LYCH-WARD-001"),
    ("prefix.allowed.example:443", "GET /closed", "403 LYCH-WARD-001"),
    ("prefix.allowed.example:443", "GET /open/%2e%2e/closed", "400 LYCH-FETCH-001"),
    (f"{ALLOWED}:443", "PUT /here", "403 LYCH-WARD-001"),
    (f"{ALLOWED}:8443", "GET /", "403 LYCH-WARD-001"),
    (f"{ALLOWED}:22", "GET /", "403 LYCH-WARD-001"),
    ("api:443", "GET /", "403 LYCH-WARD-001"),
    ("localhost:8787", "GET /v1/models", "403 LYCH-WARD-001"),
    ("metadata.google.internal:443", "GET /", "403 LYCH-WARD-001"),
    ("private.dns.example:443", "GET /", "403 LYCH-FETCH-004"),
    ("mixed.dns.example:443", "GET /", "403 LYCH-FETCH-004"),
    ("meta.dns.example:443", "GET /", "403 LYCH-FETCH-004"),
    ("self.dns.example:443", "GET /", "403 LYCH-FETCH-004"),
    ("foreign.example:443", "GET /", "502 LYCH-EGRESS-006"),
    (f"{ALLOWED}:443", "GET /to-loopback", "403 LYCH-WARD-001"),
    (f"{ALLOWED}:443", "GET /to-private-name", "403 LYCH-FETCH-004"),
    (f"{ALLOWED}:443", "GET /to-not-allowed", "403 LYCH-WARD-001"),
    (f"{ALLOWED}:443", "GET /to-port", "403 LYCH-WARD-001"),
    (f"{ALLOWED}:443", "GET /to-same", "200"),
]
ASK = r"""
import json, tunnel_client as t
for target, what, _ in json.load(open("elsewhere.json")):
    name, _, port = target.partition(":")
    host = name if port == "443" else target
    told = t.inside("%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (what, host), name=name, target=target)
    print("told", told, flush=True)
"""

house_of_config, house_of.config = house_of.config, config


def state(job):
    return json.loads(api(f"/v1/jobs/{job}") or "{}").get("state", "")


def run(house, script, *files):
    with open(f"{D}/script.py", "w", encoding="utf-8") as f:
        f.write(script)
    return house.shell.lych("run", "--detach", "-n", "--egress", "brokered", "--timeout", "5m", "-f", f"{D}/script.py=script.py", *files,
                            "--", "python3", "script.py").split()[-1]


def authority(house, job):
    """Of its first line."""
    found = []

    def said():
        found[:] = re.findall(r"^authority ([0-9a-f]+)$", house.shell.lych("logs", job), re.M)
        return found
    lab.wait_for(said, 60)
    return bytes.fromhex(found[0]).decode()


def attack(house):
    """(what the job wrote, what the host got of it, what it got of the other job in that time)"""
    earlier = run(house, NEIGHBOUR.split("n = 0")[0])
    lab.wait_for(lambda: state(earlier) == "succeeded", 60)
    beside = run(house, NEIGHBOUR)
    files = []
    for name, pem in (("earlier", authority(house, earlier)), ("neighbour", authority(house, beside))):
        with open(f"{D}/{name}.pem", "w", encoding="ascii") as f:
            f.write(pem)
        files += ["-f", f"{D}/{name}.pem={name}.pem"]
    for name in ("tunnel_cases", "tunnel_client", "tunnel_layers"):
        files += ["-f", f"tests/support/python/{name}.py={name}.py"]
    requests = house.taken()[0]["requests"]
    job = run(house, "import tunnel_cases; tunnel_cases.run()", *files)
    lab.wait_for(lambda: state(job) in ("succeeded", "failed", "timed_out", "lost", "quarantined"), 200)
    said = house.shell.lych("logs", job)
    for seen in house.outside.ask("seen").values():
        requests += seen["requests"]
    requests += house.taken()[0]["requests"]
    time.sleep(1)
    assert state(job) == "succeeded", (state(job), said[-3000:])
    assert state(beside) == "running", (state(beside), house.shell.lych("logs", beside)[-1000:])
    assert any("/neighbour/" in r["head"] for r in house.taken()[0]["requests"]), "another job's requests stand still"
    house.shell.lych("cancel", beside)
    return said, [r for r in requests if "/neighbour/" not in r["head"]], sum("/neighbour/" in r["head"] for r in requests)


def elsewhere(house):
    """What is wrong of those, as lines."""
    with open(f"{D}/elsewhere.json", "w", encoding="ascii") as f:
        json.dump(ELSEWHERE, f)
    house.taken()
    job = run(house, ASK, "-f", f"{D}/elsewhere.json=elsewhere.json", "-f", "tests/support/python/tunnel_client.py=tunnel_client.py")
    lab.wait_for(lambda: state(job) in ("succeeded", "failed", "timed_out", "lost", "quarantined"), 100)
    told = re.findall(r"^told (.*)$", house.shell.lych("logs", job), re.M)
    bad = [f"{target} {what}: told {got!r} instead of {want!r}" for (target, what, want), got in zip(ELSEWHERE, told) if got != want]
    out, own = house.taken()
    may = {(bypass.GOOD, 443), (bypass.GOOD6, 443), (lab.NAME_SERVER, 53)}
    bad += [f"packets went to {x}" for x in {(t, p) for _, s, t, p in map(tuple, out["wire"]) if s in (lab.CLIENT, lab.CLIENT6)} - may]
    hosts = {re.search(r"\r\nhost: (.*?)\r\n", r["head"].lower() + "\r\n")[1] for r in out["requests"]}
    bad += [f"{len(told)} of {len(ELSEWHERE)} were told"] * (len(told) != len(ELSEWHERE))
    return bad + [f"{x} was asked" for x in hosts - {ALLOWED}] + ([f"on loopback: {own}"] if own else [])


def main():
    lab.make_ca(D, [ALLOWED, "other.allowed.example"])
    house, bad, n = House(), [], 0
    try:
        house.shell.lych("secret", "set", "portal_lab", feed=house_of.KEY)
        house.shell.lych("up", "--detach")
        said, requests, n = attack(house)
        bad = tunnel_cases.judge(said, [" ".join(r["head"].split(" ")[:2]) for r in requests])
        bad += [f"{r}" for r in requests if r["port"] != 443 or f"\r\nhost: {ALLOWED}\r\n" not in r["head"].lower() + "\r\n"]
        bad += elsewhere(house)
        bad += [] if n > 10 else [f"{n} requests of another job"]
    except BaseException:
        traceback.print_exc()
        for name in glob.glob(f"{D}/data/log/*.log"):
            with open(name, encoding="utf-8", errors="replace") as f:
                print(f"--- {name}\n{f.read()[-3000:]}")
        bad.append("it broke off")
    finally:
        try:
            house.shell.lych("down")
        finally:
            house.shell.end()
            house.outside.end()
    print(*bad, sep="\n")
    print(f"{len(tunnel_cases.cases())} cases, {len(ELSEWHERE)} elsewhere, {len(bad)} failed; {n} requests of another job beside them")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
