#!/usr/bin/env python3
"""A scripted model on loopback, for tests with real agent clients. Standard library only.

Speaks OpenAI Responses, OpenAI chat completions and Anthropic messages. Prints its port on stdout, writes every request body
to the log file named by its argument, and ends when its stdin is closed.

The answer depends on the request alone. The last user message with directives is the script, one directive per step; the
step is the number of tool results after it. Without directives: commit a file, then say so.

  MODEL:shell COMMAND            call the client's shell tool
  MODEL:call NAME {JSON}         call any tool
  MODEL:text WORDS               a final answer
  MODEL:http CODE [retry-after=S] [xN]   an HTTP error, N times (always without N)
  MODEL:hang SECONDS             open the stream and stall
"""
import itertools
import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = ("echo 'hello from the model' > hello.txt && git add hello.txt && "
          "git -c user.name=model -c user.email=model@example.invalid commit -q -m 'Add hello.txt'")
SHELLS = {"exec_command": "cmd", "shell_command": "command", "Bash": "command", "bash": "command"}
DIRECTIVE = re.compile(r"^\s*MODEL:(\w+)[ \t]*(.*?)\s*$", re.M)
IDS = itertools.count(1)
FAILED = {}
LOCK = threading.Lock()
LOG = open(sys.argv[1], "a", buffering=1)


def words(content):
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(p["text"] for p in parts if isinstance(p, dict) and isinstance(p.get("text"), str))


def history(kind, body):
    """The conversation as ("user", text) and ("result", "") entries, and the names of the offered tools."""
    entries, tools = [], []
    if kind == "responses":
        for item in body.get("input", []):
            if item.get("type", "message") == "message" and item.get("role") == "user":
                entries.append(("user", words(item.get("content"))))
            elif str(item.get("type", "")).endswith("_output"):
                entries.append(("result", ""))
        tools = [t.get("name") for t in body.get("tools") or []]
    elif kind == "chat":
        entries = [("result" if m["role"] == "tool" else "user", words(m.get("content")))
                   for m in body.get("messages", []) if m.get("role") in ("tool", "user")]
        tools = [t.get("function", {}).get("name") for t in body.get("tools") or []]
    else:
        for message in (m for m in body.get("messages", []) if m.get("role") == "user"):
            content = message.get("content")
            for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
                entries.append(("result", "") if part.get("type") == "tool_result" else ("user", part.get("text") or ""))
        tools = [t.get("name") for t in body.get("tools") or []]
    return entries, tools


def decide(kind, body):
    entries, tools = history(kind, body)
    shell = next((name for name in SHELLS if name in tools), None)
    if shell is None:
        return ("text", "A title")
    scripts = [i for i, (who, text) in enumerate(entries) if who == "user" and DIRECTIVE.search(text)]
    at = scripts[-1] if scripts else max((i for i, e in enumerate(entries) if e[0] == "user"), default=-1)
    script = DIRECTIVE.findall(entries[at][1]) if scripts else [("shell", COMMIT), ("text", "Committed hello.txt.")]
    step = sum(1 for who, _ in entries[at + 1:] if who == "result")
    while step < len(script) and script[step][0] == "http":
        code, after, times = re.match(r"(\d+)(?:\s+retry-after=(\S+))?(?:\s+x(\d+))?", script[step][1]).groups()
        with LOCK:
            FAILED[entries[at][1]] = failures = FAILED.get(entries[at][1], 0) + 1
        if times and failures > int(times):
            step += 1
            continue
        return ("http", int(code), after)
    verb, rest = script[step] if step < len(script) else ("text", "Done.")
    if verb == "shell":
        return ("tool", shell, {SHELLS[shell]: rest, **({} if shell == "exec_command" else {"description": "run it"})}, step)
    if verb == "call":
        name, _, arguments = rest.partition(" ")
        return ("tool", name, json.loads(arguments or "{}"), step)
    return (verb, rest, step)


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, code, value, headers=()):
        data = json.dumps(value).encode()
        self.send_response(code)
        for name, text in [("content-type", "application/json"), ("content-length", str(len(data))), *headers]:
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def do_HEAD(self):
        self.reply(200, {})

    def do_GET(self):
        self.reply(200, {"object": "list", "data": [{"id": "mock-model", "object": "model"}]})

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.split("?")[0]
        kind = {"responses": "responses", "completions": "chat", "messages": "anthropic"}.get(path.rsplit("/", 1)[-1])
        body = json.loads(raw or b"{}")
        with LOCK:
            LOG.write(json.dumps({"path": path, "body": body}) + "\n")
        if kind is None:
            return self.reply(200, {"input_tokens": 1})
        act = decide(kind, body)
        if act[0] == "http":
            name = {401: "authentication_error", 429: "rate_limit_error", 404: "not_found_error"}.get(act[1], "api_error")
            message = "model: mock-model does not exist" if act[1] == 404 else f"scripted {name} {act[1]}"
            error = {"type": name, "message": message, "code": name}
            return self.reply(act[1], {"type": "error", "error": error}, [("retry-after", act[2])] if act[2] else [])
        try:
            self.stream(kind, body, act) if body.get("stream") else self.whole(kind, body, act)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def whole(self, kind, body, act):
        """Only asked for side questions such as titles."""
        if kind == "chat":
            choice = {"index": 0, "message": {"role": "assistant", "content": act[1]}, "finish_reason": "stop"}
            return self.reply(200, {"id": "c", "object": "chat.completion", "choices": [choice]})
        content = [{"type": "text", "text": act[1]}]
        self.reply(200, {"id": "m", "type": "message", "role": "assistant", "model": body.get("model"), "content": content,
                         "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}})

    def event(self, value, name=None):
        text = value if isinstance(value, str) else json.dumps(value)
        self.wfile.write(((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode())
        self.wfile.flush()

    def stream(self, kind, body, act):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        getattr(self, "say_" + kind)(body, act, next(IDS), act[-1] if isinstance(act[-1], int) else 0)

    def stall(self, act):
        if act[0] != "hang":
            return act
        time.sleep(float(act[1]))
        return ("text", "Finished after stalling.")

    def say_responses(self, body, act, n, step):
        base = {"id": f"resp_{n}", "object": "response", "created_at": 0, "model": body.get("model"), "output": []}
        self.event({"type": "response.created", "response": base}, "response.created")
        act = self.stall(act)
        if act[0] == "tool":
            item = {"type": "function_call", "id": f"fc_{n}", "call_id": f"call_{n}", "name": act[1],
                    "arguments": json.dumps(act[2]), "status": "completed"}
            self.event({"type": "response.output_item.added", "output_index": 0, "item": item}, "response.output_item.added")
        else:
            part = {"type": "output_text", "text": act[1], "annotations": []}
            item = {"type": "message", "id": f"msg_{n}", "role": "assistant", "status": "completed", "content": [part]}
            self.event({"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
                       "response.output_item.added")
            self.event({"type": "response.output_text.delta", "item_id": item["id"], "output_index": 0, "content_index": 0,
                        "delta": act[1]}, "response.output_text.delta")
        self.event({"type": "response.output_item.done", "output_index": 0, "item": item}, "response.output_item.done")
        usage = {"input_tokens": 1000 + 100 * step, "input_tokens_details": {"cached_tokens": 400}, "output_tokens": 20 + step,
                 "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 1020 + 101 * step}
        self.event({"type": "response.completed", "response": {**base, "status": "completed", "output": [item], "usage": usage}},
                   "response.completed")

    def say_chat(self, body, act, n, step):
        def chunk(delta, finish=None, **more):
            choices = [{"index": 0, "delta": delta, "finish_reason": finish}] if delta is not None else []
            self.event({"id": f"chat_{n}", "object": "chat.completion.chunk", "created": 0, "model": body.get("model"),
                        "choices": choices, **more})
        chunk({"role": "assistant", "content": ""})
        act = self.stall(act)
        if act[0] == "tool":
            call = {"name": act[1], "arguments": json.dumps(act[2])}
            chunk({"tool_calls": [{"index": 0, "id": f"call_{n}", "type": "function", "function": call}]})
            chunk({}, "tool_calls")
        else:
            chunk({"content": act[1]})
            chunk({}, "stop")
        chunk(None, usage={"prompt_tokens": 1000 + 100 * step, "completion_tokens": 20 + step, "total_tokens": 1020 + 101 * step,
                           "prompt_tokens_details": {"cached_tokens": 400}})
        self.event("[DONE]")

    def say_anthropic(self, body, act, n, step):
        usage = {"input_tokens": 1000 + 100 * step, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 400,
                 "output_tokens": 1}
        message = {"id": f"msg_{n}", "type": "message", "role": "assistant", "model": body.get("model"), "content": [],
                   "stop_reason": None, "stop_sequence": None, "usage": usage}
        self.event({"type": "message_start", "message": message}, "message_start")
        act = self.stall(act)
        if act[0] == "tool":
            block = {"type": "tool_use", "id": f"toolu_{n}", "name": act[1], "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(act[2])}
        else:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": act[1]}
        self.event({"type": "content_block_start", "index": 0, "content_block": block}, "content_block_start")
        self.event({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")
        self.event({"type": "content_block_stop", "index": 0}, "content_block_stop")
        stop = {"stop_reason": "tool_use" if act[0] == "tool" else "end_turn", "stop_sequence": None}
        self.event({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 20 + step}}, "message_delta")
        self.event({"type": "message_stop"}, "message_stop")


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
