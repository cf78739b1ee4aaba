# SPDX-License-Identifier: Apache-2.0
# A hostile server on 127.0.0.1 for the egress workers: prints its port; the path says what it does.
# What it was sent is appended to the file in argv[1], a line a request: method, path, and the
# headers that matter, so that a test judges from the other side of the wire.
import base64
import json
import socket
import ssl
import sys
import threading
import time

seen = open(sys.argv[1], "a", buffering=1)
count = {}
lock = threading.Lock()


def read_request(s):
    data = b""
    while b"\r\n\r\n" not in data:
        part = s.recv(65536)
        if not part:
            return None
        data += part
    head, body = data.split(b"\r\n\r\n", 1)
    lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines[1:]:
        name, value = line.split(":", 1)
        headers[name.lower()] = value.strip()
    while len(body) < int(headers.get("content-length", "0")):
        part = s.recv(65536)
        if not part:
            break
        body += part
    method, path, _ = lines[0].split(" ", 2)
    return method, path, headers, body


def reply(s, body=b"", status="200 OK", headers=()):
    lines = ["HTTP/1.1 " + status, "Content-Length: %d" % len(body), "Connection: close", *headers]
    s.sendall(("\r\n".join(lines) + "\r\n\r\n").encode() + body)


def chunk(s, data):
    s.sendall(b"%x\r\n%s\r\n" % (len(data), data))


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKED = HEAD % b"text/plain"


def serve(s):
    request = read_request(s)
    if not request:
        return
    method, path, headers, body = request
    keep = ("host", "authorization", "x-api-key", "anthropic-version", "accept-encoding", "expect", "cookie")
    seen.write(json.dumps([method, path, {k: headers[k] for k in keep if k in headers}, len(body)]) + "\n")
    name = path.split("?")[0].rsplit("/", 1)[-1]
    key = headers.get("authorization", "Bearer none").split(" ")[-1].encode()
    key = headers.get("x-api-key", key.decode()).encode()
    if name == "hello":
        reply(s, b"hello " + method.encode(), headers=["Content-Type: text/plain", "Set-Cookie: a=b", "Server: x"])
    elif name == "count":
        reply(s, str(len(body)).encode(), headers=["Content-Type: text/plain"])
    elif name == "raw":
        reply(s, b'{"error":"wrong key ' + key + b'"}', "401 Unauthorized", ["Content-Type: application/json"])
    elif name == "coded":
        forms = [base64.b64encode(b"x" * n + key) for n in range(3)]
        forms += [base64.urlsafe_b64encode(key), ("".join("%%%02x" % c for c in key)).encode()]
        forms += [("".join("\\u%04x" % c for c in key)).encode()]
        reply(s, b" ".join(forms), headers=["Content-Type: text/plain"])
    elif name == "split":
        s.sendall(CHUNKED)
        for i in range(len(key)):
            chunk(s, key[i:i + 1])
            time.sleep(0.002)
        chunk(s, b".")
        s.sendall(b"0\r\nX-Trailer: " + key + b"\r\n\r\n")
    elif name in ("spell", "spell_large"):
        # a letter an event; or all in events of which each is more than the vessel takes at once
        s.sendall(HEAD % b"text/event-stream; charset=utf-8")
        fill = "x" * (700000 if name == "spell_large" else 0)
        for part in ["so: ", *key.decode(), " ", fill, " ", fill, "as"]:
            chunk(s, b'data: {"choices":[{"index":0,"delta":{"content":%s}}]}\n\n' % json.dumps(part).encode())
        chunk(s, b"data: [DONE]\n\n")
        chunk(s, b"")
    elif name == "spell_parts":
        reply(s, json.dumps({"content": [{"type": "text", "text": c} for c in key.decode()]}).encode(),
              headers=["Content-Type: application/json"])
    elif name == "no_events":
        s.sendall(HEAD % b"text/event-stream")
        chunk(s, b"data: " + key[:6] + b"\n\n")
        chunk(s, b"data: {}\n\n")
        chunk(s, b"")
    elif name == "header":
        reply(s, b"ok", headers=["Content-Type: text/plain", "Retry-After: 1", "X-Request-Id: " + key.decode()])
    elif name == "hang":
        time.sleep(600)
    elif name == "drip":
        s.sendall(CHUNKED)
        while True:
            chunk(s, b".")
            time.sleep(0.05)
    elif name == "stall":
        s.sendall(CHUNKED)
        chunk(s, b"first")
        time.sleep(600)
    elif name == "die":
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
    elif name == "nothing":
        pass
    elif name == "giant":
        size = int(path.split("?")[1])
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % size)
        block = b"0123456789abcdef" * 65536
        while size > 0:
            n = min(size, len(block))
            s.sendall(block[:n])
            size -= n
    elif name == "gzip":
        reply(s, b"\x1f\x8b", headers=["Content-Encoding: gzip"])
    elif name == "flood":
        while True:
            s.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
    elif name == "redirect":
        reply(s, b"", "302 Found", ["Location: //127.0.0.1/"])
    elif name in ("busy", "always"):
        with lock:
            count[path] = count.get(path, 0) + 1
            n = count[path]
        if n == 1 or name == "always":
            reply(s, b"later", "429 Too Many Requests", ["Retry-After: 0", "Content-Type: text/plain"])
        else:
            reply(s, b"now", headers=["Content-Type: text/plain"])
    else:
        reply(s, b"", "404 Not Found")


def one(s, context):
    try:
        if context:
            s = context.wrap_socket(s, server_side=True)
        serve(s)
    except OSError:
        pass
    finally:
        s.close()


def listen(context):
    t = socket.create_server(("127.0.0.1", 0), backlog=128)
    print(t.getsockname()[1], flush=True)
    while True:
        s, _ = t.accept()
        threading.Thread(target=one, args=(s, context), daemon=True).start()


context = None
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2])
listen(context)
