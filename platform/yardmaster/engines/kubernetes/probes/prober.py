"""Running probes: a namespace is made for each, its pods are waited for, and it is removed with all that is in it.

Bounded in time, and may be repeated and done by several at once. What a probe that was killed left behind, the next
removes.
"""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.client.errors import Forbidden
from yardmaster.engines.kubernetes.namespaces.manifests import id_of
from yardmaster.engines.kubernetes.namespaces.shaper import Shaper
from yardmaster.engines.kubernetes.probes import pod
from yardmaster.engines.kubernetes.probes.pod import SMALL, ProbeAnswer
from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.errors import Unavailable, YardmasterError
from yardmaster.queueing.ledger import Quota

log = logging.getLogger(__name__)

PATIENCE = 45.0
"""Seconds: a large image that the node lacks is not waited for."""
LEFT_AFTER = timedelta(minutes=15)
_BOUNDS = Quota(cpu=1, memory=1 << 30)
_LOOK_EVERY = 0.3
_HEEDED_WITHIN = 10.0
"""Seconds after which a right that is refused is one that was not given."""


class Prober:
    """May be shared by threads."""

    def __init__(self, api: Api, options: TaskOptions) -> None:
        self.options = options
        self._api = api
        self._shaper = Shaper(api, options)

    @contextlib.contextmanager
    def namespace(self, portal_url: str, patience: float = PATIENCE) -> Iterator[ProbeNamespace]:
        """A namespace for one probe, as all namespaces of the portal are; its end begins with that of the context.
        `patience` bounds, in seconds, all that is waited for in it. Raises what the cluster raises."""
        made = ProbeNamespace(self._api, self.options, patience)
        self._remove_left()
        try:
            self._shape(made, portal_url)
            yield made
        finally:
            self._remove(made.probe_id)

    def _shape(self, namespace: ProbeNamespace, portal_url: str) -> None:
        """Rights that were just given take a moment to be heeded; until then the cluster forbids what they allow."""
        heeded_by = time.monotonic() + _HEEDED_WITHIN
        while True:
            try:
                self._shaper.shape(namespace.probe_id, _BOUNDS, portal_url)
                return
            except Unavailable:
                if namespace.is_late():
                    raise
            except Forbidden:
                if time.monotonic() > heeded_by:
                    raise
            time.sleep(_LOOK_EVERY)

    def _remove(self, probe_id: uuid.UUID) -> None:
        """Begin its end; what stays is found by the next probe."""
        try:
            self._shaper.remove(probe_id)
        except YardmasterError as error:
            log.warning("The namespace of a probe could not be removed: %s", error)

    def _remove_left(self) -> None:
        now = datetime.now(UTC)
        with contextlib.suppress(YardmasterError):  # harmless; this probe will say what is wrong
            for one in self._api.find("Namespace", "", names.ours()):
                probe_id = id_of(one)
                if probe_id is not None and _is_left(one, probe_id, now) and self._is_of_ours(one, probe_id):
                    self._remove(probe_id)

    def _is_of_ours(self, namespace: Mapping[str, Any], probe_id: uuid.UUID) -> bool:
        return bool(namespace["metadata"]["name"] == names.namespace_name(probe_id, self.options))


class ProbeNamespace:
    """The namespace of one probe."""

    def __init__(self, api: Api, options: TaskOptions, patience: float) -> None:
        self.probe_id = pod.new_probe_id()
        self._api, self._options, self._patience = api, options, patience
        self._deadline = time.monotonic() + patience

    def is_late(self) -> bool:
        return time.monotonic() > self._deadline

    def apply(self, kind: str, api_version: str, name: str, spec: Mapping[str, Any]) -> None:
        """Make an object in it."""
        meta = pod.metadata(name, self.probe_id, self._options)
        self._api.apply({"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec})

    def tell(self, name: str, command: Sequence[str], amounts: Mapping[str, str] = SMALL) -> ProbeAnswer:
        """Run Python with these arguments in a pod, and wait for its end."""
        self._begin(name, command, amounts)
        return self._wait(name, pod.answer_of)

    def address_of(self, name: str, command: Sequence[str], amounts: Mapping[str, str] = SMALL) -> ProbeAnswer:
        """The same for one that stays: its address as the message, once it runs."""
        self._begin(name, command, amounts)
        return self._wait(name, pod.address_in)

    def _begin(self, name: str, command: Sequence[str], amounts: Mapping[str, str]) -> None:
        self._api.apply(pod.job(name, self.probe_id, command, self._options, amounts))

    def _wait(self, name: str, read: Callable[[Sequence[Mapping[str, Any]]], ProbeAnswer | None]) -> ProbeAnswer:
        namespace = names.namespace_name(self.probe_id, self._options)
        while True:
            pods = self._api.find("Pod", namespace, f"{pod.PROBE}={name}")
            answer = read(pods)
            if answer is not None:
                return answer
            if self.is_late():
                return ProbeAnswer(problem=pod.why_late(pods, self._patience))
            time.sleep(_LOOK_EVERY)


def _is_left(namespace: Mapping[str, Any], probe_id: uuid.UUID, now: datetime) -> bool:
    """Whether it was made for a probe that must have ended long ago."""
    if not pod.is_probe_id(str(probe_id)):
        return False
    made = datetime.fromisoformat(namespace["metadata"]["creationTimestamp"])
    return now - made > LEFT_AFTER and "deletionTimestamp" not in namespace["metadata"]
