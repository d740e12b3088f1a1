"""What an API server keeps, in memory: objects, their versions, who belongs to whom, and what has happened to them.

As the real one as far as the engine can tell: server-side apply removes what its manager no longer says, a merge patch
heeds `resourceVersion` and `uid`, an owner's end takes its belongings along (later: `collect_garbage`), finalizers hold
up an object's end, a pod's deletion is graceful, and names, labels and pods that a cluster would refuse are refused. A
namespace that is deleted takes what is in it along.
"""

from __future__ import annotations

import re
import threading
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

Object = dict[str, Any]
ObjectKey = tuple[str, str, str]
"""Plural, namespace, name."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
_LABEL_NAME = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
UNSPACED = ("namespaces", "nodes")
LAST = "foregroundDeletion"


class Refusal(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, message: str, causes: list[dict[str, str]] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.causes = status, message, causes or []


class Store:
    """All verbs are atomic. `happened` wakes those who watch."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.happened = threading.Condition(self.lock)
        self.objects: dict[ObjectKey, Object] = {}
        self.events: list[tuple[int, str, str, Object]] = []
        self.oldest = 0
        self.version = 0
        self.evicted: set[str] = set()
        """The uids of pods that were taken away for the cluster's own reasons."""
        self.gone: dict[ObjectKey, int] = {}
        """At which version what is not there went last."""
        self.logs: dict[tuple[str, str], str] = {}
        self.pages: dict[str, tuple[int, list[Object]]] = {}
        """What is left of lists that were begun: token → version, objects."""
        self._applied: dict[tuple[ObjectKey, str], Object] = {}

    # --- reading -----------------------------------------------------------------------------------------------------

    def get(self, place: ObjectKey) -> Object:
        with self.lock:
            if place[0] == "namespaces":
                self._end_namespace(place[2])
            if place not in self.objects:
                raise Refusal(404, f'{place[0]} "{place[2]}" not found')
            return copied(self.objects[place])

    def find(self, plural: str, namespace: str = "", labels: str = "", fields: str = "") -> list[Object]:
        with self.lock:
            return [
                copied(one)
                for (kind, space, _), one in sorted(self.objects.items())
                if kind == plural and namespace in ("", space) and fits(one, labels) and has_fields(one, fields)
            ]

    def peek(self, plural: str) -> list[Object]:
        """Only to read, under the lock: no copies."""
        return [one for (kind, _, _), one in sorted(self.objects.items()) if kind == plural]

    def forget_history(self) -> None:
        """Watches and lists from before now get 410."""
        with self.lock:
            self.events.clear()
            self.pages.clear()
            self.oldest = self.version

    def snapshot(self) -> dict[ObjectKey, Object]:
        with self.lock:
            return copied(self.objects)

    def restore(self, snapshot: dict[ObjectKey, Object]) -> None:
        """As etcd is restored from a backup: the objects are those of then, versions go on well beyond all that were,
        and what happened before is not remembered."""
        with self.lock:
            self.objects = copied(snapshot)
            self.version += 1000
            self.forget_history()

    # --- writing -----------------------------------------------------------------------------------------------------

    def apply(self, place: ObjectKey, manifest: Object, manager: str, dry_run: bool) -> Object:
        with self.lock:
            self._check_place(place)
            check(manifest)
            old = self.objects.get(place)
            before = self._applied.get((place, manager), {})
            new = merged(without(copied(old or {}), before, manifest), manifest)
            if old is not None and _immutable(old) != _immutable(new):
                raise Refusal(422, f'{place[0]} "{place[2]}" is invalid: spec: field is immutable')
            if dry_run:
                return new
            self._applied[place, manager] = copied(manifest)
            return self.write(place, new)

    def create(self, place: ObjectKey, manifest: Object) -> Object:
        with self.lock:
            self._check_place(place)
            check(manifest)
            if place in self.objects:
                raise Refusal(409, f'{place[0]} "{place[2]}" already exists')
            return self.write(place, copied(manifest))

    def merge(self, place: ObjectKey, change: Object) -> Object:
        with self.lock:
            old = self.get(place)
            for name in ("resourceVersion", "uid"):
                if change.get("metadata", {}).get(name, old["metadata"][name]) != old["metadata"][name]:
                    raise Refusal(409, "the object has been modified")
            return self.write(place, merged(old, change))

    def write(self, place: ObjectKey, new: Object) -> Object:
        """Unchanged: nothing happens."""
        with self.lock:
            old = self.objects.get(place)
            if old == new:
                return copied(new)
            metadata = new["metadata"]
            metadata.setdefault("uid", str(uuid.uuid4()))
            metadata.setdefault("creationTimestamp", moment())
            self._happen("MODIFIED" if old else "ADDED", place, new)
            self.objects[place] = new
            return copied(new)

    def delete(self, place: ObjectKey, grace: int | None = None, *, last: bool = False) -> None:
        """`last`: after all that belongs to it."""
        with self.lock:
            found = self.objects.get(place)
            if found is None:
                raise Refusal(404, f'{place[0]} "{place[2]}" not found')
            if place[0] == "namespaces":
                if "deletionTimestamp" not in found["metadata"]:
                    new = copied(found)
                    new["metadata"]["deletionTimestamp"] = moment()
                    self.write(place, new)
                self._end_namespace(place[2])
            elif place[0] == "pods" and grace != 0 and found["spec"].get("nodeName"):
                self._end_gently(place, found, grace)
            elif last or _held(found):
                new = copied(found)
                new["metadata"].setdefault("deletionTimestamp", moment())
                if last:
                    new["metadata"]["finalizers"] = sorted({*new["metadata"].get("finalizers", ()), LAST})
                self.write(place, new)
            else:
                self.remove(place)

    def remove(self, place: ObjectKey) -> None:
        """It is gone. What belonged to it is garbage."""
        with self.lock:
            found = self.objects.pop(place)
            for key in [key for key in self._applied if key[0] == place]:
                del self._applied[key]
            self._happen("DELETED", place, found)
            self.gone[place] = self.version

    def collect_garbage(self) -> None:
        """One round: what belongs to nobody any more is deleted, pods with the grace period of their own. What belongs
        to that is for the next round."""
        with self.lock:
            there = {one["metadata"]["uid"] for one in self.objects.values()}
            last = {one["metadata"]["uid"] for one in self.objects.values() if LAST in _finalizers(one)}
            awaited: set[str] = set()
            for place, one in list(self.objects.items()):
                references = one["metadata"].get("ownerReferences", ())
                awaited |= {owner["uid"] for owner in references if owner.get("blockOwnerDeletion")}
                owners = {owner["uid"] for owner in references}
                if owners and not owners & there - last and LAST not in _finalizers(one):
                    self.delete(place, last=bool(owners & last) and place[0] != "pods")
            for place in [key for key, one in self.objects.items() if one["metadata"]["uid"] in last - awaited]:
                self.delete(place)

    def _end_namespace(self, name: str) -> None:
        """Where it was told to go: what is in it goes, then itself. Finalizers hold both up, and it says which."""
        place = ("namespaces", "", name)
        found = self.objects.get(place)
        if found is None or "deletionTimestamp" not in found["metadata"]:
            return
        for inner in [one for one in self.objects if one[1] == name and one in self.objects]:
            if inner in self.objects and not self.objects[inner]["metadata"].get("finalizers"):
                self.remove(inner)
        held = [one for key, one in self.objects.items() if key[1] == name]
        if held or found["metadata"].get("finalizers"):
            by = sorted({finalizer for one in held for finalizer in one["metadata"]["finalizers"]})
            said = ", ".join(f"{finalizer} in 1 resource instances" for finalizer in by)
            message = f"Some content in the namespace has finalizers remaining: {said}"
            condition = {"type": "NamespaceFinalizersRemaining", "status": "True", "message": message}
            status = {"phase": "Terminating", "conditions": [condition] if held else []}
            self.write(place, {**copied(found), "status": status})
        else:
            self.remove(place)

    def _end_gently(self, place: ObjectKey, found: Object, grace: int | None) -> None:
        """A second deletion can only hasten."""
        seconds = found["spec"].get("terminationGracePeriodSeconds", 30) if grace is None else grace
        end = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()
        asked = found["metadata"].get("deletionTimestamp")
        if asked is None or end < asked:
            new = copied(found)
            new["metadata"].update(deletionTimestamp=end, deletionGracePeriodSeconds=seconds)
            self.write(place, new)

    def _happen(self, kind: str, place: ObjectKey, found: Object) -> None:
        self.version += 1
        found["metadata"]["resourceVersion"] = str(self.version)
        self.events.append((self.version, kind, place[0], copied(found)))
        self.happened.notify_all()

    def _check_place(self, place: ObjectKey) -> None:
        plural, namespace, name = place
        if plural not in UNSPACED and ("namespaces", "", namespace) not in self.objects:
            raise Refusal(404, f'namespaces "{namespace}" not found')
        if plural not in UNSPACED and "deletionTimestamp" in self.objects["namespaces", "", namespace]["metadata"]:
            raise Refusal(403, f"unable to create new content in namespace {namespace} because it is being terminated")
        if not _NAME.fullmatch(name) or len(name) > 63:
            raise Refusal(422, f"{name!r} is no DNS label", [{"field": "metadata.name", "message": "Invalid value"}])


def _finalizers(found: Object) -> list[str]:
    return found["metadata"].get("finalizers") or []


def _held(found: Object) -> bool:
    """By somebody's finalizer: being deleted once more, at once, it no longer waits for what belongs to it."""
    return any(name != LAST for name in _finalizers(found))


def fits(found: Object, selector: str) -> bool:
    """`a=b`, `a!=b`, `a in (b,c)`, and several of them."""
    labels = found["metadata"].get("labels") or {}
    for name, some, unequal, one in re.findall(r"([^\s,=!]+)(?:\s+in\s+\(([^)]*)\)|(!?)=([^,]*))", selector):
        if (labels.get(name) in (some.split(",") if some else [one])) is bool(unequal):
            return False
    return True


def has_fields(found: Object, selector: str) -> bool:
    for part in filter(None, selector.split(",")):
        path, unequal, value = re.fullmatch(r"([\w.]+)(!?)=(.*)", part).groups()
        here: Any = found
        for step in path.split("."):
            here = (here or {}).get(step)
        if ((here or "") == value) == bool(unequal):
            return False
    return True


def merged(old: Any, change: Any) -> Any:
    """RFC 7396; server-side apply of maps and replaced lists is the same."""
    if not isinstance(change, dict):
        return copied(change)
    result = dict(old) if isinstance(old, dict) else {}
    for name, value in change.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def without(old: Object, before: Object, now: Object) -> Object:
    """`old` less what its manager said before and does not say now."""
    for name, value in before.items():
        if name not in now:
            old.pop(name, None)
        elif isinstance(value, dict) and isinstance(now[name], dict) and isinstance(old.get(name), dict):
            without(old[name], value, now[name])
    return old


def check(manifest: Object) -> None:
    """Labels of a form that a cluster takes, and pods that Pod Security `restricted` lets through."""
    template = manifest.get("spec", {}).get("template", {})
    for metadata in (manifest["metadata"], template.get("metadata", {})):
        for name, value in metadata.get("labels", {}).items():
            if not _LABEL_NAME.fullmatch(name) or not _LABEL_VALUE.fullmatch(value):
                raise Refusal(422, f"label {name}={value} is invalid")
    if template and (found := violations(template["spec"])):
        raise Refusal(403, f'violates PodSecurity "restricted:latest": {", ".join(found)}')


def violations(pod: Object) -> list[str]:
    """What Pod Security `restricted` would say."""
    found = [] if pod.get("securityContext", {}).get("runAsNonRoot") else ["runAsNonRoot"]
    if pod["securityContext"].get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
        found.append("seccompProfile")
    found += [name for name in ("hostNetwork", "hostPID", "hostIPC") if pod.get(name)]
    allowed = {"emptyDir", "secret", "configMap", "projected", "downwardAPI", "persistentVolumeClaim", "name"}
    found += [str(one) for one in pod.get("volumes", ()) if not set(one) <= allowed]
    for container in [*pod["containers"], *pod.get("initContainers", ())]:
        context = container.get("securityContext", {})
        if context.get("allowPrivilegeEscalation") is not False or context.get("privileged"):
            found.append("privileges")
        if context.get("capabilities", {}).get("drop") != ["ALL"] or context["capabilities"].get("add"):
            found.append("capabilities")
    return found


def _immutable(found: Object) -> Any:
    spec = found.get("spec", {})
    if found.get("kind") == "Job":
        return spec.get("template"), spec.get("completions"), spec.get("completionMode")
    return (spec.get("selector"), spec.get("serviceName")) if found.get("kind") == "StatefulSet" else None


def copied(found: Any) -> Any:
    """Of JSON; several times as fast as `copy.deepcopy`, which tests of many requests would spend their time in."""
    if isinstance(found, dict):
        return {name: copied(value) if isinstance(value, dict | list) else value for name, value in found.items()}
    return [copied(one) for one in found] if isinstance(found, list) else found


def moment() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
