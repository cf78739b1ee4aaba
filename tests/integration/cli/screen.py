#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a terminal of so many columns shows, one line of its screen a line here.

  screen.py COLUMNS COMMAND...    stdout and stderr of the command are a terminal of that width

The terminal wraps as all do: a character that finds no place begins the next line. Colours are left
out, and so is a line that was erased before it ended (how far a command is, which a slow machine shows);
any other escape sequence is an error. A line that began because one before it wrapped is marked
with "<wrapped>".
"""
import fcntl
import os
import pty
import re
import struct
import sys
import termios
import unicodedata


def run(columns, argv):
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execvp(argv[0], argv)
    out = b""
    while True:
        try:
            piece = os.read(fd, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        out += piece
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), out.decode()


def width(char):
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def without_erased(text, columns):
    for line in re.findall(r"([^\n\r\x1b]*)\r\x1b\[K", text):
        assert sum(map(width, line)) <= columns, f"of {line!r} only the last row was erased"
    return re.sub(r"[^\n]*\r\x1b\[K", "", text)


def screen(text, columns):
    text = without_erased(re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\r\n", "\n"), columns)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text), repr(text)
    lines = []
    for line in text.removesuffix("\n").split("\n"):
        shown, used = "", 0
        for char in line:
            if used + width(char) > columns:
                lines.append(shown)
                shown, used = "<wrapped>", 0
            shown += char
            used += width(char)
        lines.append(shown)
    return lines


if __name__ == "__main__":
    wanted = int(sys.argv[1])
    code, said = run(wanted, sys.argv[2:])
    print("\n".join(screen(said, wanted or 80)))
    sys.exit(code)
