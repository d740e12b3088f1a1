"""The claims of users' homes, once they are made: what each takes, and its removal. Made by a submission."""

from __future__ import annotations

import uuid

from yardmaster.engines.base import HomeUse
from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.client.errors import Absent, Forbidden
from yardmaster.engines.kubernetes.client.objects import Raw, is_ending
from yardmaster.engines.kubernetes.namespaces.shaper import Shaper
from yardmaster.engines.kubernetes.namespaces.volumes import requested
from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.notebooks import home_name
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.engines.kubernetes.render.volumes import CLAIM
from yardmaster.quantity import parse_memory


class HomeKeeper:
    """May be shared by threads."""

    def __init__(self, api: Api, options: TaskOptions, shaper: Shaper) -> None:
        self._api, self._options, self._shaper = api, options, shaper

    def size(self) -> int | None:
        """As `KeepsHomes.home_size`."""
        return parse_memory(self._options.home_size) if self._options.home_size else None

    def use(self, namespace_id: uuid.UUID, owner_id: uuid.UUID) -> HomeUse:
        """What its claim asks for, whatever the options say now."""
        live = self._live(namespace_id, owner_id)
        return HomeUse(0 if live is None else requested(live))

    def remove(self, namespace_id: uuid.UUID, owner_id: uuid.UUID) -> bool:
        """As `KeepsHomes.remove_home`. The cluster keeps the claim while a pod uses it."""
        live = self._live(namespace_id, owner_id)
        if live is not None and not is_ending(live):
            self._api.delete(CLAIM, self._place(namespace_id), home_name(owner_id))
            live = self._live(namespace_id, owner_id)
        return live is None

    def _live(self, namespace_id: uuid.UUID, owner_id: uuid.UUID) -> Raw | None:
        """None also where the cluster has no such namespace."""
        try:
            return self._api.get(CLAIM, self._place(namespace_id), home_name(owner_id))
        except (Absent, Forbidden) as error:
            # Rights that are bound in the namespace go with it, and with their binding.
            if isinstance(error, Forbidden) and self._shaper.is_open(namespace_id):
                raise
            return None

    def _place(self, namespace_id: uuid.UUID) -> str:
        return names.namespace_name(namespace_id, self._options)
