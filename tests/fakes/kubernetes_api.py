"""An API server in a thread: the paths and verbs that the engine uses, over HTTP, on the objects of a `Store`.

`refuse` makes the next matching requests fail in a way that real servers fail: with a status, without an answer, with
an answer that breaks off, or done but unanswered. `requests` lists what was asked, for tests that count.
"""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fakes.kubernetes_answers import (
    GONE,
    Asked,
    answer_to,
    asked_of,
    bookmark,
    check_watch,
    news_for,
    refused,
)
from tests.fakes.kubernetes_rights import Rights
from tests.fakes.kubernetes_store import Object, ObjectKey, Refusal, Store

NO_ANSWER, HALF_AN_ANSWER, DONE_BUT_UNANSWERED = "no answer", "half an answer", "done but unanswered"
GONE_IN_THE_MIDDLE, DOUBLED_AND_REORDERED = "410 in the middle", "doubled and reordered"
"""Of watches: the stream itself says that the server cannot go on; every event comes twice, in any order."""
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
        self.rights: Rights | None = None
        """Whose lack is a 403. None: whoever asks may do everything."""
        self.held: set[str] = set()
        """Plurals whose watches stay open and say nothing, not even a bookmark."""
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

    def check_rights(self, asked: Asked) -> None:
        with self.store.lock:
            if self.rights is not None and (lacking := self.rights.lacking(asked, self.store)):
                raise Refusal(403, f"forbidden: {lacking}")

    def count(self, *verbs: str) -> int:
        return sum(verb in verbs for verb, _ in self.requests)

    def end_watches(self) -> None:
        """As a server does that is restarted: every open stream ends."""
        with self.store.happened:
            self.generation += 1
            self.store.happened.notify_all()

    def come_back_with(self, backup: dict[ObjectKey, Object]) -> None:
        """As after the restore of a backup: every stream has ended, and none sees both states."""
        with self.store.happened:
            self.store.restore(backup)
            self.end_watches()

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


class _Handler(BaseHTTPRequestHandler):
    api: KubernetesApi
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer()

    do_PATCH = do_POST = do_DELETE = do_GET

    def _answer(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = asked_of(self.command, self.path, content, self.headers.get("Content-Type", ""))
        generation = self.api.generation  # before it counts: whoever has counted it may end it
        fault = self.api.fault_for(asked.verb, asked.what)
        try:
            if isinstance(fault, int):
                raise Refusal(fault, f"told to answer {fault}")
            if fault == NO_ANSWER:
                return self._hang_up()
            self.api.check_rights(asked)
            if asked.verb == "watch":
                return self._watch(asked, fault, generation)
            answer = answer_to(asked, self.api.store)
        except Refusal as refusal:
            return self._send(refusal.status, refused(refusal))
        if fault == DONE_BUT_UNANSWERED:
            return self._hang_up()
        return self._send(200, answer, is_cut=fault == HALF_AN_ANSWER)

    def _watch(self, asked: Asked, fault: int | str | None, generation: int) -> None:
        store, since = self.api.store, asked.since
        check_watch(asked, store)
        self._head(200, chunked=True)
        until = time.monotonic() + float(asked.query["timeoutSeconds"])
        while time.monotonic() < until and not self.api.closing and generation == self.api.generation:
            with store.happened:
                if not any(version > since for version, *_ in store.events):
                    store.happened.wait(BOOKMARK_EVERY)
                if asked.place[0] in self.api.held:
                    store.happened.wait(BOOKMARK_EVERY)
                    continue
                if generation != self.api.generation:
                    break
                lines, since = news_for(asked, store, since), store.version
            if fault == DOUBLED_AND_REORDERED:
                lines = random.sample(lines * 2, len(lines) * 2)
            lines = [GONE] if fault == GONE_IN_THE_MIDDLE else lines or [bookmark(since)]
            content = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
            if fault == HALF_AN_ANSWER:
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
        if status == 429:
            self.send_header("Retry-After", "1")
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
