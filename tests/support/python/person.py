# SPDX-License-Identifier: Apache-2.0
"""Somebody at a terminal: a command is started there as a login shell would be, keys are typed, what is shown is read,
and the terminal's one standing question (CSI 5 n) is answered as real ones do."""
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time

WAIT = 90  # for a state that comes sooner or later: nothing is measured by it
QUESTION, ANSWER = b"\x1b[5n", b"\x1b[0n"


def modes_of(fd):
    """All that stty shows."""
    return termios.tcgetattr(fd)


def resize(fd, rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class Person:
    def __init__(self, argv, rows=24, columns=80, answers=True, **more):
        self.at, self.slave = pty.openpty()
        resize(self.at, rows, columns)
        modes = termios.tcgetattr(self.slave)
        modes[0] |= 0o40000  # IUTF8
        termios.tcsetattr(self.slave, termios.TCSANOW, modes)
        self.before = modes_of(self.slave)
        self.seen, self.answers, self.asked = b"", answers, 0
        os.set_blocking(self.at, False)
        self.process = subprocess.Popen(argv, stdin=self.slave, stdout=self.slave, stderr=self.slave, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), **more)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.at)
        os.close(self.slave)

    def read(self, wait=0.05):
        """What has come, within a moment. (The kernel moves what is still on its way when it is read, not before.)"""
        select.select([self.at], [], [], wait)
        try:
            some = os.read(self.at, 65536)
        except (BlockingIOError, OSError):
            return b""
        self.seen += some
        while self.answers and self.seen.count(QUESTION) > self.asked:
            self.asked += 1
            self.type(ANSWER)
        return some

    def type(self, keys):
        while keys:
            try:
                keys = keys[os.write(self.at, keys):]
            except BlockingIOError:
                self.read()

    def until(self, what, wait=WAIT):
        """Until the condition holds, reading meanwhile; the time that a person waits at most."""
        end = time.monotonic() + wait
        while not what():
            if time.monotonic() > end:
                raise AssertionError(f"never came; the last that was shown: {self.seen[-600:]!r}")
            self.read()

    def sees(self, text, after=0):
        """Where it ends in what was seen."""
        self.until(lambda: text in self.seen[after:])
        return self.seen.index(text, after) + len(text)

    def asks(self, keys, text):
        """Types, and waits for an answer that stands behind what was typed."""
        at = len(self.seen)
        self.type(keys)
        return self.sees(text, at)

    def ends(self):
        """Its exit code, when all was read."""
        self.until(lambda: self.process.poll() is not None)
        while self.read(0):
            pass
        return self.process.returncode

    def is_as_before(self):
        return modes_of(self.slave) == self.before

    def left(self):
        """What stands in the terminal for whoever reads next."""
        raw = termios.tcgetattr(self.slave)
        raw[3] &= ~(termios.ICANON | termios.ECHO)
        raw[6][termios.VMIN], raw[6][termios.VTIME] = 0, 0
        termios.tcsetattr(self.slave, termios.TCSANOW, raw)
        said = b""
        while some := os.read(self.slave, 4096):
            said += some
        termios.tcsetattr(self.slave, termios.TCSANOW, self.before)
        return said
