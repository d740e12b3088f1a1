"""Submit a run: make its objects in order, or finish what was begun before. The last write is the leading task's
workload, so that all are there when it is seen.

Nothing is made beside what the cluster is still deleting, nor where the portal has made no place. Not here: what the
objects are (`manifests`), and what becomes of a run that was asked to end meanwhile (`engine`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from yardmaster.engines.base import TaskAccess
from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.client.errors import Absent, Forbidden, Left
from yardmaster.engines.kubernetes.client.objects import is_ending
from yardmaster.engines.kubernetes.namespaces.pull_secrets import copy_for_run
from yardmaster.engines.kubernetes.namespaces.shaper import Shaper
from yardmaster.engines.kubernetes.observe.roles import lives
from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.manifests import JOBS, SETS, TO_BE_KNOWN, Run, with_uids, workload_kind
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.engines.kubernetes.render.record import RECORD, RunShape, in_order_of_application, released_in
from yardmaster.errors import EngineNamespaceMissing, SpecRejected, Unavailable
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role, TrainingSpec


class Submitter:
    """May be shared by threads. Two that submit the same run at once do the same."""

    def __init__(self, api: Api, options: TaskOptions, shaper: Shaper) -> None:
        self._api, self._options, self._shaper = api, options, shaper

    def submit(self, spec: TrainingSpec, key: JobKey, access: TaskAccess) -> dict[str, Any] | None:
        """Returns the owner of what was made; None where there was nothing to do."""
        owner = self.owner(key)
        if owner is not None and self._is_settled(key, owner):
            return None
        run = Run.of(spec, key, access, self._options)
        run.refuse_impossible()
        pull_secrets = [
            copy_for_run(name, self._shaper.pull_secret(name), copy, key, TO_BE_KNOWN, self._options)
            for name, copy in run.pull_secrets.items()
        ]
        if owner is None:
            owner = self._make_owner(run, key, access)
        else:
            self._refuse_while_left(key, owner["metadata"]["uid"])
        uid = owner["metadata"]["uid"]
        for home in run.homes:
            self._make_home(home)
        for one in (*run.policies, *pull_secrets):
            self._api.apply(with_uids(one, uid))  # before the pods that it is about
        token = self._api.apply(with_uids(run.token, uid))
        self._apply([with_uids(one, uid, token["metadata"]["uid"]) for one in run.workloads], key)
        return owner

    def owner(self, key: JobKey) -> dict[str, Any] | None:
        """As it is now; None where it is not there."""
        return self._api.find_named("ConfigMap", self._namespace(key), key.name)

    # --- parts -------------------------------------------------------------------------------------------------------

    def _namespace(self, key: JobKey) -> str:
        return names.namespace_name(key.namespace_id, self._options)

    def _make_owner(self, run: Run, key: JobKey, access: TaskAccess) -> dict[str, Any]:
        """Where nothing is in its way, and the server takes what is to follow."""
        try:
            self._refuse_while_left(key)
            self._ask(run, key, access)
        except (Left, SpecRejected):
            if self.owner(key) is None:
                raise
            # Another process makes the run just now: what is there already cannot be tried again.
        return self._api.apply(run.owner)

    def _make_home(self, claim: Mapping[str, Any]) -> None:
        """Where it is not there. One that is stays as it is: another size or class is for new ones."""
        kind, metadata = claim["kind"], claim["metadata"]
        live = self._api.get(kind, metadata["namespace"], metadata["name"])
        if live is None:
            self._api.apply(claim)
        elif is_ending(live):
            message = f"{kind} {metadata['name']}, the home of this user's notebooks, is being removed."
            raise Unavailable(message, remedy="It is created again after that.")

    def _ask(self, run: Run, key: JobKey, access: TaskAccess) -> None:
        """Let the server judge the workloads before anything is made. Raises what it says, and what `Shaper.require`
        does. A place that is missing is not made here: a submission may come late, when the portal has removed it."""
        self._shaper.require(key.namespace_id, access.portal_url)
        try:
            for one in run.workloads_alone():
                self._api.apply(one, dry_run=True)
        except (Absent, Forbidden) as error:
            # Rights that are bound in the namespace go with it, and with their binding.
            if isinstance(error, Forbidden) and self._shaper.is_open(key.namespace_id):
                raise
            message = f"The cluster has no namespace {self._namespace(key)}, or the portal no rights in it."
            raise EngineNamespaceMissing(message, remedy="The portal creates it; then the job continues.") from error

    def _apply(self, workloads: Sequence[Mapping[str, Any]], key: JobKey) -> None:
        """In order. One that is there from before a cut-off and cannot become this was made under other settings, or by
        another version: then all go, lest one run be made of both, and `Left` is raised."""
        for one in workloads:
            labels = one["metadata"]["labels"]
            try:
                self._api.apply(one)
            except SpecRejected:
                if not self._is_there(key, Role(labels[names.ROLE]), labels[names.OWNER]):
                    raise
                for other in workloads:
                    self._api.delete(other["kind"], self._namespace(key), other["metadata"]["name"])
                raise Left(key.name) from None

    def _is_there(self, key: JobKey, role: Role, owner_uid: str) -> bool:
        """Whether this owner has the workload of this role."""
        labels = f"{names.OWNER}={owner_uid},{names.ROLE}={role.value}"
        return bool(self._api.find(workload_kind(role), self._namespace(key), labels))

    def _is_settled(self, key: JobKey, owner: Mapping[str, Any]) -> bool:
        """Whether there is nothing (more) to submit: the last workload is there, or something was asked to end."""
        if is_ending(owner):
            raise Left(key.name)
        if released_in(owner.get("data") or {}):
            return True
        last = in_order_of_application(RunShape.from_json(owner["data"][RECORD]).roles)[-1]
        return self._is_there(key, last, owner["metadata"]["uid"])

    def _refuse_while_left(self, key: JobKey, owner_uid: str = "") -> None:
        """Raises `Left` where there are workloads of another owner, or pods that run on without their workload: the
        cluster has yet to delete them."""
        place, labels = self._namespace(key), names.selector([key])
        pods = self._api.find("Pod", place, labels)  # before those that make them
        workloads = [one for kind in (JOBS, SETS) for one in self._api.find(kind, place, labels)]
        if any(one["metadata"]["labels"].get(names.OWNER) != owner_uid for one in workloads):
            raise Left(key.name)
        made = {one["metadata"]["uid"] for one in workloads}
        for pod in pods:
            makers = {one["uid"] for one in pod["metadata"].get("ownerReferences") or ()}
            if lives(pod) and not is_ending(pod) and not makers & made:
                raise Left(key.name)
