"""Trying the portal's addresses from a pod (`probe_pod`): made, waited for, and removed with the namespace it ran in.

Bounded in time, and may be repeated and done by several at once: every probe has a namespace of its own. What one that
was killed left behind, the next removes.
"""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from yardmaster.engines.base import Reach
from yardmaster.engines.kubernetes import names, probe_pod
from yardmaster.engines.kubernetes.api import Api
from yardmaster.engines.kubernetes.namespaces import id_of
from yardmaster.engines.kubernetes.options import TaskOptions
from yardmaster.engines.kubernetes.probe_pod import Found
from yardmaster.engines.kubernetes.shaping import Shaper
from yardmaster.errors import Unavailable, YardmasterError
from yardmaster.ledger import Quota

log = logging.getLogger(__name__)

PATIENCE = 45.0
"""Seconds: a large image that the node lacks is not waited for."""
LEFT_AFTER = timedelta(minutes=15)
_BOUNDS = Quota(cpu=1, memory=1 << 30)
_LOOK_EVERY = 0.3


class Prober:
    """May be shared by threads."""

    def __init__(self, api: Api, options: TaskOptions) -> None:
        self._api, self._options = api, options
        self._shaper = Shaper(api, options)

    def reach(self, url: str, patience: float = PATIENCE) -> Reach:
        """Whether tasks reach a portal at this address, under the policies of their namespaces."""
        url = (self._options.portal_url or url).rstrip("/")
        try:
            found = self.try_all([url], patience)
        except Unavailable as error:
            found = Found({}, error.message)
        return probe_pod.reach_of(found, url, self._options)

    def try_all(self, urls: Sequence[str], patience: float = PATIENCE) -> Found:
        """Try all of them at once. Raises what the cluster raises."""
        deadline = time.monotonic() + patience
        self._remove_left()
        probe_id = probe_pod.new_probe_id()
        try:
            self._shape(probe_id, urls[0], deadline)
            self._api.apply(probe_pod.job(probe_id, urls, self._options))
            return self._wait(probe_id, urls, deadline, patience)
        finally:
            self._remove(probe_id)

    def _shape(self, probe_id: uuid.UUID, url: str, deadline: float) -> None:
        """As all namespaces of the portal are. Rights that were just given take a moment to be heeded."""
        while True:
            try:
                self._shaper.shape(probe_id, _BOUNDS, url)
                return
            except Unavailable:
                if time.monotonic() > deadline:
                    raise
            time.sleep(_LOOK_EVERY)

    def _wait(self, probe_id: uuid.UUID, urls: Sequence[str], deadline: float, patience: float) -> Found:
        namespace = names.namespace_name(probe_id, self._options)
        while True:
            pods = self._api.find("Pod", namespace, f"{probe_pod.PROBE}={probe_id}")
            found = probe_pod.found_in(pods, urls)
            if found is not None:
                return found
            if time.monotonic() > deadline:
                return probe_pod.why_late(pods, patience)
            time.sleep(_LOOK_EVERY)

    def _remove(self, probe_id: uuid.UUID) -> None:
        """Begin its end; what stays is found by the next probe."""
        try:
            self._shaper.remove(probe_id)
        except YardmasterError as error:
            log.warning("The namespace of a probe could not be removed: %s", error)

    def _remove_left(self) -> None:
        now = datetime.now(UTC)
        with contextlib.suppress(YardmasterError):
            for one in self._api.find("Namespace", "", names.ours()):
                probe_id = id_of(one)
                if probe_id is not None and _is_left(one, probe_id, now) and self._is_of_ours(one, probe_id):
                    self._remove(probe_id)

    def _is_of_ours(self, namespace: Mapping[str, Any], probe_id: uuid.UUID) -> bool:
        return bool(namespace["metadata"]["name"] == names.namespace_name(probe_id, self._options))


def for_candidates(options: TaskOptions, cidrs: Sequence[str], port: int) -> TaskOptions:
    """The same, with policies that let pods through to all of these addresses of the portal."""
    return replace(options, portal_cidrs=tuple(cidrs), portal_port=port, portal_url="")


def _is_left(namespace: Mapping[str, Any], probe_id: uuid.UUID, now: datetime) -> bool:
    """Whether it was made for a probe that must have ended long ago."""
    if not probe_pod.is_probe_id(str(probe_id)):
        return False
    made = datetime.fromisoformat(namespace["metadata"]["creationTimestamp"])
    return now - made > LEFT_AFTER and "deletionTimestamp" not in namespace["metadata"]
