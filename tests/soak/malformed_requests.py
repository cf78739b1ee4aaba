# SPDX-License-Identifier: Apache-2.0
"""Runs in the clients of malformed.py: which requests there are. A Mill makes them one after the other,
from a seed: for each dialect, intent and route first what is wrong in one place (each place x each
wrong value, as far as the run lasts), beside it what is wrong in several, damaged bytes, odd heads, and
good requests that are answered by nonsense. What it learns from the answers (jobs, leases, uploads)
goes into later requests."""
import base64
import hashlib
import json
import random

import malformed_git
from malformed_grammar import LARGE, NOISE, VALUES, Seed, damage
from malformed_world import code_of

BOOT = "11111111-1111-4111-8111-111111111111"
SHA = hashlib.sha256(b"").hexdigest()
FAR = "https://far.example/x"
ENDS = (b"/work/v1/ack", b"/work/v1/fail", b"/work/v1/release")

# ---- one good request of each kind, with everything in it that may be

TOOLS = [{"type": "function", "function": {"name": "f", "description": "d", "strict": True, "parameters": {
    "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}}}]
OPENAI = {"model": "m", "messages": [
    {"role": "system", "content": "s"},
    {"role": "user", "name": "n", "content": [
        {"type": "text", "text": "hello"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
        {"type": "file", "file": {"filename": "f", "file_data": "data:a/b;base64,AA=="}}]},
    {"role": "assistant", "content": None, "refusal": None, "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "r"}]}],
    "max_completion_tokens": 50, "n": 1, "stop": ["x"], "temperature": 0.5, "tools": TOOLS,
    "tool_choice": {"type": "function", "function": {"name": "f"}}, "response_format": {"type": "json_schema", "json_schema": {
        "name": "j", "schema": {"type": "object"}}},
    "metadata": {"a": "b"}, "logit_bias": {"7": 1}, "store": False, "seed": 7, "user": "u", "parallel_tool_calls": True, "logprobs": False}
OPENAI_STREAM = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 50, "stream": True,
                 "stream_options": {"include_usage": True}, "prediction": {"type": "content", "content": [{"type": "text", "text": "p"}]},
                 "reasoning_effort": "low", "functions": [{"name": "f", "parameters": {}}], "function_call": "auto"}
ANTHROPIC = {"model": "m", "max_tokens": 2000, "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
             "messages": [
    {"role": "user", "content": [
        {"type": "text", "text": "hello"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
        {"type": "document", "title": "d", "source": {"type": "content", "content": [{"type": "text", "text": "c"}]}, "citations": {"enabled": False}},
        {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "c"}]}]},
    {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "h", "signature": "AA=="}, {"type": "redacted_thinking", "data": "AA=="},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": [1]}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "is_error": False, "content": [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}]}]}],
    "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}},
              {"type": "bash_20250124", "name": "bash"}],
    "tool_choice": {"type": "auto"}, "thinking": {"type": "enabled", "budget_tokens": 1024}, "stop_sequences": ["x"], "top_k": 3,
    "metadata": {"user_id": "u"}}
ANTHROPIC_STREAM = {"model": "m", "max_tokens": 20, "system": "s", "messages": [{"role": "user", "content": "hello"}], "stream": True,
                    "output_config": {"effort": "low"}, "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}
RESPONSES = {"model": "m", "instructions": "i", "input": [
    {"role": "user", "content": [{"type": "input_text", "text": "hello"}, {"type": "input_image", "detail": "low", "image_url": "data:image/png;base64,AA=="}]},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": "AA=="},
    {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [
        {"type": "output_text", "text": "y", "annotations": [], "logprobs": []}]},
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}", "status": "completed"},
    {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "r"}]},
    {"type": "custom_tool_call", "call_id": "call_2", "name": "c", "input": "x"},
    {"type": "custom_tool_call_output", "call_id": "call_2", "output": "r"}],
    "tools": [{"type": "function", "name": "f", "strict": True, "parameters": {"type": "object"}},
              {"type": "namespace", "name": "n", "tools": [{"type": "custom", "name": "c", "format": {"type": "text"}}]}],
    "tool_choice": {"type": "function", "name": "f"}, "include": ["reasoning.encrypted_content"], "reasoning": {"effort": "low"},
    "text": {"format": {"type": "text"}, "verbosity": "low"}, "max_output_tokens": 50, "store": False, "background": False,
    "metadata": {"a": "b"}, "parallel_tool_calls": True, "truncation": "auto"}
RESPONSES_STREAM = {"model": "m", "input": "hello", "max_output_tokens": 50, "stream": True, "stream_options": {"include_obfuscation": False}}
EMBEDDINGS = {"model": "m", "input": ["a", "b"], "encoding_format": "base64", "dimensions": 8, "user": "u"}
COUNT = {"model": "m", "system": "s", "messages": [{"role": "user", "content": "hello"}], "tools": [
    {"name": "f", "input_schema": {"type": "object"}}], "thinking": {"type": "enabled", "budget_tokens": 1024}}
GEMINI = {"contents": [
    {"role": "user", "parts": [{"text": "hello"}, {"inlineData": {"mimeType": "image/png", "data": "AA=="}}]},
    {"role": "model", "parts": [{"text": "h", "thought": True}, {"functionCall": {"id": "c1", "name": "f", "args": {"a": [1]}}, "thoughtSignature": "AA=="}]},
    {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "f", "response": {"r": "x"}}}]}],
    "systemInstruction": {"parts": [{"text": "s"}]},
    "tools": [{"functionDeclarations": [{"name": "f", "description": "d", "parametersJsonSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}]}],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
    "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
    "generationConfig": {"maxOutputTokens": 50, "candidateCount": 1, "temperature": 0.5, "topK": 3, "stopSequences": ["x"], "seed": 7,
                         "responseMimeType": "application/json", "responseJsonSchema": {"type": "object"},
                         "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 16}}}
GEMINI_SHORT = {"contents": [{"parts": [{"text": "hello"}]}], "generationConfig": {"maxOutputTokens": 20}}
GEMINI_COUNT = {"contents": [{"role": "user", "parts": [{"text": "hello"}, {"inlineData": {"mimeType": "image/png", "data": "AA=="}}]}]}
SPEC = {"request_id": "@ID@", "argv": ["true", "x"], "stdin": "s", "files": [
    {"path": "a/b", "content": "c", "mode": "0755"}, {"path": "d", "base64": "AA=="}, {"path": "e", "blob": SHA}], "env": {"A": "b"},
    "limits": {"memory_bytes": 67108864, "disk_bytes": 67108864, "output_bytes": 1000000, "timeout_ms": 60000, "processes": 9, "cpus": 1},
    "network": "loopback", "egress": "registry", "profile": "candidate", "artifacts": ["*.txt", "d/**"], "priority": 50,
    "retry": "never", "explain": False, "deps": {"pypi": ["x==1.0"], "npm": ["y@1.0.0"]}, "grants": [], "gates": []}
SCRIPT = {"request_id": "@ID@", "script": "true", "interpreter": "/bin/sh", "stdin_base64": "AA==", "egress": "none", "retry": "on_lost",
          "deps": {"npm_lock": {"lockfileVersion": 3, "packages": {"": {"dependencies": {"y": "^1.0.0"}}, "node_modules/y": {
              "version": "1.0.0", "integrity": "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=", "resolved": "https://registry.npmjs.org/y/-/y-1.0.0.tgz",
              "peerDependencies": {"z": "*"}, "peerDependenciesMeta": {"z": {"optional": True}}, "bin": {"y": "y.js"}, "os": ["linux"],
              "dev": False}}}}}
RESULT = {"v": 1, "exit_code": 0, "signal": None, "class": "", "detail": "", "end": "exited", "exec_errno": None, "refused": {
    "error_code": "LYCH-SANDBOX-002", "stage": "landlock", "detail": "d"}, "wall_ms": 12, "cpu_ms": 3, "memory_peak_bytes": 1,
    "disk_peak_bytes": 1, "processes_peak": 2, "stdout_bytes": 3, "stderr_bytes": 0, "stdout_truncated": False, "stderr_truncated": False,
    "tree_gone": True, "killed_strays": 0, "walls": {"grade": "full", "landlock_abi": 7, "layers": ["fds", "env"], "limits": [
        {"name": "memory", "value": 536870912, "mechanism": "supervised"}], "gaps": []}, "denials": [
        {"act": "read", "wall": "landlock", "call": "openat", "object": "/srv/data", "errno": "EACCES", "count": 3, "grant": "--ro /srv/data"}],
    "denials_dropped": 0, "artifacts": [{"path": "out.txt", "size": 3, "sha256": SHA, "class": "file"}],
    "refused_artifacts": [{"path": "p", "why": "symlink"}], "refused_artifacts_total": 1,
    "quarantined": [{"path": ".git/hooks/pre-commit", "why": "git hook"}], "quarantined_total": 1}


def asked(dialect, stream, request, **more):
    return Seed({"seq": "@SEQ@", "dialect": dialect, "stream": stream, **more, "request": request})


def fetch_of(method, url, body):
    return Seed({"seq": "@SEQ@", "method": method, "url": url, "headers": [["accept", "text/plain"], ["content-type", "text/plain"]], "body": body})


def seeds(web):
    """name -> (method, path, seeds, what stands before the route)"""
    hello = {"door": "vessel", "release": "0.0.1", "boot": BOOT, "slots": 4}
    claim = {"queue": "main", "n": 1, "ttl": 300, "boot": BOOT, "claim": "@UUID@"}
    lease = {"job": 1, "epoch": 1, "token": BOOT}
    return {
        "ask openai": ("POST", "/work/v1/ask", [asked("openai", False, OPENAI), asked("openai", True, OPENAI_STREAM),
                                                asked("openai", False, RESPONSES, api="responses"),
                                                asked("openai", True, RESPONSES_STREAM, api="responses"),
                                                asked("openai", False, EMBEDDINGS, api="embeddings")], "lease"),
        "ask anthropic": ("POST", "/work/v1/ask", [asked("anthropic", False, ANTHROPIC, version="2023-06-01", beta="pdfs-2024-09-25,effort-2025-11-24"),
                                                   asked("anthropic", True, ANTHROPIC_STREAM, version="2023-06-01"),
                                                   asked("anthropic", False, COUNT, api="count_tokens", version="2023-06-01")],
                          "lease"),
        "ask gemini": ("POST", "/work/v1/ask", [asked("gemini", False, GEMINI, api="generate", model="m"),
                                                asked("gemini", True, GEMINI_SHORT, api="generate", model="m"),
                                                asked("gemini", False, GEMINI_COUNT, api="count_tokens", model="m")], "lease"),
        "fetch change": ("POST", "/work/v1/fetch", [fetch_of("PUT", web + "/open/a", "aGk="), fetch_of("PATCH", web + "/open/a;b", "aGk="),
                                                    fetch_of("DELETE", web + "/open/a?b=c", ""), fetch_of("CONNECT", web + "/open/a", "")], "lease"),
        "fetch binary": ("POST", "/work/v1/fetch", [fetch_of("GET", web + "/bin/a?b=c", "")], "lease"),
        "fetch": ("POST", "/work/v1/fetch", [fetch_of("GET", web + "/open/a?b=c", ""), fetch_of("POST", web + "/open/a", "aGk="),
                                             fetch_of("HEAD", "https://far.example:443/a;b/%2e?c#d", "")], "lease"),
        "package": ("POST", "/work/v1/package", [Seed({"seq": "@SEQ@", "registry": "npm", "path": "x"}),
                                                 Seed({"seq": "@SEQ@", "registry": "pypi", "path": "simple/x/"})], "lease"),
        "hello": ("POST", "/work/v1/hello", [Seed(hello)], "tomb"),
        "claim": ("POST", "/work/v1/claim", [Seed({**claim, "n": 0}), Seed(claim)], "tomb"),
        "extend": ("POST", "/work/v1/extend", [Seed({"boot": BOOT, "ttl": 60, "leases": [lease, lease]})], "tomb"),
        "phase": ("POST", "/work/v1/phase", [Seed({"phase": "running"})], "victim"),
        "output end": ("POST", "/work/v1/output/end", [Seed({"stdout_bytes": 0, "stderr_bytes": 0, "stdout_truncated": False,
                                                             "stderr_truncated": False})], "victim"),
        "work upload": ("POST", "/work/v1/uploads", [Seed({})], "lease"),
        "work commit": ("POST", "/work/v1/uploads/@WUP@/commit", [Seed({"sha256": SHA, "size": 0})], "lease"),
        "result": ("POST", "/work/v1/ack", [Seed(RESULT)], "end"),
        "submit": ("POST", "/v1/jobs", [Seed(SPEC), Seed(SCRIPT)], "api"),
        "upload": ("POST", "/v1/uploads", [Seed({})], "api"),
        "commit": ("POST", "/v1/uploads/@UP@/commit", [Seed({"sha256": SHA, "size": 0})], "api"),
        "intent": ("POST", "/v1/intents", [Seed({"intent": "stop-"})], "api"),
        "ward test": ("POST", "/v1/ward/test", [Seed({"target": FAR, "method": "POST", "job": 1}), Seed({"target": "registry:npm"}),
                                                Seed({"target": "main"})], "api"),
    }


# How often each is made, of a thousand on each of the two sockets. "reply KIND" is a good request, answered by nonsense.
WORK_SHARE = {"ask openai": 230, "ask anthropic": 180, "ask gemini": 110, "git": 90, "fetch change": 40, "fetch binary": 20, "fetch": 110, "package": 45, "hello": 12, "claim": 14, "extend": 14, "phase": 20,
              "output end": 14, "work upload": 8, "work commit": 14, "result": 22, "raw": 30, "query": 20, "head": 25, "good": 8,
              "reply openai": 40, "reply openai-stream": 42, "reply anthropic": 30, "reply anthropic-stream": 36, "reply fetch": 30,
              "reply gemini": 24, "reply gemini-stream": 30, "reply git": 30, "reply binary": 20, "reply npm": 14, "reply pypi": 14, "lease": 8}
API_SHARE = {"submit": 300, "upload": 15, "commit": 60, "intent": 40, "ward test": 180, "scan": 90, "private": 15, "raw": 60, "query": 60,
             "head": 40, "look": 100, "good": 40}


class Op:
    """A request: its name, bytes, and what is done with the answer."""
    __slots__ = ("name", "text", "done", "limit", "is_bad", "may_drop", "is_stream", "began")

    def __init__(self, name, text, done=None, is_bad=True, may_drop=False, is_stream=False):
        self.name, self.text, self.done, self.limit = name, text, done, 10
        self.is_bad, self.may_drop, self.is_stream = is_bad, may_drop, is_stream


class Share:
    def __init__(self, share):
        self.names, self.sums, total = [], [], 0
        for name, n in share.items():
            total += n
            self.names.append(name)
            self.sums.append(total)

    def pick(self, rng):
        return rng.choices(self.names, cum_weights=self.sums)[0]


class Mill:
    def __init__(self, seed, me, mills, web, tombs, leases):
        """tombs: (bearer, name) of who asks, and of whose leases come and go; leases: of the asking jobs. The last
        of them has what could use up its numbers: beyond a large one, that was used a minute ago, none is taken."""
        self.rng = random.Random(f"{seed}/mill/{me}")
        self.me, self.mills, self.leases, self.spent = me, mills, leases[:-1], leases[-1]
        self.asking, self.other = (self.tomb_fields(*t) for t in tombs)
        self.kinds = seeds(web)
        self.web = web
        self.shares = {"work": Share(WORK_SHARE), "api": Share(API_SHARE)}
        self.swept = {name: [me] * len(k[2]) for name, k in self.kinds.items()}
        self.seq = self.ids = self.replies = 0
        self.victims, self.ended, self.jobs, self.uploads, self.work_uploads, self.kept = [], [1], [1], [], [], []
        self.queued = 0

    @staticmethod
    def tomb_fields(bearer, name):
        return f"Lychgate-Tomb: {name}\r\nAuthorization: Bearer {bearer}\r\nLychgate-Version: 1\r\n".encode()

    # ---- heads

    def fields(self, who, lease=None):
        if who == "api":
            return b""
        text = self.asking if who == "lease" else self.other
        if who == "tomb":
            return text
        job, epoch, token = lease or self.rng.choice(self.leases)
        return text + f"Lychgate-Job: {job}\r\nLychgate-Epoch: {epoch}\r\nLychgate-Token: {token}\r\n".encode()

    @staticmethod
    def request(method, path, fields, body):
        return b"%s %s HTTP/1.1\r\nHost: lychgate\r\n%sContent-Length: %d\r\n\r\n%s" % (method.encode(), path.encode(), fields, len(body), body)

    def lease_for(self, body):
        """Of a body with its number still in its place, or another."""
        at = body.find(b'"@SEQ@"')
        whole = at > 0 and body[at - 1:at] == b":" and body[at + 7:at + 8] in (b",", b"}") and body.count(b'"seq"') == 1
        return self.rng.choice(self.leases) if whole else self.spent

    def fill(self, text):
        """What has a new value in each request, where a mutation has left its place."""
        if b"@SEQ@" in text:
            self.seq += 1
            text = text.replace(b'"@SEQ@"', b"%d" % (self.seq * self.mills + self.me + 1))
        if b"@ID@" in text:
            self.ids += 1
            text = text.replace(b"@ID@", b"m%d.%d" % (self.me, self.ids))
        if b"@UUID@" in text:
            text = text.replace(b"@UUID@", b"%08x-0000-4000-8000-%012x" % (self.rng.getrandbits(32), self.rng.getrandbits(48)))
        return text

    def pick(self, some, otherwise):
        return self.rng.choice(some) if some else otherwise

    def path(self, path):
        path = path.replace("@WUP@", self.pick(self.work_uploads, "0" * 32)) if "@WUP@" in path else path
        return path.replace("@UP@", self.pick(self.uploads, "0" * 32)) if "@UP@" in path else path

    # ---- the next one

    def next(self, socket):
        name = self.shares[socket].pick(self.rng)
        if name in self.kinds:
            return self.mutated(name)
        if name.startswith("reply "):
            return self.answered_by_nonsense(name[6:])
        return getattr(self, socket + "_" + name)()

    def body_of(self, name):
        """Half of them one wrong value in one place, until each was in each."""
        _, _, some, _ = self.kinds[name]
        i = self.rng.randrange(len(some))
        at = self.swept[name]
        if self.rng.random() < 0.5 and at[i] < some[i].sweeps():
            # a stride that is prime to the number of places and values: neighbours are far apart
            n = at[i] * 7919 % some[i].sweeps()
            at[i] += self.mills
            return some[i].sweep(n)
        return some[i].random(self.rng)

    def mutated(self, name):
        method, path, _, who = self.kinds[name]
        body = self.body_of(name)
        lease, done = self.lease_for(body) if who == "lease" else None, None
        body = self.fill(body)
        if name == "submit":
            done = self.submitted
        elif name == "claim":
            done = self.claimed
        elif name == "work upload":
            done = self.began_work_upload
        elif name == "upload":
            done = self.began_upload
        elif name == "result":
            return self.end_of_job(body)
        if who == "victim":
            lease = self.pick(self.victims, (1, 1, BOOT))
        return Op(name, self.request(method, self.path(path), self.fields(who, lease), body), done)

    def answered_by_nonsense(self, kind):
        self.replies += 1
        code = code_of(self.replies * self.mills + self.me).decode()
        self.seq += 1
        n = self.seq * self.mills + self.me + 1
        if kind in ("npm", "pypi"):
            path = f"reply-{code}" if kind == "npm" else f"simple/reply-{code}/"
            body = {"seq": n, "registry": kind, "path": path}
            where = "/work/v1/package"
        elif kind == "git":
            method, path, fields, sent, _ = malformed_git.request(self.rng)
            return self.of_git(n, method, f"{self.web}/git/reply-{code}.git{path}", fields, sent)
        elif kind == "binary":
            body = {"seq": n, "method": "GET", "url": f"{self.web}/bin/reply-{code}", "headers": [], "body": ""}
            where = "/work/v1/fetch"
        elif kind.startswith("gemini"):
            body = {"seq": n, "dialect": "gemini", "api": "generate", "model": "m", "stream": kind.endswith("stream"), "request": {
                "contents": [{"role": "user", "parts": [{"text": f"reply {code}"}]}], "generationConfig": {"maxOutputTokens": 50}}}
            where = "/work/v1/ask"
        elif kind == "fetch":
            body = {"seq": n, "method": self.rng.choice(("GET", "GET", "POST", "HEAD")), "url": f"{self.web}/open/reply-{code}", "headers": [], "body": ""}
            where = "/work/v1/fetch"
        else:
            stream = kind.endswith("stream")
            body = {"seq": n, "dialect": kind.split("-")[0], "stream": stream, "request": {
                "model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": f"reply {code}"}], **({"stream": True} if stream else {})}}
            where = "/work/v1/ask"
        text = json.dumps(body, separators=(",", ":")).encode()
        return Op("reply " + kind, self.request("POST", where, self.fields("lease"), text))

    def of_git(self, seq, method, url, fields, sent):
        body = {"seq": seq, "method": method, "url": url, "headers": fields, "body": base64.b64encode(sent).decode()}
        return Op("fetch git", self.request("POST", "/work/v1/fetch", self.fields("lease"), json.dumps(body, separators=(",", ":")).encode()))

    def work_git(self):
        """A request of git's whose bytes are wrong; its server is honest."""
        self.seq += 1
        method, path, fields, sent, _ = malformed_git.request(self.rng)
        return self.of_git(self.seq * self.mills + self.me + 1, method, f"{self.web}/git/x.git{path}", fields, sent)

    # ---- jobs that come and go

    def end_of_job(self, body):
        how = self.rng.choice(("ack", "ack", "fail?class=crash&retry=false", "fail?class=timeout_kill&retry=true", "release?died=false",
                               "fail?class=gate_failed&retry=false"))
        stale = not self.victims or self.rng.random() < 0.4
        lease = self.rng.choice([(1, 1, BOOT), *self.leases]) if stale else self.victims.pop()
        if how.startswith("release"):
            body = b""
        if not stale:
            self.ended = (self.ended + [lease[0]])[-200:]
        # of an asking job: spoken by the tomb that it is not of
        return Op("result", self.request("POST", "/work/v1/" + how, self.fields("end", lease), body))

    def claimed(self, status, body):
        if status != 200:
            return
        for job in json.loads(body)["jobs"]:
            self.queued = max(0, self.queued - 1)
            self.victims.append((job["job"], job["epoch"], job["token"]))
        del self.victims[:-8]

    def submitted(self, status, body):
        if status in (200, 201):
            self.queued += 1
            self.jobs = (self.jobs + [json.loads(body)["id"]])[-100:]

    def began_upload(self, status, body):
        if status == 201:
            self.uploads = (self.uploads + [json.loads(body)["upload"]])[-8:]

    def began_work_upload(self, status, body):
        if status == 201:
            self.work_uploads = (self.work_uploads + [json.loads(body)["upload"]])[-4:]

    def work_good(self):
        """Good ones: what there is to be wrong with."""
        if len(self.victims) < 4 and self.queued:
            body = self.fill(json.dumps({"queue": "main", "n": 4, "ttl": 120, "boot": BOOT, "claim": "@UUID@"}).encode())
            return Op("good", self.request("POST", "/work/v1/claim", self.fields("tomb"), body), self.claimed, is_bad=False)
        name = self.rng.choice(("ask openai", "ask anthropic", "ask gemini", "fetch", "fetch binary", "package", "phase"))
        method, path, some, who = self.kinds[name]
        lease = self.pick(self.victims, (1, 1, BOOT)) if who == "victim" else None
        return Op("good", self.request(method, path, self.fields(who, lease), self.fill(self.rng.choice(some).text)), is_bad=False)

    def api_good(self):
        kind = self.rng.randrange(4)
        if kind == 0 and self.jobs[1:]:
            job = self.jobs.pop()
            path, method = self.rng.choice(((f"/v1/jobs/{job}/cancel", "POST"), (f"/v1/jobs/{job}/retry", "POST"), (f"/v1/jobs/{job}", "DELETE")))
            return Op("good", self.request(method, path, b"", b""), is_bad=False)
        if kind == 1:
            path = self.rng.choice(("/v1/status", "/metrics", "/v1/ward", "/v1/portals", "/v1/private", "/v1/jobs?limit=20", "/v1/budget?job=1"))
            return Op("good", self.request("GET", path, b"", b""), is_bad=False)
        body = self.fill(json.dumps({"request_id": "@ID@", "argv": ["true"], "egress": "none"}).encode())
        return Op("good", self.request("POST", "/v1/jobs", b"", body), self.submitted, is_bad=False)

    # ---- what is no JSON

    def noise(self):
        kind = self.rng.randrange(5)
        if kind == 0:
            return self.rng.randbytes(self.rng.choice((0, 1, 10, 1000)))
        if kind == 1:
            return self.rng.choice(NOISE) * self.rng.choice((1, 7, 5000))
        if kind == 2:
            return self.rng.choice(VALUES)
        if kind == 3 and self.rng.random() < 0.05:
            return self.rng.choice(LARGE)
        return damage(b"token sk-" + self.rng.randbytes(12).hex().encode() + b" and card 4111 1111 1111 1111, mail a@b.example", self.rng)

    def work_raw(self):
        """Bodies that are bytes: output, parts of uploads; and bytes where JSON belongs."""
        lease = self.pick(self.victims, (1, 1, BOOT))
        kind = self.rng.randrange(3)
        if kind == 0:
            at = self.rng.choice((0, 0, 1, 7, 1 << 40))
            return Op("raw", self.request("POST", f"/work/v1/output?stream={self.rng.choice(('stdout', 'stderr'))}&offset={at}",
                                          self.fields("victim", lease), self.noise()))
        if kind == 1:
            return Op("raw", self.request("PUT", self.path(f"/work/v1/uploads/@WUP@?offset={self.rng.choice((0, 0, 5, 1 << 50))}"),
                                          self.fields("lease"), self.noise()))
        method, path, _, who = self.rng.choice(list(self.kinds.values()))
        if who in ("api", "end"):
            who, path = "lease", "/work/v1/ask"
        return Op("raw", self.request(method, self.path(path), self.fields(who, lease if who == "victim" else self.spent), self.noise()))

    def api_raw(self):
        path = self.rng.choice(("/v1/jobs", "/v1/uploads", "/v1/intents", "/v1/ward/test", "/v1/ward/reload", "/v1/jobs/0/cancel", "/v1/uploads/" + "0" * 32 + "/commit"))
        if self.rng.random() < 0.4:
            return Op("raw", self.request("PUT", self.path(f"/v1/uploads/@UP@?offset={self.rng.choice((0, 0, 5, 1 << 50))}"), b"", self.noise()))
        return Op("raw", self.request("POST", path, b"", self.noise()))

    def api_scan(self):
        return Op("scan", self.request("POST", "/v1/gate/scan", b"", self.noise()))

    def api_private(self):
        """A few are kept, and stay: to remove one asks for a passphrase, which nobody has set."""
        if self.kept and (len(self.kept) >= 8 or self.rng.random() < 0.3):
            return Op("private", self.request("DELETE", f"/v1/private/{self.rng.choice(self.kept)}", b"", b""))
        kind, name = self.rng.choice(("term", "file", "x", "")), self.rng.choice(("n", "%00", "%ff", "n" * 300, "%0a", "", "%c3%bc"))
        if self.rng.random() < 0.5:
            return Op("private", self.request("DELETE", f"/v1/private/{self.rng.choice(('0', '-1', 'x', '9' * 30, '1', '2', '3', '%31'))}", b"", b""))
        body = self.noise()[:20] if self.rng.random() < 0.9 else b""
        return Op("private", self.request("POST", f"/v1/private?kind={kind}&name={name}", b"", body),
                  lambda status, body: self.kept.append(json.loads(body)["id"]) if status == 201 else None)

    # ---- paths, queries, heads

    WORDS = ("0", "1", "-1", "x", "", "9223372036854775807", "9223372036854775808", "1e9", "%31", "%00", "%ff", "%2f", "..", "a" * 500, "0x1", "+1", "true",
             "stdout", "openai", "%f0%9f%98%80", SHA, "0" * 32, "*")

    def word(self):
        return self.rng.choice(self.WORDS)

    def queried(self, path, who):
        some = ("stream", "offset", "limit", "after", "dialect", "class", "retry", "died", "state", "before", "job", "kind", "name", "x", "%00", "")
        n = self.rng.choice((0, 1, 1, 2, 3, 20))
        query = "&".join(f"{self.rng.choice(some)}={self.word()}" for _ in range(n))
        return path + ("?" + query if n else self.rng.choice(("", "?", "?x", "?&&", "?=")))

    def work_query(self):
        paths = (("GET", "/work/v1/models"), ("GET", "/work/v1/blobs/" + self.word()), ("PUT", "/work/v1/uploads/" + self.word()),
                 ("POST", f"/work/v1/uploads/{self.word()}/commit"), ("POST", "/work/v1/output"), ("POST", "/work/v1/fail"), ("POST", "/work/v1/release"),
                 ("GET", "/work/v1/ping"), ("POST", "/work/v1/ask"), ("POST", "/work/v1/" + self.word()), ("GET", "/" + self.word()),
                 ("PATCH", "/work/v1/ask"), ("GET", "/work/v1/models?dialect=openai"), ("GET", "/work/v1/models?dialect=anthropic"),
                 ("GET", "/work/v1/models?dialect=gemini"), ("GET", f"/work/v1/models?dialect=gemini&model={self.word()}"),
                 ("CONNECT", "/work/v1/fetch"), ("CONNECT", "far.example:443"))
        method, path = self.rng.choice(paths)
        body = b"" if method == "GET" else self.rng.choice((b"", b"{}", b"x"))
        # ends nothing: the lease is of no job
        fields = self.fields("lease" if "models" in path or "blobs" in path else "victim", None if "models" in path else (1, 1, BOOT))
        return Op("query", self.request(method, self.queried(path, "work") if "=" not in path else path, fields, body))

    def api_query(self):
        paths = (("GET", "/v1/jobs"), ("GET", f"/v1/jobs/{self.word()}"), ("GET", f"/v1/jobs/{self.word()}/output"), ("POST", f"/v1/jobs/{self.word()}/cancel"),
                 ("POST", f"/v1/jobs/{self.word()}/retry"), ("DELETE", f"/v1/jobs/{self.word()}x"), ("GET", f"/v1/jobs/1/artifacts/{self.word()}"),
                 ("GET", f"/v1/jobs/{self.word()}/order"),
                 ("PUT", f"/v1/uploads/{self.word()}"), ("POST", "/v1/private"), ("GET", "/v1/budget"), ("GET", "/v1/" + self.word()), ("GET", "/metrics"),
                 ("DELETE", "/v1/private/" + self.word()), ("GET", "/v1/status"))
        method, path = self.rng.choice(paths)
        # the number 1 is the first asking job
        path = path.replace("/jobs/1/cancel", "/jobs/0/cancel").replace("/jobs/%31/cancel", "/jobs/0/cancel")
        return Op("query", self.request(method, self.queried(path, "api"), b"", b"" if method == "GET" else b"{}"))

    def api_look(self):
        """At a job whose result was nonsense."""
        job = self.rng.choice(self.ended)
        if self.rng.random() < 0.2:
            query = self.rng.choice(("", "", "?stdout=1", "?stderr=-1", "?stdout=99999999999"))
            fields = self.rng.choice((b"", b"", b"Last-Event-ID: 1.2.3\r\n", b"Last-Event-ID: x\r\n", b"Last-Event-ID: 9.9\r\n"))
            return Op("events", self.request("GET", f"/v1/jobs/{job}/events{query}", fields, b""), is_stream=True)
        path = self.rng.choice((f"/v1/jobs/{job}", f"/v1/jobs/{job}/artifacts", f"/v1/jobs/{job}/artifacts/0", f"/v1/jobs/{job}/output?stream=stdout&offset=0",
                                "/v1/jobs?limit=50", f"/v1/budget?job={job}", f"/v1/jobs/{job}/retry"))
        return Op("look", self.request("POST" if path.endswith("retry") else "GET", path, b"", b""))

    def odd_lease(self):
        job, epoch, token = self.rng.choice(self.leases)
        i = self.rng.randrange(3)
        return ((self.word() or "x", epoch, token), (job, self.word() or "x", token), (job, epoch, self.word() or "x"))[i]

    def work_lease(self):
        lease = self.odd_lease()
        method, path, some, _ = self.kinds[self.rng.choice(("ask openai", "fetch", "package", "phase", "output end"))]
        return Op("lease", self.request(method, path, self.fields("lease", lease), self.fill(some[0].text)))

    def head(self, text):
        """A head that is wrong: its client may be hung up without more."""
        head, _, body = text.partition(b"\r\n\r\n")
        kind = self.rng.randrange(9)
        lines = head.split(b"\r\n")
        i = self.rng.randrange(len(lines))
        if kind == 0:
            bad = damage(lines[i], self.rng).replace(b"\n", b" ")
            # one byte makes /ask to /ack, and that is no malformed request: it ends the job
            lines[i] = bad if not any(word in bad for word in ENDS) else lines[i] + b"\xff"
        elif kind == 1:
            lines.insert(i + 1, lines[i])
        elif kind == 2:
            del lines[i]
        elif kind == 3:
            lines.append(self.rng.choice((b"Transfer-Encoding: chunked", b"Content-Length: 3", b"Expect: 100-continue", b"Upgrade: h2c", b"Connection: close",
                                          b"X: " + b"y" * 9000, b" folded", b"X : y", b"Host: other", b"Content-Length: -1", b"X: \x00")))
        elif kind == 4:
            lines += [b"X-%d: y" % n for n in range(80)]
        elif kind == 5:
            lines = [x.swapcase() for x in lines]
        elif kind == 6:
            lines[0] = self.rng.choice((b"GET / HTTP/1.0", b"GET  / HTTP/1.1", b"\xff", b"GET http://lychgate/ HTTP/1.1", b"GET / HTTP/1.1 x", b"OPTIONS * HTTP/1.1"))
        else:  # half of it
            return text[:self.rng.randrange(len(text) + 1)] if kind == 7 else head[:self.rng.randrange(len(head) + 1)]
        return b"\r\n".join(lines) + b"\r\n\r\n" + body

    def work_head(self):
        method, path, some, who = self.kinds[self.rng.choice(("ask openai", "fetch", "package", "hello"))]
        text = self.request(method, path, self.fields(who), self.fill(some[0].text))
        return Op("head", self.head(text), may_drop=True)

    def api_head(self):
        return Op("head", self.head(self.request("POST", "/v1/ward/test", b"", b'{"target":"main"}')), may_drop=True)
