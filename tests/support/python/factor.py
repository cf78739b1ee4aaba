# SPDX-License-Identifier: Apache-2.0
"""The second factor from outside: a proof as the API takes it (docs/PROTOCOL.md, "The second factor"), and a
terminal at which somebody types what is asked for."""
import functools
import hashlib
import hmac
import os
import pty
import select
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
