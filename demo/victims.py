#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the hostile job is aimed at: listeners that count who reaches them.

Prints "tcp=PORT abstract=NAME pid=PID" and waits; on SIGTERM prints how often it was
reached and exits 1 if that was ever."""
import os
import select
import signal
import socket
import sys

tcp4 = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
tcp4.bind(("127.0.0.1", 0))
port = tcp4.getsockname()[1]
sockets = [tcp4]
try:
    tcp6 = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    tcp6.bind(("::1", port))
    sockets.append(tcp6)
except OSError:
    pass  # a host without IPv6
name = f"lych-demo-{os.getpid()}"
abstract = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
abstract.bind("\0" + name)
sockets.append(abstract)
for s in sockets:
    s.listen(8)

stop_r, stop_w = os.pipe()
signal.signal(signal.SIGTERM, lambda *_: os.write(stop_w, b"x"))
print(f"tcp={port} abstract={name} pid={os.getpid()}", flush=True)
reached = 0
while True:
    ready = select.select(sockets + [stop_r], [], [])[0]
    reached += sum(1 for s in ready if s is not stop_r)
    for s in ready:
        if s is not stop_r:
            s.accept()[0].close()
    if stop_r in ready:
        break
print(f"reached {reached} times", flush=True)
sys.exit(1 if reached else 0)
