# SPDX-License-Identifier: Apache-2.0
"""Run by harvest.sh on the trusted side: judge_harvest.py GRADE DATA PLANT SHOW.json GOT. What
arrived of what plant.py planted, against what the result says of it."""
import hashlib
import json
import os
import re
import stat
import sys

GRADE, DATA, PLANT, SHOW, GOT = sys.argv[1:]
failed = 0


def check(what, ok, seen=""):
    global failed
    if not ok:
        failed += 1
        print(f"FAIL {GRADE}: {what} {str(seen)[:400]}")


result = json.load(open(SHOW, encoding="utf-8"))["result"]
kept = {a["path"]: a for a in result["artifacts"]}
refused = {r["path"]: r["why"] for r in result["refused_artifacts"]}
held = {r["path"]: r["why"] for r in result["quarantined"]}
arrived = {}
for top, dirs, files in os.walk(GOT):
    for name in dirs + files:
        path = os.path.join(top, name)
        st = os.lstat(path)
        rel = os.path.relpath(path, GOT)
        if name in dirs:
            check("a directory is one", stat.S_ISDIR(st.st_mode), rel)
            continue
        check("a regular file", stat.S_ISREG(st.st_mode), rel)
        check("one name", st.st_nlink == 1, rel)
        check("mode 0644", stat.S_IMODE(st.st_mode) == 0o644, (rel, oct(st.st_mode)))
        check("no attributes", os.listxattr(path) == [], (rel, os.listxattr(path)))
        with open(path, "rb") as f:
            arrived[rel] = f.read()

# The result names exactly what arrived, byte for byte.
check("what arrived is what was announced", set(arrived) == set(kept),
      set(arrived) ^ set(kept))
for path, data in arrived.items():
    check("size", len(data) == kept[path]["size"], path)
    check("sha256", hashlib.sha256(data).hexdigest() == kept[path]["sha256"], path)
    check("class", kept[path]["class"] == ("program" if data[:2] == b"#!" else "file"), path)

# 97: nothing from outside of the workspace, in what arrived, in the store, in quarantine.
passwd = open("/etc/passwd", "rb").read()
for top, _, files in os.walk(os.path.join(DATA, "vessel", "blobs")):
    for name in files:
        with open(os.path.join(top, name), "rb") as f:
            check("no file of the host in the store", f.read(len(passwd)) != passwd, name)
for path, data in arrived.items():
    check("no file of the host", not data.startswith(passwd[:40]), path)
    check("no file of another job", b"of another job" not in data, path)
for name in ("passwd", "other", "dangling", "loop", "up", "root", "etc", "magic", "cwd", "spool"):
    check("a symlink", refused.get("links/" + name) == "symlink", (name, refused.get("links/" + name)))
check("swapped while it was looked at", not any(p.startswith("busy/") and b"inside" not in d
      and p != "busy/growing" for p, d in arrived.items()), list(arrived))

# 98, 99
expected = {"odd/fifo": "fifo", "odd/sparse": "sparse", "links/hard": "hard link",
            "links/real": "hard link"}
if GRADE == "full":
    expected["odd/socket"] = "socket"
for path, why in expected.items():
    check(path, refused.get(path) == why, refused.get(path))
for path in ("odd/null", "odd/disk", "links/passwd-hard", "links/exe-hard", "links/env-hard"):
    check("was not even made", path not in refused and path not in kept, path)
check("what grew was cut where it was", len(arrived.get("busy/growing", b"")) > 0)
check("a terabyte is no file of that size",
      "odd/terabyte" not in kept or kept["odd/terabyte"]["size"] < 1 << 30)

# 100: names
check("an ordinary name arrives", arrived.get("good") == b"good\n")
for name in ("...", "..x", "quote\"'$(x)`x`;|&", "x" * 255):
    check("a strange but harmless name arrives", "names/" + name in arrived, name)
for path in arrived:
    check("no control or hidden character",
          not re.search("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2028\u2029]", path), repr(path))
    check("no name that is an option", not any(c.startswith("-") for c in path.split("/")), path)
for name in ("File", "file", "FILE."):
    check("names that collide", "names/colliding/" + name not in arrived, name)
check("bad names are named", sum(1 for w in refused.values() if w == "name") >= 9,
      [p for p, w in refused.items() if w == "name"])
check("too deep", any(w == "too deep" for w in refused.values()))
check("too long", any(w == "path too long" for w in refused.values()))
check("the bomb stays packed", arrived.get("bomb.gz", b"")[:2] == b"\x1f\x8b"
      and len(arrived["bomb.gz"]) < 1 << 20)

# 101
text = open(PLANT, encoding="utf-8").read()
names = re.search(r'HELD = """(.*?)"""', text, re.S).group(1).encode().decode("unicode_escape").split()
for i, name in enumerate(names):
    path = f"auto/{i}/{name}"
    check("what would run by itself does not arrive", path not in arrived, path)
# a name with a character that takes no room is refused for that
planted = sum(n.isascii() for n in names) + 12
check("all of them are counted", result["quarantined_total"] >= planted,
      (result["quarantined_total"], planted))
check("some of each kind are named", 20 <= len(held) <= 64, len(held))
for path in ("bare/HEAD", "redirect/HEAD", "redirect/commondir", "bare/hooks/post-checkout",
             "repo/sitecustomize.py"):
    check("a trap", path not in arrived, path)
for name in ("Makefile", "setup.py", "package.json", "libx.so"):
    check("what a person runs on purpose arrives", f"auto/plain/{name}" in arrived, name)

# A person can look at what was held: copies with a manifest, ours, not executable.
folders = sorted(os.listdir(os.path.join(DATA, "tomb", "quarantine")))
check("quarantine", len(folders) >= 1, folders)
newest = max((os.path.join(DATA, "tomb", "quarantine", f) for f in folders), key=os.path.getmtime)
manifest = [json.loads(line) for line in open(os.path.join(newest, "manifest.jsonl"), encoding="utf-8")]
check("the manifest says what the result says",
      {m["path"]: m["why"] for m in manifest} == held)
for m in manifest:
    path = os.path.join(newest, str(m["copy"]))
    st = os.lstat(path)
    with open(path, "rb") as f:
        data = f.read()
    check("a copy", stat.S_IMODE(st.st_mode) == 0o600 and len(data) == m["size"]
          and hashlib.sha256(data).hexdigest() == m["sha256"], m)
print(f"{GRADE}: {len(arrived)} arrived, {len(held)} of {result['quarantined_total']} held and "
      f"{len(refused)} of {result['refused_artifacts_total']} refused are named")
sys.exit(failed != 0)
