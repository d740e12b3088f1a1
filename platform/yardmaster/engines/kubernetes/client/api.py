"""A thin client of the Kubernetes API: paths, selectors and JSON, over the `kubernetes` package's connection and
credentials. No typed models: building them costs more than a whole observation.

Every method returns within seconds or raises a typed error (`errors`). Not here: what is done with it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import urllib3
from kubernetes import client

from yardmaster.engines.kubernetes.client.errors import Absent, Conflict, no_answer, trouble_of
from yardmaster.errors import YardmasterError

MANAGER = "yardmaster"
_TIMEOUT = (3.0, 8.0)
_MOST_OUTPUT = 2 << 20
_CHUNK = 1 << 16
_PAGE = 500
"""Objects. A list of 10,000 pods is 80 MB as text, and six times as much when it has been read."""
_APPLY, _MERGE, _JSON = "application/apply-patch+yaml", "application/merge-patch+json", "application/json"

GROUPS: Mapping[str, tuple[str, str]] = {
    "ConfigMap": ("/api/v1", "configmaps"),
    "Secret": ("/api/v1", "secrets"),
    "Service": ("/api/v1", "services"),
    "Pod": ("/api/v1", "pods"),
    "Event": ("/api/v1", "events"),
    "Node": ("/api/v1", "nodes"),
    "Namespace": ("/api/v1", "namespaces"),
    "Job": ("/apis/batch/v1", "jobs"),
    "ServiceAccount": ("/api/v1", "serviceaccounts"),
    "ResourceQuota": ("/api/v1", "resourcequotas"),
    "LimitRange": ("/api/v1", "limitranges"),
    "NetworkPolicy": ("/apis/networking.k8s.io/v1", "networkpolicies"),
    "RoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "PersistentVolumeClaim": ("/api/v1", "persistentvolumeclaims"),
    "StatefulSet": ("/apis/apps/v1", "statefulsets"),
    "StorageClass": ("/apis/storage.k8s.io/v1", "storageclasses"),
}
"""Kind → where it is served."""


def path_of(kind: str, namespace: str = "", name: str = "") -> str:
    """`namespace` empty: of all namespaces, or a kind that has none."""
    base, plural = GROUPS[kind]
    return "/".join([base, *(("namespaces", namespace) if namespace else ()), plural, *((name,) if name else ())])


class Api:
    """May be shared by threads."""

    def __init__(self, connection: client.ApiClient) -> None:
        self._connection = connection

    def version(self) -> str:
        """What the server says of its own release, such as `v1.34.1`."""
        return str(self._json("GET", "/version", "tell its version").get("gitVersion", ""))

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """The object, or None."""
        try:
            return self._json("GET", path_of(kind, namespace, name), f"read {GROUPS[kind][1]}")
        except Absent:
            return None

    def find(self, kind: str, namespace: str = "", labels: str = "", fields: str = "") -> list[dict[str, Any]]:
        """All objects that fit, as they are now."""
        return self.find_at(kind, namespace, labels, fields)[0]

    def find_at(
        self, kind: str, namespace: str = "", labels: str = "", fields: str = ""
    ) -> tuple[list[dict[str, Any]], str]:
        """The same, and the version as of which they are so: from there a watch continues."""
        found, version = self.find_paged(kind, namespace, labels, fields)
        return list(found), version

    def find_paged(
        self, kind: str, namespace: str = "", labels: str = "", fields: str = ""
    ) -> tuple[Iterator[dict[str, Any]], str]:
        """The same, of which only one page is there at a time. Each further page is asked for, and may fail, when it is
        come to: `Expired` where the server no longer knows what was as of that version."""
        query = _given(labelSelector=labels, fieldSelector=fields, limit=str(_PAGE))
        first = self._page(kind, namespace, query)
        version = str((first.get("metadata") or {}).get("resourceVersion", ""))
        return self._items(kind, namespace, query, first), version

    def apply(self, manifest: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        """Server-side apply: made where it is not there. Applied again, nothing changes. Returns it as it then is."""
        kind, metadata = manifest["kind"], manifest["metadata"]
        query = _given(fieldManager=MANAGER, force="true", dryRun="All" if dry_run else "")
        path = path_of(kind, metadata.get("namespace", ""), metadata["name"])
        return self._json("PATCH", path, f"create {GROUPS[kind][1]}", query, manifest, _APPLY)

    def create(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Made: needs the right to create, and no other. `Conflict` where there is one of its name."""
        kind, namespace = manifest["kind"], manifest["metadata"].get("namespace", "")
        query = _given(fieldManager=MANAGER)
        return self._json("POST", path_of(kind, namespace), f"create {GROUPS[kind][1]}", query, manifest)

    def find_named(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """As `get`, of what may be listed everywhere and read by name nowhere: also where the namespace is gone."""
        return next(iter(self.find(kind, namespace, fields=f"metadata.name={name}")), None)

    def patch(self, kind: str, namespace: str, name: str, change: Mapping[str, Any]) -> dict[str, Any]:
        """Merge `change` into it. With a `resourceVersion` in it: `Conflict` where another was first."""
        path = path_of(kind, namespace, name)
        query = _given(fieldManager=f"{MANAGER}-notes")
        return self._json("PATCH", path, f"change {GROUPS[kind][1]}", query, change, _MERGE)

    def delete(self, kind: str, namespace: str, name: str, *, last: bool = False) -> None:
        """Begin its end and that of what belongs to it; `last`: it stays until that has ended. Absent: nothing."""
        body = {"propagationPolicy": "Foreground" if last else "Background"}
        try:
            self._json("DELETE", path_of(kind, namespace, name), f"delete {GROUPS[kind][1]}", body=body)
        except Absent:
            return

    def delete_all(self, kind: str, namespace: str) -> None:
        """The same for all of this kind."""
        body = {"propagationPolicy": "Background"}
        self._json("DELETE", path_of(kind, namespace), f"delete {GROUPS[kind][1]}", body=body)

    def delete_pods(self, namespace: str, labels: str, grace: int) -> None:
        """Begin the end of all pods that fit: SIGTERM, `grace` seconds, SIGKILL; 0 also forgets them at once. Asked
        again, the shorter time counts."""
        body = {"gracePeriodSeconds": grace}
        self._json("DELETE", path_of("Pod", namespace), "delete pods", _given(labelSelector=labels), body)

    def evict(self, namespace: str, name: str, uid: str, grace: int) -> None:
        """Begin the end of this one pod, with so many seconds, as a drained node does: its controller counts no
        failure of it. Gone, or another of its name: nothing. `Unavailable` where a disruption budget is in the way."""
        body = {
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}, "gracePeriodSeconds": grace},
        }  # fmt: skip
        with contextlib.suppress(Absent, Conflict):
            self._json("POST", path_of("Pod", namespace, name) + "/eviction", "evict pods", body=body)

    def log(self, namespace: str, pod: str, container: str, lines: int, *, previous: bool = False) -> str:
        """The end of a container's own output; empty where there is none (yet, or any more)."""
        query = _given(container=container, tailLines=str(lines), previous="true" if previous else "")
        path = path_of("Pod", namespace, pod) + "/log"
        with self._answer("GET", path, query) as answer:
            if answer.status in (400, 404):  # the container has not started, or the pod is gone
                return ""
            if answer.status >= 300:
                raise _refused(answer, answer.read(1 << 16), "read pod logs")
            return _text_of(answer)

    @contextlib.contextmanager
    def watch(
        self, kind: str, labels: str, version: str, seconds: int, quiet: float, fields: str = ""
    ) -> Iterator[Stream]:
        """A context in which the server tells the events after `version`, `ERROR` and `BOOKMARK` among them, until it
        ends the stream, after `seconds`. Raises `Unavailable` where the stream breaks, or says nothing for `quiet`
        seconds."""
        query = _given(
            watch="true", labelSelector=labels, fieldSelector=fields, resourceVersion=version,
            allowWatchBookmarks="true", timeoutSeconds=str(seconds),
        )  # fmt: skip
        what = f"watch {GROUPS[kind][1]}"
        with self._answer("GET", path_of(kind), query, {"Accept": _JSON}, timeout=(_TIMEOUT[0], quiet)) as answer:
            if answer.status >= 300:
                raise _refused(answer, answer.read(1 << 16), what)
            yield Stream(answer, what)

    # --- parts -------------------------------------------------------------------------------------------------------

    def _page(self, kind: str, namespace: str, query: Mapping[str, str]) -> dict[str, Any]:
        return self._json("GET", path_of(kind, namespace), f"list {GROUPS[kind][1]}", query)

    def _items(
        self, kind: str, namespace: str, query: Mapping[str, str], page: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        while True:
            yield from page.pop("items", None) or ()
            rest = (page.get("metadata") or {}).get("continue")
            if not rest:
                return
            page = self._page(kind, namespace, {**query, "continue": rest})

    def _json(
        self,
        method: str,
        path: str,
        what: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = _JSON,
    ) -> dict[str, Any]:
        headers = {"Accept": _JSON, "Content-Type": content_type}
        with self._answer(method, path, query, headers, body) as answer:
            try:
                content = answer.read()
                if answer.status < 300:
                    return dict(json.loads(content))
            except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
                raise no_answer(error, what) from error
            raise _refused(answer, content, what)

    def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        timeout: tuple[float, float] = _TIMEOUT,
    ) -> contextlib.closing[urllib3.BaseHTTPResponse]:
        """The answer's head; its body is still to be read. To be used as a context."""
        full = path + ("?" + urlencode(query) if query else "")
        content = None if body is None else json.dumps(body)
        try:
            request = self._connection.param_serialize(
                method, full, header_params=dict(headers or {}), auth_settings=["BearerToken"]
            )
            head = {**request[2], "Content-Type": request[2].get("Content-Type", _JSON)}
            answer = self._connection.rest_client.pool_manager.request(
                method, request[1], body=content, headers=head, preload_content=False,
                timeout=urllib3.Timeout(connect=timeout[0], read=timeout[1]),
            )  # fmt: skip
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise no_answer(error, f"{method} {path}") from error
        return contextlib.closing(answer)


class Stream:
    """The events of one watch, as they come."""

    def __init__(self, answer: urllib3.BaseHTTPResponse, what: str) -> None:
        self._answer, self._what = answer, what

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """One JSON object per line. What follows the last whole line is incomplete and is dropped."""
        rest = b""
        try:
            for chunk in self._answer.stream(_CHUNK):
                *whole, rest = (rest + chunk).split(b"\n")
                yield from (json.loads(line) for line in whole if line.strip())
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise no_answer(error, self._what) from error

    def cut(self) -> None:
        """From another thread: to the reader the stream breaks now."""
        with contextlib.suppress(ValueError, RuntimeError, OSError):  # it has ended by itself
            self._answer.shutdown()


def _given(**parameters: str) -> dict[str, str]:
    return {name: value for name, value in parameters.items() if value}


def _refused(answer: urllib3.BaseHTTPResponse, content: bytes, what: str) -> YardmasterError:
    return trouble_of(answer.status, content, what, answer.headers.get("Retry-After"))


def _text_of(answer: urllib3.BaseHTTPResponse) -> str:
    try:
        return answer.read(_MOST_OUTPUT).decode(errors="replace")
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise no_answer(error, "read pod logs") from error
