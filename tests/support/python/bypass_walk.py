# SPDX-License-Identifier: Apache-2.0
"""bypass_walk.py TABLE: run inside a job. Asks the job's broker for each request of the table, byte by byte as it stands there,
and prints a line of JSON for each. After each it asks for /step/N, which is allowed: whoever watches from outside knows by that
where one request ends and the next begins."""
import base64
import json
import socket
import sys
import time
from urllib.parse import quote

BROKER = ("127.0.0.1", 8787)
STEP = "https://api.allowed.example/step/"


def exchange(request, cut_after=None):
    """(status, header fields, body, is it whole) of one raw HTTP request."""
    with socket.create_connection(BROKER, 60) as s:
        s.settimeout(60)
        s.sendall(request)
        data = b""
        while cut_after is None or len(data) < cut_after:
            try:
                more = s.recv(65536)
            except ConnectionResetError:
                break
            if not more:
                break
            data += more
            if b"\r\n\r\n" in data and is_whole(data):
                break
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    fields = {k.lower(): v.strip() for k, _, v in (x.partition(":") for x in lines[1:])}
    whole = is_whole(data) if body or lines[0] else False
    if "chunked" in fields.get("transfer-encoding", ""):
        body = unchunk(body)
    return int(lines[0].split(" ")[1]) if lines[0] else 0, fields, body, whole


def is_whole(data):
    head, _, body = data.partition(b"\r\n\r\n")
    head = head.lower()
    if b"transfer-encoding: chunked" in head:
        return body.endswith(b"0\r\n\r\n")
    for line in head.split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(body) >= int(line.split(b":")[1])
    return False


def unchunk(body):
    out = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        n = int(size or b"0", 16)
        if n == 0:
            break
        out += rest[:n]
        body = rest[n + 2:]
    return out


def ask(row, attempt=0):
    if "raw" in row:
        request = row["raw"].encode("latin-1")
    else:
        body = base64.b64decode(row.get("body", ""))
        head = [f"{row['method']} /fetch?url={quote(row['url'], safe='')} HTTP/1.1", "Host: 127.0.0.1:8787"]
        head += [f"{k}: {v}" for k, v in row.get("headers", [])]
        if row["method"] == "POST" and not any(k.lower() == "content-length" for k, _ in row.get("headers", [])):
            head.append(f"Content-Length: {len(body)}")
        request = "\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body
    status, fields, body, whole = exchange(request, row.get("cut_after"))
    text = body.decode("utf-8", "replace")
    got = {"status": status, "whole": whole, "type": fields.get("content-type", ""), "upstream": fields.get("lychgate-upstream-status", ""),
           "fields": sorted(fields), "body": text[:6000], "code": "", "detail": ""}
    if "lychgate-upstream-status" not in fields and text.startswith("{"):
        answer = json.loads(text)
        got["code"], got["detail"] = answer.get("error_code", ""), answer.get("detail", "")
        if isinstance(answer.get("error"), dict):  # to what is no request the broker answers as a model's provider does
            got["code"] = answer["error"].get("code", "")
    if got["code"] in row.get("again_while", []) and attempt < 600:
        time.sleep(0.1)
        return ask(row, attempt + 1)
    return got


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        table = json.load(f)
    for i, row in enumerate(table):
        time.sleep(row.get("pause", 0))
        got = ask(row)
        step = "" if row.get("no_step") else ask({"method": "GET", "url": f"{STEP}{i}", "again_while": row.get("again_while", [])})
        print(json.dumps({"i": i, **got, "step": step and step["upstream"]}), flush=True)


main()
