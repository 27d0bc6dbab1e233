"""A real local HTTP server that speaks the chat completions protocol and misbehaves on demand.

    with FakeServer() as server:
        server.script("rate_limited", "off_menu")    # the next two calls; afterwards `default`
        server.default = "good"

Run as a program it prints its address and serves until it is ended:

    python -m tests.calibration.judges.fake_server [behaviour]
"""

import json
import re
import socket
import sys
import threading
import time
from collections import Counter, deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODEL = "fake-judge-2026-01-01"


def completion(content, *, finish_reason="stop", refusal=None, model=MODEL):
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [
            {
                "index": 0,
                "finish_reason": finish_reason,
                "message": {"role": "assistant", "content": content, "refusal": refusal},
            }
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


def verdict(label, reason="because"):
    return json.dumps({"reason": reason, "label": label})


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet: a second small one waits for the first one's ACK

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        owner, came = self.server.owner, time.monotonic()
        behaviour = owner.next_behaviour(body, dict(self.headers))
        try:
            getattr(self, f"be_{behaviour}")(body)
        finally:
            owner.spans.append((came, time.monotonic()))

    def log_message(self, *_args):
        pass

    def answer(self, body, status=200, **headers):
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(payload)))
        headers = {"Content_Type": "application/json", **headers}
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(payload)

    def error(self, status, message, **headers):
        self.answer({"error": {"message": message, "type": "error"}}, status, **headers)

    def first_label(self, body):
        """The first label of the menu that was sent, so that one server serves both dimensions."""
        return re.search(r"<one of: (\w+)", body["messages"][0]["content"]).group(1)

    def be_good(self, body):
        self.answer(completion(self.claims(body) or verdict(self.first_label(body))))

    def claims(self, body):
        """Every sentence of the response as a claim, where claims are asked for; a refusal makes none."""
        if '"claims"' not in body["messages"][0]["content"]:
            return ""
        [text] = re.findall(
            r'kind="response">\n(.*?)\n</untrusted', body["messages"][1]["content"], re.DOTALL
        )
        said = [] if text.startswith("I cannot") else re.findall(r"[^.]+\.", text)
        return json.dumps({"claims": [{"quote": one.strip(), "text": one.strip()} for one in said]})

    def be_unsupporting(self, _body):
        self.answer(completion(verdict("unsupported")))

    def be_slow(self, body):
        time.sleep(self.server.owner.delay)
        self.be_good(body)

    def be_rate_limited(self, _body):
        self.error(429, "Rate limit reached", Retry_After=str(self.server.owner.retry_after))

    def be_server_error(self, _body):
        self.error(500, "Internal error")

    def be_overloaded(self, _body):
        self.error(529, "Overloaded")

    def be_unauthorized(self, _body):
        self.error(401, "Incorrect API key provided")

    def be_forbidden(self, _body):
        self.error(403, "Your project has no access to this model")

    def be_no_such_model(self, _body):
        self.error(404, "The model does not exist")

    def be_out_of_credit(self, _body):
        self.answer({"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}, 429)

    def be_thinking(self, body):
        answer = completion(f"<think>Is it supported? Hm.</think>\n{verdict(self.first_label(body))}")
        answer["usage"]["completion_tokens_details"] = {"reasoning_tokens": 7}
        self.answer(answer)

    def be_rejecting_formats(self, body):
        if "response_format" in body:
            self.error(400, "response_format is not supported")
        else:
            self.be_good(body)

    def be_hanging(self, _body):
        self.server.owner.released.wait(30)
        self.close_connection = True

    def be_closing(self, _body):
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def be_marked(self, body):
        """With a byte order mark, and a character set that it is not in."""
        text = json.dumps({"reason": "Fähre", "label": self.first_label(body)}, ensure_ascii=False)
        reply = json.dumps(completion(text), ensure_ascii=False)
        self.answer(reply.encode("utf-8-sig"), Content_Type="application/json; charset=iso-8859-1")

    def be_html(self, _body):
        self.answer(b"<html>maintenance</html>")

    def be_no_choices(self, _body):
        self.answer({**completion(""), "choices": []})

    def be_truncated(self, _body):
        self.answer(completion('{"reason": "The passage says that', finish_reason="length"))

    def be_truncated_to_nothing(self, _body):
        self.answer(completion("", finish_reason="length"))

    def be_refusing(self, _body):
        self.answer(completion(None, refusal="I can't help with that."))

    def be_filtered(self, _body):
        self.answer(completion("", finish_reason="content_filter"))

    def be_empty(self, _body):
        self.answer(completion("  \n"))

    def be_off_menu(self, _body):
        self.answer(completion(verdict("mostly supported")))

    def be_prose(self, _body):
        self.answer(completion("The claim is supported."))

    def be_not_an_object(self, _body):
        self.answer(completion('["supported"]'))

    def be_two_objects(self, _body):
        self.answer(completion(verdict("supported") + verdict("unsupported")))

    def be_duplicate_key(self, _body):
        self.answer(completion('{"label": "supported", "label": "unsupported"}'))

    def be_number(self, _body):
        self.answer(completion('{"label": 1}'))

    def be_echoing(self, _body):
        """As a proxy does that shows the request it refused."""
        self.error(403, f"Denied: {dict(self.headers)}")

    def be_echoing_at_the_cut(self, _body):
        self.error(403, "x" * 955 + str(self.headers["Authorization"]))

    def be_echoing_in_the_answer(self, body):
        header = self.headers["Authorization"]
        self.answer(completion(verdict(self.first_label(body), header), model=f"model of {header}"))

    def be_no_message(self, body):
        self.answer({**completion(""), "choices": [{"index": 0, "finish_reason": "stop"}]})

    def be_null_choice(self, _body):
        self.answer({**completion(""), "choices": [None]})

    def be_parts(self, body):
        self.answer(completion([{"type": "text", "text": verdict(self.first_label(body))}]))

    def be_refusing_in_an_object(self, _body):
        self.answer(completion(None, refusal={"reason": "policy"}))

    def be_counting_wrong(self, body):
        usage = {"prompt_tokens": -1, "completion_tokens": 10**12, "total_tokens": "many"}
        self.answer({**completion(verdict(self.first_label(body))), "usage": usage})

    def be_caching(self, body):
        self.answer(self.with_cached(80, body))

    def be_caching_more_than_it_read(self, body):
        self.answer(self.with_cached(101, body))

    def be_caching_less_than_nothing(self, body):
        self.answer(self.with_cached(-80, body))

    def be_caching_words(self, body):
        self.answer(self.with_cached("80", body))

    def be_caching_what_it_does_not_count(self, body):
        answer = self.with_cached(80, body)
        del answer["usage"]["prompt_tokens"]
        self.answer(answer)

    def be_caching_in_a_list(self, body):
        answer = completion(verdict(self.first_label(body)))
        answer["usage"]["prompt_tokens_details"] = [80]
        self.answer(answer)

    def with_cached(self, tokens, body):
        answer = completion(verdict(self.first_label(body)))
        answer["usage"]["prompt_tokens_details"] = {"cached_tokens": tokens}
        return answer

    def be_usage_in_a_list(self, body):
        self.answer({**completion(verdict(self.first_label(body)), model=7), "usage": [100, 10]})

    def be_null_bytes(self, _body):
        self.answer(completion("\x00 \ud83d"))

    def be_other_model(self, body):
        self.answer(completion(verdict(self.first_label(body)), model="fake-judge-2026-09-09"))

    def be_rejecting_schema(self, body):
        if body["response_format"]["type"] == "json_schema":
            self.error(400, "response_format of type json_schema is not supported by this model")
        else:
            self.be_good(body)

    def be_rejecting_temperature(self, body):
        if "temperature" in body:
            self.error(400, "Unsupported value: 'temperature' does not support 0 with this model.")
        else:
            self.be_good(body)

    def be_rejecting_max_tokens(self, body):
        if "max_tokens" in body:
            self.error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        else:
            self.be_good(body)

    def be_rejecting(self, _body):
        self.error(400, "This model's maximum context length is 8 tokens")

    def be_picky(self, body):
        """Judges by the claim's text, for tests that need different answers to different targets."""
        claim = body["messages"][1]["content"]
        self.answer(completion(verdict("unsupported" if "Invented" in claim else "supported")))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


class FakeServer:
    def __init__(self, default="good", port=0):
        self.default = default
        self.delay = 0.05
        self.retry_after = 1
        self.released = threading.Event()
        self.requests = []
        self.headers = []
        self.spans = []  # when each call came and when it was answered
        self._script = deque()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), Handler)
        self._server.owner = self

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def script(self, *behaviours):
        self._script.extend(behaviours)

    def next_behaviour(self, body, headers):
        with self._lock:
            self.requests.append(body)
            self.headers.append({name.lower(): value for name, value in headers.items()})
            return self._script.popleft() if self._script else self.default

    @property
    def calls(self):
        return len(self.requests)

    def calls_by_claim(self):
        """How often each target was asked about, told by the user message."""
        with self._lock:
            return Counter(request["messages"][1]["content"] for request in self.requests)

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=[0.02], daemon=True).start()
        return self

    def __exit__(self, *_exception):
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


def main():
    with FakeServer(*sys.argv[1:2]) as server:
        print(server.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
