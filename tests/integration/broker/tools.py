# SPDX-License-Identifier: Apache-2.0
"""tools.py SANDBOX TOOLS SCRATCH: see test_tools.sh."""
import json, os, socket, sys, threading, time, urllib.parse
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "support", "python"))
from spawner import BROKER, Spawner

sandbox, tools, scratch = sys.argv[1:]
count = failed = 0
BIG = "0123456789abcdef" * 20000


def check(what, ok, detail=""):
    global count, failed
    count += 1
    if not ok:
        failed += 1
        print("FAIL", what, repr(detail)[:600], flush=True)


# ---- the tomb that is played -----------------------------------------------------------

class Cut(Exception):
    pass


UP = {"lychgate-upstream-status": "200", "content-type": "application/json"}
SSE = {"lychgate-upstream-status": "200", "content-type": "text/event-stream"}


def refusal(code):
    return json.dumps({"error": {"message": f"{code}: Not allowed: by rule 7. Ask for it.\x1b[31m",
                                 "type": "permission_error", "param": None, "code": code},
                       "request_id": "r"}).encode()


def chat(text, **more):
    return json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": text, **more}}],
                       "usage": {}}).encode()


def events(*objects, done=True):
    for o in objects:
        yield b"data: " + json.dumps(o).encode() + b"\n\n"
    if done:
        yield b"data: [DONE]\n\n"


def answer(method, path, headers, body):
    """(status, headers, parts): parts may raise Cut."""
    at = urllib.parse.urlsplit(path)
    seen.append((method, path, headers, body))
    if at.path == "/v1/models":
        anthropic = "anthropic-version" in headers
        name = "claude-x" if anthropic else "first-model"
        return 200, UP, [json.dumps({"data": [{"id": name}, {"id": "other"}]}).encode()]
    if at.path in ("/v1/chat/completions", "/v1/messages"):
        q = json.loads(body)
        words = q["messages"][-1]["content"]
        stream = q.get("stream", False)
        if words == "refuse me":
            return 403, {"content-type": "application/json"}, [refusal("LYCH-WARD-001")]
        if words == "too many":
            return 429, {"lychgate-upstream-status": "429", "retry-after": "7"}, [
                json.dumps({"error": {"message": "slow down"}}).encode()]
        if words == "cut":
            def parts():
                yield from events({"choices": [{"delta": {"content": "half"}}]}, done=False)
                raise Cut
            return 200, SSE, parts()
        if words == "no end":
            return 200, SSE, events({"choices": [{"delta": {"content": "half"}, "finish_reason": None}]}, done=False)
        if words == "fail in the stream":
            return 200, SSE, events({"choices": [{"delta": {"content": "half"}}]},
                                    {"error": {"message": "overloaded"}}, done=False)
        if words == "tool":
            return 200, UP, [chat(None, tool_calls=[{"id": "1"}])]
        if words == "hostile":
            return 200, UP, [b'{"choices":[{"message":{"content":"\\ud800 \\ud83d\\ude00 \\u0000|\\q\\"}"}}]}']
        if stream and at.path == "/v1/messages":
            return 200, SSE, events({"type": "message_start"}, {"type": "content_block_delta", "delta": {
                "type": "text_delta", "text": "Gu"}}, {"type": "content_block_delta", "delta": {
                    "type": "text_delta", "text": "ten Tag"}}, {"type": "message_stop"}, done=False)
        if stream:
            # an event that comes in pieces, as a network would have it
            whole = b"".join(events(*({"choices": [{"delta": {"content": c}}]} for c in "Hello, ünd "),
                                    {"choices": [{"delta": {}, "finish_reason": "stop"}]}))
            return 200, SSE, [whole[i:i + 7] for i in range(0, len(whole), 7)]
        if at.path == "/v1/messages":
            return 200, UP, [json.dumps({"content": [{"type": "text", "text": "Guten "}, {"type": "tool_use"},
                                                     {"type": "text", "text": "Tag"}]}).encode()]
        return 200, UP, [chat(f"you said {len(words)}: {words[:20]}")]
    if at.path == "/fetch":
        url = urllib.parse.parse_qs(at.query)["url"][0]
        if "denied" in url:
            return 403, {}, [json.dumps({"error": "LYCH-EGRESS-003: no", "error_code": "LYCH-EGRESS-003"}).encode()]
        if "missing" in url:
            return 404, {"lychgate-upstream-status": "404"}, [b"not here"]
        if "big" in url:
            return 200, UP, [BIG.encode()]
        if "cut" in url:
            def parts():
                yield b"half"
                raise Cut
            return 200, UP, parts()
        return 200, UP, [f"{method} {url} ".encode(), body]
    return 404, {}, [b"{}"]


def serve_http(listener):
    listener.setblocking(True)
    while True:
        try:
            c, _ = listener.accept()
        except OSError:
            return
        data = b""
        while b"\r\n\r\n" not in data:
            data += c.recv(65536)
        head, body = data.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        method, path, version = lines[0].split(" ")
        headers = dict((n.lower(), v.strip()) for n, v in (x.split(":", 1) for x in lines[1:]))
        if headers["host"] != "127.0.0.1:8787" or version != "HTTP/1.1":
            c.sendall(b"HTTP/1.1 400 no\r\ncontent-length: 0\r\n\r\n")
            continue
        while len(body) < int(headers.get("content-length", "0")):
            body += c.recv(65536)
        if raw:
            c.sendall(raw[0])
            c.close()
            continue
        status, out, parts = answer(method, path, headers, body)
        sized = isinstance(parts, list) and len(parts) == 1
        out = dict(out, **({"content-length": str(len(parts[0]))} if sized else {"transfer-encoding": "chunked"}))
        try:
            c.sendall(f"HTTP/1.1 {status} X\r\n".encode() +
                      "".join(f"{n.title()}: {v}\r\n" for n, v in out.items()).encode() + b"\r\n")
            for part in parts:
                c.sendall(part if sized else b"%x\r\n%s\r\n" % (len(part), part))
            if not sized:
                c.sendall(b"0\r\n\r\n")
        except (Cut, OSError):
            pass
        c.close()


def serve_frames(channel):
    channel.setblocking(True)
    request, body = None, b""

    def put(kind, data=b""):
        channel.send(kind + data)
    while True:
        try:
            frame = channel.recv(70000)
        except OSError:
            return
        if not frame:
            return
        kind, data = frame[:1], frame[1:]
        if len(frame) > 65536:
            check("no frame is too long", False, len(frame))
        if kind == b"H":
            request, body = json.loads(data), b""
        elif kind == b"D":
            body += data
        elif kind == b"X":
            aborted.append(json.loads(data)["id"])
        elif kind == b"E":
            check("as many bytes as the head said", len(body) == request["body_bytes"])
            if raw:
                for f in raw:
                    channel.send(f.replace(b"@ID@", request["id"].encode()))
                continue
            status, headers, parts = answer(request["method"], request["path"], request["headers"], body)
            try:
                put(b"H", json.dumps({"id": request["id"], "status": status, "headers": headers}).encode())
                for part in parts:
                    for i in range(0, len(part), 65535):
                        put(b"D", part[i:i + 65535])
                put(b"E")
            except Cut:
                put(b"X", json.dumps({"id": request["id"], "code": "LYCH-BROKER-024", "reason": "gone"}).encode())
            except OSError:
                return


def tools_of(grade, options=("--pool", "0")):
    jobs = os.path.join(scratch, f"{grade}{count}")
    os.mkdir(jobs, 0o700)
    s = Spawner(sandbox, jobs, grade, "--tools", tools, *options)
    where = "/lych/bin" if grade == "full" else tools
    env = [f"--env=PATH=/usr/bin:/bin:{where}", "--env=LYCHGATE_BROKER_KEY=lych-phantom",
           "--env=LYCHGATE_BROKER=" + ("http://127.0.0.1:8787" if grade == "full" else "fd:3")]
    return s, env


def run(s, env, script, seconds=60):
    """A shell script in a job that has a broker; (code, stdout+stderr, the job's directory)."""
    job = s.wait_started(s.run("sh", "-c", script, flags=BROKER, options=env))
    served = job.broker[1]
    thread = threading.Thread(target=serve_http if s.grade == "full" else serve_frames, args=(served,))
    thread.start()
    s.wait(job, seconds)
    try:
        served.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    thread.join(20)
    served.close()
    how, code = job.exited
    return code if how == 0 else (how, code), job.text(), f"{s.jobs_dir}/{job.handle}"


seen, aborted, raw = [], [], []
for grade in ("full", "floor"):
    s, env = tools_of(grade)

    def said(what, script, code, text, contains=False):
        got_code, got, work = run(s, env, script)
        ok = got_code == code and (text in got if contains else got == text)
        check(f"{grade}: {what}", ok, (got_code, got))
        return work

    # No broker, no answer.
    for tool in ("lych-ask hello", "lych-fetch http://example.test/"):
        j = s.wait(s.run("sh", "-c", tool, options=env[:1]))
        check(f"{grade}: {tool} without a broker", j.exited == (0, 4) and "LYCH-BROKER-040" in j.text(),
              (j.exited, j.text()))
    if grade == "full":
        j = s.wait(s.run("lych-ask", "hello", options=env))
        check("full: nobody listens", j.exited == (0, 4) and "LYCH-BROKER-041" in j.text(), (j.exited, j.text()))
    else:
        j = s.wait(s.run("sh", "-c", "lych-ask hello 3</dev/null", options=env))
        check("floor: 3 is something else", j.exited == (0, 4) and "LYCH-BROKER-041" in j.text(),
              (j.exited, j.text()))
    j = s.wait(s.run("sh", "-c", "touch $(dirname $(command -v lych-ask))/x; "
                     "cat $(command -v lych-fetch) > /dev/null && echo readable", options=env))
    check(f"{grade}: where they are nothing is written", "readable" in j.text() and
          ("Read-only" in j.text() or "ermission denied" in j.text()), j.text())

    said("no question", "lych-ask </dev/null", 2, "lych-ask: Wrong usage: a question of 1 to 4194304 bytes is wanted\n"
         "      LYCH-CORE-004  See 'lych-ask --help'.\n")
    said("an option that is none", "lych-ask --speed x", 2, "no option '--speed'", True)
    said("two URLs", "lych-fetch a b", 2, "one URL", True)
    said("a header that is none", "lych-fetch -H x http://a/", 2, "NAME: VALUE", True)
    said("a header beyond ASCII", "lych-fetch -H 'Accept: \u00e9' http://a/", 2, "in ASCII", True)
    said("a header of the framing", "lych-fetch -H 'Host: x' http://a/", 2, "from the request itself", True)
    said("a header twice", "lych-fetch -H 'Accept: a' -H 'accept: b' http://a/", 2, "given twice", True)
    said("refused", "lych-ask refuse me", 1, "lych-ask: refused (403): LYCH-WARD-001: Not allowed: "
         "by rule 7. Ask for it. [31m\n")
    said("the provider refuses", "lych-ask too many", 1,
         "lych-ask: the provider refused (429, again after 7 s): slow down\n")
    said("a stream that is cut off", "lych-ask -S cut", 1, "half", True)
    said("a stream without an end", "lych-ask -S no end", 1, "half\nlych-ask: the answer broke off", True)
    said("a stream that fails", "lych-ask --stream fail in the stream", 1,
         "half" "lych-ask: the provider broke off: overloaded\n")
    said("an answer without text", "lych-ask tool", 0, "lych-ask: the answer has no text; --json shows it\n\n")
    said("text that is none", "lych-ask hostile | od -An -c | tr -d ' \\n'", 0,
         r'357277275360237230200\0|q"}\n')

    said("words", "lych-ask what is it", 0, "you said 10: what is it\n")
    check(f"{grade}: the first model that there is", json.loads(seen[-1][3])["model"] == "first-model")
    check(f"{grade}: the job's own key", seen[-1][2]["authorization"] == "Bearer lych-phantom", seen[-1][2])
    said("stdin", "printf 'a\\nb' | lych-ask -m m1 -s 'be kind' --max-tokens 5", 0, "you said 3: a\nb\n")
    q = json.loads(seen[-1][3])
    check(f"{grade}: what was asked for", (q["model"], q["max_tokens"], q["messages"][0]) ==
          ("m1", 5, {"role": "system", "content": "be kind"}), q)
    said("a large question", "head -c 1000000 /dev/zero | tr '\\0' x | lych-ask -m m", 0, "you said 1000000: ", True)
    said("a stream", "lych-ask -S -m m hi", 0, "Hello, ünd \n")
    said("a stream as it came", "lych-ask -S --json -m m hi | tail -n 2", 0, "data: [DONE]\n\n")
    said("as the provider gave it", "lych-ask --json -m m hi", 0, '"usage": {}}', True)
    said("the other API", "lych-ask --anthropic hi", 0, "Guten Tag\n")
    check(f"{grade}: its key and model", seen[-1][2]["x-api-key"] == "lych-phantom" and
          json.loads(seen[-1][3])["model"] == "claude-x", seen[-1])
    said("the other API, a stream", "lych-ask --anthropic -S hi", 0, "Guten Tag\n")
    said("models", "lych-ask --models", 0, "first-model\nother\n")
    said("stdout is gone", "lych-ask -m m hi >&-", 1, "LYCH-CORE-006", True)

    work = said("refused", "lych-fetch -o x 'http://denied.test/'", 1, "lych-fetch: refused (403): LYCH-EGRESS-003: no\n")
    check(f"{grade}: a refusal leaves no file", not os.path.exists(f"{work}/x"))
    said("not found there", "lych-fetch http://missing.test/", 1, "not herelych-fetch: the server answered 404\n")
    said("a body that is cut off", "lych-fetch http://cut.test/", 1, "LYCH-BROKER-04" if grade == "full"
         else "LYCH-BROKER-024", True)
    said("a URL", "lych-fetch 'http://a.test/x?q=1&r=ü#f'", 0, "GET http://a.test/x?q=1&r=ü#f ")
    said("data", "lych-fetch -d 'a=b&c' -H 'X-One: 1' http://a.test/", 0, "POST http://a.test/ a=b&c")
    check(f"{grade}: with its headers", seen[-1][2]["x-one"] == "1" and
          seen[-1][2]["content-type"] == "application/octet-stream", seen[-1][2])
    said("data of a file", "printf data > f; lych-fetch -d @f http://a.test/", 0, "POST http://a.test/ data")
    said("too much data", "head -c 2000000 /dev/zero > f; lych-fetch -d @f http://a.test/", 1, "above 1048576", True)
    work = said("into a file", "lych-fetch -o big http://big.test/", 0, "")
    check(f"{grade}: all of it", open(f"{work}/big").read() == BIG)

    # Many at once, from one job.
    code, text, work = run(s, env, "for i in 1 2 3 4 5 6 7 8; do lych-fetch -o f$i http://big.test/ & done; wait")
    sizes = [os.path.getsize(f"{work}/f{i}") for i in range(1, 9)]
    check(f"{grade}: eight at once", sizes == [len(BIG)] * 8 and text == "", (sizes, text))
    s.close()

# An answer that is none.
s, env = tools_of("full")
for what, text in {
        "another protocol": b"SSH-2.0-x\r\n\r\n", "no answer": b"", "half a head": b"HTTP/1.1 200 OK\r\nA: b\r\n",
        "bare newlines": b"HTTP/1.1 200 OK\n\n", "HTTP/1.0": b"HTTP/1.0 200 OK\r\n\r\n",
        "status 99": b"HTTP/1.1 099 OK\r\n\r\n", "no colon": b"HTTP/1.1 200 OK\r\nabc\r\n\r\n",
        "two framings": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
        "a length below zero": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "a length that is too large": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "a short body": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nLychgate-Upstream-Status: 200\r\n\r\nabc",
        "a chunk size of nothing": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        "a chunk size that is too large": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n",
        "a chunk without an end": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        "a line without an end": b"HTTP/1.1 200 OK\r\nA: " + b"a" * 100000,
        "headers without an end": b"HTTP/1.1 200 OK\r\n" + b"A: a\r\n" * 10000 + b"\r\n",
}.items():
    raw[:] = [text]
    code, got, _ = run(s, env, "lych-fetch http://a.test/")
    check(f"full: {what}", code == 1 and "LYCH-BROKER-042" in got, (code, got))
s.close()

s, env = tools_of("floor")
H = b'H{"id":"@ID@","status":200,"headers":{"lychgate-upstream-status":"200"}}'
for what, frames, code, text in (
        ("the rest of another's answer", [b"Dstale", b"E", b'H{"id":"0","status":200,"headers":{}}', b"Dmore", b"E",
                                          b'X{"id":"0","code":"c","reason":"r"}', H, b"Dmine", b"E"], 0, "mine"),
        ("a head without a status", [b'H{"id":"@ID@"}'], 1, "LYCH-BROKER-042"),
        ("no JSON", [b"H{{{{", b"H" + b"[" * 1000, H, b"E"], 0, ""),
        ("an abort", [b'X{"id":"@ID@","code":"LYCH-WARD-001","reason":"no"}'], 1, "LYCH-WARD-001: no"),
        ("an abort in the middle", [H, b"Dhalf", b'X{"id":"@ID@","code":"c","reason":"r"}'], 1, "c: r"),
        ("two heads", [H, H], 1, "LYCH-BROKER-042"),
        ("an unknown frame", [H, b"Q"], 1, "LYCH-BROKER-042"),
        ("a frame that is too long", [H, b"D" + b"x" * 65536], 1, "LYCH-BROKER-042")):
    raw[:] = frames
    got_code, got, _ = run(s, env, "lych-fetch http://a.test/")
    check(f"floor: {what}", got_code == code and text in got, (got_code, got))

# One that is killed half-way leaves its answer to nobody.
raw[:] = [H, b"Dhalf of the first"]
code, got, _ = run(s, env, "lych-fetch -o one http://a.test/ & p=$!; while [ ! -s one ]; do sleep 0.02; done; "
                   "kill -9 $p; wait $p; lych-fetch http://b.test/ & p=$!; sleep 0.3; kill $p; wait $p; cat one")
check("floor: killed half-way", got.replace("Killed\n", "").replace("Terminated\n", "") == "half of the firsthalf of the first", (code, got))
raw[:] = []
aborted[:] = []
code, got, _ = run(s, env, "lych-fetch http://big.test/ >/dev/full; lych-fetch http://a.test/")
check("floor: who can't write tells the tomb, and the next one is answered",
      "LYCH-CORE" in got and got.endswith("GET http://a.test/ ") and len(aborted) == 1, (got, aborted))
s.close()

print(f"{count} checks, {failed} failed")
sys.exit(failed > 0)
