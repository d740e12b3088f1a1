"""Make, enlarge and remove the volumes of a cluster's namespaces, and say how each is. What is to be done is decided in
`volumes`; here it is read and written."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from yardmaster.engines.base import VolumeState
from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.client.errors import Absent, Forbidden
from yardmaster.engines.kubernetes.client.objects import Raw, newest_first
from yardmaster.engines.kubernetes.namespaces import volumes
from yardmaster.engines.kubernetes.namespaces.shaper import Shaper
from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.engines.kubernetes.render.volumes import CLAIM, OF_CLAIMS, claim_name
from yardmaster.errors import EngineNamespaceMissing, Misconfigured, SpecRejected
from yardmaster.job.volumes import VolumeKind


class VolumeKeeper:
    """May be shared by threads. Two that keep the volumes of one namespace at once do the same."""

    def __init__(self, api: Api, options: TaskOptions, shaper: Shaper) -> None:
        self._api, self._options, self._shaper = api, options, shaper

    def keep(self, namespace_id: uuid.UUID, wanted: Mapping[VolumeKind, int]) -> dict[VolumeKind, VolumeState]:
        """As `Volumes.keep_volumes`."""
        try:
            return self._keep(namespace_id, wanted)
        except (Absent, Forbidden) as error:
            # Rights that are bound in the namespace go with it, and with their binding.
            if isinstance(error, Forbidden) and self._shaper.is_open(namespace_id):
                raise
            message = f"The cluster has no namespace {names.namespace_name(namespace_id, self._options)}."
            raise EngineNamespaceMissing(message, remedy="The portal creates it; then the volume follows.") from error

    def _keep(self, namespace_id: uuid.UUID, wanted: Mapping[VolumeKind, int]) -> dict[VolumeKind, VolumeState]:
        place = names.namespace_name(namespace_id, self._options)
        to_do = volumes.changes(wanted, self._live(place))
        for one in to_do:
            self._carry_out(one, namespace_id, place)
        live = self._live(place)
        events = self._events(place) if any(_lacks_something(one) for one in live.values()) else {}
        return {kind: volumes.state_of(live.get(kind), events.get(kind, [])) for kind in VolumeKind}

    def _live(self, place: str) -> dict[VolumeKind, Raw]:
        found = {kind: self._api.get(CLAIM, place, claim_name(kind)) for kind in VolumeKind}
        return {kind: one for kind, one in found.items() if one is not None}

    def _events(self, place: str) -> dict[VolumeKind, list[Raw]]:
        found = newest_first(self._api.find("Event", place, fields=OF_CLAIMS))
        return {
            kind: [one for one in found if (one.get("involvedObject") or {}).get("name") == claim_name(kind)]
            for kind in VolumeKind
        }

    def _carry_out(self, change: volumes.Change, namespace_id: uuid.UUID, place: str) -> None:
        name = claim_name(change.kind)
        try:
            if change.size is None:
                self._api.delete(CLAIM, place, name)
            elif change.is_new:
                self._api.apply(volumes.claim(namespace_id, change.kind, change.size, self._options))
            else:
                grown = {"spec": {"resources": {"requests": {"storage": str(change.size)}}}}
                self._api.patch(CLAIM, place, name, grown)
        except SpecRejected as error:
            remedy = f"Check the StorageClass {self._options.volume_class} (tasks.volume_class)."
            raise Misconfigured(
                f"The cluster refuses the {change.kind} volume: {error.message}", remedy=remedy
            ) from error


def _lacks_something(live: Raw) -> bool:
    status = live.get("status") or {}
    return status.get("phase") != "Bound" or bool(volumes.state_of(live, []).message)
