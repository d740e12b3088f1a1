"""Make the namespaces of a cluster, keep them in shape, and remove them.

What is there is read and compared; only what differs is written. So a look costs a handful of reads, and what somebody
edited or deleted is back after the next one. Not here: what a namespace should be (`namespaces`), and when to look.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from yardmaster.engines.base import Remains
from yardmaster.engines.kubernetes import names, namespaces
from yardmaster.engines.kubernetes.api import Api
from yardmaster.engines.kubernetes.options import TaskOptions
from yardmaster.engines.kubernetes.podfacts import is_ending
from yardmaster.errors import Misconfigured, SpecRejected, Unavailable
from yardmaster.ledger import Quota


class Shaper:
    """May be shared by threads. Two that shape the same namespace at once do the same."""

    def __init__(self, api: Api, options: TaskOptions) -> None:
        self._api, self._options = api, options
        self._ours: set[uuid.UUID] = set()

    def refuse_anothers(self, namespace_id: uuid.UUID) -> None:
        """Raises `Misconfigured` where the cluster's namespace is there and somebody else's. Of one that was seen to be
        ours the server is not asked again, until it is shaped or removed."""
        if namespace_id in self._ours:
            return
        live = self._api.get("Namespace", "", names.namespace_name(namespace_id, self._options))
        if live is not None:
            self._must_be_ours(live, namespace_id)
            self._ours.add(namespace_id)

    def shape(self, namespace_id: uuid.UUID, quota: Quota, portal_url: str) -> tuple[str, ...]:
        """Everything. Returns what was made or changed. Raises `Misconfigured`, and writes nothing, where a namespace
        of that name is somebody else's."""
        wanted = namespaces.base(namespace_id, portal_url, self._options)
        return self._mend(namespace_id, [*wanted, *namespaces.bounds(namespace_id, quota, self._options)])

    def remove(self, namespace_id: uuid.UUID) -> Remains:
        """Tell the namespace to go, once, and say what there is of it."""
        name = names.namespace_name(namespace_id, self._options)
        self._ours.discard(namespace_id)
        live = self._api.get("Namespace", "", name)
        refusal = namespaces.why_not_ours(live, namespace_id, self._options) if live is not None else None
        if refusal is not None:
            return Remains(gone=False, left=(f"{refusal.message} {refusal.remedy}",))
        if live is not None and not is_ending(live):
            self._api.delete("Namespace", "", name)
            live = self._api.get("Namespace", "", name)
        if live is None:
            return Remains(gone=True)
        # A namespace that ends takes its pods before its Jobs. A Job keeps hold of its last failed pod until it has
        # made the next one, which it may not any more: each would wait for the other for ever.
        if self._api.find("Job", name):
            self._api.delete_all("Job", name)
        return Remains(gone=False, left=namespaces.what_holds_up(live) or (f"Namespace {name} is being removed.",))

    def _must_be_ours(self, live: Mapping[str, Any], namespace_id: uuid.UUID) -> None:
        refusal = namespaces.why_not_ours(live, namespace_id, self._options)
        if refusal is not None:
            self._ours.discard(namespace_id)
            raise refusal

    def _mend(self, namespace_id: uuid.UUID, wanted: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
        changed = []
        for one in wanted:
            kind, metadata = one["kind"], one["metadata"]
            live = self._api.get(kind, metadata.get("namespace", ""), metadata["name"])
            if live is not None and is_ending(live):
                raise Unavailable(f"{kind} {metadata['name']} is being removed.", remedy="It is made anew after that.")
            if live is not None and kind == "Namespace":
                self._must_be_ours(live, namespace_id)
            if live is not None and namespaces.is_kept(one, live):
                continue
            self._apply(one)
            changed.append(f"{kind}/{metadata['name']}")
            if kind == "RoleBinding":  # which takes a moment to be heeded
                raise Unavailable("The cluster's namespace was made just now; the job goes on in a moment.")
        return tuple(changed)

    def _apply(self, manifest: Mapping[str, Any]) -> None:
        """Nothing of these objects is a user's to change."""
        try:
            self._api.apply(manifest)
        except SpecRejected as error:
            what = f"{manifest['kind']} {manifest['metadata']['name']}"
            raise Misconfigured(
                f"The cluster refuses the {what}: {error.message}", remedy="See docs/kubernetes.md."
            ) from error
