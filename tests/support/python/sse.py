# SPDX-License-Identifier: Apache-2.0
"""The owner's API for many clients at once (asyncio): requests, and the event stream of a job."""
import asyncio
import json


class Refused(Exception):
    """No stream: another status than 200."""

    def __init__(self, status):
        super().__init__(f"status {status}")
        self.status = status


async def _begin(sock, method, target, body, headers):
    r, w = await asyncio.open_unix_connection(sock, limit=1 << 20)
    try:
        head = [f"{method} {target} HTTP/1.1", "Host: lychgate", f"Content-Length: {len(body)}", *headers]
        w.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        await w.drain()
        first = (await r.readline()).split()
        if len(first) < 2:
            raise ConnectionError("no answer")
        length = None
        while (line := await r.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        return int(first[1]), length, r, w
    except BaseException:
        w.close()
        raise


async def ask(sock, method, target, body=None):
    """(status, the whole answer) of one request on a connection of its own; EOFError when it was cut off."""
    data = json.dumps(body).encode() if body is not None else b""
    status, length, r, w = await _begin(sock, method, target, data, ["Connection: close"])
    try:
        return status, await r.readexactly(length) if length is not None else await r.read()
    finally:
        w.close()


async def events(sock, job, last="", silence=None):
    """Each event of a job's stream as (name, data, id); it ends where the stream does. last: the id of the
    last event that the reader has. silence: so many seconds without a line are asyncio.TimeoutError."""
    status, _, r, w = await asyncio.wait_for(
        _begin(sock, "GET", f"/v1/jobs/{job}/events", b"", [f"Last-Event-ID: {last}"] if last else []), silence)
    name = None
    try:
        if status != 200:
            raise Refused(status)
        while line := await asyncio.wait_for(r.readline(), silence):
            line = line.decode().rstrip("\n")
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("id: "):
                last = line[4:]
            elif line.startswith("data: "):
                yield name, json.loads(line[6:]), last
    finally:
        w.close()
