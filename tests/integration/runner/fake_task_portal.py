"""A portal's task API in one process, for the runner's tests: it keeps what it is told, and can fail in many ways.

It behaves as docs/protocols.md section 5 says. `trouble` decides, request by request, what goes wrong.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from tests.real.portal import free_port

TOKEN = "ymt.test"
Trouble = Callable[[str, str], "str | int | None"]
OWN_CODES = {401: "not_authenticated", 429: "rate_limited", 500: "error", 503: "unavailable"}


class FakeTaskPortal:
    """Start it with `with`. `trouble(method, path)` may give a status, "hang", "hang_up", "lose_answer" or None."""

    def __init__(self, host: str = "127.0.0.1", token: str = TOKEN) -> None:
        self.host, self.token = host, token
        self.lock = threading.Lock()
        self.logs: dict[str, bytearray] = defaultdict(bytearray)
        self.counts: dict[str, int] = defaultdict(int)
        self.times: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.gaps: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        self.ends: dict[str, int] = {}
        self.reports: list[dict] = []
        self.report_times: list[float] = []
        self.requests: list[tuple[str, str]] = []
        self.uploads: dict[str, dict] = {}
        self.files: dict[str, bytes] = {}
        self.once: dict[str, bytes] = {}
        """Objects that the first request takes away."""
        self.served: list[str] = []
        self.order: dict = {}
        self.pages: dict[str, dict] = {}
        """Further files of inputs, by the path that they stand behind."""
        self.event_files: list[dict] = []
        """What it says it has of event files."""
        self.stop = self.watched = self.followed = False
        self.stacks = 0
        """How often users have asked for stacks."""
        self.open_lines: list[tuple[str, int, str]] = []
        """What was shown of lines that were not finished: task, number, text."""
        self.part_size = 1 << 20
        self.body = b""
        self.trouble: Trouble = lambda method, path: None
        self.trouble_code = "conflict"
        """What a 4xx that `trouble` gives says in its body; of another status its own code."""
        self.in_between: Callable[[str, str], tuple[int, str, bytes] | None] = lambda method, path: None
        """What a proxy answers in the portal's stead: status, type and body; None: it lets the request through."""
        self.retry_after = ""
        """The header of such an answer, where it has one."""
        self._server: ThreadingHTTPServer | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self._port}"

    def __enter__(self) -> FakeTaskPortal:
        self.come_back()
        return self

    def __exit__(self, *_: object) -> None:
        self.go_away()

    def go_away(self) -> None:
        """Connections are refused from now on."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def come_back(self) -> None:
        """At the same address as before."""
        portal = self

        class Handler(_Handler):
            pass

        Handler.portal = portal
        self._server = _Server((self.host, self._port or free_port(self.host)), Handler)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def add_file(self, path: str, content: bytes, *, served: bytes | None = None) -> dict:
        """A file for an order. `served`: what is really sent, where that differs."""
        self.files[path] = content if served is None else served
        sha256 = hashlib.sha256(content).hexdigest()
        return {"path": path, "size": len(content), "sha256": sha256, "url": f"{self.url}/objects/{path}"}

    def orders(self, script: str, *, entry_point: str = "train.py", **changes: object) -> None:
        """An order to run `script` alone; `spec_…` changes the spec, anything else the order."""
        spec: dict = {
            "version": 1,
            "name": "test",
            "strategy": "single",
            "roles": {"worker": {"replicas": 1}},
            "code": "0",
            "entry_point": entry_point,
            "grace_period": 30,
            "paths": {"data_flag": "", "log_flag": "", "model_flag": ""},
        }
        spec.update({key[5:]: value for key, value in changes.items() if key.startswith("spec_")})
        self.order = {
            "job": "01890000-0000-7000-8000-000000000000",
            "attempt": 1,
            "spec": spec,
            "code": {"version": "c0de", "files": [self.add_file("train.py", script.encode())]},
            "inputs": [],
            "checkpoint": None,
            "limits": {"line_bytes": 65536, "spool_bytes": 64 << 20},
        }
        self.order.update({key: value for key, value in changes.items() if not key.startswith("spec_")})

    def lines(self, stream: str = "worker-0") -> list[bytes]:
        return bytes(self.logs[stream]).split(b"\n")[:-1]

    @property
    def states(self) -> list[str]:
        return [report["state"] for report in self.reports]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, *args: object) -> None:
        self.open_sockets: set[socket.socket] = set()
        super().__init__(*args)  # type: ignore[arg-type]

    def process_request(self, request, client_address) -> None:  # type: ignore[no-untyped-def]
        self.open_sockets.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request) -> None:  # type: ignore[no-untyped-def]
        self.open_sockets.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        for one in list(self.open_sockets):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def handle_error(self, request, client_address) -> None:  # type: ignore[no-untyped-def]
        return  # a client that hung up is part of the game


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    portal: FakeTaskPortal

    def do_GET(self) -> None:
        self._handle("GET")

    def do_POST(self) -> None:
        self._handle("POST")

    def do_PUT(self) -> None:
        self._handle("PUT")

    def log_message(self, format: str, *args: object) -> None:
        return

    def _handle(self, method: str) -> None:
        parts = urlsplit(self.path)
        self.query = dict(parse_qsl(parts.query))
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = parts.path.removeprefix("/api/v1/task/")
        self.portal.requests.append((method, path))
        self.portal.body = self.body
        if (foreign := self.portal.in_between(method, path)) is not None:
            status, kind, page = foreign
            self._answer(status, page, kind, is_ours=False)
            return
        trouble = self.portal.trouble(method, path)
        if trouble == "hang":
            time.sleep(3)
            trouble = "hang_up"
        if trouble == "hang_up":
            self.close_connection = True
            return
        if isinstance(trouble, int):
            self._answer(trouble, {"code": OWN_CODES.get(trouble, self.portal.trouble_code)})
            return
        status, answer = self._route(method, path)
        if trouble == "lose_answer":
            self.close_connection = True
            return
        self._answer(status, answer)

    def _answer(
        self, status: int, answer: dict | bytes, kind: str = "application/octet-stream", *, is_ours: bool = True
    ) -> None:
        if isinstance(answer, dict):
            kind = "application/json" if status < 400 else "application/problem+json"
            answer = answer if status < 400 else {"detail": "trouble", "code": "not_found", **answer, "status": status}
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if is_ours and status < 400 and self.path.startswith(("/objects/", "/parts/")):
            self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(len(content)))
        if status >= 400 and self.portal.retry_after and "problem" in kind:
            self.send_header("Retry-After", self.portal.retry_after)
        self.end_headers()
        self.wfile.write(content)

    def _route(self, method: str, path: str) -> tuple[int, dict | bytes]:
        portal = self.portal
        if path.startswith("/objects/"):
            name = path.removeprefix("/objects/")
            portal.served.append(name)
            content = portal.once.pop(name, None) or portal.files.get(name)
            return (200, content) if content is not None else (404, {})
        if path.startswith("/parts/"):
            _, _, upload, file, part = path.split("/")
            portal.uploads[upload]["content"][int(file)][int(part)] = self.body
            return 200, {}
        if self.headers.get("Authorization") != f"Bearer {portal.token}":
            return 401, {"detail": "not this token", "code": "not_authenticated"}
        with portal.lock:
            return self._task_call(method, path)

    def _task_call(self, method: str, path: str) -> tuple[int, dict | bytes]:
        portal = self.portal
        stream = f"{self.query.get('role')}-{self.query.get('index')}"
        if path == "order/":
            return 200, portal.order
        if path.startswith("versions/"):
            return 200, portal.pages[self.query["after"]]
        if path == "report/":
            portal.reports.append(json.loads(self.body))
            portal.report_times.append(time.monotonic())
            flags = {"stop": portal.stop, "watched": portal.watched, "followed": portal.followed}
            return 200, {**flags, "stacks": portal.stacks}
        if path == "log/" and method == "GET":
            return 200, {"next_line": portal.counts[stream]}
        if path == "log/":
            return self._write(stream)
        if path == "log/gap/":
            return self._gap(stream)
        if path == "log/open/":
            portal.open_lines.append((stream, int(self.query["line"]), json.loads(self.body)["text"]))
            return 200, {"line": int(self.query["line"])}
        if path == "log/end/":
            portal.ends[stream] = int(self.query["lines"])
            return 200, {"next_line": portal.ends[stream]}
        if path == "outputs/" and method == "GET":
            return 200, {"files": portal.event_files}
        if path in ("checkpoints/", "model/", "outputs/"):
            return self._begin(path[:-1])
        if match := re.fullmatch(r"uploads/(\w+)/parts/", path):
            wanted = [(one["file"], one["part"]) for one in json.loads(self.body)["parts"]]
            urls = [
                {"file": file, "part": part, "method": "PUT", "url": f"{portal.url}/parts/{match[1]}/{file}/{part}"}
                for file, part in wanted
            ]
            return 200, {"urls": urls}
        if match := re.fullmatch(r"uploads/(\w+)/complete/", path):
            portal.uploads[match[1]]["state"] = "complete"
            return 200, {"state": "complete"}
        return 404, {}

    def _write(self, stream: str) -> tuple[int, dict]:
        portal = self.portal
        body = gzip.decompress(self.body) if self.headers.get("Content-Encoding") == "gzip" else self.body
        first, lines, have = int(self.query["first_line"]), int(self.query["lines"]), portal.counts[stream]
        assert len(body) <= 1 << 20
        assert body.endswith(b"\n")
        assert body.count(b"\n") == lines
        if first > have:
            return 409, {"next_line": have, "code": "past_the_end"}
        for mark in self.headers["X-Times"].split(","):
            offset, ms = mark.split(":")
            assert 0 <= int(offset) < lines
            portal.times[stream].append((first + int(offset), int(ms)))
        if first + lines > have:
            fresh = body if first == have else body.split(b"\n", have - first)[-1]
            portal.logs[stream] += fresh
            portal.counts[stream] = first + lines
        return 200, {"next_line": portal.counts[stream]}

    def _gap(self, stream: str) -> tuple[int, dict]:
        portal, body = self.portal, json.loads(self.body)
        first, have = int(self.query["first_line"]), portal.counts[stream]
        if first > have:
            return 409, {"next_line": have, "code": "past_the_end"}
        end = first + body["lines"]
        if end > have:
            portal.gaps[stream].append((have, end - have, body["bytes"]))
            portal.counts[stream] = end
        return 200, {"next_line": portal.counts[stream]}

    def _begin(self, kind: str) -> tuple[int, dict]:
        portal, body = self.portal, json.loads(self.body)
        earlier = portal.uploads.get(body.get("continues", ""))
        key = body["continues"] if earlier else f"u{len(portal.uploads)}"
        content = earlier["content"] if earlier else defaultdict(dict)
        files = [
            {
                "index": i,
                "path": one["path"],
                "size": one["size"],
                "parts": -(-one["size"] // portal.part_size),
                "done": sorted(content[i]),
            }
            for i, one in enumerate(body["files"])
        ]
        portal.uploads[key] = {"kind": kind, "body": body, "state": "open", "content": content}
        return 200, {"upload": {"id": key, "state": "open", "part_size": portal.part_size, "files": files}}


def uploaded(portal: FakeTaskPortal, kind: str) -> list[dict[str, bytes]]:
    """What complete uploads of this kind hold, oldest first: path to content."""
    found = []
    for upload in portal.uploads.values():
        if upload["kind"] == kind and upload["state"] == "complete":
            found.append(
                {
                    one["path"]: b"".join(content for _, content in sorted(upload["content"][index].items()))
                    for index, one in enumerate(upload["body"]["files"])
                }
            )
    return found
