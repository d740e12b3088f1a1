"""The way from one process of the portal to an API server, as calls: no sockets, no threads, and chance decides what
arrives. It takes the place of the library's connection.

A watch tells some of what is due and ends; the next one goes on. Nothing is told that did not happen, and a bookmark
comes only after everything it vouches for: what real servers keep to.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import urllib3

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
from tests.fakes.kubernetes_store import Object, ObjectKey, Refusal, Store

ODDS = 0.07
"""Of a request that it goes wrong."""
STATUSES = (429, 429, 500, 503, 504)
CUT, UNDONE, UNANSWERED = "cut", "undone", "unanswered"


class Wire:
    """Until `is_calm`, requests go wrong. `meanwhile` is called before each of them."""

    def __init__(self, store: Store, chance: random.Random, meanwhile: Callable[[], None] = lambda: None) -> None:
        self._store, self._chance, self._meanwhile = store, chance, meanwhile
        self.is_calm = False
        self.requests: list[tuple[str, str]] = []
        """(verb, what), as rights name them."""
        self.learnt: dict[ObjectKey, int] = {}
        """Of every object that an answer spoke of, its version, or that at which it went. Watches do not count."""

    # --- as the library's connection ---------------------------------------------------------------------------------

    @property
    def rest_client(self) -> Wire:
        return self

    @property
    def pool_manager(self) -> Wire:
        return self

    def param_serialize(self, method: str, path: str, *, header_params: Mapping[str, str], **_: Any) -> Any:
        return method, path, dict(header_params)

    def request(self, method: str, url: str, *, body: str | None, headers: Mapping[str, str], **_: Any) -> Answer:
        asked = asked_of(method, url, (body or "").encode(), headers.get("Content-Type", ""))
        self.requests.append((asked.verb, asked.what))
        self._meanwhile()
        trouble = None if self.is_calm or self._chance.random() >= ODDS else self._trouble()
        if trouble == UNDONE:
            raise urllib3.exceptions.ProtocolError("hung up")
        try:
            if isinstance(trouble, int):
                raise Refusal(trouble, f"told to answer {trouble}")
            if asked.verb == "watch":
                return Answer(200, self._stream(asked, is_cut=trouble == CUT))
            content = answer_to(asked, self._store)
        except Refusal as refusal:
            return Answer(refusal.status, _encoded(refused(refusal)))
        if trouble not in (UNANSWERED, CUT):
            self._learn(asked, content)
        if trouble == UNANSWERED:
            raise urllib3.exceptions.ProtocolError("hung up")
        whole = content.encode() if isinstance(content, str) else _encoded(content)
        return Answer(200, whole[: len(whole) // 2] if trouble == CUT else whole)

    def _learn(self, asked: Asked, content: Any) -> None:
        """What its reader knows from now on."""
        plural, namespace, _ = asked.place
        if asked.verb == "list":
            known = [place for place in self.learnt if place[0] == plural and namespace in ("", place[1])]
            listed = [(plural, one["metadata"]["namespace"], one["metadata"]["name"]) for one in content["items"]
                      if "namespace" in one["metadata"]]  # fmt: skip
            self._note([*known, *listed])
        elif asked.verb in ("get", "patch", "delete"):
            self._note([asked.place])

    def _note(self, places: list[ObjectKey]) -> None:
        for place in places:
            found = self._store.objects.get(place)
            version = int(found["metadata"]["resourceVersion"]) if found else self._store.gone.get(place, 0)
            self.learnt[place] = version

    # --- what goes wrong ---------------------------------------------------------------------------------------------

    def _trouble(self) -> int | str:
        return self._chance.choice([*STATUSES, CUT, UNDONE, UNANSWERED])

    def _stream(self, asked: Asked, is_cut: bool) -> bytes:
        check_watch(asked, self._store)
        due = news_for(asked, self._store, asked.since)
        told = due if self.is_calm else self._some_of(due)
        if told is due:
            told = [*due, bookmark(self._store.version)]
        elif self._chance.random() < ODDS:
            told = [*told, GONE]
        content = b"".join(_encoded(one) + b"\n" for one in told)
        return content[: len(content) // 2] if is_cut else content

    def _some_of(self, due: list[Object]) -> list[Object]:
        """All of it in order, or a part in order, or some of it twice and in any order."""
        kind = self._chance.random()
        if kind < 0.4:
            return due
        if kind < 0.7:
            return due[: self._chance.randint(0, len(due))]
        return self._chance.sample(due * 2, self._chance.randint(0, 2 * len(due)))


class Answer:
    """What `urllib3` gives back, as far as `Api` looks at it."""

    def __init__(self, status: int, content: bytes) -> None:
        self.status, self._content = status, content
        self.headers = {"Retry-After": "1"} if status == 429 else {}

    def read(self, amount: int | None = None) -> bytes:
        return self._content[:amount]

    def stream(self, amount: int) -> Iterator[bytes]:
        for start in range(0, len(self._content), amount):
            yield self._content[start : start + amount]

    def close(self) -> None:
        """Nothing is open."""


def _encoded(found: Any) -> bytes:
    return json.dumps(found).encode()
