"""Counts what a client asks of the API server, on its way to the connection. Nothing is changed or delayed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubernetes import client


@dataclass(frozen=True)
class Request:
    """One request, as the API server's own metrics would name it."""

    verb: str
    """`watch`, `list`, `get`, `create`, `patch`, `delete`, `deletecollection`."""
    resource: str
    is_dry_run: bool = False

    @property
    def is_write(self) -> bool:
        """A dry run as well: it costs the server all but the disk."""
        return self.verb not in ("watch", "list", "get")

    @classmethod
    def of(cls, method: str, url: str) -> Request:
        address = urlsplit(url)
        query = parse_qs(address.query)
        resource, is_collection = _target(address.path.strip("/").split("/"))
        if method == "GET":
            verb = "watch" if "watch" in query else "list" if is_collection else "get"
        else:
            verb = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}[method]
            verb += "collection" if verb == "delete" and is_collection else ""
        return cls(verb, resource, "dryRun" in query)


def _target(words: Sequence[str]) -> tuple[str, bool]:
    """The resource that a path names, and whether it is all of that kind: `api/v1/namespaces/n/pods`."""
    found = words[2:] if words[0] == "api" else words[3:]
    if found[0] == "namespaces" and len(found) > 2:
        found = found[2:]
    return found[0], len(found) == 1


class Counter:
    """Takes the place of a connection's pool. May be shared by threads."""

    def __init__(self, connection: client.ApiClient) -> None:
        self._lock = threading.Lock()
        self._seen: list[Request] = []
        self._pool = connection.rest_client.pool_manager
        connection.rest_client.pool_manager = self

    def request(self, method: str, url: str, **options: Any) -> Any:
        with self._lock:
            self._seen.append(Request.of(method, url))
        return self._pool.request(method, url, **options)

    def taken(self) -> list[Request]:
        """What was asked since the last call."""
        with self._lock:
            seen, self._seen = self._seen, []
        return seen
