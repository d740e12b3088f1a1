"""What an API server answers to one request, whichever way it came: over HTTP (`kubernetes_api`) or by a call
(`kubernetes_wire`). No faults, no connections.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.fakes.kubernetes_store import Object, ObjectKey, Refusal, Store, fits, has_fields

APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True)
class Asked:
    """A request. The verb is one of RBAC's, or `dry-run` for a patch that changes nothing."""

    verb: str
    place: ObjectKey
    part: str
    query: dict[str, str]
    body: dict[str, Any]
    content_type: str

    @property
    def what(self) -> str:
        """The resource, as rights name it."""
        return "/".join(filter(None, (self.place[0], self.part)))

    @property
    def since(self) -> int:
        return int(self.query["resourceVersion"])


def asked_of(method: str, address: str, content: bytes, content_type: str) -> Asked:
    url = urlsplit(address)
    steps = url.path.strip("/").split("/")
    steps = steps[2:] if steps[0] == "api" else steps[3:]
    namespace = ""
    if steps[0] == "namespaces" and len(steps) > 2:
        namespace, steps = steps[1], steps[2:]
    plural, name, part = (*steps, "", "")[:3]
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    verb = {"PATCH": "patch", "POST": "create", "DELETE": "delete" if name else "deletecollection"}.get(method)
    verb = verb or ("get" if name else "watch" if query.get("watch") else "list")
    verb = "dry-run" if query.get("dryRun") else verb
    return Asked(verb, (plural, namespace, name), part, query, json.loads(content) if content else {}, content_type)


def answer_to(asked: Asked, store: Store) -> Any:
    """Do it. Raises `Refusal`. Everything but watches."""
    plural, namespace, name = asked.place
    labels = asked.query.get("labelSelector", "")
    if asked.part == "log":
        store.get(asked.place)
        return store.logs.get((namespace, name), "")
    if asked.part == "eviction":
        return _evict(asked, store)
    if asked.verb == "get":
        return store.get(asked.place)
    if asked.verb == "list":
        return _page(asked, store)
    if asked.verb == "delete":
        last = asked.body.get("propagationPolicy") == "Foreground"
        store.delete(asked.place, asked.body.get("gracePeriodSeconds"), last=last)
        return {"kind": "Status", "status": "Success"}
    if asked.verb == "deletecollection":
        for one in store.find(plural, namespace, labels):
            with contextlib.suppress(Refusal):  # gone meanwhile
                store.delete((plural, namespace, one["metadata"]["name"]), asked.body.get("gracePeriodSeconds"))
        return {"kind": "Status", "status": "Success"}
    if asked.verb == "create":
        return store.create((plural, namespace, asked.body["metadata"]["name"]), asked.body)
    if asked.content_type == APPLY:
        return store.apply(asked.place, asked.body, asked.query["fieldManager"], "dryRun" in asked.query)
    return store.merge(asked.place, asked.body)


def _page(asked: Asked, store: Store) -> Object:
    """The begin of a list, or what comes next of one that was begun: all of it as of the version of its begin."""
    plural, namespace, _ = asked.place
    labels, fields = asked.query.get("labelSelector", ""), asked.query.get("fieldSelector", "")
    token, most = asked.query.get("continue", ""), int(asked.query.get("limit") or 0)
    with store.lock:
        if token and token not in store.pages:
            raise Refusal(410, "The provided continue parameter is too old")
        begun = (store.version, [] if token else store.find(plural, namespace, labels, fields))
        version, found = store.pages.get(token, begun)
        metadata = {"resourceVersion": str(version)}
        if 0 < most < len(found):
            metadata["continue"] = str(uuid.uuid4())
            store.pages[metadata["continue"]] = version, found[most:]
    return {"kind": "List", "metadata": metadata, "items": found[:most] if most else found}


def _evict(asked: Asked, store: Store) -> Object:
    """The pod goes, for the cluster's own reasons, with the grace period of its template."""
    with store.lock:
        pod = store.get(asked.place)
        if asked.body["deleteOptions"]["preconditions"]["uid"] != pod["metadata"]["uid"]:
            raise Refusal(409, "the UID in the precondition does not match")
        target = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        store.evicted.add(pod["metadata"]["uid"])
        store.write(asked.place, {**pod, "status": {**pod["status"], "conditions": [target]}})
        store.delete(asked.place, pod["spec"].get("terminationGracePeriodSeconds"))
    return {"kind": "Status", "status": "Success"}


def refused(refusal: Refusal) -> Object:
    """The answer's body."""
    details = {"causes": refusal.causes} if refusal.causes else {}
    return {"kind": "Status", "message": refusal.message, "code": refusal.status, "details": details}


def check_watch(asked: Asked, store: Store) -> None:
    """Raises `Refusal` where the server does not remember so far back."""
    if asked.since < store.oldest:
        raise Refusal(410, "too old resource version")


def news_for(asked: Asked, store: Store, since: int) -> list[Object]:
    """The watch events of this kind after `since`, in order. What does not have the selected fields (any more) is told
    as deleted."""
    labels, fields = asked.query.get("labelSelector", ""), asked.query.get("fieldSelector", "")
    return [
        {"type": kind if has_fields(found, fields) else "DELETED", "object": found}
        for version, kind, plural, found in store.events
        if version > since and plural == asked.place[0] and fits(found, labels)
    ]


def bookmark(version: int) -> Object:
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}


GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old resource version"}}
"""What a server says in a stream whose reader it can no longer serve."""
