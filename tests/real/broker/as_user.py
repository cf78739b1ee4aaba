# SPDX-License-Identifier: Apache-2.0
"""as_user.py USER COMMAND...: as root. Runs the command as USER with a clean environment (what LYCH_* and SDK_* say is
kept), and searches the memory of that user's processes for it: on the descriptor that JUDGE_FD names, a line of JSON
{"key", "pids"} is answered by one {"searched": {pid: bytes}, "found": ["pid: at address"], "unlocked": ["pid: at
address"]}: all places, and those in pages that may be swapped out."""
import json, os, pwd, socket, subprocess, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support/python"))
import memory

user = pwd.getpwnam(sys.argv[1])


def search(pid, key):
    if os.stat(f"/proc/{pid}").st_uid not in (user.pw_uid, 0):  # 0: a process that is not dumpable
        raise ValueError(f"{pid} is not {user.pw_name}'s")
    n, found = memory.search(pid, [key])
    return n, found, memory.unlocked(pid, found)


def answer(line):
    q = json.loads(line)
    searched, found, unlocked = {}, [], []
    for pid in q["pids"]:
        searched[str(pid)], f, u = search(int(pid), q["key"].encode())
        found += f
        unlocked += u
    return {"searched": searched, "found": found, "unlocked": unlocked}


ours, theirs = socket.socketpair()
env = {k: v for k, v in os.environ.items() if k in ("PATH", "MUST_RUN") or k.startswith(("LYCH_", "SDK_"))}
env |= {"HOME": user.pw_dir, "LANG": "C.UTF-8", "JUDGE_FD": str(theirs.fileno())}
p = subprocess.Popen(sys.argv[2:], env=env, user=user.pw_uid, group=user.pw_gid, pass_fds=[theirs.fileno()],
                     extra_groups=os.getgrouplist(user.pw_name, user.pw_gid))
theirs.close()
with ours.makefile("rw") as f:
    for line in f:
        try:
            reply = answer(line)
        except (OSError, ValueError, KeyError) as e:
            reply = {"searched": {}, "found": [f"{type(e).__name__}: {e}"], "unlocked": ["?"]}
        f.write(json.dumps(reply) + "\n")
        f.flush()
sys.exit(p.wait())
