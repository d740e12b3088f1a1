"""A thin client of the Kubernetes API: paths, selectors and JSON, over the `kubernetes` package's connection and
credentials. No typed models: building them costs more than a whole observation.

Every method returns within seconds or raises a typed error (`troubles`). Not here: what is done with it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import urllib3
from kubernetes import client

from yardmaster.engines.kubernetes.troubles import Absent, no_answer, trouble_of

MANAGER = "yardmaster"
_TIMEOUT = (3.0, 8.0)
_QUIET_WATCH = 330
"""Seconds after which a watch that said nothing is taken for dead: longer than the server lets one last."""
_MOST_OUTPUT = 2 << 20
_CHUNK = 1 << 16
_APPLY, _MERGE, _JSON = "application/apply-patch+yaml", "application/merge-patch+json", "application/json"
_METADATA_ONLY = f"{_JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_METADATA_ONLY_EVENTS = f"{_JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

GROUPS: Mapping[str, tuple[str, str]] = {
    "ConfigMap": ("/api/v1", "configmaps"),
    "Secret": ("/api/v1", "secrets"),
    "Service": ("/api/v1", "services"),
    "Pod": ("/api/v1", "pods"),
    "Event": ("/api/v1", "events"),
    "Node": ("/api/v1", "nodes"),
    "Namespace": ("/api/v1", "namespaces"),
    "Job": ("/apis/batch/v1", "jobs"),
    "RoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "StatefulSet": ("/apis/apps/v1", "statefulsets"),
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

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """The object, or None."""
        try:
            return self._json("GET", path_of(kind, namespace, name), f"read {GROUPS[kind][1]}")
        except Absent:
            return None

    def find(self, kind: str, namespace: str = "", labels: str = "", fields: str = "") -> list[dict[str, Any]]:
        """All objects that fit, as they are now."""
        query = _given(labelSelector=labels, fieldSelector=fields)
        found = self._json("GET", path_of(kind, namespace), f"list {GROUPS[kind][1]}", query)["items"]
        return list(found or [])

    def list_metadata(self, kind: str, labels: str) -> tuple[list[dict[str, Any]], str]:
        """The metadata of all objects that fit, and the version from which to watch on."""
        query, accept = _given(labelSelector=labels), {"Accept": f"{_METADATA_ONLY},{_JSON}"}
        found = self._json("GET", path_of(kind), f"list {GROUPS[kind][1]}", query, headers=accept)
        return list(found.get("items") or []), str(found["metadata"]["resourceVersion"])

    def apply(self, manifest: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        """Server-side apply: made where it is not there. Applied again, nothing changes. Returns it as it then is."""
        kind, metadata = manifest["kind"], manifest["metadata"]
        query = _given(fieldManager=MANAGER, force="true", dryRun="All" if dry_run else "")
        path = path_of(kind, metadata.get("namespace", ""), metadata["name"])
        return self._json("PATCH", path, f"create {GROUPS[kind][1]}", query, manifest, _APPLY)

    def patch(self, kind: str, namespace: str, name: str, change: Mapping[str, Any]) -> dict[str, Any]:
        """Merge `change` into it. With a `resourceVersion` in it: `Conflict` where another was first."""
        path = path_of(kind, namespace, name)
        query = _given(fieldManager=f"{MANAGER}-notes")
        return self._json("PATCH", path, f"change {GROUPS[kind][1]}", query, change, _MERGE)

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Begin its end and that of what belongs to it. Absent: nothing."""
        body = {"propagationPolicy": "Background"}
        try:
            self._json("DELETE", path_of(kind, namespace, name), f"delete {GROUPS[kind][1]}", body=body)
        except Absent:
            return

    def delete_pods(self, namespace: str, labels: str, grace: int) -> None:
        """Begin the end of all pods that fit: SIGTERM, `grace` seconds, SIGKILL; 0 also forgets them at once. Asked
        again, the shorter time counts."""
        body = {"gracePeriodSeconds": grace}
        self._json("DELETE", path_of("Pod", namespace), "delete pods", _given(labelSelector=labels), body)

    def log(self, namespace: str, pod: str, container: str, lines: int, *, previous: bool = False) -> str:
        """The end of a container's own output; empty where there is none (yet, or any more)."""
        query = _given(container=container, tailLines=str(lines), previous="true" if previous else "")
        path = path_of("Pod", namespace, pod) + "/log"
        with self._answer("GET", path, query) as answer:
            if answer.status in (400, 404):  # the container has not started, or the pod is gone
                return ""
            if answer.status >= 300:
                raise trouble_of(answer.status, answer.read(1 << 16), "read pod logs")
            return _text_of(answer)

    def watch(self, kind: str, labels: str, version: str, seconds: int) -> Iterator[dict[str, Any]]:
        """Events after `version` until the server ends the stream, `ERROR` among them. Metadata only, where the server
        can. Raises `Unavailable` where the stream breaks."""
        query = _given(
            watch="true", labelSelector=labels, resourceVersion=version, allowWatchBookmarks="true",
            timeoutSeconds=str(seconds),
        )  # fmt: skip
        accept = {"Accept": f"{_METADATA_ONLY_EVENTS},{_JSON}"}
        what = f"watch {GROUPS[kind][1]}"
        with self._answer("GET", path_of(kind), query, headers=accept, timeout=(3.0, _QUIET_WATCH)) as answer:
            if answer.status >= 300:
                raise trouble_of(answer.status, answer.read(1 << 16), what)
            yield from _lines_of(answer, what)

    # --- parts -------------------------------------------------------------------------------------------------------

    def _json(
        self,
        method: str,
        path: str,
        what: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = _JSON,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        sent = {"Accept": _JSON, **(headers or {})}
        with self._answer(method, path, query, body, {**sent, "Content-Type": content_type}) as answer:
            try:
                content = answer.read()
                if answer.status < 300:
                    return dict(json.loads(content))
            except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
                raise no_answer(error, what) from error
            raise trouble_of(answer.status, content, what)

    def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
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


def _given(**parameters: str) -> dict[str, str]:
    return {name: value for name, value in parameters.items() if value}


def _text_of(answer: urllib3.BaseHTTPResponse) -> str:
    try:
        return answer.read(_MOST_OUTPUT).decode(errors="replace")
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise no_answer(error, "read pod logs") from error


def _lines_of(answer: urllib3.BaseHTTPResponse, what: str) -> Iterator[dict[str, Any]]:
    """One JSON object per line. What follows the last whole line was cut off and is dropped."""
    rest = b""
    try:
        for chunk in answer.stream(_CHUNK):
            *whole, rest = (rest + chunk).split(b"\n")
            yield from (json.loads(line) for line in whole if line.strip())
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        raise no_answer(error, what) from error
