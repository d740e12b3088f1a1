"""Counts what a client asks of the API server, on its way to the connection. Nothing is changed or delayed."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubernetes import client

from yardmaster.engines.kubernetes.api import GROUPS

_COLLECTIONS = {plural for _, plural in GROUPS.values()}


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
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        last, *above = reversed(parts.path.split("/"))
        is_collection = last in _COLLECTIONS and not (above and above[0] in _COLLECTIONS - {"namespaces"})
        resource = last if is_collection else above[0]
        if method == "GET":
            verb = "watch" if "watch" in query else "list" if is_collection else "get"
        else:
            verb = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}[method]
            verb += "collection" if verb == "delete" and is_collection else ""
        return cls(verb, resource, "dryRun" in query)


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
