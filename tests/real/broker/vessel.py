# SPDX-License-Identifier: Apache-2.0
"""vessel.py SOCKET TREE.tar PROVIDER_PORT KEY GRADE: a vessel that is none, like broker_tomb.py's, which gives a real tomb one
job (full: the SDKs; floor: lych-ask) and carries its intents to the stand-in provider, as a dispatcher and an egress worker would. It blots nothing out, so it is not asked for an echo."""
import asyncio, base64, hashlib, json, os, sys, uuid
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "integration", "broker"))
from broker_tomb import Vessel

socket_path, tree, port, key, grade = sys.argv[1:]
data = open(tree, "rb").read()
# In floor there is no socket for an SDK; what is there is asked in turn and at once.
ASK = r"""
env | sort
bad=0
is() { if [ "$1" = "$2" ]; then echo "ok   $1"; else bad=$((bad + 1)); echo "FAIL '$1' is not '$2'"; fi; }
is "$(lych-ask -m small hello there)" "you said: hello there"
is "$(lych-ask -m small -S a stream)" "you said: a stream"
is "$(lych-ask --anthropic -m little hello)" "you said: hello"
is "$(lych-ask --anthropic -m little -S hello)" "you said: hello"
is "$(lych-ask -m small large 500000 | wc -c)" 500001
is "$(lych-ask -m small busy 2>&1)" "lych-ask: the provider refused (429, again after 1 s): slow down"
for i in 1 2 3 4 5 6; do lych-ask -m small number $i >out$i & done
wait
is "$(cat out?)" "$(for i in 1 2 3 4 5 6; do echo "you said: number $i"; done)"
for api in "-m small" "--anthropic -m little"; do
	rm -f endless; lych-ask $api -S endless >endless & p=$!
	while [ ! -s endless ]; do sleep 0.05; done
	kill -9 $p; wait $p
	is "$(lych-ask -m small after the kill)" "you said: after the kill"
done
echo "$bad failed"
"""
sha = hashlib.sha256(data).hexdigest()


class Carrier(Vessel):
    def give_sdk(self):
        job, self.next = self.next, self.next + 1
        token = str(uuid.uuid4())
        what = ASK if grade == "floor" else "env | sort; exec node_modules/node/bin/node sdk.mjs"
        spec = {"argv": ["sh", "-c", what], "egress": "brokered",
                "input": sha, "env": {"MODEL_OPENAI": "small", "MODEL_ANTHROPIC": "little",
                                        "NO_ECHO": "1", "NO_RULES": "1"},
                "limits": {"timeout_ms": 240000}}
        self.waiting.append({"job": job, "epoch": 1, "token": token, "attempt": 1,
                             "spec": base64.b64encode(json.dumps(spec).encode()).decode()})
        self.ids[job], self.leases[str(job)], self.output[job] = "sdk", token, b""
        self.seq += 1
        self.changed.set()
        return job

    async def answer(self, path, target, body, job):
        if path == "/work/v1/ack" or path == "/work/v1/fail":
            self.result = body
        if path == "/work/v1/models":
            return {"id": "small", "object": "model"}
        return await super().answer(path, target, body, job)

    async def one(self, reader, writer):
        # Blobs are bytes, not JSON: looked at before the rest.
        head = await reader.readuntil(b"\r\n\r\n")
        target = head.split(b" ", 2)[1].decode()
        if not target.startswith("/work/v1/blobs/"):
            again = asyncio.StreamReader(limit=1 << 24)
            again.feed_data(head)
            n = [x for x in head.decode().lower().split("\r\n") if x.startswith("content-length:")]
            again.feed_data(await reader.readexactly(int(n[0].split(":")[1]) if n else 0))
            return await super().one(again, writer)
        query = dict(x.split("=") for x in target.partition("?")[2].split("&"))
        at = int(query["offset"])
        part = data[at:at + int(query["limit"])]
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nLychgate-Size: %d\r\n"
                     b"Content-Length: %d\r\n\r\n" % (len(data), len(part)) + part)
        await writer.drain()
        return True

    async def ask(self, intent, job, writer):
        body = json.dumps(intent["request"]).encode()
        anthropic = intent["dialect"] == "anthropic"
        path = {"responses": "responses", "embeddings": "embeddings", "count_tokens": "messages/count_tokens"}.get(
            intent.get("api"), "messages" if anthropic else "chat/completions")
        head = (f"POST /v1/{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" +
                (f"x-api-key: {key}\r\nanthropic-version: 2023-06-01\r\n" if anthropic else
                 f"Authorization: Bearer {key}\r\n") + "\r\n").encode()
        up, down = await asyncio.open_connection("127.0.0.1", int(port))
        down.write(head + body)
        try:
            line, *lines = (await up.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            status = line.split(" ")[1]
            out = [x for x in lines if x.split(":")[0].lower() in ("content-type", "retry-after", "x-request-id",
                                                                  "content-length", "transfer-encoding")]
            writer.write("\r\n".join([f"HTTP/1.1 200 OK", f"Lychgate-Upstream-Status: {status}", *out, "", ""]).encode())
            while part := await up.read(65536):
                writer.write(part)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        down.close()
        return False


async def main():
    v = Carrier()
    server = await asyncio.start_unix_server(v.serve, socket_path, limit=1 << 24)
    text, end = await v.finished(v.give_sdk(), 300)
    print(text)
    print(end, v.result.decode(errors="replace")[:400])
    server.close()
    # The phantom key is the job's own affair, and no word of it goes further.
    sys.exit(0 if "0 failed" in text.splitlines()[-1:] and end == "/work/v1/ack" else 1)


asyncio.run(main())
