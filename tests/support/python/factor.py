# SPDX-License-Identifier: Apache-2.0
"""The second factor from outside: a proof as the API takes it (docs/PROTOCOL.md, "The second factor"), and a
terminal at which somebody types what is asked for."""
import fcntl
import functools
import hashlib
import hmac
import os
import pty
import select
import subprocess
import termios
import time

WAIT = 60


@functools.lru_cache
def scrypt(passphrase, salt, log2_n, r, p):
    return hashlib.scrypt(passphrase.encode(), salt=bytes.fromhex(salt), n=1 << log2_n, r=r, p=p, maxmem=1 << 28, dklen=32)


def key_of(passphrase, said):
    return scrypt(passphrase, said["salt"], said["log2_n"], said["r"], said["p"])


def proof(key, nonce, act):
    """Of the header Lychgate-Passphrase."""
    mask = hmac.new(hashlib.sha256(key).digest(), f"lychgate-passphrase-1\n{nonce}\n{act}".encode(), "sha256").digest()
    return nonce + ":" + bytes(a ^ b for a, b in zip(key, mask)).hex()


def verifier(passphrase):
    said = {"kdf": "scrypt", "log2_n": 15, "r": 8, "p": 1, "salt": os.urandom(32).hex()}
    return {**said, "stored": hashlib.sha256(key_of(passphrase, said)).hexdigest()}


def typed(argv, answers, env=None):
    """The command at a terminal of its own: each time that it asks ("not shown"), the next answer is typed.
    Its exit code, and what the terminal showed."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe(argv[0], argv, env or os.environ)
    seen, asked, left, end = b"", 0, list(answers), time.monotonic() + WAIT
    while True:
        assert time.monotonic() < end, seen
        if not select.select([fd], [], [], 1)[0]:
            continue
        try:
            more = os.read(fd, 4096)
        except OSError:
            more = b""
        if not more:
            break
        seen += more
        while left and seen.count(b"not shown): ") > asked:
            asked += 1
            os.write(fd, left.pop(0).encode() + b"\r")
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen.decode(errors="replace")


def ended_by(argv, number, env=None):
    """The command at a terminal of its own, with that signal when it asks: its exit code, and whether the terminal
    echoed while it asked, and does afterwards."""
    mine, its = pty.openpty()
    child = subprocess.Popen(argv, stdin=its, stdout=its, stderr=its, env=env or os.environ, start_new_session=True,
                             preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    seen, end = b"", time.monotonic() + WAIT

    def echoes():
        return bool(termios.tcgetattr(its)[3] & termios.ECHO)
    while b"not shown): " not in seen:
        assert time.monotonic() < end, seen
        if select.select([mine], [], [], 1)[0]:
            seen += os.read(mine, 4096)
    asking = echoes()
    child.send_signal(number)
    code = child.wait(WAIT)
    after = echoes()
    os.close(mine)
    os.close(its)
    return code, asking, after
