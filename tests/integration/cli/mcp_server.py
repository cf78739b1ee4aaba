# SPDX-License-Identifier: Apache-2.0
"""A server after the Model Context Protocol (2025-06-18), over stdio: one JSON-RPC object a line, nothing else on stdout.
It has one tool. Runs inside a job (stdin_run.py)."""
import json
import sys

TOOL = {"name": "add", "description": "The sum of two numbers.",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                        "required": ["a", "b"]}}


class Refused(Exception):
    pass


def initialize(params):
    return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": "adder", "version": "1.0"}}


def call(params):
    if params["name"] != "add":
        raise Refused(-32602, "Unknown tool: " + params["name"])
    total = params["arguments"]["a"] + params["arguments"]["b"]
    return {"content": [{"type": "text", "text": str(total)}], "isError": False}


METHODS = {"initialize": initialize, "ping": lambda params: {}, "tools/list": lambda params: {"tools": [TOOL]},
           "tools/call": call}

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:  # a notification
        continue
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    try:
        if request["method"] not in METHODS:
            raise Refused(-32601, "Method not found")
        answer["result"] = METHODS[request["method"]](request.get("params", {}))
    except Refused as e:
        answer["error"] = {"code": e.args[0], "message": e.args[1]}
    print(json.dumps(answer), flush=True)
print("server: end of input", file=sys.stderr)
