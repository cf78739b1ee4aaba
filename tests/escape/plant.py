# SPDX-License-Identifier: Apache-2.0
"""Run inside a job (and once outside of any, to see that the traps work): plant.py CANARY.
Leaves behind everything that a harvest should not follow, wait for, believe or hand over.
What a wall refuses on the way is no matter: the trusted side is judged by what arrives."""
import os
import socket
import stat
import struct
import subprocess
import sys
import time

CANARY = sys.argv[1]
TRAP = f"#!/bin/sh\ntouch {CANARY}\n"
OUTSIDE = len(sys.argv) > 2

# What a program of the trusted side would run or obey; each goes below its own directory.
HELD = """
.git/hooks/pre-commit .git/config .GIT/config .gitmodules .gitattributes .husky/pre-commit
.vscode/tasks.json .vscode/settings.json .idea/workspace.xml .devcontainer/devcontainer.json
.claude/settings.json .claude/settings.local.json .claude/hooks/x .mcp.json CLAUDE.md AGENTS.md
.codex/config.toml .gemini/settings.json .cursor/rules/x .envrc .env conftest.py pyvenv.cfg
sitecustomize.py usercustomize.py x.pth __pycache__/x.pyc node_modules/.bin/tsc .npmrc .yarnrc
.pre-commit-config.yaml .gdbinit .vimrc .exrc .nvim.lua .bashrc .profile x.desktop
.config/autostart/x ld.so.preload .ssh/authorized_keys .github/workflows/x.yml git~1/config
.git./config .git\u200c/config .git\\config
""".split()


def attempt(fn, *args, **kw):
    try:
        return fn(*args, **kw)
    except OSError as e:
        print(f"{getattr(fn, '__name__', fn)}: {e.strerror}")
        return None


def put(path, text=TRAP, mode=0o755):
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    with open(path, "wb") as f:
        f.write(text.encode() if isinstance(text, str) else text)
    attempt(os.chmod, path, mode)  # floor refuses set-id and what opens it to others


def links():
    os.makedirs("links", exist_ok=True)
    for name, target in (("passwd", "/etc/passwd"), ("other", "../../../1.1/work/good"),
                         ("dangling", "nowhere"), ("loop", "loop"), ("up", ".."), ("root", "/"),
                         ("etc", "/etc"), ("magic", "/proc/self/environ"),
                         ("cwd", "/proc/self/cwd"), ("spool", "../../spool/stdout")):
        os.symlink(target, "links/" + name)
    put("links/real", "x", 0o644)
    os.link("links/real", "links/hard")
    for victim in ("/etc/passwd", "/proc/self/exe", "/usr/bin/env"):
        attempt(os.link, victim, "links/" + os.path.basename(victim) + "-hard")


def odd_files():
    os.makedirs("odd/dir.txt", exist_ok=True)
    os.mkfifo("odd/fifo")
    s = attempt(socket.socket, socket.AF_UNIX)
    if s:
        attempt(s.bind, "odd/socket")
    attempt(os.mknod, "odd/null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    attempt(os.mknod, "odd/disk", 0o666 | stat.S_IFBLK, os.makedev(8, 0))
    with open("odd/sparse", "wb") as f:
        f.truncate(300 << 20)
    with open("odd/terabyte", "wb") as f:
        attempt(f.truncate, 1 << 40)
    put("odd/setuid", TRAP, 0o6755)
    put("odd/marked", "x", 0o777)
    attempt(os.setxattr, "odd/marked", "user.evil", b"1")
    attempt(os.setxattr, "odd/marked", "security.capability", b"\1\0\0\2" + b"\xff" * 16)
    acl = struct.pack("<IHHIHHIHHIHHIHHI", 2, 1, 7, 0xffffffff, 2, 7, 0, 4, 7, 0xffffffff,
                      16, 7, 0xffffffff, 32, 7, 0xffffffff)
    attempt(os.setxattr, "odd/marked", "system.posix_acl_access", acl)
    put("odd/closed", "x", 0)


def names():
    os.makedirs(b"names/colliding", exist_ok=True)
    for name in (b"new\nline", b"esc\x1b[2J\x1b]0;x\x07", b"\xff\xfe", b"\xc3", b"cr\rback",
                 "bidi\u202etxt.exe".encode(), "c1\u009b31m".encode(), "sep\u2028x".encode(),
                 b"tab\t", b"del\x7f", b"-rf", b"...", b"..x", b'quote"\'$(x)`x`;|&',
                 b"x" * 255, b"colliding/File", b"colliding/file", b"colliding/FILE."):
        put(b"names/" + name, "x", 0o644)
    # `tar cf x *` would run it.
    for name in ("--checkpoint=1", "--checkpoint-action=exec=sh trap"):
        put("options/" + name, "x")
    put("options/trap")
    put("options/zeros", bytes(200000))
    here = os.getcwd()
    os.mkdir("deep")
    os.chdir("deep")
    for _ in range(60):
        os.mkdir("d")
        os.chdir("d")
    put("bottom", "x")
    os.chdir(here)
    os.mkdir("long")
    os.chdir("long")
    for _ in range(16):
        os.mkdir("n" * 250)
        os.chdir("n" * 250)
    put("end", "x")
    os.chdir(here)


def auto_run():
    for i, name in enumerate(HELD):
        put(f"auto/{i}/{name}")
    for name in ("Makefile", "setup.py", "package.json", "libx.so"):
        put("auto/plain/" + name)
    # A repository that git finds without a .git, and that runs a program at `git status`.
    put("bare/HEAD", "ref: refs/heads/main\n", 0o644)
    put("bare/config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n"
        f"\tfsmonitor = touch {CANARY}\n", 0o644)
    put("bare/objects/x", "")
    put("bare/refs/heads/x", "")
    put("bare/hooks/post-checkout")
    put("redirect/HEAD", "ref: refs/heads/main\n", 0o644)
    put("redirect/commondir", "../bare\n", 0o644)
    # One that a plain .git directory makes.
    put("repo/.git/HEAD", "ref: refs/heads/main\n", 0o644)
    put("repo/.git/config", f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch {CANARY}\n",
        0o644)
    put("repo/.git/objects/x", "")
    put("repo/.git/refs/heads/x", "")
    put("repo/sitecustomize.py", f"open({CANARY!r}, 'w')\n")


def still_busy():
    """One that writes on and one that swaps a directory for a link, both out of the job's
    session, while the job's own process ends."""
    put("busy/real/f", "inside", 0o644)
    os.symlink("/etc", "busy/link")
    put("busy/growing", "", 0o644)
    here = os.open("busy", os.O_RDONLY)
    for work in (grow, swap):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.closerange(0, 3)
                for _ in range(1 << 30):
                    work(here)
            os._exit(0)
    time.sleep(0.3)


def grow(here):
    fd = os.open("growing", os.O_WRONLY | os.O_APPEND, dir_fd=here)
    os.write(fd, b"line\n" * 100)
    os.close(fd)
    time.sleep(0.001)


def swap(here):
    for a, b in (("real", "spare"), ("link", "real"), ("real", "link"), ("spare", "real")):
        os.rename(a, b, src_dir_fd=here, dst_dir_fd=here)


for group in (links, odd_files, names, auto_run):
    group()
if not OUTSIDE:
    still_busy()
put("good", "good\n", 0o644)
bomb = subprocess.run(["gzip", "-9", "-n"], input=bytes(20 << 20), capture_output=True, check=True)
put("bomb.gz", bomb.stdout, 0o644)
print("planted", len(HELD))
