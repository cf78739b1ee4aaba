# SPDX-License-Identifier: Apache-2.0
"""judge.py KEY SCRATCH DATA TOMB SPAWNER VESSEL: the key came to the provider and is nowhere else that a job or its
tomb could get it from. Their memory is read by root (as_user.py); without it that is said, and with MUST_RUN it is a failure."""
import base64, json, os, re, socket, sys, time, urllib.parse

key, scratch, data, tomb, spawner, vessel = sys.argv[1:]
raw = key.encode()
spellings = {raw, base64.b64encode(raw).rstrip(b"=")[:-1], base64.urlsafe_b64encode(raw).rstrip(b"=")[:-1],
             urllib.parse.quote(key, safe="").encode(), "".join(f"%{b:02X}" for b in raw).encode(), raw.hex().encode()}
failed = 0


def check(what, ok, detail=""):
    global failed
    failed += not ok
    print("ok  " if ok else "FAIL", what, detail, flush=True)


def children(pid):
    """All below it: the egress workers are children of a child."""
    below = []
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent = open(f"/proc/{p}/stat").read().rsplit(")", 1)[1].split()[1]
        except OSError:
            continue
        if parent == str(pid):
            below += [p, *children(p)]
    return below


def holds(blob):
    return any(s in blob for s in spellings)


requests = [json.loads(line) for line in open(f"{scratch}/provider.log")]
check("every request came with the real key", requests and all(r["key"] for r in requests), len(requests))
sent = json.dumps(requests)
check("the job's own key never came to the provider", "lych-" not in sent)
check("nor a header that names the job", not re.search(r"(?i)lychgate|x-stainless", sent))
fields = [{k.lower(): v for k, v in r["headers"].items() if k.lower().startswith("anthropic-")} for r in requests
          if "anthropic-version" in {k.lower() for k in r["headers"]}]
own = re.search(r"'anthropic-version': '([0-9-]+)'",
                open(f"{scratch}/tree/node_modules/@anthropic-ai/sdk/client.js").read())[1]
check("the SDK's version and betas came to the provider, where it sent them", len(fields) > 8 and
      fields.count({"anthropic-version": "2023-01-01",
                    "anthropic-beta": "context-1m-2025-08-07,token-counting-2024-11-01"}) == 1 and
      all(f == {"anthropic-version": own} for f in fields if "anthropic-beta" not in f), own)
ends = [r["end"] for r in requests]
check("each SDK's abort reached the provider", ends.count("the client hung up") == 3, ends.count("the client hung up"))
gemini = [r for r in requests if r["path"].startswith("/v1beta/")]
check("what goes to Gemini's API has the key in its one field", len(gemini) > 10 and
      all("Authorization" not in r["headers"] and "key=" not in r["path"] for r in gemini), len(gemini))
limited = [json.loads(r["body"])["messages"][-1]["content"].split()[0] for r in requests
           if r.get("status") == 429 and r not in gemini]
check("429s: once each where it passes, two more tries where it stays", sorted(limited) == ["busy"] * 6 + ["once"] * 2,
      len(limited))

out = open(f"{scratch}/out", "rb").read()
check("what the job printed, its environment and replies with it", not holds(out))
check("nor the end of it alone", raw[-12:] not in out and base64.b64encode(raw)[-16:-4] not in out)
# What a provider spells over the deltas of a stream too: five spellings an echo, each of which is a mark now.
echoes = [line for line in out.split(b"\n") if line.startswith(b"echo ")]
check("the echoes of the key were blotted out", len(echoes) == 4 and all(e.count(b"[redacted]") >= 5 for e in echoes),
      [e.count(b"[redacted]") for e in echoes])
# The tomb removes what a job left after it has told its end; a file that goes while we look cannot be read.
jobs = f"{data}/tomb/jobs"
for _ in range(3000):
    left = os.listdir(jobs)
    if not left:
        break
    time.sleep(0.1)
check("nothing of an ended job is left", not left, left)
looked = 0
for top, _, names in os.walk(data):
    for name in names:
        path = os.path.join(top, name)
        if os.path.relpath(path, data).startswith("secrets/") or not os.path.isfile(path):
            continue
        looked += 1
        if holds(open(path, "rb").read()):
            check("a file", False, path)
check("no file of the data directory but secrets/: blobs, logs, audit log, database", looked > 10, looked)

# Memory: by whoever started this as root (as_user.py). That the search finds what is there: the starter's secrets go
# to the vessel's workers, so the key is in one of them.
if "JUDGE_FD" not in os.environ:
    print("skip the memory of the tomb: start this as root, run --user NAME")
    failed += os.environ.get("MUST_RUN") == "1"
else:
    with socket.socket(fileno=int(os.environ["JUDGE_FD"])) as s, s.makefile("rw") as f:
        def search(pids):
            f.write(json.dumps({"key": key, "pids": pids}) + "\n")
            f.flush()
            return json.loads(f.readline())
        got = search([tomb, spawner])
        check("the memory of the tomb and its spawner", len(got["searched"]) == 2 and
              min(got["searched"].values()) > 1 << 16 and not got["found"], got)
        got = search(children(vessel))
        check("which is found where it is: in an egress worker", got["searched"] and got["found"], got)
        # No call is under way any more, so nothing of one is left: in pages that are never swapped, and nowhere else.
        check("there in locked pages only", not got["unlocked"], got["unlocked"])
sys.exit(failed > 0)
