# SPDX-License-Identifier: Apache-2.0
"""llama_direct.py URL KEY: what a server of models answers to who asks it directly, twice the same, as JSON; and that it
answers nobody without the key."""
import json, sys, urllib.error, urllib.request

url, key = sys.argv[1:]
body = json.dumps({"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 48,
                   "temperature": 0, "seed": 1}).encode()


def ask(bearer):
    r = urllib.request.Request(url + "/v1/chat/completions", body, {"Authorization": "Bearer " + bearer,
                                                                   "Content-Type": "application/json"})
    reply = json.load(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(r, timeout=60))
    usage = reply["usage"]
    return {"text": reply["choices"][0]["message"]["content"],
            "tokens": [usage["prompt_tokens"], usage["completion_tokens"]]}


try:
    ask("none")
    sys.exit("it answers without the key")
except urllib.error.HTTPError as e:
    assert e.code == 401, e
first = ask(key)
assert first == ask(key) and len(first["text"]) == 48 and first["tokens"][1] == 48, first
print(json.dumps(first))
