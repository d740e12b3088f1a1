"""An API server in a thread: the paths and verbs that the engine uses, over HTTP, on the objects of a `Store`.

`refuse` makes the next matching requests fail in a way that real servers fail: with a status, without an answer, with
an answer that breaks off, or done but unanswered. `requests` lists what was asked, for tests that count.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.fakes.kubernetes_store import UNSPACED, Place, Refusal, Store, fits

NO_ANSWER, HALF_AN_ANSWER, DONE_BUT_UNANSWERED = "no answer", "half an answer", "done but unanswered"
BOOKMARK_EVERY = 0.2


@dataclass
class Fault:
    """What happens to the next `times` requests of this verb and kind ("" for any)."""

    verb: str
    plural: str
    what: int | str
    times: int = 1


class KubernetesApi:
    """Serves until `close`."""

    def __init__(self) -> None:
        self.store = Store()
        self.requests: list[tuple[str, str]] = []
        """(verb, plural) of every request; verbs as RBAC has them, `dry-run` for patches that change nothing."""
        self.faults: list[Fault] = []
        self.closing = False
        self.generation = 0
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"api": self}))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def refuse(self, verb: str, plural: str, what: int | str, times: int = 1) -> None:
        self.faults.append(Fault(verb, plural, what, times))

    def fault_for(self, verb: str, plural: str) -> int | str | None:
        with self.store.lock:
            self.requests.append((verb, plural))
            for fault in self.faults:
                if fault.times > 0 and fault.verb in ("", verb) and fault.plural in ("", plural):
                    fault.times -= 1
                    return fault.what
        return None

    def count(self, *verbs: str) -> int:
        return sum(verb in verbs for verb, _ in self.requests)

    def end_watches(self) -> None:
        """As a server does that is restarted: every open stream ends."""
        with self.store.happened:
            self.generation += 1
            self.store.happened.notify_all()

    def close(self) -> None:
        self.closing = True
        with self.store.happened:
            self.store.happened.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # many come at once; who finds the queue full waits a second before he tries again


@dataclass(frozen=True)
class _Asked:
    verb: str
    place: Place
    part: str
    query: dict[str, str]
    body: dict[str, Any]


class _Handler(BaseHTTPRequestHandler):
    api: KubernetesApi
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer()

    do_PATCH = do_DELETE = do_GET

    def _answer(self) -> None:
        asked = self._asked()
        fault = self.api.fault_for(asked.verb, "/".join(filter(None, (asked.place[0], asked.part))))
        try:
            if isinstance(fault, int):
                raise Refusal(fault, f"told to answer {fault}")
            if fault == NO_ANSWER:
                return self._hang_up()
            if asked.verb == "watch":
                return self._watch(asked, is_cut=fault == HALF_AN_ANSWER)
            answer = self._do(asked)
        except Refusal as refusal:
            details = {"causes": refusal.causes} if refusal.causes else {}
            return self._send(refusal.status, {"kind": "Status", "message": refusal.message, "code": refusal.status,
                                               "details": details})  # fmt: skip
        if fault == DONE_BUT_UNANSWERED:
            return self._hang_up()
        return self._send(200, answer, is_cut=fault == HALF_AN_ANSWER)

    def _asked(self) -> _Asked:
        url = urlsplit(self.path)
        steps = url.path.strip("/").split("/")
        steps = steps[2:] if steps[0] == "api" else steps[3:]
        namespace = ""
        if steps[0] == "namespaces" and len(steps) > 2:
            namespace, steps = steps[1], steps[2:]
        plural, name, part = (*steps, "", "")[:3]
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        verb = {"PATCH": "patch", "DELETE": "delete" if name else "deletecollection"}.get(self.command)
        verb = verb or ("get" if name else "watch" if query.get("watch") else "list")
        verb = "dry-run" if query.get("dryRun") else verb
        return _Asked(verb, (plural, namespace, name), part, query, json.loads(content) if content else {})

    def _do(self, asked: _Asked) -> Any:
        store, (plural, namespace, name) = self.api.store, asked.place
        labels, fields = asked.query.get("labelSelector", ""), asked.query.get("fieldSelector", "")
        if asked.part == "log":
            store.get(asked.place)
            return store.logs.get((namespace, name), "")
        if asked.verb == "get":
            return store.get(asked.place)
        if asked.verb == "list":
            with store.lock:
                found = store.find(plural, namespace, labels, fields)
                return {"kind": "List", "metadata": {"resourceVersion": str(store.version)}, "items": found}
        if asked.verb == "delete":
            store.delete(asked.place, asked.body.get("gracePeriodSeconds"))
            return {"kind": "Status", "status": "Success"}
        if asked.verb == "deletecollection":
            for one in store.find(plural, namespace, labels):
                with contextlib.suppress(Refusal):  # gone meanwhile
                    store.delete((plural, namespace, one["metadata"]["name"]), asked.body.get("gracePeriodSeconds"))
            return {"kind": "Status", "status": "Success"}
        if self.headers["Content-Type"] == "application/apply-patch+yaml":
            manager, is_dry = asked.query["fieldManager"], "dryRun" in asked.query
            return store.apply(asked.place, asked.body, manager, is_dry)
        return store.merge(asked.place, asked.body)

    def _watch(self, asked: _Asked, is_cut: bool) -> None:
        store, since = self.api.store, int(asked.query["resourceVersion"])
        if since < store.oldest:
            raise Refusal(410, "too old resource version")
        self._head(200, chunked=True)
        until, generation = time.monotonic() + float(asked.query["timeoutSeconds"]), self.api.generation
        while time.monotonic() < until and not self.api.closing and generation == self.api.generation:
            with store.happened:
                if not any(version > since for version, *_ in store.events):
                    store.happened.wait(BOOKMARK_EVERY)
                news = [event for event in store.events if event[0] > since]
                since = store.version
            lines = [{"type": kind, "object": found} for _, kind, plural, found in news
                     if plural == asked.place[0] and fits(found, asked.query.get("labelSelector", ""))]  # fmt: skip
            lines = lines or [{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(since)}}}]
            content = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
            if is_cut:
                self._chunk(content[: len(content) // 2])
                return self._hang_up()
            if not self._chunk(content):
                return None
        self._chunk(b"")
        return None

    def _send(self, status: int, answer: Any, is_cut: bool = False) -> None:
        content = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        self._head(status, length=len(content))
        self.wfile.write(content[: len(content) // 2] if is_cut else content)
        if is_cut:
            self._hang_up()

    def _head(self, status: int, length: int = 0, chunked: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked") if chunked else self.send_header("Content-Length", str(length))
        self.end_headers()

    def _chunk(self, content: bytes) -> bool:
        """Whether somebody still listens."""
        try:
            self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
        except OSError:
            return False
        return True

    def _hang_up(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.wfile.flush()

    def log_message(self, *_: Any) -> None:
        """Tests count `requests` instead."""


__all__ = ["DONE_BUT_UNANSWERED", "HALF_AN_ANSWER", "NO_ANSWER", "UNSPACED", "KubernetesApi"]
