"""Make the namespaces of a cluster, keep them in shape, and remove them.

What is there is read and compared; only what differs is written. So a look costs a handful of reads, and what a user
edited or deleted is back after the next one. Not here: what a namespace should be (`namespaces`), and when to look.
"""

from __future__ import annotations

import contextlib
import uuid
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from yardmaster.engines.base import Remains
from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.client.errors import Conflict, Forbidden
from yardmaster.engines.kubernetes.client.objects import amount_of, is_ending, moment
from yardmaster.engines.kubernetes.namespaces import manifests as namespaces
from yardmaster.engines.kubernetes.namespaces.pull_secrets import copy_of, digest_of
from yardmaster.engines.kubernetes.render import names, policies
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.errors import EngineNamespaceMissing, Misconfigured, SpecRejected, Unavailable
from yardmaster.queueing.ledger import Quota

_EXACT = ("NetworkPolicy", "LimitRange")
"""Kinds in which more than was asked for means something else than was asked for."""


def is_kept(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Whether `live` says what `wanted` does. What others added is no matter of ours, but where it would undo it."""
    exact = wanted["kind"] in _EXACT
    for name, value in wanted.items():
        if name == "metadata":
            said, found = value, live["metadata"]
            if not all(
                _same(said[one], found.get(one) or {}, False) for one in ("labels", "annotations") if one in said
            ):
                return False
        elif name not in ("apiVersion", "kind") and not _same(value, live.get(name), exact):
            return False
    return True


def _same(wanted: Any, live: Any, exact: bool) -> bool:
    """Nothing and an empty list are the same, as servers leave those out. An empty table is not: as a selector it takes
    everything."""
    if wanted in (None, []) or live in (None, []):
        return wanted in (None, []) and live in (None, [])
    if {} in (wanted, live):
        return bool(wanted == live)
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        keys = {*wanted, *live} if exact else {*wanted}
        # A selector with one word more takes fewer, whatever it stands in.
        return all(_same(wanted.get(key), live.get(key), exact or key == "selector") for key in keys)
    if isinstance(wanted, list) and isinstance(live, list):
        return len(wanted) == len(live) and all(
            _same(one, other, exact) for one, other in zip(wanted, live, strict=True)
        )
    return bool(wanted == live or amount_of(wanted) == amount_of(live) != 0)


_BEFORE_ITS_RIGHTS = ("Namespace", "RoleBinding")
"""What is made where no right is bound yet: with the right to create, which is all that is given everywhere."""


_LAST_SECONDS = 30
"""Between SIGTERM and SIGKILL for what still runs in a namespace that is removed."""


def _has_long(pod: Mapping[str, Any]) -> bool:
    return int(pod["spec"].get("terminationGracePeriodSeconds") or 0) > _LAST_SECONDS


class Shaper:
    """May be shared by threads. Two that shape the same namespace at once do the same."""

    def __init__(self, api: Api, options: TaskOptions) -> None:
        self._api, self._options = api, options

    def require(self, namespace_id: uuid.UUID, portal_url: str) -> None:
        """Raises `EngineNamespaceMissing` where the namespace or something of what is in it is not there,
        `Misconfigured` where it belongs to another owner. It may have been deleted, and made by others, at any time: so
        it is looked at before every run. What its objects say is left to `shape`."""
        wanted = namespaces.base(namespace_id, portal_url, self._options)
        for one in [*wanted, *namespaces.bounds(namespace_id, Quota(), self._options)]:
            kind, metadata = one["kind"], one["metadata"]
            live = self._api.get(kind, metadata.get("namespace", ""), metadata["name"])
            if live is None:
                where = "" if kind == "Namespace" else f" in {metadata['namespace']}"
                message = f"The cluster has no {kind} {metadata['name']}{where}."
                raise EngineNamespaceMissing(message, remedy="The portal creates it; then the job continues.")
            _refuse_ending(live, one)
            if kind == "Namespace":
                self._must_be_ours(live, namespace_id)

    def is_open(self, namespace_id: uuid.UUID) -> bool:
        """Whether the cluster's namespace is there and, where rights are bound in it, that binding."""
        name = names.namespace_name(namespace_id, self._options)
        if self._api.get("Namespace", "", name) is None:
            return False
        return not self._options.bound_role or self._api.get("RoleBinding", name, names.US) is not None

    def shape(self, namespace_id: uuid.UUID, quota: Quota, portal_url: str) -> tuple[str, ...]:
        """Everything. Returns what was made or changed. Raises `Misconfigured`, and writes nothing, where a namespace
        of that name belongs to another owner."""
        copies = self._pull_secrets(namespace_id)
        wanted = namespaces.base(namespace_id, portal_url, self._options, digest_of(copies))
        account = next(at for at, one in enumerate(wanted) if one["kind"] == "ServiceAccount")
        wanted[account:account] = copies  # before what says that they are there
        return self._mend(namespace_id, [*wanted, *namespaces.bounds(namespace_id, quota, self._options)])

    def remove(self, namespace_id: uuid.UUID) -> Remains:
        """Tell the namespace to go, once, and say what there is of it."""
        name = names.namespace_name(namespace_id, self._options)
        live = self._api.get("Namespace", "", name)
        refusal = namespaces.why_not_ours(live, namespace_id, self._options) if live is not None else None
        if refusal is not None:
            return Remains(gone=False, left=(f"{refusal.message} {refusal.remedy}",))
        if live is not None and not is_ending(live):
            if self._end_tasks(name):
                return Remains(gone=False, left=("Its tasks are being ended.",))
            self._api.delete("Namespace", "", name)
            live = self._api.get("Namespace", "", name)
        if live is None:
            return Remains(gone=True)
        with contextlib.suppress(Forbidden):  # the binding of the rights may have gone before
            self._end_tasks(name)
        return Remains(gone=False, left=namespaces.what_holds_up(live) or (f"Namespace {name} is being removed.",))

    def _end_tasks(self, name: str) -> bool:
        """Whether there are pods with much time to end, which end now. A namespace that ends takes its pods before its
        Jobs. A Job keeps hold of its last failed pod until it has made the next one, which it may not any more: each
        would wait for the other for ever. And pods have an hour to upload what is removed with them: a namespace that
        ends with such pods is looked at again only after half of that, also where they are gone long before."""
        pods = [pod for pod in self._api.find("Pod", name) if _has_long(pod)]
        if pods:
            # Of a node that is gone, no pod ends by itself.
            late = datetime.now(UTC) - timedelta(seconds=_LAST_SECONDS)
            ends = [moment(pod["metadata"].get("deletionTimestamp")) for pod in pods]
            is_late = all(end is not None and end < late for end in ends)
            # Before the Jobs: with those, the pods would get the hour, and a kubelet keeps to what it hears first.
            self._api.delete_pods(name, "", 0 if is_late else _LAST_SECONDS)
        if self._api.find("Job", name):
            self._api.delete_all("Job", name)
        return bool(pods)

    def namespaces_there(self) -> tuple[uuid.UUID, ...]:
        """Of which namespaces of the portal there is one on the cluster that is ours; also one that goes."""
        found = self._api.find("Namespace", "", names.ours())
        known = ((namespaces.id_of(one), one) for one in found)
        return tuple(
            key
            for key, one in known
            if key is not None
            and one["metadata"]["name"] == names.namespace_name(key, self._options)
            and namespaces.why_not_ours(one, key, self._options) is None
        )

    def _must_be_ours(self, live: Mapping[str, Any], namespace_id: uuid.UUID) -> None:
        refusal = namespaces.why_not_ours(live, namespace_id, self._options)
        if refusal is not None:
            raise refusal

    def _pull_secrets(self, namespace_id: uuid.UUID) -> list[dict[str, Any]]:
        """What the namespace's copies should be. Raises `Misconfigured` where one cannot be copied."""
        wanted = self._options.image_pull_secrets if self._options.pull_secrets_from else ()
        return [copy_of(name, self.pull_secret(name), namespace_id, self._options) for name in wanted]

    def pull_secret(self, name: str) -> dict[str, Any] | None:
        """As it is where it is copied from; None where it is not there. Raises `Misconfigured` where the portal may not
        read it."""
        try:
            return self._api.get("Secret", self._options.pull_secrets_from, name)
        except Forbidden as error:  # a right of its own, which rights.yaml does not give
            remedy = f"Let it read the Secret {name} there: docs/kubernetes.md, Secrets to pull images with."
            raise Misconfigured(error.message, remedy=remedy) from error

    def _mend(self, namespace_id: uuid.UUID, wanted: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
        changed, to_do, met = [], deque(wanted), set[str]()
        while to_do:
            one = to_do.popleft()
            kind, metadata = one["kind"], one["metadata"]
            if kind == "Secret":  # which may not be read here: written again, it changes nothing where all is well
                self._apply(one, is_new=False, is_last=True)
                continue
            live = self._api.get(kind, metadata.get("namespace", ""), metadata["name"])
            if live is not None:
                _refuse_ending(live, one)
            if live is not None and kind == "Namespace":
                self._must_be_ours(live, namespace_id)
            if live is not None and is_kept(one, live):
                continue
            if live is not None and kind == "Namespace" and to_do[0]["kind"] == "RoleBinding":
                to_do.insert(1, one)  # the right to change it is bound in it
                continue
            if live is not None and namespaces.lets_all_speak(live):
                self._give_runs_policies(metadata["namespace"])
            if not self._apply(one, is_new=live is None, is_last=kind in met):
                met.add(kind)
                to_do.appendleft(one)
                continue
            changed.append(f"{kind}/{metadata['name']}")
            if kind == "RoleBinding":  # which takes a moment to be heeded
                raise Unavailable("The cluster's namespace was just created; the job continues in a moment.")
        return tuple(changed)

    def _give_runs_policies(self, namespace: str) -> None:
        """Runs from before each had its own continue under the namespace's, which is about to end that."""
        for owner in self._api.find("ConfigMap", namespace, names.ours()):
            key = names.key_from_labels(owner["metadata"].get("labels") or {})
            if key is not None and not is_ending(owner):
                self._api.apply(policies.policy(key, self._options, owner["metadata"]["uid"]))

    def _apply(self, manifest: Mapping[str, Any], is_new: bool, is_last: bool) -> bool:
        """Whether it was written. No: another process has made it meanwhile, and it is to be looked at once more. Where
        that was done (`is_last`), raises `Conflict`. Nothing of these objects is a user's to change."""
        try:
            if is_new and manifest["kind"] in _BEFORE_ITS_RIGHTS:
                self._api.create(manifest)
            else:
                self._api.apply(manifest)
            return True
        except Conflict:
            if is_last or not is_new:
                raise
            return False
        except Forbidden as error:
            if is_new and manifest["kind"] == "Namespace":
                raise namespaces.to_be_made(manifest, error) from error
            raise
        except SpecRejected as error:
            what = f"{manifest['kind']} {manifest['metadata']['name']}"
            raise Misconfigured(
                f"The cluster refuses the {what}: {error.message}", remedy="See docs/kubernetes.md."
            ) from error


def _refuse_ending(live: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raises `Unavailable` where it is on its way out."""
    if is_ending(live):
        what = f"{wanted['kind']} {wanted['metadata']['name']}"
        raise Unavailable(f"{what} is being removed.", remedy="It is created again after that.")
